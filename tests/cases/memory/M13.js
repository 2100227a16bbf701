// source: recursion without end
// rule: recursion of every sort is a RangeError that can be caught, and the worker goes on
// expected: ["RangeError",1]
export default [
  ...[
    () => { function f() { f(); } f(); },
    () => { function f() { return f() + 1; } f(); },
    () => { const o = {}; o.toString = () => "" + o; "" + o; },
    () => { const o = { valueOf: () => +o }; +o; },
    () => { const o = { [Symbol.toPrimitive]: () => `${o}` }; `${o}`; },
    () => { const o = { get x() { return o.x; } }; o.x; },
    () => { const o = { set x(v) { o.x = v; } }; o.x = 1; },
    () => { const o = { toJSON: () => JSON.stringify(o) }; JSON.stringify(o); },
    () => { let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x; },
    () => { let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); "x" in p; },
    () => { let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); Object.keys(p); },
    () => { let p = () => {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p(); },
    () => { let p = class {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); new p(); },
    () => { let p = []; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); Array.isArray(p); throw new RangeError(); },
    () => { const p = new Proxy({}, { get: (_t, key) => p[key] }); p.x; },
    () => { const p = new Proxy({}, { getPrototypeOf: () => Object.getPrototypeOf(p) }); Object.getPrototypeOf(p); },
    () => { const p = new Proxy({}, {}); Object.setPrototypeOf(p, p); p.x; },
    () => { let f = () => 1; for (let i = 0; i < 1e5; i++) f = ((g) => () => g())(f); f(); },
    () => { new (class A { constructor() { new A(); } })(); },
    () => { new (class A { x = new A(); })(); },
    () => { class A { static get [Symbol.species]() { return [].map.call(Object.assign([1], { constructor: A }), (x) => x); } } A[Symbol.species]; },
    () => { function* f() { yield* f(); } [...f()]; },
    () => { const i = { [Symbol.iterator]: () => [...i] }; [...i]; },
    () => { const again = () => [2, 1].sort(again); again(); },
    () => { const again = () => "x".replace(/x/, again); again(); },
    () => { const again = () => [1].map(again); again(); },
    () => { const again = () => Reflect.apply(again, null, []); again(); },
    () => { const again = () => JSON.parse("[1]", again); again(); },
    () => { const again = () => new Set([1]).forEach(again); again(); },
    () => { const again = () => Array.from([1], again); again(); },
    () => { const again = (strings) => again`${strings}`; again`x`; },
    () => { const o = { has: () => "x" in p }; const p = new Proxy({}, o); "x" in p; },
    () => { const o = { [Symbol.hasInstance]: () => ({}) instanceof o }; ({}) instanceof o; },
    () => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; a.flat(Infinity); },
    () => { const a = []; a[0] = a; a.flat(Infinity); },
    () => { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; String(a); },
    () => { const target = new EventTarget(), event = () => target.dispatchEvent(new Event("x")); let error; target.addEventListener("x", () => { try { event(); } catch (e) { error ??= e; } }); event(); throw error; },
    () => { const o = { get x() { return structuredClone(o); } }; structuredClone(o); },
  ].map((attempt) => () => {
    try { attempt(); return "nothing was thrown"; }
    catch (error) { return [error.name, [1].map((x) => x)[0]]; }
  }),
];
