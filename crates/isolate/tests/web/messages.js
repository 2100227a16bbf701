import { equal, looksRight, rejects, suite, throws } from "./check.js";

const base64 = (text) => Uint8Array.from(atob(text), (it) => it.charCodeAt(0));
const through = (stream, ...chunks) => new Response(new ReadableStream({ start(c) { for (const chunk of chunks) c.enqueue(chunk); c.close(); } }).pipeThrough(stream));

export default suite(async () => {
  looksRight("CompressionStream", 1, "readable writable");
  looksRight("DecompressionStream", 1, "readable writable");
  looksRight("MessageChannel", 0, "port1 port2");
  looksRight("MessagePort", 0, "postMessage start close onmessage");
  looksRight("MessageEvent", 1, "data origin ports");
  looksRight("CloseEvent", 1, "code reason wasClean");
  looksRight("ErrorEvent", 1, "message filename lineno colno error");
  looksRight("WebSocket", 1, "url readyState bufferedAmount protocol extensions binaryType accept send close onopen onmessage onerror onclose");

  // Compression. What another implementation has compressed comes back, and so does what was compressed here.
  for (const [format, packed] of [["gzip", "H4sIAAAAAAAAA8tIzcnJV8gAkQBApi0BCwAAAA=="], ["deflate", "eJzLSM3JyVfIAJEAGZEESQ=="], ["deflate-raw", "y0jNyclXyACRAA=="]]) {
    const bytes = base64(packed);
    equal(await through(new DecompressionStream(format), bytes).text(), "hello hello", format);
    equal(await through(new DecompressionStream(format), bytes.subarray(0, 5), bytes.subarray(5)).text(), "hello hello");
    const large = new TextEncoder().encode("all the same ".repeat(20_000));
    const small = await through(new CompressionStream(format), large.subarray(0, 7), large.subarray(7)).bytes();
    equal([small.length < 5_000, (await through(new DecompressionStream(format), small).text()).length], [true, large.length]);
    await rejects(through(new DecompressionStream(format), bytes.subarray(0, bytes.length - 3)).text(), "TypeError", "end too soon");
    await rejects(through(new DecompressionStream(format), bytes, new Uint8Array(3)).text(), "TypeError");
    await rejects(through(new DecompressionStream(format), new Uint8Array(30).fill(255)).text(), "TypeError");
    equal(await through(new DecompressionStream(format), await through(new CompressionStream(format)).bytes()).text(), "");
  }
  throws(() => new CompressionStream("zip"), "TypeError", "zip");
  await rejects(through(new CompressionStream("gzip"), "text").text(), "TypeError");

  // Messages.
  const { port1, port2 } = new MessageChannel();
  const seen = [];
  port1.postMessage({ a: new Map([[1, 2]]) });
  await new Promise((go) => { port2.onmessage = (event) => { seen.push([event.data.a.get(1), event.isTrusted, event.type, event.target === port2]); go(); }; });
  const sent = { n: 1 };
  port2.postMessage(sent);
  sent.n = 2;
  port1.addEventListener("message", (event) => seen.push(event.data.n));
  await scheduler.wait(2);
  equal(seen.length, 1, "nothing comes before start()");
  port1.start();
  await scheduler.wait(2);
  equal(seen, [[2, true, "message", true], 1]);
  const buffer = new ArrayBuffer(4);
  port1.postMessage(buffer, [buffer]);
  equal(buffer.byteLength, 0);
  throws(() => port1.postMessage(() => {}), "DataCloneError");
  throws(() => new MessagePort(), "TypeError", "Illegal constructor");
  port1.close();
  port2.postMessage(1);
  await scheduler.wait(2);
  equal(seen.length, 2);

  // A WebSocket, where nothing outside is to be had. (What servers send is tested with the prelude alone.)
  throws(() => new WebSocket("/x"), "SyntaxError");
  throws(() => new WebSocket("wss://a.example/", ["a", "a"]), "SyntaxError");
  const socket = new WebSocket("https://a.example/x");
  equal([socket.url, socket.readyState, WebSocket.CONNECTING, socket.binaryType, socket.protocol], ["wss://a.example/x", 0, 0, "arraybuffer", ""]);
  throws(() => socket.send("x"), "InvalidStateError");
  throws(() => socket.close(1001), "InvalidAccessError");
  const told = [];
  socket.addEventListener("error", (event) => told.push([event.type, event.isTrusted, event.message !== ""]));
  await new Promise((go) => { socket.onclose = (event) => { told.push([event.code, event.wasClean, socket.readyState]); go(); }; });
  equal(told, [["error", true, true], [1006, false, 3]]);
  equal([new MessageEvent("x", { data: 5, origin: "o" }).data, new MessageEvent("x").data], [5, null]);
});
