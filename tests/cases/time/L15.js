// source: executor, runtime-quickjs
// rule: time that a call out takes is wall time and no CPU time
// limits: {"cpu_ms_max":10}
// expected: "in time"
export default [
  async (_x, env) => { await env.delay(300); return "in time"; },
  async (_x, env) => { await Promise.all([env.delay(300), env.delay(200)]); return "in time"; },
  async (_x, env) => { for (let i = 0; i < 10; i++) await env.delay(30); return "in time"; },
  async () => { await scheduler.wait(300); return "in time"; },
];
