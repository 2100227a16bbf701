// source: deno issues 4383 and 29980; vm2, category 13
// rule: no import of any form reads a file, an address or a module of the host
// expected throw: {}
export default [
  ...[
    "file:///etc/passwd", "/etc/passwd", "//etc/passwd", "../../../etc/passwd", "./../case.js/../../x", "data:text/javascript,export default 1", "blob:x",
    "http://127.0.0.1/x.js", "https://a.example/x.js", "node:fs", "fs", "node:process", "std", "os", "qjs:std", "qjs:os", "bjson", "bun", "npm:x", "jsr:x",
    "cloudflare:nothing", "cloudflare:workers?x", "CLOUDFLARE:WORKERS", "coracle:prelude", "coracle:main", "wasm:x", "", " ", ".", "./", "/", "..", "#x",
    "case.js#x", "./CASE.JS", "%63ase.js", "\ud800", "x".repeat(100_000), "javascript:1", "about:blank", "internal:x", "main.js/../case.js/x",
  ].map((name) => () => import(name)),
  () => import({ toString: () => "node:fs" }),
  () => import({ toString: () => { throw new Error("x"); } }),
  () => require("fs"),
];
