// A connection that is lost: what came from it fails in one way, and the loader connects again.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import * as coracle from "coracle";
import { waitMs } from "../dist/replicas.js";
import { Server } from "./server.js";

const code: coracle.WorkerCode = {
  compatibilityDate: "2026-03-01",
  mainModule: "main.js",
  modules: {
    "main.js": `import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
      class Counter extends RpcTarget { #n = 0; add(n) { return this.#n += n } }
      export default class extends WorkerEntrypoint {
        twice(n) { return 2 * n }
        counter() { return new Counter() }
        wait() { return new Promise((resolve) => setTimeout(resolve, 20_000)) }
        each(f) { return f(1) }
      }`,
  },
};

const isLost = (error: unknown): boolean => {
  assert(error instanceof coracle.DisconnectedError, String(error));
  assert(error instanceof coracle.ConnectError);
  assert.equal(error.name, "DisconnectedError");
  assert.equal(error.retryable, true);
  return true;
};

/** One that listens where another has listened. */
const startedAgain = (server: Server) => Server.start("--listen-web", server.web);

describe("a connection that is lost", () => {
  it("fails every call that is underway, and everything that came from it", async () => {
    await using server = await Server.start();
    const loader = await coracle.connect(server.url, { reconnectMs: 0 });
    const worker = loader.load(code);
    const entrypoint = worker.getEntrypoint();
    const counter = await entrypoint.counter();
    assert.equal(await counter.add(1), 1);
    const waiting = Array.from({ length: 10 }, () => assert.rejects(async () => entrypoint.wait(), isLost));
    const called = assert.rejects(async () => entrypoint.each(() => new Promise(() => {})), isLost);
    const reported = assert.rejects(async () => loader.report(entrypoint, "wait"), isLost);
    await server.settles("coracle_calls_in_flight", 12);
    await server[Symbol.asyncDispose]();
    await Promise.all([...waiting, called, reported]);
    isLost(await loader.ended);
    await assert.rejects(async () => counter.add(1), isLost);
    await assert.rejects(async () => entrypoint.twice(1), isLost);
    await assert.rejects(async () => worker.getEntrypoint().twice(1), isLost);
  });

  it("is made anew when the loader is used, once the server is back", async () => {
    await using server = await Server.start();
    using loader = await coracle.connect(server.url);
    const entrypoint = loader.load(code).getEntrypoint();
    assert.equal(await entrypoint.twice(1), 2);
    await server[Symbol.asyncDispose]();
    await loader.ended;
    // Nobody listens yet; these wait, and none of them is awaited before it is used.
    const calls = [1, 2, 3].map((n) => loader.load(code).getEntrypoint().twice(n));
    const got = loader
      .get("one", () => code)
      .getEntrypoint()
      .twice(4);
    await using again = await startedAgain(server);
    assert.deepEqual(await Promise.all([...calls, got]), [2, 4, 6, 8]);
    assert.equal(await again.metric("coracle_connections"), 1);
    await assert.rejects(async () => entrypoint.twice(1), isLost, "what is gone stays gone");
    // What is given to the new one is of the new one: functions, and the loader itself.
    assert.equal(
      await loader
        .load(code)
        .getEntrypoint()
        .each((n: number) => n + 41),
      42,
    );
    const parent = loader.load({
      mainModule: "main.js",
      modules: {
        "main.js": `export default { run(code, env) { return env.LOADER.load(code).getEntrypoint().twice(21) } }`,
      },
      env: { LOADER: loader },
    });
    assert.equal(await parent.getEntrypoint().run(code), 42);
  });

  it("is made anew as often as it is lost", async () => {
    let server = await Server.start();
    using loader = await coracle.connect(server.url);
    for (let round = 0; round < 3; round++) {
      assert.equal(await loader.load(code).getEntrypoint().twice(round), 2 * round);
      await server[Symbol.asyncDispose]();
      await loader.ended;
      server = await startedAgain(server);
    }
    assert.equal(await loader.tenant(), await loader.tenant());
    await server[Symbol.asyncDispose]();
  });

  it("is given up in time where nobody comes back, and tried again by the next use", async () => {
    await using server = await Server.start();
    using loader = await coracle.connect(server.url, { reconnectMs: 300 });
    await server[Symbol.asyncDispose]();
    await loader.ended;
    const started = performance.now();
    await assert.rejects(
      async () => loader.load(code).getEntrypoint().twice(1),
      (error: unknown) => {
        assert(error instanceof coracle.ConnectError && !(error instanceof coracle.DisconnectedError));
        assert.equal(error.retryable, true);
        assert.match(error.message, /can't connect to 127\.0\.0\.1:\d+: .*ECONNREFUSED/);
        return true;
      },
    );
    const took = performance.now() - started;
    assert(took > 200 && took < 10_000, `${took} ms`);
    await using again = await startedAgain(server);
    assert.equal(await loader.load(code).getEntrypoint().twice(2), 4);
    assert.equal(await again.metric("coracle_connections"), 1);
  });

  it("stays lost where the loader was disposed of, also while it connects", async () => {
    await using server = await Server.start();
    const closed = await coracle.connect(server.url);
    closed[Symbol.dispose]();
    const isClosed = (error: unknown) => error instanceof coracle.DisconnectedError && !error.retryable;
    await assert.rejects(async () => closed.load(code).ready(), isClosed);
    assert(isClosed(await closed.ended));
    const loader = await coracle.connect(server.url);
    await server[Symbol.asyncDispose]();
    await loader.ended;
    const waiting = assert.rejects(async () => loader.load(code).ready(), isClosed);
    loader[Symbol.dispose]();
    await waiting;
    await assert.rejects(async () => loader.load(code).ready(), isClosed);
  });
});

describe("several servers", () => {
  it("stand in for each other", async () => {
    const servers = [await Server.start(), await Server.start()];
    using loader = await coracle.connect(servers.map(({ url }) => url));
    assert.equal(await loader.load(code).getEntrypoint().twice(1), 2);
    const connections = await Promise.all(servers.map((server) => server.metric("coracle_connections")));
    assert.deepEqual([...connections].sort(), [0, 1]);
    const [first, second] = connections[0] === 1 ? servers : [...servers].reverse();
    await first![Symbol.asyncDispose]();
    await loader.ended;
    assert.equal(await loader.load(code).getEntrypoint().twice(2), 4);
    assert.equal(await second!.metric("coracle_connections"), 1);
    // And back, when the other one goes.
    await using again = await startedAgain(first!);
    await second![Symbol.asyncDispose]();
    await loader.ended;
    assert.equal(await loader.load(code).getEntrypoint().twice(3), 6);
    assert.equal(await again.metric("coracle_connections"), 1);
  });

  it("take over from one that shuts down, which ends what it has begun", async () => {
    await using going = await Server.start("--drain-delay-ms", "1", "--drain-grace-ms", "20000");
    await using staying = await Server.start();
    const urls = [going.url, staying.url];
    let first = await coracle.connect(urls);
    while ((await going.metric("coracle_connections")) === 0) {
      first[Symbol.dispose]();
      first = await coracle.connect(urls);
    }
    using used = first;
    let answer!: (value: number) => void;
    const underway = used
      .load(code)
      .getEntrypoint()
      .each(() => new Promise((resolve) => (answer = resolve)));
    const told = underway.then((value: number) => value);
    await going.settles("coracle_calls_in_flight", 1);
    const ended = going.terminate();
    await going.settles("coracle_draining", 1);
    const isRefused = (error: unknown) => {
      assert(error instanceof coracle.RefusedError, String(error));
      assert.equal(error.refusal.kind, "disconnected");
      return true;
    };
    // New work is refused shortly after the metric says so.
    const isTaken = () =>
      used
        .load(code)
        .ready()
        .then(
          () => true,
          (error) => !isRefused(error),
        );
    for (let attempt = 0; attempt < 100 && (await isTaken()); attempt++);
    await assert.rejects(async () => used.load(code).getEntrypoint().twice(1), isRefused);
    used.renew();
    assert.equal(await used.load(code).getEntrypoint().twice(2), 4);
    assert.equal(await staying.metric("coracle_connections"), 1);
    answer(7);
    assert.equal(await told, 7);
    assert.equal(await ended, 0);
    assert.equal(await used.load(code).getEntrypoint().twice(3), 6);
    used[Symbol.dispose]();
    await staying.isEmpty();
  });

  it("are all tried before connecting fails", async () => {
    await using server = await Server.start();
    for (let attempt = 0; attempt < 8; attempt++) {
      using loader = await coracle.connect(["ws://127.0.0.1:1", server.url, "ws://127.0.0.1:2"]);
      assert.equal(await loader.load(code).getEntrypoint().twice(attempt), 2 * attempt);
    }
    await assert.rejects(coracle.connect(["ws://127.0.0.1:1", "ws://127.0.0.1:2"]), coracle.ConnectError);
    await assert.rejects(coracle.connect([]), TypeError);
  });

  it("are waited for longer and longer, up to a bound, by chance", () => {
    const longest = [0, 1, 2, 3, 4, 5, 6, 100].map((rounds) => waitMs(rounds, () => 1));
    assert.deepEqual(longest, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    assert.equal(
      waitMs(3, () => 0.5),
      400,
    );
    assert.equal(
      waitMs(3, () => 0),
      0,
    );
    assert(new Set(Array.from({ length: 20 }, () => waitMs(5))).size > 10);
  });
});
