// The rest of the prelude: calls from outside, timers, randomness and modules, with what the Rust core does
// played by a host of ours. First as it should be, then with every built-in replaced: nothing of ours may be
// called or seen but what the language itself asks of a result.
// Run with `node --test crates/guest/js/test/`.

import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test } from "node:test";

import { newContext } from "./context.mjs";
import { replaceEverything } from "./hostile.mjs";

// Made before anything is replaced, as the Rust core makes them where nothing of the worker's can interfere.
// (Constructors are written out: V8 spreads the arguments of those that are left out.)
const worker = `((exports, pause) => {
  const { WorkerEntrypoint, RpcTarget } = exports;
  const own = (run) => function (...args) { return pause(() => Reflect.apply(run, this, args)); };
  class Counter extends RpcTarget { constructor() { super(); } add(n) { return n + 1; } }
  class Entrypoint extends WorkerEntrypoint { constructor(ctx, env) { super(ctx, env); } method(a, b) { return [a, b]; } get target() { return new Counter(); } }
  return {
    namespace: { __proto__: null, default: {
      sync: (x) => x, later: async (x) => x, throws: own(() => { throw new RangeError("m"); }),
      rejects: own(async () => { throw new RangeError("m"); }), nested: { method: (x) => x }, promised: Promise.resolve({ method: (x) => x }),
    }, Entrypoint, number: 5 },
    calls: [
      ["default", ["sync"], [7], "finish"], ["default", ["later"], [7], "finish"], ["default", ["nested", "method"], [7], "finish"],
      ["default", ["promised", "method"], [7], "finish"], ["Entrypoint", ["method"], [1, 2], "finish"], ["Entrypoint", ["target", "add"], [6], "finish"],
      ["default", ["throws"], [7], "finishThrown"], ["default", ["rejects"], [7], "finishThrown"], ["default", ["nope"], [7], "finishThrown"],
      ["default", ["sync"], [], "finishThrown"], ["default", ["fetch"], [7], "finishThrown"], ["default", ["sync", "x"], [7], "finishThrown"],
      ["default", [], [7], "finishThrown"], ["number", ["x"], [7], "finishThrown"], ["none", ["x"], [7], "finishThrown"],
      ["Entrypoint", ["env"], [], "finishThrown"], ["Entrypoint", ["target", "dup"], [], "finishThrown"],
    ],
  };
})`;

