// source: built-ins that run long
// rule: built-ins that take whatever an iterator gives are stopped
// limits: {"cpu_ms_max":50}
// expected verdict: cpu|memory
export default [
  () => new Map(Array.from({ length: 1e7 }, (_, i) => [i, i])),
  () => new Set(Array(1e6).keys()).union(new Set(Array(1e7).keys())),
  () => { const all = new Map(); for (let i = 0; ; i++) all.set(i * 2 ** 32, i); },
  () => { const all = new Set(Array(1e5).keys()); for (const x of all) { all.delete(x); all.add(x); } },
  () => new Set({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => new Set().union({ size: 1, has() {}, keys: () => ({ next: () => ({ value: 1 }) }) }),
  () => Promise.all({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => Promise.race({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => Object.fromEntries({ [Symbol.iterator]: () => ({ next: () => ({ value: [1, 1] }) }) }),
  () => Object.groupBy({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }, () => 1),
  () => Array.from({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => Array.fromAsync({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => Uint8Array.from({ [Symbol.iterator]: () => ({ next: () => ({ value: 1 }) }) }),
  () => Iterator.from({ next: () => ({ value: 1 }) }).toArray(),
  () => Iterator.from({ next: () => ({ value: 1 }) }).drop(1e15).next(),
  () => Iterator.from({ next: () => ({ value: 1 }) }).filter(() => false).next(),
  () => Iterator.from({ next: () => ({ value: 1 }) }).flatMap(() => []).next(),
  () => Iterator.from({ next: () => ({ value: 1 }) }).every(() => true),
  () => new Headers({ [Symbol.iterator]: () => ({ next: () => ({ value: ["a", "b"] }) }) }),
  () => new Blob({ [Symbol.iterator]: () => ({ next: () => ({ value: "x" }) }) }),
  () => AbortSignal.any({ [Symbol.iterator]: () => ({ next: () => ({ value: AbortSignal.timeout(1e6) }) }) }),
  () => Object.getOwnPropertyNames(new Uint8Array(4e7)),
  () => Object.keys(Array(1e6).fill(0)).map((x) => Object.keys(Array(1e6).fill(x))),
  () => { const p = new Proxy({}, { ownKeys: () => Array.from({ length: 1e6 }, (_, i) => "k" + i) }); for (;;) Reflect.ownKeys(p); },
  () => { const o = {}; for (let i = 0; ; i++) { o["k" + i] = i; delete o["k" + (i - 1)]; } },
  () => { let f = () => 1; for (;;) f = f.bind(null); },
];
