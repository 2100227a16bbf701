// source: celld issue 177; open-compute issue 91
// rule: what is in `env` works however deep it is, and what can not be there is refused with its place
// expected: true
export default [
  async (_x, env) => {
    const child = (given) => env.LOADER.load({
      compatibilityDate: "2026-06-01", mainModule: "main.js", env: given,
      modules: { "main.js": "export default { run(_, env) { return env.a[2].b({ n: 20 }) } }" },
    }).getEntrypoint();
    return await child({ a: [0, 1, { b: ({ n }) => n + 1 }] }).run(0) === 21;
  },
  ...[
    [{ a: [0, 1, { b: Symbol("x") }] }, "a[2].b"], [{ a: new WeakMap() }, "a"], [{ a: { b: [new (class Own {})()] } }, "a.b[0]"], [{ a: Promise.resolve(1) }, "a"],
  ].map(([given, place]) => async (_x, env) => {
    try { await env.LOADER.load({ compatibilityDate: "2026-06-01", mainModule: "main.js", env: given, modules: { "main.js": "export default { run(_) { return 1 } }" } }).getEntrypoint().run(0); return "it was taken"; }
    catch (error) { return error.message.includes(place) || error.message; }
  }),
];
