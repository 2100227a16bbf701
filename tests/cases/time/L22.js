// source: LibreChat-AI/agents issue 194
// rule: a limit that makes no sense is refused with what is wrong with it
// expected: "TypeError: Value out of range. Must be less than or equal to 4294967295."
// expected: "TypeError: The value cannot be converted because it is negative and this API expects a positive number."
// expected: "TypeError: The value cannot be converted because it is not an integer."
export default [
  ...[1e12, 2 ** 53, -1, -(2 ** 40), NaN, "abc", "50ms", Infinity, -Infinity, 1.5, {}, [1, 2], () => 50].map((cpuMs) => async (_x, env) => {
    const code = { compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": "export default { run(_) { return 1 } }" }, limits: { cpuMs } };
    try { return await env.LOADER.load(code).getEntrypoint().run(0); } catch (error) { return `${error.name}: ${error.message}`; }
  }),
];
