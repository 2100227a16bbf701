// What a program runs in: its tools as namespaces, its result with what it was still waiting for.
//
// The program is a stranger's and shares this realm: whatever it does to this module it does to itself. What it may call, how
// often and with what is decided outside, by who answers `call`.

import program from "./code.program.ts";

// What the language itself looks for in an object. A tool is never called so.
const HIDDEN = new Set(["then", "catch", "finally", "toJSON", "toString", "valueOf", "constructor", "prototype", "__proto__"]);

// How far a result is looked through for promises and functions.
const DEPTH_MAX = 64;

export default {
  async run({ call, namespaces, unawaitedMs }) {
    const pending = new Set();

    // An error is made where the tool is called, so that it points there.
    async function answered(error, path, input) {
      let answer;
      try {
        answer = await call(path, input);
      } catch (cause) {
        answer = { error: cause };
      }
      if (answer.error === undefined) {
        return answer.value;
      }
      error.name = answer.error.name;
      error.message = answer.error.message;
      if (answer.error.code !== undefined) {
        error.code = answer.error.code;
      }
      throw error;
    }

    function invoke(path, inputs) {
      const error = new Error(path);
      if (inputs.length > 1) {
        error.name = "TypeError";
        error.message = `${path} takes one argument, an object, and not ${inputs.length}`;
        return Promise.reject(error);
      }
      const promise = answered(error, path, inputs[0]);
      pending.add(promise);
      const forget = () => pending.delete(promise);
      promise.then(forget, forget);
      return promise;
    }

    for (const { name, tools } of namespaces) {
      const value = namespaceOf(name, tools, invoke);
      Object.defineProperty(globalThis, name, { value, enumerable: true });
    }

    try {
      return await settled(await program(), "result", 0);
    } finally {
      if (pending.size > 0) {
        await call(null);
        const late = new Promise((resolve) => setTimeout(resolve, unawaitedMs));
        await Promise.race([Promise.allSettled([...pending]), late]);
      }
    }
  },
};

// `tools` are the names of its tools, or nothing where they are too many to be sent along.
function namespaceOf(name, tools, invoke) {
  const functions = new Map();
  const isTool = (key) => typeof key === "string" && !HIDDEN.has(key);
  const functionOf = (key) => {
    if (!isTool(key)) {
      return undefined;
    }
    if (!functions.has(key)) {
      functions.set(key, (...inputs) => invoke(`${name}.${key}`, inputs));
    }
    return functions.get(key);
  };
  const refuse = () => {
    throw new TypeError(`${name} is a namespace of tools and can't be changed`);
  };
  return new Proxy(Object.create(null), {
    get: (_, key) => functionOf(key),
    has: (_, key) => (tools === undefined ? isTool(key) : tools.includes(key)),
    ownKeys() {
      if (tools === undefined) {
        throw new Error(`${name} has too many tools to be listed here; search for them`);
      }
      return tools;
    },
    getOwnPropertyDescriptor(_, key) {
      const isThere = tools?.includes(key);
      return isThere ? { value: functionOf(key), enumerable: true, configurable: true } : undefined;
    },
    set: refuse,
    defineProperty: refuse,
    deleteProperty: refuse,
    setPrototypeOf: refuse,
  });
}

// A result with the promises in it awaited. Only lists and plain objects are looked through.
async function settled(value, path, depth) {
  if (typeof value === "function") {
    throw new TypeError(`${path} is a function, which is no result; was it to be called?`);
  }
  if (typeof value === "symbol") {
    throw new TypeError(`${path} is a symbol, which is no result`);
  }
  if (typeof value !== "object" || value === null || depth > DEPTH_MAX) {
    return value;
  }
  if (value instanceof Promise) {
    return settled(await value, path, depth + 1);
  }
  const prototype = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (!isList && prototype !== Object.prototype && prototype !== null) {
    return value;
  }
  if (!hasOddities(value)) {
    return value;
  }
  const copy = isList ? [] : {};
  for (const key of Object.keys(value)) {
    copy[key] = await settled(value[key], isList ? `${path}[${key}]` : `${path}.${key}`, depth + 1);
  }
  return copy;
}

// Whether there is anything in it that has to be waited for or refused. Cycles end by the count.
function hasOddities(value) {
  const seen = new Set([value]);
  for (const one of seen) {
    for (const inner of Object.values(one)) {
      if (typeof inner === "function" || typeof inner === "symbol" || inner instanceof Promise) {
        return true;
      }
      if (typeof inner === "object" && inner !== null && (Array.isArray(inner) || Object.getPrototypeOf(inner) === Object.prototype)) {
        seen.add(inner);
      }
    }
  }
  return false;
}
