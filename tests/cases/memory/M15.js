// source: ggcode issue 1316
// rule: who writes to the console without end is stopped, and what is kept is bounded all the while
// limits: {"cpu_ms_max":50,"memory_bytes_max":67108864}
// expected verdict: cpu {"started":true}
export default [
  () => { while (true) console.log("x"); },
  () => { while (true) console.error("x".repeat(10_000)); },
  () => { while (true) console.log("x".repeat(1_000_000)); },
  () => { while (true) console.table([{ a: 1, b: 2 }]); },
  () => { while (true) console.log(Array(1_000).fill({ a: { b: { c: 1 } } })); },
  () => { while (true) console.trace("\n".repeat(1000)); },
  () => { while (true) console.warn("%s %o", "x", new Map([[1, 2]])); },
  async () => { while (true) { console.log("x"); await null; } },
  () => { while (true) Promise.reject(new Error("x")); },
  () => { while (true) reportError(new Error("x")); },
];
