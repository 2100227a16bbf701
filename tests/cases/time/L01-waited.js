// source: mcp-js issue 202
// rule: code that a call leaves running does not outlive its CPU time, and the call has its answer
// limits: {"cpu_ms_max":50}
// expected: "answered"
export default [
  (_x, _env, ctx) => { ctx.waitUntil(new Promise((done) => setTimeout(done, 1)).then(() => { for (;;); })); return "answered"; },
  () => { setTimeout(() => { for (;;); }, 1); return "answered"; },
];
