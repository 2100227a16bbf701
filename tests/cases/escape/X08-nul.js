// source: deno issue 29980
// rule: a name with more behind it is another name
// open: the engine takes the NUL for the end of the name; only modules of the worker's own can be meant
// expected: "refused"
export default { run: (_) => import("./case.js\0").then(() => "found", () => "refused") };
