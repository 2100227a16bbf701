// source: vm2 GHSA-x6m4-chr9-cg97
// rule: a stack names the worker's own modules only
// expected: {"foreign":[]}
export default {
  async run(_) {
    const stacks = [];
    const note = (f) => { try { f(); } catch (error) { stacks.push(error.stack); } };
    note(() => { throw new Error("mine"); });
    note(() => JSON.parse("{"));
    note(() => new URL("nowhere"));
    note(() => structuredClone(() => {}));
    try { await fetch("https://nowhere.example/"); } catch (error) { stacks.push(error.stack); }
    const frames = stacks.flatMap((stack) => stack.split("\n").filter((line) => line.includes(" at ")));
    return { foreign: frames.filter((line) => /coracle:|\.rs|wasm|\/[a-z]+\/[a-z]+\//.test(line)) };
  },
};
