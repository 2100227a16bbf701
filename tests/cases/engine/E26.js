// source: quickjs-ng, SECURITY.md; bellard/quickjs issue 499; quickjs-ng issue 1518
// rule: nobody brings bytecode or WebAssembly: what is no source is a SyntaxError, and no module of another kind is taken
// expected: ["SyntaxError","SyntaxError","SyntaxError","TypeError","data stays data"]
const code = (modules) => ({ compatibilityDate: "2026-06-01", mainModule: "main.js", modules });
const outcome = async (env, modules) => {
  try { return await env.LOADER.load(code(modules)).getEntrypoint().run(0); } catch (error) { return error.message.match(/SyntaxError/)?.[0] ?? error.name; }
};
const bytecode = [0x16, 0x05, 0x1a, 0x6d, 0x61, 0x69, 0x6e, 0x2e, 0x6a, 0x73, 0x0d, 0xc8, 0x01, 0x00];
const wasm = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00];
export default {
  async run(_x, env) {
    return [
      await outcome(env, { "main.js": String.fromCharCode(...bytecode) }),
      await outcome(env, { "main.js": String.fromCharCode(...wasm) }),
      await outcome(env, { "main.js": "import './b.js'; export default { run(_) { return 1 } }", "b.js": "\u0000asm\u0001" }),
      await outcome(env, { "main.js": "export default { run(_) { return 1 } }", "b.wasm": { wasm: new Uint8Array(wasm) } }),
      await outcome(env, { "main.js": "import data from './b.bin'; export default { run(_) { return data instanceof ArrayBuffer ? 'data stays data' : 'code' } }", "b.bin": { data: new Uint8Array(wasm) } }),
    ];
  },
};
