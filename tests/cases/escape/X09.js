// source: iterate issues 1614 and 2329
// rule: an id means nothing to whoever did not load it, and one with other code is told apart
// expected: {"again":2,"child":"other","none":[1,1]}
const source = (value) => ({
  compatibilityDate: "2026-06-01", mainModule: "main.js",
  modules: { "main.js": `let calls = 0; export default { run(_) { calls++; return ${JSON.stringify(value)} ?? calls; } };` },
});
export default {
  async run(_x, env) {
    const own = () => env.LOADER.get("same-id", () => source(null)).getEntrypoint();
    await own().run(0);
    const again = await own().run(0);
    const child = env.LOADER.load({
      compatibilityDate: "2026-06-01", mainModule: "main.js", env: { LOADER: env.LOADER },
      modules: { "main.js": `export default { run(_, env) { return env.LOADER.get("same-id", () => (${JSON.stringify(source("other"))})).getEntrypoint().run(0); } };` },
    });
    const none = () => env.LOADER.get(null, () => source(null)).getEntrypoint().run(0);
    return { again, child: await child.getEntrypoint().run(0), none: [await none(), await none()] };
  },
};
