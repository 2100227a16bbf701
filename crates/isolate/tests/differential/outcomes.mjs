// What comes of numbered cases, as text that can be compared: the same in a sandbox and in Node.

import { areas } from "./areas.mjs";

/// Numbers from 0 to below n, the same for the same seed (mulberry32).
function randomFrom(seed) {
  let state = seed >>> 0;
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
  const below = (n) => next() % n;
  const of = (list) => list[below(list.length)];
  return {
    below,
    of,
    maybe: (n = 2) => below(n) === 0,
    times: (most, make) => Array.from({ length: below(most + 1) }, make),
    bytes: (most) => Uint8Array.from({ length: below(most + 1) }, () => below(256)),
    text: (most, characters) => Array.from({ length: below(most + 1) }, () => of(characters)).join(""),
  };
}

const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/// A value as text, with what tells it from others: kinds, order, identity.
export function show(value, seen = new Map()) {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "bigint") return `${value}n`;
  if (Object.is(value, -0)) return "-0";
  if (typeof value === "function" || typeof value === "symbol") return typeof value;
  if (typeof value !== "object" || value === null) return String(value);
  if (seen.has(value)) return `#${seen.get(value)}`;
  seen.set(value, seen.size);
  const all = (list) => Array.from(list, (one) => show(one, seen)).join(",");
  if (Array.isArray(value)) return `[${Array.from(value.keys(), (at) => (at in value ? show(value[at], seen) : "")).join(",")}]`;
  if (value instanceof Error || value instanceof DOMException) return `${value.name}(${show(value.cause, seen)})`;
  if (value instanceof Date) return `Date(${value.getTime()})`;
  if (value instanceof RegExp) return `${value}@${value.lastIndex}`;
  if (value instanceof Map) return `Map(${all([...value].flat())})`;
  if (value instanceof Set) return `Set(${all(value)})`;
  if (value instanceof ArrayBuffer) return `ArrayBuffer(${hex(new Uint8Array(value))})`;
  if (ArrayBuffer.isView(value)) return `${value[Symbol.toStringTag] ?? "DataView"}(${value.byteOffset},${hex(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))})`;
  if (value instanceof Number || value instanceof String || value instanceof Boolean || value instanceof BigInt) return `Object(${show(value.valueOf(), seen)})`;
  return `{${Object.keys(value).map((key) => `${JSON.stringify(key)}:${show(value[key], seen)}`).join(",")}}`;
}

/// The names of what there are cases of.
export const names = Object.keys(areas);

/// Cases `from` to below `to` of an area: what each is, and what comes of it.
export async function outcomes(name, from, to) {
  const told = [];
  for (let number = from; number < to; number++) {
    const random = randomFrom(Math.imul(number + 1, 0x9e3779b1) ^ name.length);
    const { what, act } = areas[name](random);
    let outcome;
    try {
      outcome = show(await act());
    } catch (error) {
      outcome = `throws ${error?.name ?? error}`;
    }
    told.push(`${name} ${number}: ${show(what)} => ${outcome}`);
  }
  return told;
}
