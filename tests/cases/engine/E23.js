// source: values across calls
// rule: what crosses a call arrives as what it was
// expected: {"lost":[]}
const same = (a, b) => {
  if (Object.is(a, b)) return true;
  if (typeof a !== "object" || typeof b !== "object" || !a || !b) return false;
  if (Object.prototype.toString.call(a) !== Object.prototype.toString.call(b)) return false;
  if (a instanceof Date || a instanceof RegExp || a instanceof Number || a instanceof String || a instanceof Boolean) return Object.is(a.valueOf?.(), b.valueOf?.()) || String(a) === String(b);
  if (a instanceof Map || a instanceof Set) return same([...a], [...b]);
  if (a instanceof ArrayBuffer) return same(new Uint8Array(a), new Uint8Array(b));
  if (a instanceof Error) return same([a.name, a.message, a.cause, { ...a }], [b.name, b.message, b.cause, { ...b }]);
  const keys = Object.keys(a);
  return a.length === b.length && keys.join() === Object.keys(b).join() && keys.every((key) => same(a[key], b[key]));
};
const values = {
  undefined: undefined, null: null, true: true, zero: 0, minusZero: -0, NaN: NaN, infinity: -Infinity, safe: 2 ** 53 - 1, unsafe: 2 ** 53, smallest: 5e-324, largest: 1.7976931348623157e308,
  negative: -(2 ** 31) - 1, big: 2n ** 200n, bigNegative: -(2n ** 64n), bigZero: 0n, empty: "", nul: "a\0b", high: "\ud800", low: "x\udc00y", swapped: "\udc00\ud800", emoji: "\u{1f600}", bom: "\ufeffx", long: "ä".repeat(70_000),
  date: new Date(0), dateNegative: new Date(-1), dateInvalid: new Date(NaN), dateLast: new Date(8.64e15), regexp: /a(?<b>\/)\n/giu, regexpEmpty: new RegExp(""),
  map: new Map([[NaN, 1], [{ a: 1 }, new Set(["x"])], [-0, 2]]), set: new Set([undefined, null, "", 0n]), buffer: new Uint8Array([1, 2, 3]).buffer, bytes: new Uint8Array([0, 255]), floats: new Float64Array([NaN, -0, 1.5]), bigs: new BigInt64Array([-1n]), clamped: new Uint8ClampedArray([300]), emptyBytes: new Uint16Array(0), part: new Uint8Array(new Uint8Array([1, 2, 3, 4]).buffer, 1, 2), view: new DataView(new ArrayBuffer(4), 1),
  holes: [1, , 3, ,], emptyArray: [], nested: [[[[[[]]]]]], emptyObject: {}, numeric: { 2: "b", 1: "a", x: 1 }, emptyKey: { "": 1 }, protoKey: JSON.parse('{"__proto__":1,"constructor":2}'), undefinedValue: { a: undefined },
  error: new TypeError("x", { cause: new RangeError("y") }), errorFields: Object.assign(new Error("x"), { code: 7 }), boxed: Object(1), boxedText: Object("x"), boxedFalse: Object(false),
};
export default {
  async run(_x, env) {
    const lost = [];
    for (const [name, value] of Object.entries(values)) {
      if (!same(value, await env.echo(value))) lost.push(`echo: ${name}`);
      if (!same(value, structuredClone(value))) lost.push(`clone: ${name}`);
    }
    const cycle = { list: [] };
    cycle.self = cycle;
    cycle.list.push(cycle.list, cycle);
    const back = await env.echo(cycle);
    if (back.self !== back || back.list[0] !== back.list || back.list[1] !== back) lost.push("cycle");
    const shared = { a: 1 };
    const [one, two] = await env.echo([shared, shared]);
    if (one !== two) lost.push("shared");
    const functions = await env.echo([(n) => n + 1]);
    if (await functions[0](1) !== 2) lost.push("function");
    return { lost };
  },
};
