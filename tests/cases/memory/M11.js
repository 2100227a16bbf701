// source: fastschema/qjs issue 47
// rule: source that nests without end is a fault of the load with a name, and the next load works
// expected: {"odd":[],"afterwards":"here"}
const code = (source) => ({ compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": source } });
const nests = [
  ["(", "1", ")"], ["[", "1", "]"], ["{ a: ", "1", "}"], ["1 ? ", "1", " : 1"], ["`${", "1", "}`"], ["-", "1", ""],
  ["() => ", "1", ""], ["f(", "1", ")"], ["new ", "f", ""], ["class extends ", "f", " {}"], ["async () => { await ", "1", "}"],
  ["function () { return ", "1", "}"], ["!", "1", ""], ["typeof ", "1", ""], ["1 + (", "1", ")"], ["a?.[", "1", "]"],
  ["[...", "[]", "]"], ["({ [", "1", "]: 1 })"], ["1 ** ", "1", ""], ["/(/.source + (", "1", ")"], ["f`${", "1", "}`"],
];
const statements = [
  ["{", "", "}"], ["if (1) ", ";", ""], ["for (;;) ", ";", ""], ["while (1) ", ";", ""], ["label: ", ";", ""], ["try {", "", "} finally {}"],
  ["switch (1) { case 1: ", ";", "}"], ["function f() {", "", "}"], ["class A { static {", "", "} }"], ["do ", ";", " while (0)"],
];
export default {
  async run(_x, env) {
    const odd = [];
    const tries = [
      ...nests.map(([open, inner, close]) => (n) => `export const value = ${open.repeat(n)}${inner}${close.repeat(n)};`),
      ...statements.map(([open, inner, close]) => (n) => `function nested() { ${open.repeat(n)}${inner}${close.repeat(n)} }`),
    ];
    for (const source of tries) {
      for (const depth of [5_000, 20_000]) {
        const text = `${source(depth)}\nexport default { run(_) { return 1 } };`;
        const worker = env.LOADER.load(code(text)).getEntrypoint();
        const outcome = await worker.run(0).then((value) => value, (error) => error.verdict?.kind ?? error.message);
        worker[Symbol.dispose]();
        if (!/^1$|^memory$|^startup$|\b(?:Syntax|Range|Reference|Type)Error\b/.test(outcome)) {
          odd.push([text.slice(0, 40), depth, outcome]);
        }
      }
    }
    const afterwards = await env.LOADER.load(code("export default { run(_) { return 'here' } }")).getEntrypoint().run(0);
    return { odd, afterwards };
  },
};
