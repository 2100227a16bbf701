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
  async run({ call, namespaces, unawaitedMs, beginning }) {
    const pending = new Set();
    const setNow = beginning === undefined ? undefined : repeatable(beginning);

    // An error is made where the tool is called, so that it points there.
    async function answered(error, path, input) {
      let answer;
      try {
        answer = await call(path, input);
      } catch (cause) {
        answer = { error: cause };
      }
      if (setNow !== undefined && answer.at !== undefined) {
        setNow(answer.at);
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

// Makes what a program sees of time and chance the same whenever it is run: the time stands still but for answers of tools,
// and random numbers come from a seed. Answers how the time is set. (Whoever breaks that breaks their own run only: what they
// call then is not what they called before, and the run fails.)
function repeatable({ at, seed }) {
  let now = at;
  const RealDate = Date;
  const FixedDate = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length === 0 ? [now] : args, newTarget),
    apply: () => new RealDate(now).toString(),
  });
  RealDate.now = () => now;
  RealDate.prototype.constructor = FixedDate;
  globalThis.Date = FixedDate;
  performance.now = () => now - at;

  // The generator sfc32.
  let [a, b, c, counter] = seed;
  function word() {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }
  Math.random = () => word() / 2 ** 32;
  const prototype = Object.getPrototypeOf(crypto);
  prototype.getRandomValues = (array) => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    bytes.forEach((_, index) => (bytes[index] = word()));
    return array;
  };
  prototype.randomUUID = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
  };
  return (answeredAt) => (now = Math.max(now, answeredAt));
}

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
