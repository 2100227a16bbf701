// source: openclaw issue 129209
// rule: a result that nests too deep is a verdict
// expected verdict: value_depth {"started":true}
// expected throw: {"name":"RangeError"}
// expected throw: {"name":"DataCloneError"}
export default [
  async (_x, env) => { let deep = []; for (let i = 0; i < 1_000; i++) deep = [deep]; await env.echo(deep); },
  async (_x, env) => { let deep = new Error("x"); for (let i = 0; i < 1_000; i++) deep = new Error("x", { cause: deep }); await env.echo(deep); },
];
