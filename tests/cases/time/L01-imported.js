// source: open-compute issue 67
// rule: a module that never ends is stopped though a call has imported it
// limits: {"cpu_ms_max":50}
// expected verdict: cpu {"started":true}
export default { async run(_) { await import("./endless.js"); } };
// module: endless.js
for (;;);
