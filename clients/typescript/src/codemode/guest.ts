// The module that runs a program in the sandbox.
//
// The program is a stranger's and shares this realm: whatever it does to this module it does to itself. What its tools do is
// decided outside, by who answers `call`.

import { BYTES } from "./codec.js";

/** The module that is called. */
export const MAIN = "executor.js";
/** The program, whose name makes it one, in whatever shape a model writes it. */
export const PROGRAM = "code.program.ts";

/** What the application wants to run for a namespace before the program. */
export interface Prelude {
  namespace: string;
  source: string;
}

/** The text of the main module. */
export function guest(preludes: Prelude[]): string {
  const functions = preludes.map(({ namespace, source }) => `(${namespace}) => {\n${source}\n}`);
  const paths = preludes.map(({ namespace }) => namespace);
  return `${GUEST}
const preludes = [${functions.join(",\n")}];
const preludesOf = ${JSON.stringify(paths)};
`;
}

const GUEST = String.raw`
import { WorkerEntrypoint, env } from "cloudflare:workers";
import program from "./${PROGRAM}";

const BYTES = "${BYTES}";
const DEPTH_MAX = 200;

export default class extends WorkerEntrypoint {
  async evaluate({ providers, connectors, call, callConnector, mark }) {
    const namespaces = { __proto__: null };
    if (!("env" in globalThis)) Object.defineProperty(globalThis, "env", { value: env, configurable: true, writable: true });
    for (const name of providers) namespaces[name] = namespaceOf((tool, args) => callProvider(call, name, tool, args));
    for (const name of connectors) {
      namespaces[name] = namespaceOf((method, [argument]) => callOfConnector(callConnector, name, method, argument));
    }
    for (const name in namespaces) {
      Object.defineProperty(globalThis, name, { value: namespaces[name], configurable: true, writable: true });
    }
    try {
      preludes.forEach((prelude, index) => prelude(namespaces[preludesOf[index]]));
      return { result: await carried(await program(), "the result", [], mark) };
    } catch (error) {
      return { error: described(error) };
    }
  }
}

// What the application has put into a namespace goes before its tools. Tools are never called "then": a namespace that is
// awaited is no promise.
function namespaceOf(call) {
  return new Proxy({}, {
    get(own, name) {
      if (Object.hasOwn(own, name)) return own[name];
      if (typeof name !== "string" || name === "then") return undefined;
      return (...args) => call(name, args);
    },
  });
}

async function callProvider(call, provider, tool, args) {
  const answer = await call(provider, tool, encode(args));
  if (answer.error !== undefined) throw new Error(answer.error);
  return answer.result === undefined ? undefined : decode(answer.result);
}

async function callOfConnector(call, connector, method, argument) {
  const answer = await call(connector, method, argument);
  const control = typeof answer === "object" ? answer?.__codemode_control__ : undefined;
  if (control === "pause") throw new Error("__CODEMODE_PAUSE__");
  if (control === "error") throw new Error(String(answer.message));
  return answer;
}

function described(error) {
  if (!(error instanceof Error)) return { name: typeof error, message: textOf(error) };
  const name = String(error.name);
  return { name, message: String(error.message) || name, stack: String(error.stack) };
}

function textOf(value) {
  try {
    return typeof value === "object" && value !== null ? JSON.stringify(value) : String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

// A result with the promises in it awaited. What the protocol hasn't is marked, with a mark that the program doesn't know.
async function carried(value, place, around, mark) {
  if (typeof value === "function" || typeof value === "symbol") {
    throw new TypeError(place + " is a " + typeof value + ", which is no result");
  }
  if (typeof value !== "object" || value === null) return value;
  if (around.includes(value)) throw new TypeError(place + " contains itself");
  if (around.length === DEPTH_MAX) throw new RangeError("the result is nested more than " + DEPTH_MAX + " levels deep");
  const inside = [...around, value];
  const inner = (item, name) => carried(item, place + name, inside, mark);
  const list = (values) => Promise.all(Array.from(values, (item, index) => inner(item, "[" + index + "]")));
  if (value instanceof Promise) return inner(await value, "");
  if (Array.isArray(value)) return list(value);
  if (value instanceof Map) return { [mark]: "Map", of: await list([...value].flat(1)) };
  if (value instanceof Set) return { [mark]: "Set", of: await list(value) };
  if (value instanceof RegExp) return { [mark]: "RegExp", of: [value.source, value.flags] };
  if (value instanceof ArrayBuffer) return { [mark]: "ArrayBuffer", of: [new Uint8Array(value)] };
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return value;
  const copy = {};
  for (const key of Object.keys(value)) {
    Object.defineProperty(copy, key, { value: await inner(value[key], "." + key), enumerable: true });
  }
  return copy;
}

function bytesOf(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function encode(value) {
  return JSON.stringify(value, function (key, now) {
    const bytes = bytesOf(this[key]);
    if (bytes === undefined) return now;
    let data = "";
    for (const byte of bytes) data += String.fromCharCode(byte);
    return { [BYTES]: this[key] instanceof ArrayBuffer ? "ArrayBuffer" : "Uint8Array", data: btoa(data) };
  });
}

function decode(json) {
  return JSON.parse(json, (key, value) => {
    if (typeof value?.data !== "string" || !Object.hasOwn(value, BYTES)) return value;
    const bytes = Uint8Array.from(atob(value.data), (character) => character.charCodeAt(0));
    return value[BYTES] === "ArrayBuffer" ? bytes.buffer : bytes;
  });
}
`;