// `pause(run)` runs code of the worker's, which may use what it likes.
async function run({ evaluate, prelude, asked }, record) {
  const { hooks } = prelude;
  const seen = [];
  const pause = (code) => {
    const on = record.on;
    record.on = false;
    try {
      return code();
    } finally {
      record.on = on;
    }
  };
  const { namespace, calls } = evaluate(worker)(hooks.builtInModules["cloudflare:workers"].exports, pause);
  const lists = calls.map(([entrypoint, path, args, outcome], index) => [entrypoint, evaluate(`[${JSON.stringify(entrypoint)}, 0]`), evaluate(`(${JSON.stringify(path)})`), evaluate(`[${JSON.stringify(args)}, undefined, []]`), evaluate(`[${index}, 0, 1e6, 512]`), outcome]);
  const values = evaluate(`({
    map: new Map([[1, { a: 2 }]]), set: new Set([1]), regexp: /a+/giu, date: new Date(5), boxed: [Object(1), Object("x"), Object(true), Object(3n)],
    view: new DataView(new ArrayBuffer(4), 1, 2), typed: new Uint16Array(2), error: new TypeError("m"), empty: new Map(), emptySet: new Set(), flat: [1, 2, 3, 4],
    env: { A: 1 }, bindings: { then: 1, A: 2 }, bytes: new Uint8Array(4), callback: (...args) => args.length,
    Thrower: { get x() { throw 1; } }, rejected: Promise.reject(new RangeError("late")), globals: { setTimeout, setInterval, clearTimeout, fetch, randomUUID: crypto.randomUUID.bind(crypto), getRandomValues: crypto.getRandomValues.bind(crypto), structuredClone, random: Math.random },
  })`);
  values.rejected.catch(() => {});
  const { globals } = values;
  const { buffer } = values.bytes;
  return {
    async go() {
      const note = (name, code) => {
        try {
          seen.push([name, code()]);
        } catch (error) {
          seen.push([name, `${error?.name}: ${error?.message}`]);
        }
      };
      const work = (name, code) => {
        record.on = true;
        let result;
        let error;
        let isThrown = false;
        try {
          result = code();
        } catch (thrown) {
          [error, isThrown] = [thrown, true];
        }
        record.on = false;
        note(name, () => {
          if (isThrown) throw error;
          return result;
        });
        return result;
      };
      for (const [entrypoint, target, path, given, reply, outcome] of lists) {
        const before = asked.length;
        record.on = true;
        hooks.invoke(namespace, target, path, false, given, reply);
        record.on = false;
        await settledJobs(record);
        const [name, invocation] = asked[before] ?? [];
        assert.deepEqual([name, invocation], [outcome, reply[0]], `${entrypoint} ${path}`);
      }
      const id = work("setTimeout", () => globals.setTimeout(values.callback, 5, 1, 2));
      const operation = asked.at(-1)[0] === "startTimer" ? 100 : undefined;
      work("settle", () => hooks.settle(operation, 0));
      work("clearTimeout", () => globals.clearTimeout(id));
      const interval = work("setInterval", () => globals.setInterval(values.callback, 1));
      work("settle", () => hooks.settle(101, 0));
      work("clearTimeout", () => globals.clearTimeout(interval));
      work("setTimeout", () => globals.setTimeout(values.callback));
      work("forget", () => hooks.forget(103));
      work("settle", () => hooks.settle(103, 0));
      work("setTimeout", () => globals.setTimeout("code"));
      let fetched;
      work("fetch", () => typeof (fetched = globals.fetch("https://a/")));
      const refused = fetched.then(undefined, (error) => error.message);
      work("settle", () => hooks.settle(104, 4, "", "", "refused"));
      assert.equal(await refused, "refused");
      work("randomUUID", () => globals.randomUUID());
      work("getRandomValues", () => globals.getRandomValues(values.bytes) === values.bytes);
      work("getRandomValues", () => globals.getRandomValues(5));
      work("random", () => globals.random());
      work("structuredClone", () => globals.structuredClone(values.flat).length);
      work("mapEntries", () => hooks.mapEntries(values.map).length);
      work("setValues", () => hooks.setValues(values.set).length);
      work("regexpParts", () => hooks.regexpParts(values.regexp)[1]);
      work("dateValue", () => hooks.dateValue(values.date));
      for (const boxed of values.boxed) work("unbox", () => hooks.unbox(boxed));
      work("box", () => typeof hooks.box(5n));
      work("bigintText", () => hooks.bigintText(-255n));
      work("bigint", () => hooks.bigint("0xff", true));
      work("mapFill", () => hooks.mapFill(hooks.newMap(), values.flat));
      work("setFill", () => hooks.setFill(hooks.newSet(), values.flat));
      work("newRegExp", () => hooks.newRegExp("a", "g") !== undefined);
      work("newDataView", () => hooks.newDataView(buffer) !== undefined);
      work("viewWindow", () => hooks.viewWindow(values.view)[1]);
      work("viewWindow", () => hooks.viewWindow(values.typed)[2]);
      work("errorPrototype", () => hooks.errorPrototype("TypeError")[1]);
      work("errorPrototype", () => hooks.errorPrototype("toString")[1]);
      work("stacks", () => hooks.stacks(values.error).length);
      work("inspect", () => hooks.inspect(values.flat));
      work("fillEnv", () => hooks.fillEnv(values.bindings, []));
      work("setLoading", () => hooks.setLoading(true));
      work("setTimeout", () => globals.setTimeout(values.callback));
      work("setLoading", () => hooks.setLoading(false));
      work("reportUncaught", () => hooks.reportUncaught(values.error, true));
      work("waitUntil", () => hooks.builtInModules["cloudflare:workers"].exports.waitUntil(values.rejected));
      await settledJobs(record);
      return seen;
    },
  };
}

