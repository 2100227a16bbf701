// source: vm2 GHSA-x6m4-chr9-cg97
// rule: the places of a stack are of the worker's own modules
// open: the call sites include the frames of the prelude
// expected: []
export default {
  run(_) {
    Error.prepareStackTrace = (_error, sites) => sites.map((site) => site.getFileName()).filter((name) => name?.startsWith("coracle:"));
    try { return new Error("x").stack; } finally { delete Error.prepareStackTrace; }
  },
};
