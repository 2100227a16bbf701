// source: agents issue 1824
// rule: a name finds the worker that is there, and no name makes a fresh one each time
// expected: {"named":[1,2],"nameless":[1,1]}
const code = () => ({ compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": "let calls = 0; export default { run(_) { return ++calls } }" } });
export default {
  async run(_x, env) {
    const named = () => env.LOADER.get("a-name", code).getEntrypoint().run(0);
    const nameless = () => env.LOADER.load(code()).getEntrypoint().run(0);
    return { named: [await named(), await named()], nameless: [await nameless(), await nameless()] };
  },
};
