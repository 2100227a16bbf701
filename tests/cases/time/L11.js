// source: rquickjs issue 628
// rule: a limit that is hit while a call out is in flight ends the call at once, and the late answer is dropped
// limits: {"cpu_ms_max":50}
// expected verdict: cpu {"started":true,"subrequests_sent":1}
export default [
  async (_x, env) => { env.never(); await env; for (;;); },
  async (_x, env) => { env.delay(100).then(() => console.log("late")); await null; for (;;); },
  async (_x, env) => { const late = env.delay(1); await null; for (;;) late.then(() => {}); },
  async (_x, env) => { env.echo(() => 1); await null; for (;;); },
];
