// WebSockets against a server that is played, frame by frame: what they tell, what they send, and that every breach of the
// protocol ends them. First as it should be, then with every built-in replaced.
// Run with `node --test crates/guest/js/test/`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { replaceEverything } from "./hostile.mjs";
import { bytesOf, framesOf, hexOf, newPeer, newSwitch, settled } from "./server.mjs";

// What a worker does, with methods that were taken before anybody could replace them.
const user = `(() => {
  const { apply, getOwnPropertyDescriptor } = Reflect;
  const { accept, send, close } = WebSocket.prototype;
  const { addEventListener } = EventTarget.prototype;
  const Socket = WebSocket;
  const get = (constructor, name) => {
    const getter = getOwnPropertyDescriptor(constructor.prototype, name).get;
    return (it) => apply(getter, it, []);
  };
  const setBinaryType = getOwnPropertyDescriptor(WebSocket.prototype, "binaryType").set;
  const fetching = fetch;
  return {
    open: (url, protocols) => new Socket(url, protocols), accept: (it) => apply(accept, it, []), send: (it, data) => apply(send, it, [data]),
    close: (it, code, reason) => apply(close, it, [code, reason]), listen: (it, type, run) => apply(addEventListener, it, [type, run]),
    binaryType: (it, type) => apply(setBinaryType, it, [type]), state: get(WebSocket, "readyState"), buffered: get(WebSocket, "bufferedAmount"),
    protocol: get(WebSocket, "protocol"), url: get(WebSocket, "url"), data: get(MessageEvent, "data"), origin: get(MessageEvent, "origin"),
    code: get(CloseEvent, "code"), reason: get(CloseEvent, "reason"), wasClean: get(CloseEvent, "wasClean"), message: get(ErrorEvent, "message"),
    webSocket: get(Response, "webSocket"), fetch: (url) => fetching(url), size: get(Blob, "size"),
  };
})()`;

// A peer with a worker's socket and the server's end of it. `log` is what the socket told.
function newSetting(answers, hostile = false) {
  const peer = newPeer(answers);
  const worker = peer.all.evaluate(user);
  const log = [];
  const recorder = hostile ? peer.all.evaluate(`(${replaceEverything})()`) : undefined;
  if (hostile) {
    // The language itself asks what a promise is resolved with whether it is a thenable.
    peer.all.evaluate("delete Object.prototype.then");
    Object.defineProperty(peer.record, "on", { get: () => recorder.on, set: (on) => (recorder.on = on) });
  }
  const told = {
    open: () => ["open"],
    message: (event) => {
      const data = worker.data(event);
      return ["message", typeof data === "string" ? data : data instanceof peer.all.evaluate("Blob") ? `blob ${worker.size(data)}` : hexOf(data)];
    },
    error: (event) => ["error", worker.message(event)],
    close: (event) => ["close", worker.code(event), worker.reason(event), worker.wasClean(event)],
  };
  const watch = (socket) => {
    for (const type of Object.keys(told)) {
      worker.listen(socket, type, (event) => {
        peer.pause(() => {
          assert.ok(event.isTrusted);
          log.push(told[type](event));
        });
      });
    }
    return socket;
  };
  return { peer, worker, log, watch, recorder, enter: peer.enter };
}

async function open(url = "wss://a.example/x", protocols = undefined, members = {}, hostile = false) {
  let at;
  const setting = newSetting({ fetch: (_, peer) => (([response, end]) => ((at = end), response))(newSwitch(peer, members)) }, hostile);
  const { worker, watch, enter } = setting;
  const socket = watch(enter(() => worker.open(url, protocols)));
  assert.equal(worker.state(socket), 0);
  await settled();
  return { ...setting, socket, at };
}

