// source: cloudflare-os issue 444
// rule: a result that does not arrive says that all of the code has run
// limits: {"result_bytes_max":1000000}
// expected verdict: result_size {"started":true,"subrequests_sent":1}
export default { async run(_x, env) { await env.echo(1); return "x".repeat(2_000_000); } };
