// source: limits of code and of entrypoints
// rule: of the limits of the code and of the entrypoint the lower one holds
// expected: [["cpu",10],["cpu",10],["cpu",10],["subrequests",2],["subrequests",2]]
const source = `export default {
  loop(_) { for (;;); },
  async ask(_, env) { for (;;) await env.ask(1); },
}`;
const stopped = async (env, method, code, entrypoint) => {
  const worker = env.LOADER.load({
    compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": source },
    env: { ask: (x) => x }, limits: code,
  });
  const { kind, limit } = await worker.getEntrypoint(null, { limits: entrypoint })[method](0).then(() => "ended", (error) => error.verdict);
  return [kind, limit];
};
export default {
  async run(_x, env) {
    return [
      await stopped(env, "loop", { cpuMs: 50 }, { cpuMs: 10 }),
      await stopped(env, "loop", { cpuMs: 10 }, { cpuMs: 50 }),
      await stopped(env, "loop", {}, { cpuMs: 10 }),
      await stopped(env, "ask", { subRequests: 2 }, { subRequests: 4 }),
      await stopped(env, "ask", { subRequests: 4 }, { subRequests: 2 }),
    ];
  },
};
