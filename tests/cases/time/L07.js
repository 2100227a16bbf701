// source: quickjs.rb issue 88
// rule: who only waits is stopped by the wall clock, though no code of its runs
// limits: {"wall_ms_max":100,"cpu_ms_max":50}
// expected verdict: wall {"started":true,"limit":100}
export default [
  async () => { await new Promise((done) => setTimeout(done, 5000)); },
  async () => { await scheduler.wait(5000); },
  async () => { await new Promise(() => setInterval(() => {}, 20)); },
  async () => { const again = () => setTimeout(again, 20); again(); await new Promise(() => {}); },
  async (_x, env) => { await env.delay(5000); },
  async (_x, env) => { await env.never(); },
  async (_x, env) => { await Promise.all([env.never(), env.never(), env.delay(5000)]); },
  async () => { await new Promise((done) => AbortSignal.timeout(5000).addEventListener("abort", done)); },
  async () => { for await (const _ of new ReadableStream({ pull: () => scheduler.wait(5000) })); },
];
