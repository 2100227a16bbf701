// source: vm2 issue 548
// rule: what a worker does to prototypes and built-ins changes nothing of what is ours
// expected: "still here"
export default [
  () => { Object.setPrototypeOf(Object.prototype, null); return "still here"; },
  () => { delete Promise.prototype.then; return "still here"; },
  () => { Promise.prototype.then = () => { throw 1; }; return "still here"; },
  () => { Promise.resolve = Promise.reject = null; return "still here"; },
  () => { Array.prototype[Symbol.iterator] = null; return "still here"; },
  () => { Object.defineProperty(Object.prototype, "value", { set() { throw 1; }, get() { throw 1; } }); return "still here"; },
  () => { Object.defineProperty(Object.prototype, "then", { get() { return undefined; } }); return "still here"; },
  () => { for (const key of ["get", "set", "done", "0", "length"]) Object.prototype[key] = () => { throw 1; }; return "still here"; },
  () => { Map.prototype.get = Map.prototype.set = WeakMap.prototype.get = () => { throw 1; }; return "still here"; },
  () => { Function.prototype.call = Function.prototype.apply = Function.prototype.bind = null; return "still here"; },
  () => { Reflect.apply = Reflect.get = Reflect.ownKeys = null; return "still here"; },
  () => { globalThis.Object = globalThis.Array = globalThis.Promise = globalThis.Map = null; return "still here"; },
  () => { for (const key of Object.getOwnPropertyNames(globalThis)) if (key !== "JSON") try { delete globalThis[key]; } catch {} return "still here"; },
  () => { try { Symbol.iterator = 1; } catch {} return "still here"; },
  () => { try { Object.freeze(globalThis); } catch {} return "still here"; },
  () => { Object.freeze(Object.prototype); Object.freeze(Array.prototype); Object.freeze(Promise.prototype); return "still here"; },
  () => { String.prototype.toString = () => "gone"; return "still here"; },
  () => { Object.prototype.toJSON = () => "still here"; return {}; },
  async () => { Object.setPrototypeOf(Promise.prototype, new Proxy({}, { get() { return undefined; } })); return "still here"; },
  async (_x, env) => { Array.prototype.push = Array.prototype.map = () => { throw 1; }; return env.echo("still here"); },
];
