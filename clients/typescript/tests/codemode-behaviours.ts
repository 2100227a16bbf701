// The behaviours of executors of `@cloudflare/codemode`, as the package and its documentation have them.

import assert from "node:assert/strict";
import { RpcTarget } from "coracle";
import { type Behaviour, fails, type Make, pause, refuses, results, run } from "./codemode-behaviour.js";

class Connector extends RpcTarget {
  readonly calls: unknown[][] = [];

  async callTool(method: string, args: unknown): Promise<unknown> {
    this.calls.push([method, args]);
    if (method === "pause") return { __codemode_control__: "pause" };
    if (method === "refuse") return { __codemode_control__: "error", message: "not you" };
    if (method === "fail") throw new Error("broken");
    return { method, args };
  }
}

const connect =
  (code: string, expected: (answer: { result: unknown; error?: string }, calls: unknown[][]) => void) =>
  async (make: Make) => {
    const connector = new Connector();
    const answer = await make({}).execute(code, [], { connectors: [{ name: "crm", binding: connector as any }] });
    expected(answer, connector.calls);
  };

class Gateway extends RpcTarget {
  fetch(request: Request) {
    return new Response(`from the gateway: ${request.url}`);
  }
}

const NO_NETWORK = /not permitted to access the internet/;
const bytes = new Uint8Array([0, 1, 254, 255]);

