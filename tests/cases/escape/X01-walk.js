// source: vm2 issue 184
// rule: nothing that is reachable belongs to another realm, and no function of it makes code of text
// expected: {"foreign":[],"makers":[]}
export default {
  run(_x, env, ctx) {
    const seen = new Set(), foreign = [], makers = [];
    const queue = [[globalThis, "globalThis"], [env, "env"], [ctx, "ctx"], [import.meta, "import.meta"], [new Error("x"), "error"], [(() => {}).constructor, "Function"]];
    const knows = (object) => { for (let o = object; o !== null; o = Object.getPrototypeOf(o)) if (o === Object.prototype) return true; return false; };
    while (queue.length > 0) {
      const [object, path] = queue.shift();
      if (object === null || (typeof object !== "object" && typeof object !== "function") || seen.has(object) || path.length > 120) continue;
      seen.add(object);
      if (typeof object === "function" && !knows(object)) foreign.push(path);
      if (typeof object === "function" && !path.startsWith("env.") && /Function$|^eval$/.test(object.name)) {
        try { object("return globalThis"); makers.push(path); } catch { /* as it should be */ }
      }
      if (path.startsWith("env.")) continue;
      queue.push([Object.getPrototypeOf(object), `${path}.__proto__`]);
      for (const key of Reflect.ownKeys(object)) {
        const property = Object.getOwnPropertyDescriptor(object, key);
        for (const part of ["value", "get", "set"]) queue.push([property[part], `${path}.${String(key)}`]);
      }
    }
    return { foreign, makers };
  },
};
