// source: side channels
// rule: there is no memory to share, no clock that moves while code runs, and no WebAssembly
// expected: {"absent":["SharedArrayBuffer","Atomics","WebAssembly"],"moved":0}
export default {
  run(_) {
    const absent = ["SharedArrayBuffer", "Atomics", "WebAssembly"].filter((name) => !(name in globalThis));
    const before = performance.now();
    for (let i = 0; i < 100_000; i++);
    return { absent, moved: performance.now() - before };
  },
};
