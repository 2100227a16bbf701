// source: rquickjs issue 102
// rule: a loop of calls out ends by their number, exactly
// limits: {"subrequests_max":5}
// expected verdict: subrequests {"started":true,"limit":5,"subrequests_sent":5}
export default [
  async (_x, env) => { while (true) await env.echo(1); },
  async (_x, env) => { while (true) await env.echo(1).catch(() => {}); },
  async (_x, env) => { for (;;) try { await env.echo(1); } catch {} finally { continue; } },
  async (_x, env) => { await Promise.all(Array.from({ length: 100 }, () => env.echo(1))); },
  async (_x, env) => { for (let i = 0; i < 6; i++) env.echo(i); await scheduler.wait(1000); },
];
