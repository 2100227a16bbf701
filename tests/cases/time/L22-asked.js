// source: LibreChat-AI/agents issue 194
// rule: a limit that is too high, or none, changes nothing
// limits: {"fuel_max":300000000}
// expected: "fuel"
export default [
  ...[0, -0, null, undefined, 4_294_967_295, 10_000].map((cpuMs) => async (_x, env) => {
    const code = { compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": "export default { run(_) { for (;;); } }" }, limits: { cpuMs } };
    return env.LOADER.load(code).getEntrypoint().run(0).catch((error) => error.verdict.kind);
  }),
];
