// source: deno issue 30351; vm2, category 19
// rule: what a worker does to the making of stacks shows it no object of ours, and throws at nobody else
// expected: {"kinds":["undefined","undefined"],"stack":"string"}
export default {
  run(_) {
    const kinds = [];
    Error.prepareStackTrace = (_error, sites) => {
      for (const site of (sites ?? []).slice(0, 2)) kinds.push(typeof site.getThis?.());
      return "made up";
    };
    const error = new Error("x");
    void error.stack;
    while (kinds.length < 2) kinds.push("undefined");
    error.name = Symbol();
    let stack;
    try { stack = typeof error.stack; } catch (thrown) { stack = thrown.name; }
    delete Error.prepareStackTrace;
    return { kinds: kinds.slice(0, 2), stack };
  },
};
