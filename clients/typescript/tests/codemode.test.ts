// What `@cloudflare/codemode` publishes of executors, asked of two: its own `DynamicWorkerExecutor`, unmodified, whose `LOADER` is
// `workerLoader`, and `CoracleExecutor`.
//
// The package imports `cloudflare:workers`, which `coracle/register` has Node take from `coracle/workers`.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import * as coracle from "coracle";
import { CoracleExecutor, workerLoader } from "coracle/codemode";
import "coracle/register";
import type { Executor } from "@cloudflare/codemode";
import type { Behaviour } from "./codemode-behaviour.js";
import { behaviours } from "./codemode-behaviours.js";
import { Server } from "./server.js";

const { DynamicWorkerExecutor, normalizeCode, resolveProvider, runCode } = await import("@cloudflare/codemode");

let server: Server;
let loader: coracle.Loader;
before(async () => {
  server = await Server.start();
  loader = await coracle.connect(server.url);
});
after(async () => {
  loader[Symbol.dispose]();
  await server.isEmpty();
  await server[Symbol.asyncDispose]();
});
// What a run has loaded is let go of when it is over.
afterEach(() => server.settles("coracle_workers_live", 0));

const executors = {
  DynamicWorkerExecutor: (options: object): Executor =>
    new DynamicWorkerExecutor({ loader: workerLoader(loader), ...options } as any),
  CoracleExecutor: (options: object): Executor => new CoracleExecutor({ loader, ...options }),
};

for (const [name, make] of Object.entries(executors)) {
  const differs = ({ differences }: Behaviour) => differences?.[name as keyof typeof executors];
  describe(`${name}, run by Coracle`, () => {
    for (const behaviour of behaviours) {
      const difference = differs(behaviour);
      const title = difference === undefined ? behaviour.name : `${behaviour.name} (differs: ${difference.because})`;
      it(title, () => (difference?.instead ?? behaviour.holds)(make));
    }

    it("holds to at least 95 of 100 behaviours", () => {
      const held = behaviours.filter((behaviour) => differs(behaviour) === undefined).length;
      assert(held / behaviours.length >= 0.95, `${held} of ${behaviours.length}`);
    });

    it("is an executor for the rest of the package", async () => {
      const { fns, name: namespace } = resolveProvider({
        name: "shop",
        tools: {
          "list-pets": { description: "Lists", execute: async (input: any) => ["cat", "dog"].slice(0, input.limit) },
          remove: { description: "Removes", execute: async () => "gone", needsApproval: true } as any,
        },
      });
      const providers = [{ name: namespace, fns }];
      const answer = await runCode({
        code: "```js\nconst pets = await shop.list_pets({ limit: 1 });\nconsole.log(pets.length);\npets[0]\n```",
        executor: make({}),
        providers,
      });
      assert.deepEqual(answer, { result: "cat", logs: ["1"] });
      const removing = runCode({ code: "async () => shop.remove({})", executor: make({}), providers });
      await assert.rejects(removing, /Code execution failed: Tool "remove" not found/);
      assert.equal(normalizeCode(normalizeCode("1 + 1")), normalizeCode("1 + 1"));
    });
  });
}

