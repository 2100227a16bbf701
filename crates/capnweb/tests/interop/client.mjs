// The client's side: the package as it is published, over the pipes of this process. The argument names the story.
//
// Messages go out on stdout and come in on stdin, one a line; what goes wrong is on stderr, and in the exit code.

import assert from "node:assert/strict";
import { createInterface } from "node:readline";
import { RpcSession, RpcStub, RpcTarget, newHttpBatchRpcSession } from "capnweb";

const lines = [];
let awaiting;
createInterface({ input: process.stdin }).on("line", (line) => {
    if (awaiting) {
        const resolve = awaiting;
        awaiting = undefined;
        resolve(line);
    } else {
        lines.push(line);
    }
});
const nextLine = () => (lines.length > 0 ? Promise.resolve(lines.shift()) : new Promise((resolve) => (awaiting = resolve)));
const say = (line) => process.stdout.write(`${line}\n`);

const transport = { send: say, receive: nextLine };
let session;
const connect = () => {
    session = new RpcSession(transport);
    return session.getRemoteMain();
};
const bytesOf = (text) => new TextEncoder().encode(text);

class Adder extends RpcTarget {
    disposed = 0;
    #base;
    constructor(base) {
        super();
        this.#base = base;
    }
    add(number) {
        return this.#base + number;
    }
    get base() {
        return this.#base;
    }
    [Symbol.dispose]() {
        this.disposed++;
    }
}

