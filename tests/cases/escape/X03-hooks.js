// source: deno issue 30351; vm2, category 19
// rule: a stack that is made by the worker gives it its own places and nothing that can be called on
// expected: []
export default [
  ...[
    (error, sites) => sites.flatMap((site) => [site.getThis?.(), site.getFunction?.(), site.getTypeName?.()]).filter((x) => x !== undefined && x !== null),
    (error, sites) => [Object.getPrototypeOf(sites) === Array.prototype, sites.every((site) => typeof site === "object")].filter((x) => !x),
    (error, sites) => sites.map((site) => site.constructor).filter((f) => typeof f === "function" && f !== Object && f.name !== "CallSite"),
  ].map((prepare) => () => {
    Error.prepareStackTrace = prepare;
    try { return new Error("x").stack ?? []; } finally { delete Error.prepareStackTrace; }
  }),
];
