// What inspect and the console print, as data. Each function is evaluated from its source inside the
// context where the prelude runs, so that it can use nothing from here.

// [value, expected text]
export const inspectCases = [
  // Primitives.
  [() => "it", "'it'"],
  [() => "it's", '"it\'s"'],
  [() => 'say "hi"', "'say \"hi\"'"],
  [() => `it's "both"`, '"it\'s \\"both\\""'],
  [() => "line\nnext\ttab\\ \x00", "'line\\nnext\\ttab\\\\ \\u0000'"],
  [() => "\ud800 lone", "'\\ud800 lone'"],
  [() => "x".repeat(10_003), `'${"x".repeat(10_000)}'... 3 more characters`],
  [() => 0, "0"],
  [() => -0, "-0"],
  [() => NaN, "NaN"],
  [() => -1.5e300, "-1.5e+300"],
  [() => 10n, "10n"],
  [() => -(2n ** 64n), "-18446744073709551616n"],
  [() => 10n ** 10_001n, `1${"0".repeat(9_999)}... 2 more charactersn`],
  [() => true, "true"],
  [() => undefined, "undefined"],
  [() => null, "null"],
  [() => Symbol(), "Symbol()"],
  [() => Symbol("foo"), "Symbol(foo)"],
  [() => Symbol.iterator, "Symbol(Symbol.iterator)"],

  // Functions and classes.
  [() => function named() {}, "[Function: named]"],
  [() => () => {}, "[Function (anonymous)]"],
  [() => async function wait() {}, "[AsyncFunction: wait]"],
  [() => async () => {}, "[AsyncFunction (anonymous)]"],
  [() => function* steps() {}, "[GeneratorFunction: steps]"],
  [() => async function* feed() {}, "[AsyncGeneratorFunction: feed]"],
  [() => Math.max, "[Function: max]"],
  [() => Map, "[Function: Map]"],
  [() => class X {}, "[class X]"],
  [() => { class Y {} return class X extends Y {}; }, "[class X extends Y]"],
  [() => class extends Map {}, "[class (anonymous) extends Map]"],
  [() => class X { static limit = 3; static get name() { throw 1; } }, "[class (anonymous)] { limit: 3 }"],
  [() => Object.assign(function f() {}, { a: 1 }), "[Function: f] { a: 1 }"],
  [() => Object.setPrototypeOf(function f() {}, null), "[Function (null prototype): f]"],

  // Arrays.
  [() => [], "[]"],
  [() => [1, "a", [2], { b: 3 }], "[ 1, 'a', [ 2 ], { b: 3 } ]"],
  [() => [1, , , 4], "[ 1, <2 empty items>, 4 ]"],
  [() => [, 1, ,], "[ <1 empty item>, 1, <1 empty item> ]"],
  [() => new Array(3), "[ <3 empty items> ]"],
  [() => new Array(4_000_000_000), "[ <1000 empty items>, ... 3999999000 more items ]"],
  [() => [undefined, null], "[ undefined, null ]"],
  [() => Object.assign([1], { extra: true, "-1": 2 }), "[ 1, extra: true, '-1': 2 ]"],
  [() => { class List extends Array {} return List.from([1, 2]); }, "List(2) [ 1, 2 ]"],
  [() => Object.setPrototypeOf([1], null), "[Array(1): null prototype] [ 1 ]"],
  [() => Object.defineProperty([1], 0, { get() { throw 1; }, enumerable: true }), "[ [Getter] ]"],
  [
    () => Array.from({ length: 40 }, (_, i) => i * 3),
    `[
    0,   3,   6,   9,  12,  15,  18,  21,  24,  27,  30,  33,  36,  39,  42,
   45,  48,  51,  54,  57,  60,  63,  66,  69,  72,  75,  78,  81,  84,  87,
   90,  93,  96,  99, 102, 105, 108, 111, 114, 117
]`,
  ],
  [
    () => Array.from({ length: 102 }, () => "abcdefghijkl"),
    `[
${"  'abcdefghijkl', 'abcdefghijkl', 'abcdefghijkl', 'abcdefghijkl',\n".repeat(25)}  ... 2 more items
]`,
  ],
  [
    () => ["a", "bb", "a much longer string than the others have", "cc", "and one more to break the line"],
    `[
  'a',
  'bb',
  'a much longer string than the others have',
  'cc',
  'and one more to break the line'
]`,
  ],

  // Objects.
  [() => ({}), "{}"],
  [() => ({ a: 1, "b-c": 2, $d: 3, 4: 5, "": 6 }), "{ '4': 5, a: 1, 'b-c': 2, $d: 3, '': 6 }"],
  [() => ({ [Symbol("foo")]: 1, [Symbol()]: 2 }), "{ [Symbol(foo)]: 1, [Symbol()]: 2 }"],
  [() => Object.create(null), "[Object: null prototype] {}"],
  [() => Object.assign(Object.create(null), { a: 1 }), "[Object: null prototype] { a: 1 }"],
  [() => Object.create({}), "{}"],
  [() => { class Foo { x = 1; #y = 2; } return new Foo(); }, "Foo { x: 1 }"],
  [() => { class Foo {} return new (class Bar extends Foo {})(); }, "Bar {}"],
  [() => { class Foo {} return Foo.prototype; }, "{}"],
  [() => ({ constructor: function Fake() {} }), "{ constructor: [Function: Fake] }"],
  [() => ({ [Symbol.toStringTag]: "Tag" }), "Object [Tag] { [Symbol(Symbol.toStringTag)]: 'Tag' }"],
  [() => ({ get a() { throw 1; }, set b(_) {}, get c() { throw 1; }, set c(_) {} }),
    "{ a: [Getter], b: [Setter], c: [Getter/Setter] }"],
  [() => Object.defineProperty({ seen: 1 }, "unseen", { value: 2 }), "{ seen: 1 }"],
  [() => ({ toString() { throw 1; }, toJSON() { throw 1; } }),
    "{ toString: [Function: toString], toJSON: [Function: toJSON] }"],
  [() => ({ [Symbol.for("nodejs.util.inspect.custom")]() { throw 1; } }),
    "{\n  [Symbol(nodejs.util.inspect.custom)]: [Function: [nodejs.util.inspect.custom]]\n}"],
  [() => (function* () {})(), "Object [Generator] {}"],
  [() => [][Symbol.iterator](), "Object [Array Iterator] {}"],
  [() => Math, /^Object \[Math\] \{/],

  // Lines. 80 columns fit, one more does not; a comma after a nested value counts.
  [() => ({ a: "x".repeat(71) }), `{ a: '${"x".repeat(71)}' }`],
  [() => ({ a: "x".repeat(72) }), `{\n  a: '${"x".repeat(72)}'\n}`],
  [() => ({ a: { b: "x".repeat(65) } }), `{\n  a: { b: '${"x".repeat(65)}' }\n}`],
  [() => ({ a: { b: "x".repeat(66) } }), `{\n  a: {\n    b: '${"x".repeat(66)}'\n  }\n}`],
  [
    () => ({ first: "x".repeat(40), second: { third: "y".repeat(40), fourth: "z".repeat(40) } }),
    `{
  first: '${"x".repeat(40)}',
  second: {
    third: '${"y".repeat(40)}',
    fourth: '${"z".repeat(40)}'
  }
}`,
  ],

  // Nesting and circles.
  [() => ({ a: { b: { c: { d: { e: 1 } } } } }), "{ a: { b: { c: { d: { e: 1 } } } } }"],
  [() => ({ a: { b: { c: { d: { e: { f: 1 } } } } } }), "{ a: { b: { c: { d: { e: [Object] } } } } }"],
  [() => [[[[[[1]]]]]], "[ [ [ [ [ [Array] ] ] ] ] ]"],
  [() => [[[[[[], {}, new Map()]]]]], "[ [ [ [ [ [], {}, Map(0) {} ] ] ] ] ]"],
  [
    () => { class Foo { x = 1; } return [[[[[new Foo(), new Map([[1, 2]]), new Set([1]), new Uint8Array(1)]]]]]; },
    "[ [ [ [ [ [Foo], [Map], [Set], [Uint8Array] ] ] ] ] ]",
  ],
  [() => [[[[[Object.assign(Object.create(null), { a: 1 }), new DataView(new ArrayBuffer(1))]]]]],
    "[ [ [ [ [ [Object: null prototype], [DataView] ] ] ] ] ]"],
  [() => [[[[[() => {}, new Date(0), /x/g]]]]], "[ [ [ [ [ [Function (anonymous)], 1970-01-01T00:00:00.000Z, /x/g ] ] ] ] ]"],
  [() => { const a = { n: 1 }; a.self = a; return a; }, "<ref *1> { n: 1, self: [Circular *1] }"],
  [
    () => { const a = {}; const b = { a }; a.b = b; a.list = [a, b]; b.b = b; return a; },
    "<ref *1> {\n  b: <ref *2> { a: [Circular *1], b: [Circular *2] },\n  list: [ [Circular *1], <ref *2> { a: [Circular *1], b: [Circular *2] } ]\n}",
  ],
  [() => { const s = { x: 1 }; return [s, s]; }, "[ { x: 1 }, { x: 1 } ]"],
  [() => { const m = new Map(); m.set("me", m); return m; }, "<ref *1> Map(1) { 'me' => [Circular *1] }"],

  // Collections.
  [() => new Map([["a", 1], [{ b: 2 }, "c"]]), "Map(2) { 'a' => 1, { b: 2 } => 'c' }"],
  [() => new Map(), "Map(0) {}"],
  [() => new Set([1, "a", [2]]), "Set(3) { 1, 'a', [ 2 ] }"],
  [() => { class Registry extends Map {} return Object.assign(new Registry([[1, 2]]), { x: 3 }); }, "Registry(1) { 1 => 2, x: 3 }"],
  [() => Object.create(Map.prototype), "Map {}"],
  [() => new WeakMap([[{}, 1]]), "WeakMap {…}"],
  [() => new WeakSet(), "WeakSet {…}"],
  // (Node's test runner marks promises with symbols.)
  [() => { const p = Promise.resolve(1); for (const mark of Object.getOwnPropertySymbols(p)) delete p[mark]; return p; }, "Promise {…}"],
  [() => Object.assign(new (class Task extends Promise {})(() => {}), { id: 7 }), /^Task \{\s+id: 7[,\s]/],

  // Dates and regular expressions.
  [() => new Date(1e12), "2001-09-09T01:46:40.000Z"],
  [() => new Date(NaN), "Invalid Date"],
  [() => { class Day extends Date {} return Object.assign(new Day(0), { x: 1 }); }, "Day 1970-01-01T00:00:00.000Z { x: 1 }"],
  [() => /a\/b/dgimsuy, "/a\\/b/dgimsuy"],
  [() => /[a--b]/v, "/[a--b]/v"],
  [() => Object.assign(/x/, { y: 1 }), "/x/ { y: 1 }"],

  // Errors: frames without a header as in QuickJS, with one as in V8, none, and the user's own.
  [
    () => Object.defineProperty(new TypeError("bad"), "stack", { value: "    at f (main.js:1:2)\n    at main.js:3:4\n" }),
    "TypeError: bad\n    at f (main.js:1:2)\n    at main.js:3:4",
  ],
  [() => Object.defineProperty(new Error("bad"), "stack", { value: "Error: bad\n    at f (main.js:1:2)" }), "Error: bad\n    at f (main.js:1:2)"],
  [() => Object.defineProperty(new Error("new"), "stack", { value: "Error: old\n    at f (main.js:1:2)" }),
    "Error: new\nError: old\n    at f (main.js:1:2)"],
  [() => Object.defineProperty(new RangeError("far"), "stack", { value: "" }), "[RangeError: far]"],
  [() => Object.defineProperty(new RangeError(""), "stack", { value: "" }), "[RangeError]"],
  [() => Object.defineProperty(new Error("x"), "stack", { value: "custom" }), "[custom]"],
  [() => Object.defineProperty(new Error("x"), "stack", { get() { throw 1; } }), /^(\[Error: x\]|Error: x\n    at [^]*)$/],
  [() => { class Lost extends Error {} return Object.defineProperty(new Lost("x"), "stack", { value: "" }); }, "[Lost: x]"],
  [
    () => { const e = new Error("x"); e.name = "Named"; e.code = "E_X"; return Object.defineProperty(e, "stack", { value: "" }); },
    "[Named: x] { code: 'E_X' }",
  ],
  [
    () => {
      const cause = Object.defineProperty(new Error("why"), "stack", { value: "    at g (main.js:5:6)\n" });
      const e = Object.defineProperty(new Error("what", { cause }), "stack", { value: "    at f (main.js:1:2)\n" });
      return { e: Object.assign(e, { code: 1 }) };
    },
    `{
  e: Error: what
      at f (main.js:1:2) {
    code: 1,
    [cause]: Error: why
        at g (main.js:5:6)
  }
}`,
  ],
  [() => Object.defineProperty(new AggregateError([1, 2], "many"), "stack", { value: "" }), "[AggregateError: many] { [errors]: [ 1, 2 ] }"],
  [() => new Error("real"), /^Error: real\n    at /],
  [() => Object.create(Error.prototype), "[Error]"],

  // Buffers and boxes.
  [() => new Uint8Array([1, 2, 255]), "Uint8Array(3) [ 1, 2, 255 ]"],
  [() => new BigInt64Array([1n, -2n]), "BigInt64Array(2) [ 1n, -2n ]"],
  [() => new Float64Array([1.5, -0, NaN]), "Float64Array(3) [ 1.5, -0, NaN ]"],
  [() => new Uint8Array(0), "Uint8Array(0) []"],
  [() => { class Bytes extends Uint8Array {} return new Bytes(1); }, "Bytes(1) [ 0 ]"],
  [() => new Uint8Array([1, 2, 255]).buffer, "ArrayBuffer { [Uint8Contents]: <01 02 ff>, byteLength: 3 }"],
  [() => new ArrayBuffer(0), "ArrayBuffer { [Uint8Contents]: <>, byteLength: 0 }"],
  [() => new ArrayBuffer(52), `ArrayBuffer {\n  [Uint8Contents]: <${"00 ".repeat(50)}... 2 more bytes>,\n  byteLength: 52\n}`],
  [() => new DataView(new ArrayBuffer(2), 1), "DataView {\n  byteLength: 1,\n  byteOffset: 1,\n  buffer: ArrayBuffer { [Uint8Contents]: <00 00>, byteLength: 2 }\n}"],
  [() => Object(3), "[Number: 3]"],
  [() => Object(-0), "[Number: -0]"],
  [() => Object("abc"), "[String: 'abc']"],
  [() => Object.assign(Object("ab"), { x: 1 }), "[String: 'ab'] { x: 1 }"],
  [() => Object(false), "[Boolean: false]"],
  [() => Object(Symbol("s")), "[Symbol: Symbol(s)]"],
  [() => Object(1n), "[BigInt: 1n]"],

  // Proxies: the traps run, what they throw stays inside.
  [() => new Proxy({ a: 1 }, {}), "{ a: 1 }"],
  [() => new Proxy([1, 2], {}), "[ 1, 2 ]"],
  [() => new Proxy(function f() {}, {}), "[Function: f]"],
  [() => new Proxy(new Map(), {}), "Map {}"],
  [() => ({ bad: new Proxy({}, { ownKeys() { throw new Error("no"); } }), good: 1 }), "{ bad: [inspection failed], good: 1 }"],
  [() => new Proxy({}, { getPrototypeOf() { throw null; } }), "[inspection failed]"],
  [() => new Proxy({}, { getOwnPropertyDescriptor() { throw 1; }, ownKeys: () => ["a"] }), "[inspection failed]"],
  [() => { const { proxy, revoke } = Proxy.revocable([], {}); revoke(); return [proxy]; }, "[ [inspection failed] ]"],
  [() => { const p = new Proxy({}, { getPrototypeOf: () => p }); return p; }, "[Object: null prototype] {}"],
  [
    () => new Proxy([1], {
      getOwnPropertyDescriptor: (t, k) => k === "length"
        ? { value: { toString() { throw 1; } }, writable: true, enumerable: false, configurable: false }
        : Reflect.getOwnPropertyDescriptor(t, k),
    }),
    "[]",
  ],

  // Bounds.
  [
    () => Object.fromEntries(Array.from({ length: 103 }, (_, i) => [`k${i}`, i])),
    `{\n${Array.from({ length: 100 }, (_, i) => `  k${i}: ${i},\n`).join("")}  ... 3 more items\n}`,
  ],
  [() => new Set(Array.from({ length: 101 }, (_, i) => i)), `Set(101) {\n${Array.from({ length: 100 }, (_, i) => `  ${i},\n`).join("")}  ... 1 more item\n}`],
  [() => new Map(Array.from({ length: 102 }, (_, i) => [i, i])), /  99 => 99,\n  \.\.\. 2 more items\n\}$/],
  [() => new Float32Array(1_000_000), /  \.\.\. 999900 more items\n\]$/],
  [() => ({ s: Array.from({ length: 20 }, () => "y".repeat(9_000)) }), /^\{\n  s: \[\n(    'y{9000}',\n)+    'y+… output truncated$/],
];

// [calls on `console`, expected messages as [level, text]]
export const consoleCases = [
  [() => console.log(), [[2, ""]]],
  [() => console.log("raw 'string'\n"), [[2, "raw 'string'\n"]]],
  [() => console.log("100%"), [[2, "100%"]]],
  [() => console.log("%% %s"), [[2, "%% %s"]]],
  [() => console.log("a", "b", 1, { c: "d" }, ["e"]), [[2, "a b 1 { c: 'd' } [ 'e' ]"]]],
  [() => console.log({ a: 1 }, "b"), [[2, "{ a: 1 } b"]]],
  [() => console.log(-0, 10n, Symbol("s"), null, undefined), [[2, "-0 10n Symbol(s) null undefined"]]],
  [() => { console.debug("d"); console.info("i"); console.warn("w"); console.error("e"); }, [[0, "d"], [1, "i"], [3, "w"], [4, "e"]]],
  [() => console.log("x".repeat(70_000)), [[2, `${"x".repeat(65_536)}… output truncated`]]],
  [() => console.log("x".repeat(65_536)), [[2, "x".repeat(65_536)]]],
  [() => console.log("x".repeat(40_000), "y".repeat(40_000), "z"), [[2, `${"x".repeat(40_000)} ${"y".repeat(25_535)}… output truncated`]]],
  [() => { const { log } = console; log("detached"); }, [[2, "detached"]]],

  // Format specifiers.
  [() => console.log("%s is %d and %i", "x", 1.5, 2.9), [[2, "x is 1.5 and 2"]]],
  [() => console.log("%s %s %s %s", -0, 1n, Symbol("a"), { a: { b: 1 } }), [[2, "-0 1n Symbol(a) { a: [Object] }"]]],
  [() => console.log("%s", { toString() { throw 1; } }), [[2, "{ toString: [Function: toString] }"]]],
  [() => console.log("%d %d %d %d %d", "4", 5n, {}, Symbol(), -0), [[2, "4 5n NaN NaN -0"]]],
  [() => console.log("%i %i %i", "42.9px", 7n, {}), [[2, "42 7n NaN"]]],
  [() => console.log("%f %f %f", "1.25rem", 7n, null), [[2, "1.25 7 NaN"]]],
  [() => console.log("%j %j", { a: [1] }, undefined), [[2, '{"a":[1]} undefined']]],
  [() => { const a = {}; a.a = a; console.log("%j!", a); }, [[2, "[inspection failed]!"]]],
  [() => console.log("%o %O", "str", { a: 1 }), [[2, "'str' { a: 1 }"]]],
  [() => console.log("%cred%c plain", "color: red", ""), [[2, "red plain"]]],
  [() => console.log("%% %s %x %", "a", "b"), [[2, "% a %x % b"]]],
  [() => console.log("%s %s", "only"), [[2, "only %s"]]],
  [() => console.log("%%%s", 1), [[2, "%1"]]],
  [() => console.log("a%s", "%s", "c"), [[2, "a%s c"]]],

  // Groups.
  [
    () => {
      console.group("outer");
      console.log("one\ntwo");
      console.groupCollapsed();
      console.error({ a: 1 });
      console.groupEnd();
      console.warn("three");
      console.groupEnd();
      console.groupEnd();
      console.log("four");
    },
    [[2, "outer"], [2, "  one\n  two"], [4, "    { a: 1 }"], [3, "  three"], [2, "four"]],
  ],
  [
    () => { for (let i = 0; i < 30; i++) console.group(); console.log("deep"); for (let i = 0; i < 30; i++) console.groupEnd(); console.log("out"); },
    [[2, `${" ".repeat(40)}deep`], [2, "out"]],
  ],

  // Counters and timers; the clock stands still at 1000, then moves to 1250.
  [
    () => { console.count(); console.count(); console.count("x"); console.countReset(); console.count(); console.countReset("y"); },
    [[2, "default: 1"], [2, "default: 2"], [2, "x: 1"], [2, "default: 1"], [3, "Count for 'y' does not exist"]],
  ],
  [() => { console.count(Symbol("s")); }, [[2, "Symbol(s): 1"]]],
  [
    () => {
      console.time();
      console.time();
      clock.now += 250;
      console.timeLog("default", "so far", { a: 1 });
      console.timeEnd();
      console.timeEnd();
      console.timeLog("t");
    },
    [
      [3, "Timer 'default' already exists"],
      [2, "default: 250ms so far { a: 1 }"],
      [2, "default: 250ms"],
      [3, "Timer 'default' does not exist"],
      [3, "Timer 't' does not exist"],
    ],
  ],

  // The others.
  [() => { console.assert(true, "no"); console.assert(1); }, []],
  [() => { console.assert(false); console.assert(0, "at %d", 5); console.assert(null, { a: 1 }); },
    [[4, "Assertion failed"], [4, "Assertion failed: at 5"], [4, "Assertion failed { a: 1 }"]]],
  [() => console.dir("text"), [[2, "'text'"]]],
  [() => console.dir({ a: { b: { c: 1 } } }, { depth: 0 }), [[2, "{ a: [Object] }"]]],
  [() => console.dir([[[[[[[1]]]]]]], { depth: null }), [[2, "[ [ [ [ [ [ [ 1 ] ] ] ] ] ] ]"]]],
  [() => console.dir([1], { get depth() { throw 1; } }), [[2, "[ 1 ]"]]],
  [() => console.dir([[[[[[[1]]]]]]], { depth: NaN }), [[2, "[ [ [ [ [ [Array] ] ] ] ] ]"]]],
  [() => console.dirxml({ a: 1 }, 2), [[2, "{ a: 1 } 2"]]],
  [() => { function here() { console.trace("at %s", "x"); } here(); }, [[2, /^Trace: at x\n    at here \(.*\n    at /]]],
  [() => console.trace(), [[2, /^Trace\n    at /]]],
  [() => { Error.stackTraceLimit = 0; console.trace("no frames"); Error.stackTraceLimit = 10; }, [[2, "Trace: no frames"]]],

  // Tables.
  [() => console.table("text"), [[2, "text"]]],
  [
    () => console.table([{ a: 1, b: "x" }, { a: 2, c: { d: { e: 1 } } }]),
    [[2, `┌─────────┬───┬─────┬─────────────────┐
│ (index) │ a │ b   │ c               │
├─────────┼───┼─────┼─────────────────┤
│ 0       │ 1 │ 'x' │                 │
│ 1       │ 2 │     │ { d: [Object] } │
└─────────┴───┴─────┴─────────────────┘`]],
  ],
  [
    () => console.table([[1, 2], "three", null]),
    [[2, `┌─────────┬───┬───┬─────────┐
│ (index) │ 0 │ 1 │ Values  │
├─────────┼───┼───┼─────────┤
│ 0       │ 1 │ 2 │         │
│ 1       │   │   │ 'three' │
│ 2       │   │   │ null    │
└─────────┴───┴───┴─────────┘`]],
  ],
  [
    () => console.table({ x: { a: 1, b: 2 }, y: { get b() { throw 1; } } }, ["b"]),
    [[2, `┌─────────┬──────────┐
│ (index) │ b        │
├─────────┼──────────┤
│ x       │ 2        │
│ y       │ [Getter] │
└─────────┴──────────┘`]],
  ],
  [
    () => console.table(new Map([["k", { v: 1 }]])),
    [[2, `┌───────────────────┬─────┬──────────┐
│ (iteration index) │ Key │ Values   │
├───────────────────┼─────┼──────────┤
│ 0                 │ 'k' │ { v: 1 } │
└───────────────────┴─────┴──────────┘`]],
  ],
  [
    () => console.table(new Set([5])),
    [[2, `┌───────────────────┬────────┐
│ (iteration index) │ Values │
├───────────────────┼────────┤
│ 0                 │ 5      │
└───────────────────┴────────┘`]],
  ],
  [
    () => console.table([]),
    [[2, `┌─────────┐
│ (index) │
├─────────┤
└─────────┘`]],
  ],
  [() => console.table(new Array(1_000_000).fill(0)), [[2, /│ 99      │ 0      │\n└─────────┴────────┘\n\.\.\. 999900 more items$/]]],
  [() => console.table(new Proxy({}, { ownKeys() { throw 1; } })), [[2, "[inspection failed]"]]],

  // What cannot be formatted never throws, and stays one message.
  [() => console.log(new Proxy({}, { ownKeys() { console.log("nested"); throw 1; } }), "after"), [[2, "nested"], [2, "[inspection failed] after"]]],
];
