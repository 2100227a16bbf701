// source: cloudflare-os issue 444
// rule: a verdict says whether code has run, and how many calls have left
// limits: {"cpu_ms_max":50}
// expected verdict: cpu {"started":true,"subrequests_sent":2}
export default { async run(_x, env) { await env.echo(1); await env.echo(2); for (;;); } };