export const behaviours: Behaviour[] = [
  // Programs and results
  results("an async arrow runs, and its result is the result", "async () => 1 + 1", 2),
  results("statements end with their result", "const a = 1; a + 1", 2),
  results("a function declaration is called", "async function main() { return 4 }", 4),
  results("a fence is taken off", "```js\nasync () => 5\n```", 5),
  results("an export default is the program", "export default 42", 42),
  results("a program that is empty comes to nothing", "", undefined),
  results("await may stand in statements", "const a = await Promise.resolve(3); a", 3),
  results("data come as they are", "async () => ({ a: [1, null, 'x', { b: true }], c: undefined })", {
    a: [1, null, "x", { b: true }],
    c: undefined,
  }),
  results("dates come as dates", "async () => new Date(5)", new Date(5)),
  results("bigints come as bigints", "async () => 2n ** 70n", 2n ** 70n),
  results("bytes come as bytes", "async () => new Uint8Array([0, 1, 254, 255])", bytes),
  {
    ...results("Map and Set come as such", "async () => ({ m: new Map([[1, 2]]), s: new Set([3]) })", {
      m: new Map([[1, 2]]),
      s: new Set([3]),
    }),
    differences: {
      DynamicWorkerExecutor: {
        because: "Cap'n Web has no expression for them",
        instead: async (make) => {
          await assert.rejects(run(make, "async () => new Map()"), /a Map at \$\.result can't be sent over Cap'n Web/);
        },
      },
    },
  },
  {
    name: "each program has a fresh sandbox",
    async holds(make) {
      const executor = make({});
      const code = "async () => globalThis.n = (globalThis.n ?? 0) + 1";
      assert.equal((await executor.execute(code, [])).result, 1);
      assert.equal((await executor.execute(code, [])).result, 1);
    },
  },
  {
    name: "twenty programs run at once",
    async holds(make) {
      const runs = Array.from({ length: 20 }, (_, n) =>
        run(make, `async () => await codemode.twice(${n})`, { twice: async (n) => 2 * n }),
      );
      const all = await Promise.all(runs);
      assert.deepEqual(
        all.map(({ result }) => result),
        Array.from({ length: 20 }, (_, n) => 2 * n),
      );
    },
  },

  {
    name: "what is false, empty or null is a result",
    async holds(make) {
      for (const value of ["false", "0", "''", "null", "undefined", "[]"]) {
        const { result, error } = await run(make, `async () => ${value}`);
        assert.equal(error, undefined);
        assert.deepEqual(result, { false: false, 0: 0, "''": "", null: null, undefined: undefined, "[]": [] }[value]);
      }
    },
  },
  results("text comes as it is", "async () => 'ä🙂\\u0000\\n' + '\\u2028'", "ä🙂\u0000\n\u2028"),
  results(
    "the language is there: classes, generators, destructuring, regular expressions",
    `async () => { class A { #n = 1; static of() { return new A() } get n() { return this.#n } }
      function* g() { yield* [1, 2] } const [a, ...rest] = g(); return [A.of().n, a, rest, /(?<x>b+)/.exec("abb").groups.x] }`,
    [1, 1, [2], "bb"],
  ),
  results(
    "the web platform is there",
    `async () => [new URL("/b?c=1", "http://a/").href, new TextDecoder().decode(new TextEncoder().encode("é")), atob(btoa("x")),
      structuredClone({ a: 1 }).a, crypto.randomUUID().length, typeof AbortController, await new Response("t").text()]`,
    ["http://a/b?c=1", "é", "x", 1, 36, "function", "t"],
  ),
  {
    ...results(
      "what nodejs_compat has is there",
      "async () => [Buffer.from('a').toString('hex'), (await import('node:path')).join('a', 'b')]",
      ["61", "a/b"],
    ),
    differences: Object.fromEntries(
      ["DynamicWorkerExecutor", "CoracleExecutor"].map((executor) => [
        executor,
        {
          because: "Coracle has the web platform, and nothing of Node",
          instead: fails("", "async () => Buffer.from('a')", /Buffer/).holds,
        },
      ]),
    ),
  },

  // Errors are data
  fails("what is thrown is told by its message", "async () => { throw new TypeError('no way') }", "no way"),
  fails("a rejection is an error", "async () => Promise.reject(new Error('later'))", "later"),
  fails("a ReferenceError is told", "async () => nowhere", /nowhere/),
  {
    name: "what was written to the console comes back with an error",
    async holds(make) {
      const { error, logs } = await run(make, "async () => { console.log('so far'); throw new Error('no') }");
      assert.equal(error, "no");
      assert.deepEqual(logs, ["so far"]);
    },
  },
  {
    name: "nothing that a program throws makes execute throw",
    async holds(make) {
      for (const thrown of ["'boom'", "{ code: 5 }", "1"]) {
        const { result } = await run(make, `async () => { throw ${thrown} }`);
        assert.equal(result, undefined);
      }
    },
  },
  fails(
    "a program can't reach past its timeout",
    "async () => { await codemode.sleep(4_000) }",
    "Execution timed out",
    { sleep: pause },
    {
      timeout: 200,
    },
  ),
  fails(
    "a timer beyond the timeout is cut off",
    "async () => { await new Promise((r) => setTimeout(r, 20_000)) }",
    "Execution timed out",
    {},
    {
      timeout: 200,
    },
  ),
  {
    name: "what can never settle is cut off",
    async holds(make) {
      const { error } = await run(make, "async () => { await new Promise(() => {}) }", {}, { timeout: 200 });
      assert(error !== undefined && error !== "");
    },
  },
  {
    name: "what was written before a timeout comes back",
    async holds(make) {
      const code = "async () => { console.log('waiting'); await codemode.sleep(4_000) }";
      const { logs } = await run(make, code, { sleep: pause }, { timeout: 200 });
      assert.deepEqual(logs, ["waiting"]);
    },
  },

  {
    name: "recursion without an end is an error",
    async holds(make) {
      const { result, error } = await run(make, "async () => { const f = (n) => f(n + 1) + 1; return f(0) }");
      assert.equal(result, undefined);
      assert.match(error!, /stack/i);
    },
  },

  // Console
  {
    name: "log, warn and error are captured, in order and with their prefixes",
    async holds(make) {
      const { logs } = await run(
        make,
        "async () => { console.log('a'); console.warn('b'); console.error('c'); console.log('d') }",
      );
      assert.deepEqual(logs, ["a", "[warn] b", "[error] c", "d"]);
    },
  },
  {
    name: "what is written in one call is joined by spaces",
    async holds(make) {
      const { logs } = await run(make, "async () => console.log('a', 1, true, null, undefined, 2n)");
      assert.match(logs![0]!, /^a 1 true null undefined 2n?$/);
    },
  },
  {
    name: "objects and errors are written as String has them",
    async holds(make) {
      const { logs } = await run(make, "async () => { console.log('a', { b: 1 }); console.error(new Error('c')) }");
      assert.deepEqual(logs, ["a [object Object]", "[error] Error: c"]);
    },
    differences: {
      CoracleExecutor: {
        because: "a model learns nothing from [object Object]",
        instead: async (make) => {
          const { logs } = await run(make, "async () => { console.log('a', { b: 1 }); console.error(new Error('c')) }");
          assert.equal(logs![0], "a { b: 1 }");
          assert.match(logs![1]!, /^\[error\] Error: c\n    at .*code\.program\.ts:1:/);
        },
      },
    },
  },
  {
    name: "info and debug are not captured",
    async holds(make) {
      assert.deepEqual((await run(make, "async () => { console.info('a'); console.debug('b') }")).logs, []);
    },
    differences: {
      CoracleExecutor: {
        because: "who writes a line wants it read",
        instead: async (make) => {
          assert.deepEqual((await run(make, "async () => { console.info('a'); console.debug('b') }")).logs, ["a", "b"]);
        },
      },
    },
  },
  {
    name: "a program that writes nothing has no lines",
    async holds(make) {
      assert.deepEqual((await run(make, "async () => 1")).logs, []);
    },
  },

  // Tools
  results("a tool is called with its arguments", "async () => codemode.add({ a: 1, b: 2 })", 3, {
    add: async ({ a, b }) => a + b,
  }),
  results("arguments are positional", "async () => codemode.join('a', 'b', 'c')", "a-b-c", {
    join: async (...all) => all.join("-"),
  }),
  results("a list is one argument", "async () => codemode.count([1, 2], 3)", [2, 2], {
    count: async (...all) => [all.length, all[0].length],
  }),
  results("a tool can be called without arguments", "async () => codemode.none()", 0, {
    none: async (...all) => all.length,
  }),
  results("a tool that returns nothing comes to undefined", "async () => (await codemode.none()) === undefined", true, {
    none: async () => {},
  }),
  results("calls run at once", "async () => Promise.all([codemode.id(1), codemode.id(2)])", [1, 2], {
    id: async (n) => (await pause(5), n),
  }),
  results(
    "calls run one after the other",
    "async () => { let n = 0; for (let i = 0; i < 5; i++) n = await codemode.inc(n); return n }",
    5,
    {
      inc: async (n) => n + 1,
    },
  ),
  results("there are several namespaces", "async () => [await codemode.a(), typeof other]", ["a", "undefined"], {
    a: async () => "a",
  }),
  {
    name: "each namespace has its own tools",
    async holds(make) {
      const providers = [
        { name: "github", fns: { get: async () => "issue" } },
        { name: "shell", fns: { get: async () => "file" } },
      ];
      const { result } = await make({}).execute("async () => [await github.get(), await shell.get()]", providers);
      assert.deepEqual(result, ["issue", "file"]);
    },
  },
  {
    name: "a bare record of functions is the namespace codemode",
    async holds(make) {
      const { warn } = console;
      console.warn = () => {};
      try {
        const { result } = await make({}).execute("async () => codemode.one()", { one: async () => 1 });
        assert.equal(result, 1);
      } finally {
        console.warn = warn;
      }
    },
  },
  fails("a tool that is not there is told", "async () => codemode.nope({})", 'Tool "nope" not found'),
  fails("what a tool throws is thrown, by its message", "async () => codemode.bad()", "out of cheese", {
    bad: async () => {
      throw new RangeError("out of cheese");
    },
  }),
  fails("what a tool throws that is no error is thrown as text", "async () => codemode.bad()", "just text", {
    bad: async () => {
      throw "just text";
    },
  }),
  results(
    "a program can catch what a tool throws",
    "async () => { try { await codemode.bad() } catch (e) { return [e instanceof Error, e.message] } }",
    [true, "no"],
    {
      bad: async () => {
        throw new Error("no");
      },
    },
  ),
  results(
    "an error in a tool's result is a result",
    "async () => codemode.odd()",
    { error: "in here" },
    { odd: async () => ({ error: "in here" }) },
  ),
  results(
    "names are made identifiers",
    "async () => [await codemode.list_issues(), await codemode._2fa(), await codemode.delete_(), await codemode.a_b()]",
    [1, 2, 3, 4],
    {
      "list-issues": async () => 1,
      "2fa": async () => 2,
      delete: async () => 3,
      "a.b": async () => 4,
    },
  ),
  refuses(
    "tools whose names become one are refused",
    [{ name: "codemode", fns: { "a-b": async () => 1, a_b: async () => 2 } }],
    [],
    'Tool names "a-b" and "a_b" both sanitize to "a_b" in provider "codemode"',
  ),
  results("symbols of a namespace are undefined", "async () => [codemode[Symbol.iterator], `${typeof codemode}`]", [
    undefined,
    "object",
  ]),
  results(
    "a tool that has not been waited for takes effect",
    "async () => { codemode.note('x'); await codemode.sync(); return 1 }",
    1,
    {
      note: async () => {},
      sync: async () => {},
    },
  ),
  {
    name: "a tool that outlives its program ends in peace, and the program does not wait for it",
    async holds(make) {
      let ended!: () => void;
      const over = new Promise<void>((resolve) => (ended = resolve));
      const started = performance.now();
      const { result } = await run(make, "async () => { codemode.slow(); await codemode.quick(); return 1 }", {
        quick: async () => {},
        slow: async () => (await pause(3_000), ended()),
      });
      assert.equal(result, 1);
      assert(performance.now() - started < 2_900);
      await over;
    },
  },

  results(
    "a tool that is no async function may throw at once",
    "async () => { try { await codemode.bad() } catch (e) { return e.message } }",
    "at once",
    {
      bad: (() => {
        throw new Error("at once");
      }) as any,
    },
  ),
  results(
    "calls at once fail by themselves",
    "async () => (await Promise.allSettled([codemode.odd(1), codemode.odd(2)])).map(({ status }) => status)",
    ["fulfilled", "rejected"],
    {
      odd: async (n) => {
        if (n % 2 === 0) throw new Error("even");
      },
    },
  ),
  results(
    "every name of a namespace is a function, and none is listed",
    "async () => [typeof codemode.anything, Object.keys(codemode), 'anything' in codemode]",
    ["function", [], false],
    { one: async () => 1 },
  ),
  results(
    "namespaces are there in functions of the program",
    "async () => { const f = async (n) => n > 0 ? await codemode.inc(await f(n - 1)) : 0; return f(4) }",
    4,
    { inc: async (n) => n + 1 },
  ),
  {
    name: "namespaces may have any identifier for a name",
    async holds(make) {
      const { result } = await make({}).execute("async () => [await $my_tools.one(), await _x.one()]", [
        { name: "$my_tools", fns: { one: async () => 1 } },
        { name: "_x", fns: { one: async () => 2 } },
      ]);
      assert.deepEqual(result, [1, 2]);
    },
  },
  {
    name: "tools keep what they know from program to program",
    async holds(make) {
      let count = 0;
      const executor = make({});
      const providers = [{ name: "codemode", fns: { next: async () => ++count } }];
      for (const expected of [1, 2, 3]) {
        assert.equal((await executor.execute("async () => codemode.next()", providers)).result, expected);
      }
    },
  },

  // What tools are given and give
  {
    name: "bytes go to tools and come from them",
    async holds(make) {
      const seen: unknown[] = [];
      const { result } = await run(
        make,
        "async () => { const b = await codemode.get(); return [b instanceof Uint8Array, await codemode.put({ deep: [b] })] }",
        {
          get: async () => bytes,
          put: async ({ deep }) => (seen.push(deep[0]), deep[0].length),
        },
      );
      assert.deepEqual(result, [true, 4]);
      assert.deepEqual(seen, [bytes]);
    },
  },
  results(
    "an ArrayBuffer stays one",
    "async () => { const b = await codemode.get(); return [b instanceof ArrayBuffer, b.byteLength, await codemode.put(b)] }",
    [true, 4, true],
    {
      get: async () => bytes.buffer.slice(0),
      put: async (b) => b instanceof ArrayBuffer,
    },
  ),
  results(
    "a view arrives as the bytes that it shows",
    "async () => codemode.put(new DataView(new Uint8Array([9, 8, 7]).buffer, 1))",
    [8, 7],
    {
      put: async (b) => [...b],
    },
  ),
  results(
    "other values are what JSON makes of them",
    "async () => codemode.same({ d: new Date(5), u: undefined, n: NaN, m: new Map() })",
    { d: "1970-01-01T00:00:00.005Z", n: null, m: {} },
    {
      same: async (value) => value,
    },
  ),
  results(
    "what is left out is null in a list of arguments",
    "async () => codemode.list(undefined, 1, null)",
    [null, 1, null],
    { list: async (...all) => all },
  ),
  results(
    "many bytes go there and back",
    "async () => { const b = await codemode.same(new Uint8Array(200_000).fill(7)); return [b.length, b[199_999]] }",
    [200_000, 7],
    { same: async (value) => value },
  ),
  {
    name: "what a tool gives is a copy",
    async holds(make) {
      const own = { list: [1] };
      const { result } = await run(make, "async () => { const a = await codemode.get(); a.list.push(2); return a }", {
        get: async () => own,
      });
      assert.deepEqual([result, own], [{ list: [1, 2] }, { list: [1] }]);
    },
  },
  fails("a bigint can't go to a tool", "async () => codemode.same(1n)", /BigInt/i, { same: async (value) => value }),

  // Names
  refuses(
    "reserved names of providers are refused",
    [{ name: "__dispatchers", fns: {} }],
    [],
    'Provider name "__dispatchers" is reserved',
  ),
  refuses(
    "names that are no identifiers are refused",
    [{ name: "a-b", fns: {} }],
    [],
    'Provider name "a-b" is not a valid JavaScript identifier',
  ),
  refuses(
    "names that are there twice are refused",
    [
      { name: "a", fns: {} },
      { name: "a", fns: {} },
    ],
    [],
    'Duplicate provider name "a"',
  ),
  refuses(
    "reserved names of connectors are refused",
    [],
    [{ name: "console", binding: {} }],
    'Connector name "console" is reserved',
  ),
  refuses(
    "connectors' names are identifiers",
    [],
    [{ name: "1a", binding: {} }],
    'Connector name "1a" is not a valid JavaScript identifier',
  ),
  refuses(
    "a connector can't be called as a provider",
    [{ name: "a", fns: {} }],
    [{ name: "a", binding: {} }],
    'Duplicate name "a" (connector clashes with provider)',
  ),

  // Preludes and connectors
  {
    name: "a prelude puts functions into a namespace, before its tools",
    async holds(make) {
      const prelude = "codemode.step = async (name, f) => name + (await f()) + (await codemode.tail());";
      const { result, error } = await make({}).execute("async () => codemode.step('a', async () => 'b')", [
        { name: "codemode", prelude, fns: { step: async () => "the tool", tail: async () => "c" } },
      ]);
      assert.equal(error, undefined);
      assert.equal(result, "abc");
    },
  },
  {
    name: "a connector is called with a method and its first argument",
    holds: connect("async () => crm.find({ id: 1 }, 'more')", ({ result }, calls) => {
      assert.deepEqual(result, { method: "find", args: { id: 1 } });
      assert.deepEqual(calls, [["find", { id: 1 }]]);
    }),
  },
  {
    name: "connectors and providers stand beside each other",
    async holds(make) {
      const { result } = await make({}).execute(
        "async () => [await crm.find(1), await codemode.one()]",
        [{ name: "codemode", fns: { one: async () => 1 } }],
        { connectors: [{ name: "crm", binding: new Connector() as any }] },
      );
      assert.deepEqual(result, [{ method: "find", args: 1 }, 1]);
    },
  },
  {
    name: "a connector pauses a program",
    holds: connect("async () => crm.pause()", ({ error }) => assert.equal(error, "__CODEMODE_PAUSE__")),
  },
  {
    name: "a connector fails a call",
    holds: connect("async () => crm.refuse()", ({ error }) => assert.equal(error, "not you")),
  },
  {
    name: "what a connector throws is thrown",
    holds: connect("async () => { try { await crm.fail() } catch (e) { return e.message } }", ({ result }) =>
      assert.equal(result, "broken"),
    ),
  },

  // The sandbox
  fails("fetch goes nowhere", "async () => (await fetch('https://example.com/')).status", NO_NETWORK),
  fails(
    "fetch goes nowhere with globalOutbound undefined",
    "async () => (await fetch('https://example.com/')).status",
    NO_NETWORK,
    {},
    {
      globalOutbound: undefined,
    },
  ),
  results(
    "fetch goes to globalOutbound",
    "async () => (await fetch('https://example.com/a')).text()",
    "from the gateway: https://example.com/a",
    {},
    {
      globalOutbound: new Gateway(),
    },
  ),
  results(
    "globalOutbound may be any object with fetch",
    "async () => (await fetch('https://example.com/')).text()",
    "plain",
    {},
    {
      globalOutbound: { fetch: async () => new Response("plain") },
    },
  ),
  results(
    "modules can be imported",
    "async () => (await import('lib.js')).twice(21)",
    42,
    {},
    {
      modules: { "lib.js": "export const twice = (n) => 2 * n" },
    },
  ),
  results(
    "a module called executor.js is left out",
    "async () => 1",
    1,
    {},
    { modules: { "executor.js": "throw new Error('mine')" } },
  ),
  results(
    "bindings are in env",
    "async () => { const { env } = await import('cloudflare:workers'); return [env.NAME, env.deep.a] }",
    ["Ann", 1],
    {},
    { bindings: { NAME: "Ann", deep: { a: 1 } } },
  ),
  {
    ...results("bindings are in this.env", "async () => this.env.NAME", "Ann", {}, { bindings: { NAME: "Ann" } }),
    differences: {
      CoracleExecutor: {
        because: "a program is a module of its own, with `env` as a global and not the package's `this`",
        instead: results("", "async () => env.NAME", "Ann", {}, { bindings: { NAME: "Ann" } }).holds,
      },
    },
  },
  results(
    "there is no environment to read",
    "async () => [typeof process === 'undefined' ? 0 : Object.keys(process.env).length, typeof require]",
    [0, "undefined"],
  ),
  results(
    "code can't be made of text",
    "async () => { try { new Function('return 1')() } catch (e) { return e.name } }",
    "EvalError",
  ),
];
