// source: quickjs-emscripten issue 257
// rule: less memory than the engine needs is a verdict, and nothing has run
// limits: {"memory_bytes_max":200000}
// expected verdict: memory {"started":false,"limit":200000}
export default { run(_) { const all = []; for (;;) all.push("x".repeat(100)); } };
