// source: vm2 GHSA-x6m4-chr9-cg97
// rule: no error of ours tells where the server or the engine is
// expected: []
export default [
  ...[
    () => null.x,
    () => new Uint8Array(-1),
    () => new TextDecoder("nothing"),
    () => new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array([255])),
    () => crypto.getRandomValues(new Float32Array(1)),
    () => crypto.subtle.digest("nothing", new Uint8Array(1)),
    () => crypto.subtle.importKey("raw", new Uint8Array(3), "AES-GCM", false, ["encrypt"]),
    () => new Headers({ "a b": "c" }),
    () => new Request("nowhere"),
    () => fetch("https://nowhere.example/"),
    () => new WebSocket("ftp://nowhere.example/"),
    () => import("./nothing.js"),
    () => new ReadableStream().getReader({ mode: "nothing" }),
    () => new Response(null, { status: 1 }),
    () => structuredClone(Symbol("x")),
    () => new Response("x").json(),
    () => new Response(new Blob(["x"]).stream().pipeThrough(new DecompressionStream("gzip"))).text(),
    () => AbortSignal.abort().throwIfAborted(),
    () => new AbortController().abort(new Error("x")) ?? Symbol() + "",
    (env) => env.echo(Symbol("x")),
    (env) => env.echo.nothing(),
    (env) => env.LOADER.load({}),
    (env) => env.LOADER.load({ compatibilityDate: "2026-06-01", mainModule: "m.js", modules: { "m.js": "{" } }).getEntrypoint().run(0),
    (env) => env.LOADER.load({ compatibilityDate: "2026-06-01", mainModule: "m.js", modules: { "m.js": "throw new Error('x')" } }).getEntrypoint().run(0),
  ].map((attempt) => async (_x, env) => {
    try { await attempt(env); return ["nothing was thrown"]; }
    catch (error) {
      const told = [String(error), error.stack ?? "", JSON.stringify({ ...error }), String(error.cause)].join("\n");
      return told.match(/coracle:|\.rs\b|wasm|quickjs|\/(?:home|usr|root|work|src|tmp)\/|0x[0-9a-f]{6}/gi) ?? [];
    }
  }),
];
