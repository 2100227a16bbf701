// source: vm2, category 1
// rule: no way of making code of text is open, however it is come by
// expected: "EvalError"
export default [
  ...[
    () => eval("1"),
    () => (0, eval)("1"),
    () => globalThis["ev" + "al"]("1"),
    () => new Function("return 1")(),
    () => Function.prototype.constructor("return 1")(),
    () => (() => {}).constructor("return 1")(),
    () => Reflect.construct((() => {}).constructor, ["return 1"])(),
    () => Reflect.apply((async () => {}).constructor, null, ["return 1"]),
    () => Object.getPrototypeOf(async function* () {}).constructor("yield 1")(),
    () => new (class extends Function { constructor() { super("return 1"); } })()(),
    () => [].map.constructor("return 1")(),
    () => fetch.constructor("return 1")(),
    () => new Proxy(Function, {})("return 1")(),
    () => Function.bind(null, "return 1")()(),
    () => ["return 1"].map(Function)[0](),
    () => Array.from(["return 1"], (x) => Function(x))[0](),
  ].map((attempt) => () => { try { return attempt(); } catch (error) { return error.name; } }),
];