const stories = {
    async calls() {
        const main = connect();
        assert.equal(await main.add(1, 2), 3);
        assert.equal(await main.version, "1");
        assert.deepEqual(await Promise.all([main.add(1, 1), main.add(2, 2)]), [2, 4]);
        await assert.rejects(async () => await main.nothing(), { name: "TypeError", message: /nothing/ });
        assert.deepEqual(session.getStats(), { imports: 1, exports: 1 });
        const { imports, exports } = await main.counts();
        assert.deepEqual({ imports, exports }, { imports: 0, exports: 2 }, "main, and this call");
    },

    async values() {
        const main = connect();
        const error = new RangeError("no");
        error.code = 7;
        error.cause = [1];
        for (const value of [
            undefined, null, true, 0, 1.5, NaN, Infinity, -Infinity, "", "aé😀\n", "\ud800",
            0n, -(2n ** 200n), new Date(1749342170815), new Date(NaN), [], [[1], [[]]], { a: [{ b: undefined }] },
            new Uint8Array([1, 2, 3]), new ArrayBuffer(2), new DataView(new ArrayBuffer(3)), new Int16Array([-1, 2]),
            new Float64Array([0.1]), new BigInt64Array([-1n]), new Uint8ClampedArray([255]),
        ]) {
            let returned = await main.echo(value);
            // The package makes Buffers in Node where it makes Uint8Arrays elsewhere.
            if (Buffer.isBuffer(returned)) returned = new Uint8Array(returned);
            if (Number.isNaN(value?.getTime?.())) assert.ok(Number.isNaN(returned.getTime()));
            else assert.deepEqual(returned, value);
            assert.equal(Object.getPrototypeOf(returned ?? 1), Object.getPrototypeOf(value ?? 1));
        }
        const returned = await main.echo(error);
        assert.ok(returned instanceof RangeError);
        assert.deepEqual([returned.message, returned.code, returned.cause], ["no", 7, [1]]);
        const many = await main.echo(new AggregateError([new Error("a"), new TypeError("b")], "all"));
        assert.ok(many instanceof AggregateError && many.errors[1] instanceof TypeError);
        assert.equal(await main.echo(new URL("https://a.example/x")), "https://a.example/x");
        const headers = await main.echo(new Headers([["a", "b"]]));
        assert.equal(headers.get("a"), "b");
        const everything = await main.everything();
        everything.bytes = new Uint8Array(everything.bytes);
        assert.deepEqual(everything, {
            bigint: 2n ** 64n, date: new Date(5), bytes: new Uint8Array([9]), nothing: undefined, list: [[], [null]],
        });
        await assert.rejects(async () => await main.map_(), { name: "TypeError", message: "a Map at $.m can't be sent over Cap'n Web" });
        // The bound on depth is below the package's, which would end the session.
        let deep = 0;
        for (let depth = 0; depth < 250; depth++) deep = [deep];
        await assert.rejects(async () => await main.echo(deep), /250 levels/);
    },

    async blobs() {
        const main = connect();
        const blob = await main.echo(new Blob(["hello ", "blob"], { type: "text/plain" }));
        assert.ok(blob instanceof Blob);
        assert.equal(blob.type, "text/plain");
        assert.equal(await blob.text(), "hello blob");
        const large = new Uint8Array(700_000).fill(7);
        const back = await main.echo(new Blob([large]));
        assert.deepEqual(new Uint8Array(await back.arrayBuffer()), large);
    },

    async http() {
        const main = connect();
        const request = new Request("https://a.example/p", { method: "POST", body: "body", headers: { "x-a": "1" } });
        assert.deepEqual(await main.describe(request), { url: "https://a.example/p", method: "POST", body: "body" });
        const response = await main.respond();
        assert.ok(response instanceof Response);
        assert.equal(response.status, 201);
        assert.equal(response.headers.get("x-b"), "2");
        assert.equal(await response.text(), "made");
        const same = await main.echo(new Request("https://b.example/", { method: "PUT", body: "b" }));
        assert.ok(same instanceof Request);
        assert.deepEqual([same.url, same.method, await same.text()], ["https://b.example/", "PUT", "b"]);
        const streamed = await main.echo(new Response("through", { status: 404 }));
        assert.equal(streamed.status, 404);
        assert.equal(await streamed.text(), "through");
    },

    async pipelining() {
        const main = connect();
        // None of these waits for another on this side.
        const counter = main.makeCounter(10);
        const first = counter.increment(5);
        const second = counter.increment(first);
        assert.equal(await second, 30);
        assert.equal(await first, 15);
        assert.equal(await counter.value, 30);
        const nested = main.nest();
        assert.equal(await nested.inner.counter.increment(1), 101);
        assert.equal(await main.add(nested.inner.n, counter.value), 37);
        // On a call that has not ended.
        const held = main.hold();
        const after = held.increment(1);
        await main.letGo();
        assert.equal(await after, 1);
        await assert.rejects(async () => await main.fail("TypeError", "early").more.calls(), { name: "TypeError", message: "early" });
        await assert.rejects(async () => await main.nest().inner.n(), { message: "'inner.n' is not a function." });
    },

    async map() {
        const main = connect();
        assert.deepEqual(await main.list().map((n) => main.add(n, 100)), [101, 102, 103]);
        const objects = await main.list().map((n) => ({ n, twice: main.add(n, n), same: [n, "x"] }));
        assert.deepEqual(objects[2], { n: 3, twice: 6, same: [3, "x"] });
        assert.equal(await main.echo(null).map((x) => main.add(x, 1)), null);
        assert.equal(await main.echo(undefined).map((x) => main.add(x, 1)), undefined);
        assert.equal(await main.echo(4).map((x) => main.add(x, 1)), 5);
        // Functions in functions, and a property of the input.
        const grid = await main.echo([[1, 2], [3]]).map((row) => row.map((n) => main.add(n, 10)));
        assert.deepEqual(grid, [[11, 12], [13]]);
        assert.deepEqual(await main.nest().map((x) => x.inner.n), 7);
        // The client's own stub in the function.
        const adder = new RpcStub(new Adder(1000));
        assert.deepEqual(await main.list().map((n) => adder.dup().add(n)), [1001, 1002, 1003]);
        // Capabilities as input.
        const values = await main.counters(3).map((counter) => counter.increment(1));
        assert.deepEqual(values, [1, 2, 3]);
        await assert.rejects(async () => await main.list().map((n) => main.fail("Error", "each")), { message: "each" });
    },

    async references() {
        const main = connect();
        const before = (await main.counts()).live;
        const counter = await main.makeCounter(1);
        const again = counter.dup();
        assert.equal(await again.increment(1), 2);
        assert.equal((await main.counts()).live, before + 1);
        counter[Symbol.dispose]();
        assert.equal((await main.counts()).live, before + 1, "its duplicate is held");
        again[Symbol.dispose]();
        assert.equal((await main.counts()).live, before, "it was disposed of");
        const both = await main.twice();
        assert.equal(await both.a.increment(1), 1);
        assert.equal(await both.b.increment(1), 2, "it is one object");
        both[Symbol.dispose]();
        assert.equal((await main.counts()).live, before);
        // What a call was given is let go of when it is over, unless it was kept.
        const adder = new Adder(1);
        assert.equal(await main.callBack(adder, 1), 2);
        await main.add(0, 0);
        assert.equal(adder.disposed, 1);
        const kept = new Adder(5);
        await main.keep(kept);
        assert.equal(await main.callKept(1), 6);
        assert.equal(kept.disposed, 0);
        await main.dropKept();
        await main.add(0, 0);
        assert.equal(kept.disposed, 1);
        assert.deepEqual(session.getStats(), { imports: 1, exports: 1 });
    },

    async callbacks() {
        const main = connect();
        assert.equal(await main.callBack((x) => x * 2, 21), 42);
        assert.equal(await main.callBack(async (x) => x + "!", "hi"), "hi!");
        await assert.rejects(async () => await main.callBack(() => { throw new RangeError("mine"); }, 0), { name: "RangeError", message: "mine" });
        assert.equal(await main.read(new Adder(8)), 8);
        // A function of the server's goes through the client and back, and the client's own comes back as itself.
        assert.equal(await main.callBack((add) => add(2, 3), main.adder), 5);
        const own = new RpcStub(new Adder(1));
        const back = await main.echo({ own: own.dup() });
        assert.equal(await back.own.add(1), 2);
        assert.equal(await main.echo(own.dup()).add(2), 3);
        // A promise as an argument is waited for, and one that fails fails the call.
        assert.equal(await main.add(main.add(1, 2), 3), 6);
        await assert.rejects(async () => await main.add(main.fail("Error", "arg"), 3), { message: "arg" });
    },

    async errors() {
        const main = connect();
        const error = await main.fail("TypeError", "broken").then(() => assert.fail(), (error) => error);
        assert.ok(error instanceof TypeError);
        assert.equal(error.message, "broken");
        assert.equal(error.code, 7);
        assert.match(error.stack, /at worker/);
        await assert.rejects(async () => await main.throwText(), (thrown) => thrown === "only text");
        assert.equal(await main.add(1, 1), 2, "the session goes on");
    },

    async streams() {
        const main = connect();
        // To the server.
        const up = new ReadableStream({
            start(controller) {
                for (let i = 0; i < 50; i++) controller.enqueue(new Uint8Array(20_000).fill(i));
                controller.close();
            },
        });
        assert.equal(await main.sum(up), 50 * 20_000);
        // From the server.
        const down = await main.stream(3_000_000);
        let length = 0;
        for await (const chunk of down) length += chunk.length;
        assert.equal(length, 3_000_000);
        // Through the server.
        const through = await main.echo(new Response("there and back").body);
        assert.equal(await new Response(through).text(), "there and back");
        // Written to the server.
        const sink = await main.sink();
        const writer = sink.getWriter();
        for (let i = 0; i < 20; i++) await writer.write(bytesOf(`${i};`));
        await writer.close();
        assert.deepEqual(await main.written(), { text: [...Array(20).keys()].map((i) => `${i};`).join(""), end: "close" });
        // Written to the client.
        let received = "";
        let closed = false;
        const own = new WritableStream({
            write(chunk) { received += new TextDecoder().decode(chunk); },
            close() { closed = true; },
        });
        await main.writeTo(own, "to the client");
        assert.deepEqual([received, closed], ["to the client", true]);
    },

    async streams_that_fail() {
        const main = connect();
        const up = new ReadableStream({
            pull(controller) {
                controller.error(new RangeError("source"));
            },
        });
        await assert.rejects(async () => await main.sum(up), { message: "source" });
        const down = await main.stream(-1);
        await assert.rejects(async () => { for await (const _ of down); }, { message: "dry" });
        const texts = new ReadableStream({
            start(controller) {
                controller.enqueue("text");
            },
        });
        await assert.rejects(async () => await main.sum(texts), { name: "TypeError", message: /bytes only/ });
        const sink = await main.sink();
        const writer = sink.getWriter();
        writer.closed.catch(() => {});
        await assert.rejects(async () => {
            await writer.write("text");
            await writer.close();
        }, { name: "TypeError", message: /bytes only/ });
        const reader = (await main.stream(50_000_000)).getReader();
        await reader.read();
        await reader.cancel();
        while ((await main.counts()).live > 0) await main.add(0, 0);
        assert.equal(await main.add(1, 1), 2, "the session goes on");
    },

    async cancellation() {
        const main = connect();
        const held = main.hold();
        held.catch(() => {});
        held[Symbol.dispose]();
        assert.equal((await main.counts()).cancelled, 1);
    },

    async abort() {
        const main = connect();
        const pending = main.hold().then(() => assert.fail(), (error) => error);
        const broken = new Promise((resolve) => main.onRpcBroken(resolve));
        say('["push",["pipeline",77,["x"]]]');
        assert.match((await broken).message, /no such entry on exports table: 77/);
        assert.match((await pending).message, /no such entry on exports table: 77/);
        await assert.rejects(async () => await main.add(1, 1), /77/);
    },

    async shutdown() {
        const main = connect();
        const pending = main.hold().then(() => assert.fail(), (error) => error);
        await main.add(1, 1);
        await main.quit("time to go").catch(() => {});
        assert.match((await pending).message, /time to go/);
    },

    async batch() {
        // A server behind HTTP, which is these pipes.
        globalThis.fetch = async (_, { body }) => {
            for (const line of body.split("\n")) say(line);
            say("END");
            const answer = [];
            for (;;) {
                const line = await nextLine();
                if (line === "END") return new Response(answer.join("\n"));
                answer.push(line);
            }
        };
        const main = newHttpBatchRpcSession("http://server.invalid/");
        const counter = main.makeCounter(1);
        const [sum, count, list, failed] = await Promise.allSettled([
            main.add(1, 2), counter.increment(1), main.list().map((n) => main.add(n, 1)), main.fail("Error", "no"),
        ]);
        assert.equal(sum.value, 3);
        assert.equal(count.value, 2);
        assert.deepEqual(list.value, [2, 3, 4]);
        assert.equal(failed.reason.message, "no");
    },
};

const story = stories[process.argv[2]];
assert.ok(story, `there is no story ${process.argv[2]}`);
story().then(
    () => process.exit(0),
    (error) => {
        process.stderr.write(`${error?.stack ?? error}\n`);
        process.exit(1);
    },
);
