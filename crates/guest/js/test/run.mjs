// The prelude's printing, in a context of its own and put together as in the guest: exact output, and the
// same output with nothing of ours called or seen after user code has replaced every built-in.
// Run with `node --test crates/guest/js/test/`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { consoleCases, inspectCases } from "./cases.mjs";
import { exported, newContext, source, texts } from "./context.mjs";
import { replaceEverything } from "./hostile.mjs";
import { preludeScript, standaloneScript } from "./standalone.mjs";

function assertText(actual, expected, name) {
  if (expected instanceof RegExp) assert.match(actual, expected, name);
  else assert.equal(actual, expected, name);
}

function assertMessages(actual, expected, name) {
  assert.equal(actual.length, expected.length, name);
  for (const [i, [level, text]] of expected.entries()) {
    assert.equal(actual[i][0], level, name);
    assertText(actual[i][1], text, name);
  }
}

test("inspect prints", () => {
  const { evaluate, prelude } = newContext();
  for (const [value, expected] of inspectCases) assertText(prelude.inspect(evaluate(`(${value})()`)), expected, `${value}`);
});

test("the console prints", () => {
  for (const [calls, expected] of consoleCases) {
    const { evaluate, messages } = newContext();
    evaluate(`(${calls})()`);
    assertMessages(messages, expected, `${calls}`);
  }
});

test("a label that is an object says itself what it is called, and what it throws is thrown", () => {
  const { evaluate, messages } = newContext();
  for (const method of ["count", "countReset", "time", "timeLog", "timeEnd"]) {
    assert.throws(() => evaluate(`console.${method}({ toString() { throw new RangeError("no"); } })`), { name: "RangeError" }, method);
  }
  evaluate("console.count({ toString: () => 'mine' })");
  assertMessages(messages, [[2, "mine: 1"]], "count");
});

test("the console looks like a browser's", () => {
  const { evaluate } = newContext();
  const names = "debug error info log warn dir dirxml table trace assert group groupCollapsed groupEnd clear count countReset time timeLog timeEnd".split(" ");
  assert.deepEqual(evaluate("Reflect.ownKeys(console)").slice(0, -1).sort().join(), names.sort().join());
  for (const name of names) {
    const { value, writable, enumerable, configurable } = evaluate(`Object.getOwnPropertyDescriptor(console, "${name}")`);
    assert.deepEqual({ name: value.name, writable, enumerable, configurable }, { name, writable: true, enumerable: true, configurable: true });
    assert.throws(() => Reflect.construct(Object, [], value), TypeError, `new console.${name}`);
    assert.ok(!Object.hasOwn(value, "prototype"));
  }
  assert.equal(evaluate("Object.prototype.toString.call(console)"), "[object console]");
  assert.ok(evaluate("Object.getPrototypeOf(Object.getPrototypeOf(console)) === Object.prototype"));
  assert.match(evaluate("console.log(console); 'ok'"), /ok/);
});

test("what emit throws passes through, and nothing else does", () => {
  const { evaluate } = newContext(() => {
    throw new Error("log is full");
  });
  for (const call of ["log('x')", "log({})", "table([1])", "count()"]) assert.throws(() => evaluate(`console.${call}`), /log is full/);
});

test("other files can register their classes", () => {
  const { evaluate, prelude } = newContext();
  const Headers = evaluate("globalThis.Headers = class Headers { #x = 1; static read(h) { return { __proto__: null, x: h.#x }; } }");
  prelude.inspectKind(Headers.prototype, "Headers", Headers.read, prelude.inspectView);
  const shown = (code) => prelude.inspect(evaluate(code));
  assert.equal(shown("new Headers()"), "Headers { x: 1 }");
  assert.equal(shown("new (class Mine extends Headers {})()"), "Mine { x: 1 }");
  assert.equal(shown("Object.create(Headers.prototype)"), "Headers {}");
});

test("call sites give no functions of ours away", () => {
  const { evaluate } = newContext();
  const found = evaluate(`(function user() {
    const found = [];
    Error.prepareStackTrace = (_error, sites) => sites.map((site) => site.getFunction?.());
    console.log(new Proxy({}, { ownKeys: function trap() { found.push(...new Error().stack); return []; } }));
    Error.prepareStackTrace = undefined;
    return found.filter((it) => it !== undefined).map((it) => it.name).join();
  })()`);
  assert.match(found, /^(trap(,user)?)?$/);
});

test("a value near the end of the stack is shown or given up, and nothing is thrown", () => {
  const { evaluate, messages } = newContext();
  evaluate(`(function deeper() {
    try { deeper(); } catch (error) { if (!(error instanceof RangeError)) throw error; }
    if (deeper.calls++ < 50) try { console.log({ a: [1] }, 2); } catch (error) { if (!(error instanceof RangeError)) throw error; }
  }).calls = 0`);
  for (const [, text] of messages) assert.match(text, /^(\{ a: .*\} 2|\[inspection failed\]( 2)?)$/);
});

test("cost is bounded", () => {
  const { evaluate, prelude } = newContext();
  const wide = evaluate("(function wide(n) { return n === 0 ? 'x' : Array.from({ length: 100 }, () => wide(n - 1)); })(3)");
  const nested = evaluate("(leaf) => Array.from({ length: 100 }, () => Array.from({ length: 100 }, () => leaf))")(wide);
  const values = [
    nested,
    evaluate("new Array(1_000_000).fill(1)"),
    evaluate("new Array(2 ** 32 - 1)"),
    evaluate("new Map(Array.from({ length: 200_000 }, (_, i) => [i, i]))"),
    evaluate("(() => { const all = () => new Proxy({}, { ownKeys: () => Array.from({ length: 100 }, (_, i) => `k${i}`), getOwnPropertyDescriptor: () => ({ value: all(), enumerable: true, configurable: true }) }); return all(); })()"),
  ];
  for (const value of values) {
    const start = performance.now();
    assert.ok(prelude.inspect(value).length <= 65_536 + "… output truncated".length);
    assert.ok(performance.now() - start < 2_000);
  }
});

