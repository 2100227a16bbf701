// source: pydantic-ai issue 2332
// rule: nothing of a run is found by the next, wherever it is left
// expected: "absent"
export default [
  ...[
    [() => globalThis.left, () => { globalThis.left = 1; }],
    [() => Object.prototype.left, () => { Object.prototype.left = 1; }],
    [() => Symbol.for("left").left ?? Symbol.prototype.left, () => { Symbol.prototype.left = 1; }],
    [() => Promise.prototype.left, () => { Promise.prototype.left = 1; }],
    [() => fetch.left, () => { fetch.left = 1; }],
    [() => console.left, () => { console.left = 1; }],
    [() => import.meta.left, () => { import.meta.left = 1; }],
    [() => Error.prepareStackTrace, () => { Error.prepareStackTrace = () => 1; }],
    [() => new (Object.getPrototypeOf(function* () {}).constructor.prototype.constructor.constructor.left ?? Object)().left, () => { Object.getPrototypeOf(function* () {}).left = 1; }],
    [() => navigator.left, () => { navigator.left = 1; }],
    [() => crypto.subtle.left, () => { crypto.subtle.left = 1; }],
    [() => RegExp.$1 || undefined, () => { /(x)/.exec("x"); }],
  ].map(([look, leave]) => () => { const found = look(); leave(); return found === undefined ? "absent" : String(found); }),
];
