// source: mcp-js issue 202; open-compute issue 67
// rule: jobs that make jobs are stopped like a loop
// limits: {"cpu_ms_max":50}
// expected verdict: cpu {"started":true,"limit":50}
export default [
  async () => { for (;;) await 0; },
  async () => { for await (const _ of (async function* () { for (;;) yield 1; })()); },
  () => { const flood = () => Promise.resolve().then(flood); return flood(); },
  () => new Promise(() => { const flood = () => queueMicrotask(flood); flood(); }),
  () => ({ then() { for (;;); } }),
  () => { const again = { then(resolve) { resolve(again); } }; return again; },
  () => new Promise(() => setTimeout(() => { for (;;); }, 1)),
  () => new Promise(() => { const again = () => setTimeout(again, 0); again(); for (;;); }),
  async () => { try { await Promise.reject(1); } catch { for (;;); } },
  () => Promise.resolve().finally(() => { for (;;); }),
  async () => { const registry = new FinalizationRegistry(() => { for (;;); }); registry.register({}, 1); await scheduler.wait(1); return registry; },
  () => new Promise((_, reject) => reject(1)).catch(() => { for (;;); }),
  async (_x, env) => { await env.echo(1); for (;;); },
  async () => { await new ReadableStream({ pull(controller) { controller.enqueue(1); } }).pipeTo(new WritableStream()); },
  async () => { for await (const _ of new ReadableStream({ pull(controller) { controller.enqueue(1); } })); },
  async () => { const { port1, port2 } = new MessageChannel(); port1.onmessage = () => { for (;;); }; port2.postMessage(1); await new Promise(() => {}); },
];
