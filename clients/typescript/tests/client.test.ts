// The package against the real server, over a real socket.

import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import * as coracle from "coracle";
import { Server } from "./server.js";

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());
afterEach(() => server.isEmpty());

/** A worker whose default export is a class with these methods. */
const methods = (source: string, more: Partial<coracle.WorkerCode> = {}): coracle.WorkerCode => ({
  compatibilityDate: "2026-03-01",
  mainModule: "main.js",
  modules: {
    "main.js": `import { WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
      export default class extends WorkerEntrypoint { ${source} }`,
  },
  globalOutbound: null,
  ...more,
});

async function withLoader(tell: (loader: coracle.Loader) => Promise<void>): Promise<void> {
  const loader = await coracle.connect(server.url);
  try {
    await tell(loader);
  } finally {
    loader[Symbol.dispose]();
  }
}

const textOf = (stream: ReadableStream<Uint8Array>) => new Response(stream as any).text();

describe("what is loaded", () => {
  it("is called by name, in the shape of the Workers documentation", () =>
    withLoader(async (loader) => {
      class ChatRoom extends coracle.RpcTarget {
        posts: string[] = [];
        async post(text: string) {
          this.posts.push(text);
          return this.posts.length;
        }
      }
      const chatRoom = new ChatRoom();
      const agentCode = `export default {
        async myAgent(param, env, ctx) {
          const count = await env.CHAT_ROOM.post("hello " + param);
          return { count, last: await env.CHAT_ROOM.post("bye " + param) };
        }
      }`;
      const worker = loader.load({
        compatibilityDate: "2026-03-01",
        mainModule: "agent.js",
        modules: { "agent.js": agentCode },
        env: { CHAT_ROOM: chatRoom },
        globalOutbound: null,
      });
      assert.deepEqual(await worker.getEntrypoint().myAgent("Ann"), { count: 1, last: 2 });
      assert.deepEqual(chatRoom.posts, ["hello Ann", "bye Ann"]);
    }));

  it("is typed by an interface of its methods", () =>
    withLoader(async (loader) => {
      interface Calculator {
        add(a: number, b: number): number;
        counter(): { increment(by: number): number };
      }
      const code = methods(`add(a, b) { return a + b }
        counter() { let n = 0; return { increment: (by) => n += by } }`);
      const calculator = loader.load(code).getEntrypoint<Calculator>();
      const sum: number = await calculator.add(1, 2);
      assert.equal(sum, 3);
      const counted: number = await calculator.counter().increment(5);
      assert.equal(counted, 5);
    }));

  it("has entrypoints by name, with props, and modules of several kinds", () =>
    withLoader(async (loader) => {
      const worker = loader.load({
        mainModule: "main.ts",
        modules: {
          "main.ts": `import { WorkerEntrypoint } from "cloudflare:workers";
            import text from "./a.txt"; import json from "./b.json"; import data from "./c.bin"; import common from "./d.js";
            export class Named extends WorkerEntrypoint {
              all(): unknown { return { who: this.ctx.props.who, text, json, bytes: new Uint8Array(data), common: common.one } }
            }`,
          "a.txt": { text: "hi" },
          "b.json": { json: { list: [1, null] } },
          "c.bin": { data: new Uint8Array([1, 2]) },
          "d.js": { cjs: "exports.one = 1" },
        },
      });
      await worker.ready();
      const named = worker.getEntrypoint("Named", { props: { who: "Bo" } });
      const { bytes, ...rest } = await named.all();
      assert.deepEqual([...bytes], [1, 2]);
      assert.deepEqual(rest, { who: "Bo", text: "hi", json: { list: [1, null] }, common: 1 });
    }));

  it("keeps every kind of value that the protocol has", () =>
    withLoader(async (loader) => {
      const echo = loader.load(methods("echo(value) { return value }")).getEntrypoint();
      const value = {
        nothing: undefined,
        big: 2n ** 70n,
        date: new Date(5),
        bytes: new Uint8Array([9]),
        list: [1, [null, NaN, -Infinity]],
        text: "a\ud800",
      };
      const { bytes, ...rest } = await echo.echo(value);
      // In Node a Buffer, which is one.
      assert(bytes instanceof Uint8Array);
      assert.deepEqual({ bytes: new Uint8Array(bytes), ...rest }, value);
    }));

  it("is got by an id, from a source that is asked once", () =>
    withLoader(async (loader) => {
      let asked = 0;
      const get = () =>
        loader.get("counter", async () => {
          asked += 1;
          return methods("next() { return globalThis.n = (globalThis.n ?? 0) + 1 }", { env: { who: "Ann" } });
        });
      assert.equal(await get().getEntrypoint().next(), 1);
      assert.equal(await get().getEntrypoint().next(), 2);
      assert.equal(asked, 1);
      const failing = loader.get("failing", async () => {
        throw new TypeError("no code today");
      });
      await assert.rejects(async () => failing.getEntrypoint().next(), /no code today/);
      const fixed = loader.get("failing", () => methods("next() { return 7 }"));
      assert.equal(await fixed.getEntrypoint().next(), 7);
    }));

  it("may be given a loader of its own", () =>
    withLoader(async (loader) => {
      const parent = loader.load(
        methods(
          `async run() {
            const child = this.env.LOADER.load({ compatibilityDate: "2026-03-01", mainModule: "m.js",
              modules: { "m.js": "export default { twice(n) { return 2 * n } }" } });
            return child.getEntrypoint().twice(21);
          }`,
          { env: { LOADER: loader } },
        ),
      );
      assert.equal(await parent.getEntrypoint().run(), 42);
    }));
});

