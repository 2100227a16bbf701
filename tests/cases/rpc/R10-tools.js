// source: workers-sdk issue 13263
// rule: a function of the client is called with the data, whatever it is
// expected: true
export default [
  ...[
    { a: [1, { b: 2 }] }, [[], {}], "text", 0, null, { deep: { er: { and: [{ deeper: true }] } } }, Array.from({ length: 1_000 }, (_, i) => ({ i })),
  ].map((data) => async (_x, env) => JSON.stringify(await env.echo(data)) === JSON.stringify(data)),
  async (_x, env) => (await env.echo(new Date(7))).getTime() === 7,
  async (_x, env) => (await env.echo({ tool: (n) => n * 2 })).tool(4).then((n) => n === 8),
  async (_x, env) => { const all = await Promise.all([1, 2, 3].map((n) => env.echo(n))); return all.join() === "1,2,3"; },
];
