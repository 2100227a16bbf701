import { equal, looksRight, rejects, suite, throws } from "./check.js";

const bytes = (...list) => new Uint8Array(list);
const collect = async (stream) => { const all = []; for await (const chunk of stream) all.push(chunk); return all; };
const of = (...chunks) => new ReadableStream({ start(c) { for (const chunk of chunks) c.enqueue(chunk); c.close(); } });

export default suite(async () => {
  looksRight("ReadableStream", 0, "locked cancel getReader pipeThrough pipeTo tee values");
  looksRight("ReadableStreamDefaultReader", 1, "closed cancel read releaseLock");
  looksRight("ReadableStreamBYOBReader", 1, "closed cancel read releaseLock");
  looksRight("ReadableStreamBYOBRequest", 0, "view respond respondWithNewView");
  looksRight("ReadableStreamDefaultController", 0, "desiredSize close enqueue error");
  looksRight("ReadableByteStreamController", 0, "byobRequest desiredSize close enqueue error");
  looksRight("WritableStream", 0, "locked abort close getWriter");
  looksRight("WritableStreamDefaultWriter", 1, "closed desiredSize ready abort close releaseLock write");
  looksRight("WritableStreamDefaultController", 0, "signal error");
  looksRight("TransformStream", 0, "readable writable");
  looksRight("TransformStreamDefaultController", 0, "desiredSize enqueue error terminate");
  looksRight("ByteLengthQueuingStrategy", 1, "highWaterMark size");
  looksRight("CountQueuingStrategy", 1, "highWaterMark size");
  looksRight("TextEncoderStream", 0, "encoding readable writable");
  looksRight("TextDecoderStream", 0, "encoding fatal ignoreBOM readable writable");
  looksRight("IdentityTransformStream", 0, "");
  looksRight("FixedLengthStream", 1, "");

  // A chain of any length, with what comes at once and what comes late.
  for (const stages of [9, 60, 200]) {
    const late = new ReadableStream({ async start(c) { for (const one of [1, 2, 3]) { await scheduler.wait(1); c.enqueue(one); } c.close(); } });
    for (let end of [of(1, 2, 3), late]) {
      for (let i = 0; i < stages; i++) end = end.pipeThrough(new TransformStream(i % 2 ? { transform(chunk, c) { c.enqueue(chunk); } } : undefined));
      equal(await collect(end), [1, 2, 3], stages);
    }
    let broken = new ReadableStream({ start(c) { c.enqueue(1); }, pull() { throw new Error("source"); } });
    for (let i = 0; i < stages; i++) broken = broken.pipeThrough(new TransformStream());
    await rejects(collect(broken), "Error", "source");
  }

  // Reading.
  equal(await collect(of("a", "b")), ["a", "b"]);
  const stream = of(1, 2);
  const reader = stream.getReader();
  equal([stream.locked, await reader.read(), await reader.read(), await reader.read(), await reader.closed], [true, { value: 1, done: false }, { value: 2, done: false }, { done: true }, undefined]);
  throws(() => stream.getReader(), "TypeError", "locked");
  await rejects(stream.cancel(), "TypeError", "locked");
  reader.releaseLock();
  await rejects(reader.read(), "TypeError", "released");
  await rejects(reader.closed, "TypeError", "released");
  equal(stream.locked, false);
  const pulls = [];
  const lazy = new ReadableStream({ pull(c) { pulls.push(c.desiredSize); c.enqueue(pulls.length); }, cancel(why) { pulls.push(why); return 5; } }, { highWaterMark: 2 });
  await scheduler.wait(1);
  equal(pulls.splice(0), [2, 1], "as much as the strategy wants");
  equal(await lazy.cancel("why"), undefined);
  equal(pulls, ["why"]);
  await rejects(new ReadableStream({ start(c) { c.error(new RangeError("r")); } }).getReader().read(), "RangeError", "r");
  await rejects(new ReadableStream({ pull() { throw new RangeError("p"); } }).getReader().read(), "RangeError", "p");
  throws(() => new ReadableStream({ start() { throw new RangeError("s"); } }), "RangeError", "s");
  throws(() => new ReadableStream({ type: "other" }), "TypeError");
  throws(() => new ReadableStream({}, { highWaterMark: -1 }), "RangeError");
  throws(() => new ReadableStream(null), "TypeError");
  throws(() => new ReadableStreamDefaultController(), "TypeError", "Illegal constructor");
  const early = [];
  for await (const chunk of new ReadableStream({ start(c) { c.enqueue(1); c.enqueue(2); }, cancel(why) { early.push("cancelled", why); } })) { early.push(chunk); break; }
  equal(early, [1, "cancelled", undefined]);
  const kept = of(1, 2);
  for await (const _ of kept.values({ preventCancel: true })) break;
  equal(await collect(kept), [2]);

  // From what is iterable.
  equal(await collect(ReadableStream.from(["a", Promise.resolve("b")])), ["a", "b"]);
  equal(await collect(ReadableStream.from("xy")), ["x", "y"]);
  equal(await collect(ReadableStream.from((async function* () { yield 1; yield 2; })())), [1, 2]);
  throws(() => ReadableStream.from(5), "TypeError");
  await rejects(collect(ReadableStream.from((function* () { yield 1; throw new RangeError("from"); })())), "RangeError", "from");
  const returned = [];
  const from = ReadableStream.from((async function* () { try { yield 1; } finally { returned.push("returned"); } })());
  const fromReader = from.getReader();
  await fromReader.read();
  await fromReader.cancel();
  equal(returned, ["returned"]);

  // Tee.
  const [left, right] = of("a", "b").tee();
  equal([await collect(left), await collect(right)], [["a", "b"], ["a", "b"]]);
  const reasons = [];
  const [one, two] = new ReadableStream({ cancel: (why) => void reasons.push(why) }).tee();
  one.cancel(1);
  await two.cancel(2);
  equal(reasons, [[1, 2]], "cancelled when both are");

  // Byte streams.
  const source = new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2, 3, 4, 5)); c.close(); } });
  const byob = source.getReader({ mode: "byob" });
  const first = await byob.read(new Uint8Array(2));
  equal([first.done, first.value], [false, bytes(1, 2)]);
  equal((await byob.read(new Uint8Array(4))).value, bytes(3, 4, 5));
  const last = await byob.read(new Uint8Array(4));
  equal([last.done, last.value.length, last.value.buffer.byteLength], [true, 0, 4]);
  const given = new Uint8Array(4);
  byob.read(given);
  equal(given.byteLength, 0, "a view that is read into is transferred");
  const asked = [];
  const onDemand = new ReadableStream({ type: "bytes", pull(c) {
    const { view } = c.byobRequest;
    asked.push(view.byteLength);
    view[0] = asked.length;
    c.byobRequest.respond(1);
  } });
  const demand = onDemand.getReader({ mode: "byob" });
  equal([(await demand.read(new Uint8Array(8))).value, (await demand.read(new Uint8Array(3), { min: 2 })).value, asked], [bytes(1), bytes(2, 3), [8, 3, 2]]);
  demand.releaseLock();
  await rejects(onDemand.getReader({ mode: "byob" }).read(new Uint8Array(0)), "TypeError");
  throws(() => of(1).getReader({ mode: "byob" }), "TypeError");
  throws(() => of(1).getReader({ mode: "other" }), "TypeError");
  const auto = new ReadableStream({ type: "bytes", autoAllocateChunkSize: 4, pull(c) { c.byobRequest.view.fill(7); c.byobRequest.respond(2); c.close(); } });
  equal((await auto.getReader().read()).value, bytes(7, 7));
  const [bytesOne, bytesTwo] = new ReadableStream({ type: "bytes", start(c) { c.enqueue(bytes(1, 2)); c.close(); } }).tee();
  const [chunkOne, chunkTwo] = [await collect(bytesOne), await collect(bytesTwo)];
  equal([chunkOne[0], chunkTwo[0], chunkOne[0].buffer === chunkTwo[0].buffer], [bytes(1, 2), bytes(1, 2), false]);
  throws(() => new ReadableStream({ type: "bytes" }, { size() { return 1; } }), "RangeError");

  // Writing.
  const log = [];
  const writable = new WritableStream({
    start(c) { log.push(["start", c instanceof WritableStreamDefaultController, c.signal.aborted]); },
    async write(chunk) { log.push(chunk); await scheduler.wait(1); },
    close() { log.push("close"); },
  }, { highWaterMark: 2 });
  const writer = writable.getWriter();
  equal([writable.locked, writer.desiredSize], [true, 2]);
  writer.write("a");
  const written = writer.write("b");
  equal(writer.desiredSize, 0);
  await writer.ready;
  await written;
  await writer.close();
  equal([await writer.closed, writer.desiredSize], [undefined, 0]);
  equal(log, [["start", true, false], "a", "b", "close"]);
  await rejects(writer.write("c"), "TypeError");
  const abort = [];
  const aborted = new WritableStream({ write: () => new Promise(() => {}), abort(why) { abort.push(why); }, start(c) { c.signal.onabort = () => abort.push("signal"); } });
  const abortWriter = aborted.getWriter();
  await abortWriter.abort("why");
  equal(abort, ["signal", "why"]);
  try { await abortWriter.closed; } catch (error) { equal(error, "why"); }
  await rejects(new WritableStream({ write() { throw new RangeError("w"); } }).getWriter().write(1), "RangeError", "w");
  throws(() => new WritableStream({ type: "bytes" }), "RangeError");

  // Transforming and piping.
  const upper = () => new TransformStream({ transform(chunk, c) { c.enqueue(chunk.toUpperCase()); }, flush(c) { c.enqueue("!"); } });
  equal(await collect(of("a", "b").pipeThrough(upper())), ["A", "B", "!"]);
  equal(await collect(of(1).pipeThrough(new TransformStream())), [1], "without a transformer it is the identity");
  await rejects(collect(of(1).pipeThrough(new TransformStream({ transform() { throw new RangeError("t"); } }))), "RangeError", "t");
  equal(await collect(of(1, 2).pipeThrough(new TransformStream({ transform(chunk, c) { c.enqueue(chunk); c.terminate(); } }))).catch((error) => error.name), [1]);
  const piped = [];
  const sink = () => new WritableStream({ write: (chunk) => void piped.push(chunk), close: () => void piped.push("close"), abort: (why) => void piped.push("abort", why.message) });
  equal(await of(1, 2).pipeTo(sink()), undefined);
  equal(piped.splice(0), [1, 2, "close"]);
  await of(1).pipeTo(sink(), { preventClose: true });
  equal(piped.splice(0), [1]);
  await rejects(new ReadableStream({ pull() { throw new RangeError("source"); } }).pipeTo(sink()), "RangeError", "source");
  equal(piped.splice(0), ["abort", "source"]);
  const stopped = new AbortController();
  const endless = new ReadableStream({ pull() {}, cancel: (why) => void piped.push("cancel", why) });
  const pipe = endless.pipeTo(new WritableStream(), { signal: stopped.signal });
  stopped.abort("enough");
  try { await pipe; } catch (error) { equal(error, "enough"); }
  equal([piped.splice(0), endless.locked], [["cancel", "enough"], false]);
  throws(() => of(1).pipeThrough({}), "TypeError");
  await rejects(of(1).pipeTo({}), "TypeError");

  // Strategies.
  equal([new CountQueuingStrategy({ highWaterMark: 3 }).size("abc"), new ByteLengthQueuingStrategy({ highWaterMark: 3 }).size(bytes(1, 2)), new CountQueuingStrategy({ highWaterMark: "4" }).highWaterMark], [1, 2, 4]);
  throws(() => new CountQueuingStrategy(), "TypeError");

  // Text.
  equal(await collect(of("\ud83d", "\ude00\ud800").pipeThrough(new TextEncoderStream())), [bytes(0xf0, 0x9f, 0x98, 0x80), bytes(0xef, 0xbf, 0xbd)]);
  equal(await collect(of(bytes(0xe2, 0x82), bytes(0xac, 97), bytes(0xe2)).pipeThrough(new TextDecoderStream())), ["\u20aca", "\ufffd"]);
  await rejects(collect(of(bytes(0xff)).pipeThrough(new TextDecoderStream("utf-8", { fatal: true }))), "TypeError");
  await rejects(collect(of("text").pipeThrough(new TextDecoderStream())), "TypeError");
  throws(() => new TextDecoderStream("none"), "RangeError");

  // Those of Workers.
  const identity = new IdentityTransformStream();
  equal([identity instanceof TransformStream, identity.readable instanceof ReadableStream], [true, true]);
  const input = identity.writable.getWriter();
  let isWritten = false;
  input.write(bytes(1, 2, 3)).then(() => { isWritten = true; });
  const output = identity.readable.getReader({ mode: "byob" });
  equal([(await output.read(new Uint8Array(2))).value, isWritten], [bytes(1, 2), false]);
  equal((await output.read(new Uint8Array(2))).value, bytes(3));
  await scheduler.wait(0);
  equal(isWritten, true, "a write is done when all of it has been read");
  const end = output.read(new Uint8Array(2));
  await input.close();
  equal((await end).done, true);
  const fixed = async (length, ...chunks) => {
    const it = new FixedLengthStream(length);
    const target = it.writable.getWriter();
    const all = collect(it.readable);
    all.catch(() => {});
    for (const chunk of chunks) await target.write(chunk);
    await target.close();
    return all;
  };
  equal(await fixed(3, bytes(1, 2), bytes(3)), [bytes(1, 2), bytes(3)]);
  await rejects(fixed(1, bytes(1, 2)), "TypeError", "too many bytes");
  await rejects(fixed(3, bytes(1, 2)), "TypeError", "did not see all expected bytes");
  throws(() => new FixedLengthStream(-1), "TypeError");
});