describe("references", () => {
  it("go both ways: functions, objects and what they return", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(
          methods(`
            async each(list, f) { const out = []; for (const x of list) out.push(await f(x)); return out }
            adder(n) { return (m) => n + m }
            same(f) { return { f } }
            counter() { return new Counter() }
          }
          class Counter extends RpcTarget {
            #n = 0;
            add(by) { return this.#n += by }`),
        )
        .getEntrypoint();
      assert.deepEqual(await entrypoint.each([1, 2, 3], async (x: number) => x * 10), [10, 20, 30]);
      using adder = await entrypoint.adder(1);
      assert.equal(await adder(2), 3);
      using counter = await entrypoint.counter();
      assert.equal(await counter.add(2), 2);
      assert.equal(await counter.add(3), 5);
      const own = (x: number) => x + 1;
      using back = await entrypoint.same(own);
      assert.equal(await back.f(1), 2);
    }));

  it("fail as what the client's function throws", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(methods("async call(f) { try { await f() } catch (error) { return [error.name, error.message] } }"))
        .getEntrypoint();
      const failing = () => {
        throw new RangeError("not today");
      };
      assert.deepEqual(await entrypoint.call(failing), ["RangeError", "not today"]);
    }));

  it("are let go of on both sides", () =>
    withLoader(async (loader) => {
      let disposed = 0;
      class Resource extends coracle.RpcTarget {
        use() {
          return 1;
        }
        [Symbol.dispose]() {
          disposed += 1;
        }
      }
      {
        using worker = await loader.load(methods("use(r) { return r.use() }"));
        using entrypoint = await worker.getEntrypoint();
        assert.equal(await entrypoint.use(new Resource()), 1);
      }
      await server.settles("coracle_workers_live", 0);
      assert.equal(disposed, 1);
    }));
});

describe("HTTP and streams", () => {
  it("fetch takes a Request and returns a Response", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(
          methods(`async fetch(request) {
            return new Response(request.method + " " + new URL(request.url).pathname + " " + await request.text(),
              { status: 201, headers: { "x-a": request.headers.get("x-a") } });
          }`),
        )
        .getEntrypoint();
      const request = new Request("http://worker/path", { method: "POST", body: "body", headers: { "x-a": "1" } });
      const response = await entrypoint.fetch(request);
      assert.equal(response.status, 201);
      assert.equal(response.headers.get("x-a"), "1");
      assert.equal(await response.text(), "POST /path body");
    }));

  it("a worker's own fetch goes to globalOutbound, and nowhere without one", () =>
    withLoader(async (loader) => {
      class Gateway extends coracle.RpcTarget {
        urls: string[] = [];
        fetch(request: Request) {
          this.urls.push(request.url);
          return new Response("from the gateway");
        }
      }
      const gateway = new Gateway();
      const source = "async run() { return (await fetch('https://example.com/a')).text() }";
      const through = loader.load(methods(source, { globalOutbound: gateway })).getEntrypoint();
      assert.equal(await through.run(), "from the gateway");
      assert.deepEqual(gateway.urls, ["https://example.com/a"]);
      const nowhere = loader.load(methods(source)).getEntrypoint();
      await assert.rejects(async () => nowhere.run(), /not permitted to access the internet/);
    }));

  it("streams go both ways and keep their pace", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(
          methods(`
            async length(stream) { let n = 0; for await (const chunk of stream) n += chunk.length; return n }
            upper(stream) {
              return stream.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream({
                transform(text, controller) { controller.enqueue(text.toUpperCase()) } }))
                .pipeThrough(new TextEncoderStream());
            }`),
        )
        .getEntrypoint();
      const chunk = new Uint8Array(64 << 10);
      let left = 64;
      const large = new ReadableStream<Uint8Array>({
        pull(controller) {
          if (left-- > 0) controller.enqueue(chunk);
          else controller.close();
        },
      });
      assert.equal(await entrypoint.length(large), 64 * chunk.length);
      const upper = await entrypoint.upper(new Response("a stream").body!);
      assert.equal(await textOf(upper), "A STREAM");
    }));
});

