// source: values across calls
// rule: what can not cross a call is refused with its place
// expected throw: {"name":"DataCloneError"}
export default [
  (_x, env) => env.echo(Symbol("x")),
  (_x, env) => env.echo({ a: [1, Symbol.iterator] }),
  (_x, env) => env.echo(new WeakMap()),
  (_x, env) => env.echo({ deep: { ref: new WeakRef({}) } }),
  (_x, env) => env.echo(new (class Own {})()),
  (_x, env) => env.echo([Promise.resolve(1)]),
  (_x, env) => env.echo(new Map([[Symbol("x"), 1]])),
  (_x, env) => env.echo(Object.create({ inherited: 1 })),
  (_x, env) => env.echo((function* () {})()),
  (_x, env) => env.echo(new AbortController().signal),
  () => structuredClone(() => {}),
  () => structuredClone(Symbol("x")),
  () => { const buffer = new ArrayBuffer(1); buffer.transfer(); return structuredClone(buffer); },
];
