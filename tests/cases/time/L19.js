// source: monty issue 419
// rule: who asks for no limits has the defaults
// expected verdict: fuel {"limit":10000000000}
// expected verdict: cpu {"limit":1000}
// expected verdict: wall {"limit":30000}
// expected verdict: memory {"limit":67108864}
// expected verdict: subrequests {"limit":256}
// expected verdict: result_size {"limit":33554432}
export default [
  () => { for (;;); },
  () => { for (const all = []; ; ) all.push(new Uint8Array(1e5)); },
  async (_x, env) => { for (;;) await env.echo(1); },
  () => "x".repeat(34_000_000),
];
