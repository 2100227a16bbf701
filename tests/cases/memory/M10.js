// source: quickjs-ng issue 1460
// rule: text that nests without end is an exception that can be caught, and the worker goes on
// expected: ["SyntaxError",2]
// expected: ["RangeError",2]
export default [
  ...[
    () => JSON.parse(Array(2949).join("[")),
    () => JSON.parse("[".repeat(1e5)),
    () => JSON.parse("[".repeat(1e6)),
    () => JSON.parse("[".repeat(1e5) + "]".repeat(1e5)),
    () => JSON.parse('{"a":'.repeat(1e5)),
    () => JSON.parse('{"a":'.repeat(1e5) + "1" + "}".repeat(1e5)),
    () => JSON.parse('[{"a":'.repeat(1e5)),
    () => JSON.parse(" [\n".repeat(1e6)),
    () => JSON.parse("[".repeat(1e6), (_k, v) => v),
    () => new RegExp("(".repeat(1e5)),
    () => new RegExp("(?:".repeat(1e5) + ")".repeat(1e5)),
    () => new RegExp("[".repeat(1e5) + "]".repeat(1e5), "v"),
  ].map((attempt) => () => {
    try { attempt(); return "nothing was thrown"; }
    catch (error) { return [error.name, JSON.parse("[[2]]")[0][0]]; }
  }),
];
