// source: workflow issue 3342
// rule: isolates that are made of one snapshot have randomness of their own
// expected: {"different":[4,4,4,4]}
const source = `export default { run(_) {
  return [Math.random(), crypto.randomUUID(), String(crypto.getRandomValues(new Uint32Array(4))), [1, 2].map(() => Math.random()).join()];
} };`;
export default {
  async run(_x, env) {
    const code = { compatibilityDate: "2026-06-01", mainModule: "main.js", modules: { "main.js": source } };
    const drawn = await Promise.all(Array.from({ length: 4 }, () => env.LOADER.load(code).getEntrypoint().run(0)));
    return { different: drawn[0].map((_, kind) => new Set(drawn.map((values) => values[kind])).size) };
  },
};