// The hostile tests. The cases run in a context where everything that user code can reach is replaced by
// a recorder that still works, so that the values are what they were. Recording is on only while the
// prelude works, and must find nothing.

// Proxies run code of the user's by design, as %j does by JSON.stringify.
const inspectCasesWithoutUserCode = inspectCases.filter(([value]) => !/Proxy/.test(value));
const consoleCasesWithoutUserCode = consoleCases.filter(([calls]) => !/Proxy|%j/.test(calls));

// A context in which everything is replaced. `values` were made before that; `console` records in calls.
function newHostileContext() {
  const { evaluate, prelude, messages } = newContext();
  const values = inspectCasesWithoutUserCode.map(([value]) => evaluate(`(${value})()`));
  const guard = evaluate(`({ apply, ownKeys } = Reflect, names = ownKeys(console)) => (recorder) => {
    const real = console;
    globalThis.console = { __proto__: null };
    for (let i = 0; i < names.length; i++) console[names[i]] = (...args) => {
      recorder.on = true;
      try { apply(real[names[i]], undefined, args); } finally { recorder.on = false; }
    };
  }`)();
  const recorder = evaluate(`(${replaceEverything})()`);
  guard(recorder);
  const inspect = (value) => {
    recorder.on = true;
    try {
      return prelude.inspect(value);
    } finally {
      recorder.on = false;
    }
  };
  return { evaluate, inspect, messages, recorder, values };
}

test("the recorder has teeth", () => {
  const { evaluate, recorder } = newHostileContext();
  assert.ok(recorder.replaced > 600, `${recorder.replaced} properties replaced`);
  recorder.on = true;
  evaluate("[...new Map([[1, 2]])].map(String).join(); ({})[0]; 'x'.split('x'); /x/.test('x')");
  recorder.on = false;
  for (const path of ["map", "join", "next", "0", "split", "exec"]) {
    assert.ok(recorder.calls.some((call) => call.endsWith(path)), `${path} in ${recorder.calls}`);
  }
});

for (const fatal of [false, true]) {
  test(`nothing that user code replaces is called or seen${fatal ? ", even where it throws" : ""}`, () => {
    const { evaluate, inspect, messages, recorder, values } = newHostileContext();
    recorder.fatal = fatal;
    for (const [i, [value, expected]] of inspectCasesWithoutUserCode.entries()) {
      assertText(inspect(values[i]), expected, `${value}`);
      assert.deepEqual([...recorder.calls], [], `${value}`);
    }
    for (const [calls, expected] of consoleCasesWithoutUserCode) {
      evaluate("console.countReset(); console.countReset('x'); console.countReset('Symbol(s)')");
      messages.length = 0;
      evaluate(`(${calls})()`);
      // One frame more, of the recording console.
      const frames = messages.map(([level, text]) => [level, text.replace(/^(Trace.*\n)    at console\..*\n/, "$1")]);
      assertMessages(frames, expected, `${calls}`);
      assert.deepEqual([...recorder.calls], [], `${calls}`);
    }
  });
}

test("no file has what calls a replaceable method unseen", () => {
  // Without comments and what is in strings.
  const code = (text) => text.replaceAll(/^ *\/\/.*$| \/\/ .*$/gm, "").replaceAll(/"(\\.|[^"\\\n])*"|'(\\.|[^'\\\n])*'/g, '""');
  const all = readdirSync(new URL("../", import.meta.url)).filter((name) => name.endsWith(".js"));
  assert.deepEqual([...texts.keys()].sort(), all.sort());
  for (const [name, text] of texts) {
    // QuickJS makes a call of String.prototype.concat of a template literal with a substitution.
    assert.doesNotMatch(code(text), /\$\{/, name);
    // Symbol.iterator.
    assert.doesNotMatch(code(text), /\bfor (await )?\([^;)]*\bof\b/, name);
    assert.doesNotMatch(code(text), /\.\.\.(?!(args|data)\) \{)/, name);
    assert.doesNotMatch(code(text), /^ *(const|let) \[/m, name);
    // Methods, other than our own and the host's.
    if (name === "primordials.js") continue;
    const ours = /^(host\.\w+|kind\.(read|write)|waiter\.run|call\.(done|failed)|([a-z]\w*|index\])\.(resolve|reject)|(request|index\]|requests\))\.(chunk|close|error)Steps|(source|sink|this)\.(pull|cancel|write|close|abort)|far\.(call|end)|site\.getFunction)\($/;
    for (const [call] of code(text).matchAll(/[\w$\])]+\??\.[\w$]+\(/g)) assert.match(call, ours, name);
  }
});

for (const hostile of [false, true]) {
  test(`the same in QuickJS${hostile ? ", with everything replaced" : ""}`, { skip: !process.env.CORACLE_QJS }, () => {
    const folder = mkdtempSync(join(tmpdir(), "coracle-"));
    try {
      const [prelude, cases] = ["prelude.js", "cases.js"].map((name) => join(folder, name));
      writeFileSync(prelude, preludeScript(source, exported));
      writeFileSync(cases, standaloneScript(hostile));
      const { stdout, stderr } = spawnSync(process.env.CORACLE_QJS, ["--include", prelude, cases], { encoding: "utf8" });
      assert.match(stdout + stderr, /^\d\d\d checks, 0 failures\n$/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