describe("CoracleExecutor alone", () => {
  const execute = (code: string, options: object = {}) =>
    new CoracleExecutor({ loader, ...options }).execute(code, [
      { name: "codemode", fns: { never: () => new Promise(() => {}), list: async () => ["a"] } },
    ]);

  it("reads TypeScript, imports, and whatever shape a model writes", async () => {
    const code = `Here you are:
\`\`\`ts
import { twice } from "lib.ts";
interface Named { name: string }
const named: Named[] = (await codemode.list()).map((name: string) => ({ name }));
({ named, four: twice(2) })
\`\`\``;
    const { result, error } = await execute(code, {
      modules: { "lib.ts": "export const twice = (n: number) => 2 * n" },
    });
    assert.equal(error, undefined);
    assert.deepEqual(result, { named: [{ name: "a" }], four: 4 });
  });

  it("stops what never waits, in the time that it was given", async () => {
    const started = performance.now();
    const { error, verdict, logs } = await execute("console.log('on'); for (;;);", { timeout: 100 });
    assert(performance.now() - started < 10_000);
    assert.equal(error, "Execution timed out");
    assert.deepEqual(logs, ["on"]);
    assert.equal(verdict?.limitName, "wall_ms_max");
  });

  it("has limits, and tells the one that was reached and what a run cost", async () => {
    const { error, verdict, usage } = await execute("for (;;);", { limits: { cpuMs: 50 } });
    assert.equal(error, verdict?.message);
    assert.equal(verdict?.limitName, "cpu_ms_max");
    assert(usage!.cpuMicros >= 50_000);
    const bomb = await execute("const all = []; for (;;) all.push(new Uint8Array(1 << 20).fill(1));");
    assert.equal(bomb.verdict?.limitName, "memory_bytes_max");
    assert.equal((await execute("1 + 1")).result, 2, "and others run on");
  });

  it("says where in the program an error is", async () => {
    const thrown = await execute("const a = 1;\n  throw new TypeError(a);");
    assert.match(thrown.thrown!.stack!, /code\.program\.ts:2:\d+/);
    assert.equal(thrown.thrown!.name, "TypeError");
    const unread = await execute("const a = 1;\nreturn a +");
    assert.match(unread.error!, /\(line 2:\d+\)$/);
    assert.equal(unread.thrown!.name, "SyntaxError");
  });

  it("tells at once where a program can never end", async () => {
    const { error, verdict } = await execute("await new Promise(() => {})");
    assert.equal(verdict?.kind, "hung");
    assert.match(error!, /can never end/);
  });

  it("takes objects of ours for bindings, which programs call", async () => {
    class Key extends coracle.RpcTarget {
      open(door: string) {
        return `${door} is open`;
      }
    }
    assert.equal((await execute("env.KEY.open('it')", { bindings: { KEY: new Key() } })).result, "it is open");
  });

  it("tells whatever is thrown, where the package takes nothing for an error", async () => {
    for (const [thrown, told] of [
      ["'boom'", "boom"],
      ["{ code: 5 }", '{"code":5}'],
      ["null", "null"],
      ["new RangeError('')", "RangeError"],
    ]) {
      assert.equal((await execute(`async () => { throw ${thrown} }`)).error, told);
    }
    const refused = new CoracleExecutor({ loader, limits: { nothing: 1 } as any });
    assert.match((await refused.execute("1", [])).error!, /there is none that is called "nothing"/);
  });

  it("takes no namespace for a promise, and no function for a result", async () => {
    assert.equal((await execute("async () => (await codemode) === codemode")).result, true);
    assert.match((await execute("async () => ({ f: () => 1 })")).error!, /^the result\.f is a function/);
  });

  it("returns what structured clone has, with promises awaited", async () => {
    const { result } = await execute(`({ map: new Map([["a", new Set([1n])]]), late: [Promise.resolve(2)],
      pattern: /a+/gi, date: new Date(5), buffer: new Uint8Array([1, 2]).buffer, undefined: undefined })`);
    assert.deepEqual(result, {
      map: new Map([["a", new Set([1n])]]),
      late: [2],
      pattern: /a+/gi,
      date: new Date(5),
      buffer: new Uint8Array([1, 2]).buffer,
      undefined: undefined,
    });
    const cyclic = await execute("const a = { b: 1 }; a.a = a; a.c = a; a");
    assert.match(cyclic.error!, /^the result\.a contains itself$/);
  });

  it("is not confused by a program that spoils its realm", async () => {
    const hostile: [string, RegExp][] = [
      ["async () => { Array.from = () => [() => 1]; return [1] }", /the result has a reference in it/],
      ["async () => { globalThis.String = () => ({ a: 1 }); throw new Error('no') }", /./],
      ["async () => { Object.keys = () => { throw null }; return { a: 1 } }", /null/],
      ["async () => { JSON.stringify = () => '5'; return codemode.list() }", /./],
    ];
    for (const [code, told] of hostile) {
      const { result, error } = await execute(code);
      assert.equal(result, undefined, code);
      assert.equal(typeof error, "string", code);
      assert.match(error!, told, code);
    }
    const proto = await execute(
      `JSON.parse('{"__proto__":{"polluted":1},"a":new Date(5)}'.replace('new Date(5)', '5'))`,
    );
    assert.equal((proto.result as any).polluted, undefined);
    assert.equal(({} as any).polluted, undefined);
  });

  it("answers where there is no server, and runs on when it is back", async () => {
    await using other = await Server.start();
    using lost = await coracle.connect(other.url, { reconnectMs: 100 });
    const executor = new CoracleExecutor({ loader: lost });
    assert.equal((await executor.execute("1", [])).result, 1);
    const underway = executor.execute("await new Promise((resolve) => setTimeout(resolve, 20_000))", []);
    await other.settles("coracle_calls_in_flight", 1);
    await other[Symbol.asyncDispose]();
    assert.match((await underway).error!, /the connection to the server has ended/);
    const { result, error } = await executor.execute("1", []);
    assert.equal(result, undefined);
    assert.match(error!, /can't connect/);
    await using again = await Server.start("--listen-web", other.web);
    assert.equal((await executor.execute("2", [])).result, 2);
    assert.equal(await again.metric("coracle_panics_total"), 0);
  });
});