const frame = (first, hex) => {
  const { length } = bytesOf(hex);
  const size = length < 126 ? length.toString(16).padStart(2, "0") : length < 65536 ? `7e${length.toString(16).padStart(4, "0")}` : `7f${length.toString(16).padStart(16, "0")}`;
  return `${first}${size}${hex}`;
};
const utf8 = (text) => Buffer.from(text).toString("hex");

for (const hostile of [false, true]) {
  test(`messages come as they were sent, however they are cut${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    const stream = [
      "81 05 48 65 6c 6c 6f", // "Hello"
      "01 03 48 65 6c", "89 05 48 65 6c 6c 6f", "80 02 6c 6f", // fragmented, with a ping inside
      "82 00", "81 00", "02 02 0102", "00 00", "00 01 03", "80 01 04", "8a 02 0000",
      frame("82", "ab".repeat(126)), frame("81", utf8("é€😀".repeat(20_000))), frame("81", "efbbbf41"),
    ].map(bytesOf);
    const all = new Uint8Array(Buffer.concat(stream));
    const cuts = [(piece) => [piece], (piece) => Array.from({ length: Math.ceil(piece.length / 7) }, (_, i) => piece.subarray(7 * i, 7 * i + 7))];
    for (const cut of cuts) {
      const { socket, at, log, peer, worker, recorder } = await open(undefined, undefined, {}, hostile);
      // (In pieces of seven bytes only what is short, in pieces of one the first frames.)
      const pieces = cut(cut === cuts[0] ? all : all.subarray(0, 200));
      peer.push(at, ...(cut === cuts[0] ? pieces : [...Array.from(all.subarray(0, 40), (byte) => Uint8Array.of(byte)), ...cut(all.subarray(40, 400))]));
      for (let round = 0; round < 20; round++) await settled();
      const expected = ["Hello", "Hello", "", "", "01020304", "ab".repeat(126), "é€😀".repeat(20_000), "\ufeffA"];
      const seen = log.slice(1).map(([type, data]) => (type === "message" ? data : type));
      assert.deepEqual(log[0], ["open"]);
      assert.deepEqual(seen, cut === cuts[0] ? expected : expected.slice(0, 6));
      assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[10, "48656c6c6f"]]);
      assert.equal(worker.state(socket), 1);
      if (hostile) assert.deepEqual([...recorder.calls], []);
    }
  });

  test(`what is sent is masked and in order${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    const { socket, at, worker, peer, recorder, enter } = await open(undefined, undefined, {}, hostile);
    const make = peer.all.evaluate("(bytes) => bytes");
    const lengths = [0, 1, 2, 3, 4, 5, 125, 126, 127, 65535, 65536, 2_500_000];
    const payloads = lengths.map((length) => Uint8Array.from({ length }, (_, index) => (index * 7 + length) & 255));
    for (const payload of payloads) enter(() => worker.send(socket, make(payload)));
    const view = new DataView(Uint8Array.of(1, 2, 3, 4).buffer, 1, 2);
    enter(() => worker.send(socket, "a\ud800€"));
    enter(() => worker.send(socket, view));
    enter(() => worker.send(socket, payloads[5].buffer));
    const total = lengths.reduce((sum, length) => sum + length) + 7 + 2 + 5;
    assert.equal(worker.buffered(socket), total);
    for (let round = 0; round < 10; round++) await settled();
    assert.equal(worker.buffered(socket), 0);
    const frames = framesOf(at);
    assert.deepEqual(frames.map(([opcode, payload]) => [opcode, payload]), [
      ...payloads.map((payload) => [2, hexOf(payload)]), [1, utf8("a\ufffd€")], [2, "0203"], [2, hexOf(payloads[5])],
    ]);
    assert.equal(new Set(frames.map(([, , mask]) => mask)).size, frames.length);
    assert.ok(at.written.every((piece) => piece.length <= 1_048_576));
    if (hostile) assert.deepEqual([...recorder.calls], []);
  });

  test(`closing is told to both sides${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    // By the server: [its frame, the answer, what is told].
    for (const [sent, answer, told] of [
      ["88 05 03e8 627965", "03e8", ["close", 1000, "bye", true]],
      ["88 00", "", ["close", 1005, "", true]],
      ["88 02 0fa0", "0fa0", ["close", 4000, "", true]],
    ]) {
      const { socket, at, log, peer, worker, recorder, enter } = await open(undefined, undefined, {}, hostile);
      peer.push(at, bytesOf(`81 01 61 ${sent} 81 01 62`));
      await settled();
      assert.deepEqual(log, [["open"], ["message", "a"], told]);
      assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[8, answer]]);
      assert.deepEqual([worker.state(socket), at.isClosed, at.isCancelled, at.isAborted, peer.timers.size], [3, true, true, undefined, 0]);
      enter(() => worker.send(socket, "late"));
      enter(() => worker.close(socket));
      assert.equal(worker.buffered(socket), 4);
      if (hostile) assert.deepEqual([...recorder.calls], []);
    }
    // By the worker.
    for (const [code, reason, sent] of [[undefined, undefined, ""], [1000, "x", "03e878"], [4999, undefined, "1387"], [undefined, "r", "03e872"]]) {
      const { socket, at, log, peer, worker, recorder, enter } = await open(undefined, undefined, {}, hostile);
      enter(() => worker.close(socket, code, reason));
      enter(() => worker.close(socket, 3000));
      enter(() => worker.send(socket, "late"));
      assert.equal(worker.state(socket), 2);
      peer.push(at, bytesOf("81 01 61 89 00 88 02 0bb8"));
      await settled();
      assert.deepEqual(log, [["open"], ["close", 3000, "", true]]);
      assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[8, sent]]);
      assert.deepEqual([worker.state(socket), at.isClosed, peer.timers.size], [3, true, 0]);
      if (hostile) assert.deepEqual([...recorder.calls], []);
    }
  });

  test(`every breach of the protocol ends the connection${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    for (const [sent, code, why] of [
      ["c1 00", 1002, "reserved bit"], ["a1 00", 1002, "reserved bit"], ["91 00", 1002, "reserved bit"],
      ["83 00", 1002, "opcode 3"], ["87 00", 1002, "opcode 7"], ["8b 00", 1002, "opcode 11"], ["8f 00", 1002, "opcode 15"],
      ["81 85 37fa213d 7f9f4d5158", 1002, "masked"], ["88 80 00000000", 1002, "masked"],
      ["09 00", 1002, "fragmented"], ["08 00", 1002, "fragmented"], ["89 7e 007e", 1002, "125 bytes"], ["88 7f 0000000000010000", 1002, "125 bytes"],
      ["80 00", 1002, "continues no message"], ["00 00", 1002, "continues no message"], ["01 01 61 81 01 62", 1002, "inside another"],
      ["82 7e 0001 00", 1002, "longer than"], ["82 7f 000000000000ffff", 1002, "longer than"],
      ["88 01 03", 1002, "no valid code"], ["88 02 0000", 1002, "no valid code"], ["88 02 03e7", 1002, "no valid code"], ["88 02 03ec", 1002, "no valid code"],
      ["88 02 03ed", 1002, "no valid code"], ["88 02 03ee", 1002, "no valid code"], ["88 02 03f7", 1002, "no valid code"], ["88 02 07d0", 1002, "no valid code"],
      ["88 02 0bb7", 1002, "no valid code"], ["88 02 1388", 1002, "no valid code"], ["88 02 ffff", 1002, "no valid code"],
      ["81 01 ff", 1007, "not UTF-8"], ["81 03 eda080", 1007, "not UTF-8"], ["01 02 e282 80 01 28", 1007, "not UTF-8"], ["81 02 c3c3", 1007, "not UTF-8"],
      ["81 01 c3", 1007, "not UTF-8"], ["88 03 03e8 ff", 1007, "not UTF-8"],
      ["82 7f 0000000002000001", 1009, "33554432"], ["82 7f 8000000000000000", 1009, "33554432"], ["01 01 61 80 7f 0000000002000000", 1009, "33554432"],
    ]) {
      const { at, log, peer, socket, worker, recorder } = await open(undefined, undefined, {}, hostile);
      peer.push(at, bytesOf(`82 00 ${sent}`));
      await settled();
      assert.deepEqual(log.map(([type]) => type), ["open", "message", "error", "close"], sent);
      assert.match(log[2][1], new RegExp(why), sent);
      assert.deepEqual(log[3], ["close", 1006, "", false], sent);
      assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[8, code.toString(16).padStart(4, "0")]], sent);
      assert.deepEqual([worker.state(socket), at.isClosed, at.isCancelled], [3, true, true], sent);
      if (hostile) assert.deepEqual([...recorder.calls], [], sent);
    }
  });

  test(`a connection that is lost is told of${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    const lost = ["close", 1006, "", false];
    for (const [lose, expected] of [
      [({ peer, at }) => peer.push(at, undefined), [lost]],
      [({ peer, at }) => peer.push(at, bytesOf("81 05 48"), undefined), [lost]],
      [({ peer, at }) => peer.push(at, new Error("reset")), [["error", "reset"], lost]],
      [({ at, worker, socket, enter }) => ((at.isBroken = true), enter(() => worker.send(socket, "x"))), [["error", "broken pipe"], lost]],
      [({ peer, worker, socket, enter }) => {
        enter(() => worker.close(socket));
        const [[id, ms]] = peer.timers;
        assert.equal(ms, 10_000);
        peer.fire(id);
      }, [["error", "The WebSocket server did not answer the close frame."], lost]],
    ]) {
      const setting = await open(undefined, undefined, {}, hostile);
      lose(setting);
      await settled();
      assert.deepEqual(setting.log, [["open"], ...expected]);
      assert.equal(setting.worker.state(setting.socket), 3);
      // (A sink that a write to failed is over.)
      assert.ok(setting.at.isClosed || setting.at.isAborted || setting.at.isBroken);
      if (hostile) assert.deepEqual([...setting.recorder.calls], []);
    }
  });

  test(`a connection that does not come about is told of${hostile ? ", where every built-in is replaced" : ""}`, async () => {
    const plain = (peer, status) => {
      const content = peer.all.evaluate("(text) => JSON.parse(text)")(JSON.stringify({ status }));
      return peer.enter(() => peer.hooks.newInterface(2, content));
    };
    const chosen = (...headers) => (_, peer) => newSwitch(peer, { headers })[0];
    for (const [protocols, fetch, why] of [
      [undefined, () => { throw new Error("api.example is not on the list"); }, /^api.example is not on the list$/],
      [undefined, () => 5, /did not answer with a Response/],
      [undefined, (_, peer) => plain(peer, 200), /status 200 and not 101/],
      [undefined, chosen(["Sec-WebSocket-Protocol", "a"]), /protocol 'a'/],
      ["b", chosen(["Sec-WebSocket-Protocol", "a"]), /protocol 'a'/],
      ["b", chosen(), /protocol ''/],
      [undefined, chosen(["Sec-WebSocket-Extensions", "permessage-deflate"]), /extension/],
    ]) {
      const { peer, worker, log, watch, enter, recorder } = newSetting({ fetch }, hostile);
      const socket = watch(enter(() => worker.open("ws://a.example/", protocols)));
      await settled();
      assert.deepEqual(log.map(([type]) => type), ["error", "close"]);
      assert.match(log[0][1], why);
      assert.deepEqual(log[1], ["close", 1006, "", false]);
      assert.equal(worker.state(socket), 3);
      assert.ok([...peer.ends.values()].every((at) => at.isCancelled && at.isAborted));
      if (hostile) assert.deepEqual([...recorder.calls], []);
    }
    // It is closed before it is open.
    const { worker, log, watch, enter, peer } = newSetting({ fetch: chosen() }, hostile);
    const socket = watch(enter(() => worker.open("ws://a.example/")));
    enter(() => worker.close(socket, 3000));
    assert.equal(worker.state(socket), 2);
    assert.deepEqual(log, []);
    await settled();
    assert.deepEqual(log.map(([type]) => type), ["error", "close"]);
    assert.equal(peer.calls.length, 1);
  });
}

test("a socket is opened with the request that the outbound sees, and has the protocol that was chosen", async () => {
  const { worker, socket, peer } = await open("https://a.example:443/x?y", ["chat", "soap"], { headers: [["sec-websocket-protocol", "soap"]] });
  const [, [request]] = peer.calls[0];
  assert.equal(request.url, "https://a.example/x?y");
  assert.deepEqual([request.method, request.headers.get("upgrade"), request.headers.get("sec-websocket-protocol")], ["GET", "websocket", "chat, soap"]);
  assert.deepEqual([worker.url(socket), worker.protocol(socket), socket.extensions, socket.binaryType], ["wss://a.example/x?y", "soap", "", "arraybuffer"]);
  const other = await open("ws://b.example");
  assert.deepEqual([other.socket.url, other.peer.calls[0][1][0].url], ["ws://b.example/", "http://b.example/"]);
  other.socket.onmessage = (event) => other.log.push(["origin", event.origin]);
  other.peer.push(other.at, bytesOf("81 01 61"));
  await settled();
  assert.deepEqual(other.log.at(-1), ["origin", "ws://b.example"]);
});

test("what can't be asked for throws", async () => {
  const { peer, worker, socket, enter } = await open();
  const thrown = (run) => {
    try {
      run();
    } catch (error) {
      return error.name;
    }
    return undefined;
  };
  for (const url of ["", "/x", "x", "ftp://a/", "ws://", "wss://a/#", "ws://a/#x", "ws://user@a/", "ws://user:p@a/", "mailto:a"]) {
    assert.equal(thrown(() => worker.open(url)), "SyntaxError", url);
  }
  for (const protocols of ["", "a b", "é", "a,b", ["a", "a"], ["a", ""]]) {
    assert.equal(thrown(() => worker.open("ws://a/", protocols)), "SyntaxError", `${protocols}`);
  }
  assert.equal(thrown(() => peer.all.evaluate("new WebSocket()")), "TypeError");
  assert.equal(thrown(() => peer.all.evaluate("WebSocket('ws://a/')")), "TypeError");
  for (const code of [0, 999, 1001, 1005, 2999, 5000, 65536 + 1000, NaN, -1]) assert.equal(thrown(() => worker.close(socket, code)), "InvalidAccessError", `${code}`);
  assert.equal(thrown(() => worker.close(socket, 1000, "é".repeat(62))), "SyntaxError");
  assert.equal(worker.state(socket), 1);
  assert.equal(thrown(() => worker.send(worker.open("ws://a/"), "x")), "InvalidStateError");
  assert.equal(thrown(() => worker.accept(worker.open("ws://a/"))), "TypeError");
  enter(() => worker.accept(socket));
  assert.deepEqual(peer.all.evaluate("[WebSocket.OPEN, WebSocket.prototype.CLOSED, WebSocket.length, Object.keys(WebSocket).join()]").join(), "1,3,1,CONNECTING,OPEN,CLOSING,CLOSED");
  peer.hooks.setLoading(true);
  assert.equal(thrown(() => worker.open("ws://a/")), "Error");
  peer.hooks.setLoading(false);
});

test("pings that come while nothing can be written are answered once, with the last", async () => {
  const { at, peer, worker, socket } = await open();
  at.isStuck = true;
  worker.send(socket, "x");
  await settled();
  peer.push(at, bytesOf("89 01 01 89 01 02 89 01 03"), bytesOf("89 01 04"));
  await settled();
  peer.unstick(at);
  await settled();
  peer.push(at, bytesOf("89 01 05"));
  await settled();
  assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[1, "78"], [10, "04"], [10, "05"]]);
});

test("who awaits a message can listen for the next", async () => {
  const { at, peer, all = peer.all, socket } = await open();
  const read = all.evaluate(`async (socket) => {
    const next = async () => (await new Promise((go) => socket.addEventListener("message", go, { once: true }))).data;
    const seen = [];
    for (let index = 0; index < 50; index++) seen.push(await next());
    return seen.join("");
  }`)(socket);
  peer.push(at, bytesOf("81 01 61".repeat(50)));
  assert.equal(await read, "a".repeat(50));
});

test("a server that is gone after its close frame has closed the socket", async () => {
  const { at, peer, socket, worker, log } = await open();
  at.isBroken = true;
  socket.addEventListener("message", () => worker.send(socket, "x"));
  peer.push(at, bytesOf("81 01 61 81 01 62 88 02 03e8"));
  await settled();
  assert.deepEqual(log, [["open"], ["message", "a"], ["message", "b"], ["close", 1000, "", true]]);
});

test("what a listener throws is no concern of the socket's", async () => {
  const { at, peer, socket, log } = await open();
  socket.addEventListener("message", peer.all.evaluate("() => { throw new RangeError('mine'); }"));
  peer.push(at, bytesOf("81 01 61 81 01 62 88 00"));
  await settled();
  assert.deepEqual(log.map(([type]) => type), ["open", "message", "message", "close"]);
  assert.match(peer.all.messages[0][1], /^Uncaught RangeError: mine/);
});

test("what a listener does may end the socket", async () => {
  const { at, peer, socket, log } = await open();
  socket.onmessage = () => socket.close(3001, "enough");
  peer.push(at, bytesOf("81 01 61 81 01 62 89 00 81 01 ff"));
  await settled();
  assert.deepEqual(log.map(([type]) => type), ["open", "message", "error", "close"]);
  // (The ping was answered before the message was told, and the error is found after the close frame was sent.)
  assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[10, ""], [8, `0bb9${utf8("enough")}`]]);
});

test("reading takes time in proportion to what comes", async () => {
  const { at, peer, worker, socket, log } = await open();
  worker.binaryType(socket, "blob");
  const time = async (pieces, expected) => {
    const start = performance.now();
    peer.push(at, ...pieces);
    while (log.length === 1 && performance.now() - start < 10_000) await settled();
    assert.deepEqual(log.splice(1), [["message", expected]]);
    return performance.now() - start;
  };
  const large = new Uint8Array(10 + 33_554_432);
  large.set(bytesOf("82 7f 0000000002000000"));
  assert.ok((await time([large], "blob 33554432")) < 5_000);
  // A message in a million fragments of a byte each.
  const tiny = new Uint8Array(3 * 1_000_000);
  for (let index = 0; index < tiny.length; index += 3) tiny.set([index === 0 ? 2 : index === tiny.length - 3 ? 128 : 0, 1, 7], index);
  assert.ok((await time([tiny], "blob 1000000")) < 5_000);
});

// --- the sockets of responses ---

test("the socket of a response waits until it is accepted", async () => {
  let at;
  const { peer, worker, log, watch } = newSetting({ fetch: (_, peer) => (([response, end]) => ((at = end), response))(newSwitch(peer, { headers: [["Sec-WebSocket-Protocol", "p"]] })) });
  const response = await worker.fetch("https://a.example/");
  const socket = watch(worker.webSocket(response));
  assert.deepEqual([response.status, socket === worker.webSocket(response), worker.state(socket), socket.url, socket.protocol, response.body], [101, true, 1, null, "p", null]);
  peer.push(at, bytesOf("81 01 61"));
  await settled();
  assert.equal(at.pulling, undefined);
  assert.throws(() => worker.send(socket, "x"), { name: "TypeError", message: /accept/ });
  assert.throws(() => worker.close(socket), { name: "TypeError", message: /accept/ });
  assert.throws(() => response.clone(), { name: "TypeError" });
  worker.accept(socket);
  worker.accept(socket);
  worker.send(socket, "x");
  await settled();
  assert.deepEqual(log, [["message", "a"]]);
  assert.deepEqual(framesOf(at).map(([opcode, payload]) => [opcode, payload]), [[1, "78"]]);
  assert.throws(() => peer.hooks.interfaceContent(response), { name: "TypeError", message: /accepted/ });
});

test("a response is passed on with its socket, once", async () => {
  const { peer, worker } = newSetting({});
  const evaluate = peer.all.evaluate;
  const [response] = newSwitch(peer);
  peer.all.context.socket = worker.webSocket(response);
  const proxied = evaluate("new Response(null, { status: 101, webSocket: socket })");
  assert.equal(worker.webSocket(proxied), worker.webSocket(response));
  assert.throws(() => evaluate("new Response(null, { status: 101, webSocket: null })"), { name: "RangeError" });
  assert.throws(() => evaluate("new Response(null, { webSocket: socket })"), { name: "RangeError" });
  assert.throws(() => evaluate("new Response(null, { status: 101, webSocket: {} })"), { name: "TypeError" });
  assert.throws(() => evaluate("new Response('x', { status: 101, webSocket: socket })"), { name: "TypeError" });
  const { 0: number, 1: content } = peer.hooks.interfaceContent(proxied);
  assert.deepEqual([number, content.status, Object.keys(content.webSocket).join(), content.body], [2, 101, "readable,writable", null]);
  assert.throws(() => peer.hooks.interfaceContent(response), { name: "TypeError" });
  assert.throws(() => worker.accept(worker.webSocket(response)), { name: "TypeError" });
  // What was passed arrives.
  assert.equal(worker.state(worker.webSocket(peer.hooks.newInterface(2, content))), 1);
  assert.ok(!("webSocket" in peer.hooks.interfaceContent(evaluate("new Response('x')"))[1]));
  // One that was made by its constructor is nobody else's.
  peer.all.context.made = worker.open("ws://a/");
  assert.throws(() => peer.hooks.interfaceContent(evaluate("new Response(null, { status: 101, webSocket: made })")), { name: "TypeError" });
});

test("a socket that is malformed is no response", () => {
  const { peer } = newSetting({});
  const [ends] = peer.newEnds();
  for (const [status, webSocket] of [[101, undefined], [101, null], [200, ends], [101, 5], [101, {}], [101, { readable: ends.readable }], [101, { readable: ends.writable, writable: ends.readable }], ["101", ends], [undefined, ends]]) {
    assert.throws(() => peer.hooks.newInterface(2, { status, webSocket }), { name: "TypeError", message: /malformed/ });
  }
});

test("CloseEvent and ErrorEvent are events", () => {
  const { peer } = newSetting({});
  const shown = (code) => peer.all.evaluate(`(() => { const e = ${code}; return JSON.stringify([e.type, e.isTrusted, e.code, e.reason, e.wasClean, e.message, e.lineno, e.colno, e.filename, e.error]); })()`);
  assert.equal(shown("new CloseEvent('close')"), '["close",false,0,"",false,null,null,null,null,null]');
  assert.equal(shown("new CloseEvent('c', { code: 65537, reason: 'r', wasClean: 1 })"), '["c",false,1,"r",true,null,null,null,null,null]');
  assert.equal(shown("new ErrorEvent('e', { message: 'm', lineno: -1, colno: 2, filename: 'f', error: 7 })"), '["e",false,null,null,null,"m",4294967295,2,"f",7]');
  assert.equal(shown("new ErrorEvent('e')"), '["e",false,null,null,null,"",0,0,"",null]');
});
