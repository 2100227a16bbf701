// source: workerd, startup exceptions
// rule: a worker whose module throws fails at each call and is never half there
// expected: ["Error","Error"]
export default {
  async run(_x, env) {
    const worker = env.LOADER.load({
      compatibilityDate: "2026-06-01", mainModule: "main.js",
      modules: { "main.js": "globalThis.half = 1; throw new Error('at the start'); export default { run(_) { return 'half' } }" },
    }).getEntrypoint();
    const failed = () => worker.run(0).catch((error) => error.name);
    return [await failed(), await failed()];
  },
};
