// source: mcp-js issue 202; open-compute issue 67
// rule: code that never ends is stopped by its CPU time, whatever it catches
// limits: {"cpu_ms_max":50}
// expected verdict: cpu {"started":true,"limit":50}
export default [
  () => { while (true) {} },
  () => { for (;;) try { while (true) {} } catch {} finally { continue; } },
  () => { function twice() { try { twice(); } catch { twice(); } } twice(); },
  () => ({ toJSON() { for (;;); } }),
  () => ({ get value() { for (;;); } }),
  () => new Proxy({}, { ownKeys() { for (;;); } }),
  () => `${{ [Symbol.toPrimitive]() { for (;;); } }}`,
  () => { Error.prepareStackTrace = () => { for (;;); }; return new Error("x").stack; },
  () => { for (const _ of { [Symbol.iterator]: () => ({ next: () => ({ done: false }) }) }); },
  () => { [2, 1].sort(() => { for (;;); }); },
  () => { "x".replace(/x/, () => { for (;;); }); },
  () => {
    const target = new EventTarget();
    target.addEventListener("x", () => { for (;;); });
    target.dispatchEvent(new Event("x"));
  },
  () => {
    const controller = new AbortController();
    controller.signal.onabort = () => { for (;;); };
    controller.abort();
  },
  () => structuredClone({ get value() { for (;;); } }),
  (_x, env) => env.echo({ get value() { for (;;); } }),
  () => { console.log(new Proxy({}, { get() { for (;;); } })); for (;;); },
];