// The jobs are the prelude's work, too.
async function settledJobs(record) {
  record.on = true;
  await setImmediate();
  record.on = false;
}

const expected = [
  ["setTimeout", 1], ["settle", undefined], ["clearTimeout", undefined], ["setInterval", 2], ["settle", undefined], ["clearTimeout", undefined],
  ["setTimeout", 3], ["forget", undefined], ["settle", undefined],
  ["setTimeout", "TypeError: Failed to execute 'setTimeout': parameter 1 is not of type 'Function'."], ["fetch", "object"], ["settle", undefined],
  ["randomUUID", "abababab-abab-4bab-abab-abababababab"], ["getRandomValues", true], ["getRandomValues", "TypeMismatchError: The array must be an integer typed array."],
  ["random", 0.5], ["structuredClone", 4], ["mapEntries", 2], ["setValues", 1], ["regexpParts", "giu"],
  ["dateValue", 5], ["unbox", 1], ["unbox", "x"], ["unbox", true], ["unbox", 3n], ["box", "object"], ["bigintText", "-ff"], ["bigint", -256n],
  ["mapFill", undefined], ["setFill", undefined], ["newRegExp", true], ["newDataView", true], ["viewWindow", 1], ["viewWindow", 4],
  ["errorPrototype", true], ["errorPrototype", false], ["stacks", 3], ["inspect", "[ 1, 2, 3, 4 ]"], ["fillEnv", undefined], ["setLoading", undefined],
  ["setTimeout", "Error: Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a timeout, and generating random values are not allowed within global scope. To fix this error, perform this operation within a handler."],
  ["setLoading", undefined], ["reportUncaught", undefined], ["waitUntil", undefined],
];

test("calls are answered, timers run, and values are taken apart", async () => {
  const all = newContext();
  const seen = await (await run(all, { on: false })).go();
  assert.deepEqual(seen, expected);
  assert.match(all.messages[0][1], /^Uncaught \(in promise\) TypeError: m/);
  assert.match(all.messages[1][1], /^Uncaught \(in promise\) RangeError: late/);
  assert.equal(all.messages.length, 2);
  const finished = all.asked.filter(([name]) => name === "finish").map((call) => call.at(-2));
  assert.equal(JSON.stringify(finished), "[7,7,7,7,[1,2],7]");
});

for (const fatal of [false, true]) {
  test(`the same where every built-in is replaced${fatal ? " by one that throws" : ""}`, async () => {
    const all = newContext();
    const proxy = { on: false };
    const prepared = await run(all, proxy);
    const recorder = all.evaluate(`(${replaceEverything})()`);
    recorder.fatal = fatal;
    // The language itself asks every result whether it is a thenable.
    all.evaluate("delete Object.prototype.then");
    Object.defineProperty(proxy, "on", { get: () => recorder.on, set: (on) => (recorder.on = on) });
    assert.deepEqual(await prepared.go(), expected);
    assert.deepEqual([...recorder.calls], []);
  });
}

test("a CommonJS module is evaluated once, or again where it threw", () => {
  const { evaluate, prelude, host, asked } = newContext();
  let evaluations = 0;
  host.compileCommonJs = (name) => {
    asked.push(["compileCommonJs", name]);
    const body = name === "bad.cjs" ? "count(); throw new RangeError('no')" : "count(); exports.a = [module.exports === exports, this === exports, __filename, __dirname, require('./b')]";
    return evaluate(`((count) => function (exports, require, module, __filename, __dirname) { ${body} })`)(() => evaluations++);
  };
  const { requireCommonJs } = prelude.hooks;
  const exports = requireCommonJs("lib/deep/a.cjs");
  assert.equal(JSON.stringify(exports.a), JSON.stringify([true, true, "/lib/deep/a.cjs", "/lib/deep", "./b for lib/deep/a.cjs"]));
  assert.equal(requireCommonJs("lib/deep/a.cjs"), exports);
  assert.equal(evaluations, 1);
  for (let tries = 0; tries < 2; tries++) assert.throws(() => requireCommonJs("bad.cjs"), { name: "RangeError" });
  assert.equal(evaluations, 3);
});
