// source: openclaw issue 129209; rapidjson issue 1027
// rule: nesting never reaches anything of the host that recurses
// expected: true
export default [
  ...[
    async (env, deep) => env.echo(deep),
    async (env, deep) => env.echo({ deep: new Map([[deep, deep]]) }),
    async (env, deep) => env.LOADER.load({ compatibilityDate: "2026-06-01", mainModule: "m.js", modules: { "m.js": "export default { run(_) { return 1 } }" }, env: { deep } }).getEntrypoint().run(0),
    async (env, deep) => env.LOADER.load({ compatibilityDate: "2026-06-01", mainModule: "m.js", modules: { "m.js": "export default { run(_) { return 1 } }" } }).getEntrypoint(null, { props: { deep } }).run(0),
    async (_env, deep) => structuredClone(deep),
    async (_env, deep) => new MessageChannel().port1.postMessage(deep),
    async (_env, deep) => { throw Object.assign(new RangeError("x"), { deep }); },
  ].map((attempt) => async (_x, env) => {
    let deep = [];
    for (let i = 0; i < 100_000; i++) deep = [deep];
    try { await attempt(env, deep); return "it went through"; }
    catch (error) { return ["RangeError", "DataCloneError", "TypeError"].includes(error.name) || error.name; }
  }),
];