describe("what goes wrong", () => {
  it("in a worker is thrown as it was there", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(methods("fail() { throw Object.assign(new RangeError('no'), { code: 7, verdict: { kind: 'fuel' } }) }"))
        .getEntrypoint();
      await assert.rejects(
        async () => entrypoint.fail(),
        (error: any) => {
          assert(error instanceof RangeError);
          assert.equal(error.message, "no");
          assert.equal((error as any).code, 7);
          assert.equal((error as any).remote, true);
          assert.match(error.stack!, /main\.js:2:/);
          assert(!(error instanceof coracle.VerdictError), "a worker can't forge a verdict");
          assert(!(error instanceof coracle.RefusedError));
          return true;
        },
      );
    }));

  it("with a limit is a verdict that names it", () =>
    withLoader(async (loader) => {
      const worker = loader.load(methods("spin() { for (;;); }", { limits: { cpuMs: 50 } }));
      const spinning = worker.getEntrypoint().spin();
      await assert.rejects(
        async () => spinning,
        (error: unknown) => {
          assert(error instanceof coracle.VerdictError);
          assert.equal(error.verdict.kind, "cpu");
          assert.equal(error.verdict.limitName, "cpu_ms_max");
          assert.equal(error.verdict.limit, 50);
          assert(error.verdict.used >= 50);
          assert.equal(error.message, error.verdict.message);
          assert.equal(error.verdict.started, true);
          assert(error.usage.cpuMicros >= 50_000);
          return true;
        },
      );
      const entrypoint = worker.getEntrypoint(undefined, { limits: { fuelMax: 5_000_000 } });
      const report = await loader.report(entrypoint, "spin");
      assert.equal(report.verdict?.limitName, "fuel_max");
    }));

  it("with the code is refused with all problems", () =>
    withLoader(async (loader) => {
      const worker = loader.load({ mainModule: "nope.js", modules: { "a.js": "export default {" } });
      await assert.rejects(
        async () => worker.getEntrypoint().run(),
        (error: unknown) => {
          assert(error instanceof coracle.RefusedError);
          assert.equal(error.refusal.kind, "failed");
          assert.match(error.message, /nope\.js/);
          return true;
        },
      );
      const wrong = loader.load({ mainModule: "a.js", modules: { "a.js": "" }, limits: { cpums: 1 } as any });
      await assert.rejects(async () => wrong.ready(), /limits: there is none that is called "cpums"/);
      const broken = loader.load({ mainModule: "a.js", modules: { "a.js": "export default {" } });
      await assert.rejects(async () => broken.ready(), SyntaxError);
    }));

  it("a released call is cancelled", () =>
    withLoader(async (loader) => {
      const entrypoint = loader.load(methods("async wait() { await new Promise(() => setTimeout(() => {}, 20_000)) }"));
      const waiting = entrypoint.getEntrypoint().wait();
      await server.settles("coracle_calls_in_flight", 1);
      waiting[Symbol.dispose]();
      await server.settles("coracle_calls_in_flight", 0);
    }));
});

describe("what a call cost", () => {
  it("is told with its result and its console", () =>
    withLoader(async (loader) => {
      const entrypoint = loader
        .load(methods("run(a) { console.warn('careful', a); return [a] } fail() { throw new TypeError('no') }"))
        .getEntrypoint();
      const report = await loader.report<number[]>(entrypoint, "run", 7);
      assert.deepEqual(report.value, [7]);
      assert.deepEqual(
        report.logs.map(({ level, message }) => [level, message]),
        [["warn", "careful 7"]],
      );
      assert(report.usage.fuelRun > 0 && report.usage.wallMicros > 0 && !report.usage.isolateReused);
      const failed = await loader.report(entrypoint, ["fail"]);
      assert(failed.error instanceof TypeError);
      assert(failed.usage.isolateReused);
    }));
});

describe("tails", () => {
  it("are told of invocations", () =>
    withLoader(async (loader) => {
      let tell!: (events: any[]) => void;
      const told = new Promise<any[]>((resolve) => (tell = resolve));
      class Tail extends coracle.RpcTarget {
        tail(events: unknown[]) {
          tell(events);
        }
      }
      const entrypoint = loader.load(methods("run() { console.log('hi') }", { tails: [new Tail()] })).getEntrypoint();
      await entrypoint.run();
      const [event] = await told;
      assert.equal(event.outcome, "ok");
      assert.deepEqual(event.logs[0].message, ["hi"]);
    }));
});

describe("a batch", () => {
  it("goes out with one request", async () => {
    const loader = coracle.batch(`http://${server.web}`);
    const entrypoint = loader.load(methods("add(a, b) { return a + b }")).getEntrypoint();
    const sums = await Promise.all([entrypoint.add(1, 2), entrypoint.add(3, 4)]);
    assert.deepEqual(sums, [3, 7]);
  });
});
