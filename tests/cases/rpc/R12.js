// source: celld js.rs
// rule: each fault of a worker that a worker loads has its message
// expected: true
export default [
  ...[
    [{ mainModule: undefined }, /mainModule|No such module: undefined/], [{ mainModule: "other.js" }, /other\.js|main module/i], [{ modules: {} }, /module/i], [{ modules: undefined }, /modules/],
    [{ modules: { "main.js": 1 } }, /main\.js/], [{ modules: { "main.js": { nothing: "x" } } }, /main\.js/], [{ modules: { "main.js": "1", "cloudflare:workers": "1" } }, /cloudflare:workers/],
    [{ modules: { "main.js": "import './a.ts'; export default {}", "a.ts": "let a: = 1" } }, /a\.ts|SyntaxError|expect/i], [{ compatibilityDate: "yesterday" }, /yesterday|date/i], [{ compatibilityDate: "2999-01-01" }, /2999/],
    [{ compatibilityFlags: ["nothing_like_it"] }, /nothing_like_it/], [{ modules: { "main.js": { json: "{}" } } }, /main\.js|module/i], [{ env: 7 }, /env/], [{ modules: { "main.js": "1", "": "1" } }, /name|empty|module/i],
  ].map(([faulty, expected]) => async (_x, env) => {
    const code = { compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": "export default { run(_) { return 1 } }" }, ...faulty };
    try { await env.LOADER.load(code).getEntrypoint().run(0); return "it was taken"; }
    catch (error) { return expected.test(error.message) || error.message; }
  }),
];
