// source: quickjs-emscripten issue 257
// rule: an isolate that ran out of memory in the middle of anything is let go of cleanly
// limits: {"memory_bytes_max":8388608,"cpu_ms_max":20000}
// expected verdict: memory {"started":true,"limit":8388608}
export default [
  () => { const all = []; for (;;) all.push("x".repeat(100)); },
  () => { const all = []; for (;;) { all.push({ all, next: () => all }); } },
  () => { const all = []; for (;;) { const node = { all }; node.self = node; all.push(new WeakRef(node), node); } },
  () => [1, 2, 3].sort(() => { const all = []; for (;;) all.push({}); }),
  () => JSON.parse("[1]", () => { const all = []; for (;;) all.push({}); }),
  () => "x".replace(/x/, () => { const all = []; for (;;) all.push({}); }),
  () => Array.from({ length: 1 }, () => { const all = []; for (;;) all.push({}); }),
  () => new (class { constructor() { const all = []; for (;;) all.push({}); } })(),
  () => new Proxy({}, { get() { const all = []; for (;;) all.push({}); } }).x,
  async () => { for await (const _ of (async function* () { const all = []; for (;;) all.push({}); })()); },
  () => structuredClone({ get x() { const all = []; for (;;) all.push({}); } }),
  () => ({ toJSON() { const all = []; for (;;) all.push({}); } }),
];
