// source: deno issue 30351; vm2, category 19
// rule: an error that does not want to be looked at is an exception like any other
// expected throw: {}
export default [
  () => { throw Object.defineProperty(new Error("x"), "name", { get() { throw 1; } }); },
  () => { throw Object.assign(new Error("x"), { name: Symbol("n"), message: Symbol("m") }); },
  () => { throw new Proxy(new Error("x"), { get() { throw 1; } }); },
  () => { throw new Proxy({}, { get() { for (let i = 0; i < 10; i++); return new Proxy({}, {}); } }); },
  () => { throw { toString() { throw { toString() { throw 1; } }; } }; },
  () => { throw Object.setPrototypeOf(new Error("x"), null); },
  () => { throw Object.create(null); },
  () => { throw undefined; },
  () => { throw Symbol("x"); },
  () => { throw 1n; },
  () => { const error = new Error("x"); error.cause = error; throw error; },
  () => { throw new AggregateError([1, new Error("y")], "x"); },
  () => { Error.prepareStackTrace = () => { throw new Error("y"); }; throw new Error("x"); },
  () => { Error.stackTraceLimit = Infinity; throw new Error("x"); },
  () => { Error.stackTraceLimit = { valueOf() { throw 1; } }; throw new Error("x"); },
  () => { throw Object.defineProperty(new Error("x"), "stack", { get() { throw 1; } }); },
  () => { throw Object.assign(new Error("x"), { stack: { toString() { throw 1; } } }); },
  () => { throw new Error("x".repeat(1e6)); },
  () => { globalThis.Error = null; null.x; },
  () => { Error.prototype.toString = () => { throw 1; }; Object.prototype.toString = null; throw new Error("x"); },
];
