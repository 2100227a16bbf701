// Everything that a worker can reach, and what it can do with it. Evaluated in a worker by globals.rs.
import * as workers from "cloudflare:workers";

const known = new Set(Reflect.ownKeys(globalThis));

// What no property leads to.
function hidden() {
  const sites = [];
  Error.prepareStackTrace = (error, all) => (sites.push(...all), error);
  console.log(new Proxy({}, { ownKeys: () => (new Error(), []) }));
  [1].sort(() => new Error()), new Error();
  Error.prepareStackTrace = undefined;
  const thrown = [];
  for (const fail of [
    () => null.x, () => eval("1"), () => new Function("1"), () => setTimeout("1"), () => structuredClone(() => 1),
    () => crypto.getRandomValues(5), () => new workers.WorkerEntrypoint().nope(), () => JSON.parse("{"), () => (function f() { f(); })(),
  ]) {
    try { fail(); } catch (error) { thrown.push(error); }
  }
  function sloppy() { return arguments; }
  return {
    sites, thrown, arguments: sloppy(1), generator: (function* () {})(), asyncGenerator: (async function* () {})(),
    async: async () => {}, arrayIterator: [][Symbol.iterator](), stringIterator: ""[Symbol.iterator](), mapIterator: new Map().entries(),
    setIterator: new Set().values(), regexpIterator: "".matchAll(/x/g), helper: [].values().map((x) => x), wrapped: Iterator.from({ next() {} }),
    match: /(?<a>.)/d.exec("x"), promise: Promise.resolve(1), fetched: fetch("https://a/").catch((error) => error), resolvers: Promise.withResolvers(), revocable: Proxy.revocable({}, {}),
    view: new DataView(new ArrayBuffer(1)), bytes: new Uint8Array(1), raw: String.raw, template: ((strings) => strings)`a${1}b`, weak: new WeakRef({}),
    descriptor: Object.getOwnPropertyDescriptor({ get a() { return 1; } }, "a"), symbol: Object(Symbol()), bigint: Object(1n),
    event: new Event("x"), paramsIterator: new URLSearchParams().entries(), streamIterator: new ReadableStream().values(),
    headersIterator: new Headers().entries(), formIterator: new FormData().entries(),
  };
}

// What is behind a stub is somewhere else: every name leads to one more.
const isStub = (it) => {
  try {
    return it instanceof workers.RpcStub || it instanceof workers.RpcPromise || it instanceof workers.RpcProperty;
  } catch {
    return false; // a revoked Proxy
  }
};

// [path, object] of everything from the roots on, breadth first.
export function walk(roots) {
  const found = new Map();
  let edge = Object.entries(roots);
  const isObject = (it) => (typeof it === "object" && it !== null) || typeof it === "function";
  while (edge.length > 0) {
    const next = [];
    for (const [path, object] of edge) {
      if (!isObject(object) || found.has(object) || isStub(object)) continue;
      let keys;
      try { keys = Reflect.ownKeys(object); } catch { continue; } // a revoked Proxy
      found.set(object, path);
      for (const key of keys) {
        const name = `${path}.${String(key)}`;
        const property = Reflect.getOwnPropertyDescriptor(object, key);
        if (property === undefined) continue;
        next.push([name, property.value], [`get ${name}`, property.get], [`set ${name}`, property.set]);
      }
      next.push([`${path}.[[Prototype]]`, Reflect.getPrototypeOf(object)]);
      // Getters hand out more than descriptors do.
      for (const key of ["caller", "callee", "arguments", "stack", "cause", "constructor", "buffer", "detail", "errors"]) {
        try { next.push([`${path}.${key}()`, object[key]]); } catch { /* a getter that wants another receiver */ }
      }
    }
    edge = next;
  }
  return found;
}

// Calls every function in every way with code as a string. Answers with the results that are objects not seen so far.
export function callAll(found) {
  const results = {};
  const code = "globalThis.pwned = 1";
  const args = [code, code, code];
  for (const [it, path] of [...found]) {
    // (It ends the isolate.)
    if (typeof it !== "function" || it === workers.abortIsolate) continue;
    const attempts = [
      () => it(code), () => it(...args), () => new it(code), () => new it(...args), () => it.call(it, ...args), () => it.call({}, ...args),
      () => it.call([code], code), () => it.call(code, code), () => Reflect.construct(it, args, Object), () => it.call(globalThis, code),
      () => it.call(new Map(), code, code), () => it.call(Promise, code), () => it(() => {}), () => it({}), () => it([code]),
    ];
    for (const [index, attempt] of attempts.entries()) {
      let result;
      try { result = attempt(); } catch { continue; }
      if (isStub(result)) continue;
      if (typeof result === "function" || (typeof result === "object" && result !== null)) {
        if (!found.has(result)) results[`${path}(${index})`] = result;
        if (typeof result === "function" && result !== it) {
          try { result(code); } catch { /* as it likes */ }
        }
        result?.catch?.(() => {});
      }
    }
  }
  return results;
}

export default {
  async run(_, env, ctx) {
    const roots = { globalThis, ctx, env, workers: { ...workers }, hidden: hidden(), meta: import.meta, module: await import("walk.js") };
    roots.fetched = await roots.hidden.fetched;
    const found = walk(roots);
    const isOwn = (fn) => !/\{\s*\[native code\]\s*\}$/.test(Function.prototype.toString.call(fn));
    const functions = [...found].filter(([it]) => typeof it === "function");
    const paths = functions.filter(([fn]) => !isOwn(fn)).map(([fn, path]) => `${path} ${fn.name} ${fn.length}`);
    const called = callAll(found);
    await null;
    // What the calls brought to light, without what is known and without the worker's own.
    const more = [...walk({ ...roots, called })].filter(([it]) => typeof it === "function" && !found.has(it) && !isOwn(it));
    return {
      globals: Reflect.ownKeys(globalThis).filter((key) => known.has(key) && key !== "pwned").map(String),
      functions: paths, more: more.map(([fn, path]) => `${path} ${fn.name}`), pwned: globalThis.pwned,
      texts: functions.filter(([fn]) => isOwn(fn)).map(([fn]) => Function.prototype.toString.call(fn)),
    };
  },
};
