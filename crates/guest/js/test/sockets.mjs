// Sockets of connections against a peer that is played: options, when they are open and closed, and TLS that is started
// later. Run with `node --test crates/guest/js/test/`.

import assert from "node:assert/strict";
import { test } from "node:test";

import { replaceEverything } from "./hostile.mjs";
import { hexOf, newPeer, settled } from "./server.mjs";

const text = (string) => new Uint8Array(Buffer.from(string));
const writtenTo = (at) => Buffer.concat(at.written).toString();

// `ends` are the peer's, in the order in which they were asked for.
function newSetting(answers = {}) {
  const ends = [];
  const withEnds = (more) => (_, peer) => {
    const [value, at] = peer.newEnds();
    ends.push(at);
    return Object.assign(value, more?.(peer));
  };
  const peer = newPeer({ connect: withEnds((it) => ({ startTls: it.newFunction("startTls") })), startTls: withEnds(), ...answers });
  const { connect } = peer.hooks.builtInModules["cloudflare:sockets"].exports;
  return { peer, ends, connect };
}

// What a promise came to by now.
async function outcome(promise) {
  let result = "pending";
  promise.then((value) => (result = value), (error) => (result = `${error.name}: ${error.message}`));
  await settled();
  return result;
}

test("options are checked, and passed on as they are", async () => {
  const { connect, peer } = newSetting();
  for (const options of [5, { secureTransport: "tls" }, { secureTransport: null }, { secureTransport: "toString" }]) {
    assert.throws(() => connect("a:1", options), { name: "TypeError" }, JSON.stringify(options));
  }
  assert.throws(() => connect("a"), { name: "TypeError", message: /port/ });
  for (const [options, expected] of [[undefined, "off"], [{}, "off"], [{ secureTransport: "off" }, "off"], [{ secureTransport: "on", allowHalfOpen: true, more: 1 }, "on"], [{ secureTransport: "starttls" }, "starttls"]]) {
    const socket = connect({ hostname: "a", port: 1 }, options);
    assert.deepEqual([socket.secureTransport, socket.upgraded], [expected, false]);
    await settled();
    assert.deepEqual(peer.calls.pop(), ["connect", options === undefined ? ["a:1"] : ["a:1", options]]);
  }
});

test("a socket is open when the connection is, and closed when both directions are over", async () => {
  const { connect, ends } = newSetting();
  const socket = connect("a:1", { allowHalfOpen: true });
  assert.equal(JSON.stringify(await outcome(socket.opened)), '{"remoteAddress":"a:1"}');
  const [at] = ends;
  const reader = socket.readable.getReader();
  const writer = socket.writable.getWriter();
  at.pieces.push(text("hi"), undefined);
  assert.equal(hexOf((await reader.read()).value), "6869");
  assert.equal((await reader.read()).done, true);
  assert.equal(await outcome(socket.closed), "pending");
  await writer.write(text("more"));
  await writer.close();
  assert.equal(await outcome(socket.closed), undefined);
  assert.deepEqual([writtenTo(at), at.isClosed], ["more", true]);
});

test("where it may not be half open, the end of what comes is the end of what is sent", async () => {
  const { connect, ends } = newSetting();
  const socket = connect("a:1");
  const writer = socket.writable.getWriter();
  const written = writer.write(text("first"));
  await settled();
  ends[0].pieces.push(undefined);
  assert.equal((await socket.readable.getReader().read()).done, true);
  assert.equal(await outcome(socket.closed), undefined);
  await written;
  assert.deepEqual([writtenTo(ends[0]), ends[0].isClosed], ["first", true]);
});

test("close() sends what was written before", async () => {
  const { connect, ends } = newSetting();
  const socket = connect("a:1");
  const writer = socket.writable.getWriter();
  writer.write(text("last"));
  assert.equal(await outcome(socket.close()), undefined);
  assert.deepEqual([writtenTo(ends[0]), ends[0].isClosed, ends[0].isCancelled], ["last", true, true]);
  assert.equal(await outcome(socket.closed), undefined);
  assert.equal(await outcome(socket.close()), undefined);
});

test("what goes wrong is told by both promises", async () => {
  const refused = newSetting({ connect: () => { throw new Error("db.example is not on the list"); } });
  const socket = refused.connect("db.example:5432");
  for (const seen of await Promise.all([socket.opened, socket.closed, socket.readable.getReader().read()].map(outcome))) {
    assert.equal(seen, "Error: db.example is not on the list");
  }
  assert.equal(await outcome(socket.close()), "Error: db.example is not on the list");
  const strange = newSetting({ connect: () => 5 }).connect("a:1");
  assert.match(await outcome(strange.opened), /^TypeError: .*connect/);
  const { connect, ends } = newSetting();
  const broken = connect("a:1");
  await settled();
  ends[0].pieces.push(new Error("reset"));
  assert.equal(await outcome(broken.readable.getReader().read()), "Error: reset");
  assert.equal(await outcome(broken.closed), "Error: reset");
});

test("TLS takes the connection over when all has been written", async () => {
  const { connect, ends, peer } = newSetting();
  const plain = connect("mail.example:587", { secureTransport: "starttls" });
  const writer = plain.writable.getWriter();
  writer.write(text("STARTTLS"));
  const secure = plain.startTls({ expectedServerHostname: "mail.example" });
  assert.deepEqual([plain.upgraded, plain.secureTransport, secure.upgraded, secure.secureTransport], [true, "starttls", false, "on"]);
  assert.throws(() => plain.startTls(), { name: "TypeError", message: /once/ });
  assert.equal(JSON.stringify(await outcome(secure.opened)), '{"remoteAddress":"mail.example:587"}');
  const [first, second] = ends;
  assert.deepEqual(peer.calls.map(([name]) => name), ["connect", "startTls"]);
  assert.equal(JSON.stringify(peer.calls[1][1]), '[{"expectedServerHostname":"mail.example"}]');
  assert.deepEqual([first.written.map((piece) => Buffer.from(piece).toString()), first.isCancelled, first.isAborted], [["STARTTLS"], true, true]);
  assert.equal(await outcome(plain.closed), undefined);
  assert.match(await outcome(writer.write(text("x"))), /^TypeError: The socket was upgraded/);
  await secure.writable.getWriter().write(text("EHLO"));
  second.pieces.push(text("250"));
  assert.equal(hexOf((await secure.readable.getReader().read()).value), hexOf(text("250")));
  assert.equal(writtenTo(second), "EHLO");
  assert.equal(await outcome(secure.close()), undefined);
});

test("the old streams are not touched before TLS has answered", async () => {
  let tell;
  const { connect, ends, peer } = newSetting();
  const plain = connect("a:1", { secureTransport: "starttls" });
  await settled();
  const { startCall } = peer.all.host;
  peer.all.host.startCall = (id, path, isGet, args, isStream) => {
    if (path.length > 0) return startCall(id, path, isGet, args, isStream);
    tell = () => startCall(id, path, isGet, args, isStream);
    return 77;
  };
  plain.startTls();
  await settled();
  assert.equal(typeof tell, "function");
  assert.deepEqual([ends[0].isCancelled, ends[0].isAborted], [undefined, undefined]);
  peer.hooks.settle(77, 4, "", "", "handshake failed");
  await settled();
  assert.deepEqual([ends[0].isCancelled, ends[0].isAborted], [true, true]);
});

test("TLS is refused where it can't be", async () => {
  const { connect } = newSetting();
  for (const secureTransport of ["off", "on"]) {
    assert.throws(() => connect("a:1", { secureTransport }).startTls(), { name: "TypeError", message: /starttls/ });
  }
  const closed = connect("a:1", { secureTransport: "starttls" });
  closed.close();
  assert.throws(() => closed.startTls(), { name: "TypeError", message: /closed/ });
  const failed = newSetting({ startTls: () => { throw new Error("no certificate"); } }).connect("a:1", { secureTransport: "starttls" });
  const secure = failed.startTls();
  for (const seen of await Promise.all([secure.opened, secure.closed, secure.readable.getReader().read()].map(outcome))) {
    assert.equal(seen, "Error: no certificate");
  }
  assert.equal(await outcome(failed.closed), undefined);
  // There is nothing that could.
  const without = newSetting({ connect: (_, peer) => peer.newEnds()[0] });
  const early = without.connect("a:1", { secureTransport: "starttls" }).startTls();
  assert.match(await outcome(early.opened), /^TypeError: .*can't start TLS/);
  const late = without.connect("a:1", { secureTransport: "starttls" });
  await settled();
  assert.throws(() => late.startTls(), { name: "TypeError", message: /can't start TLS/ });
  assert.equal(late.upgraded, false);
});

test("sockets work where every built-in is replaced", async () => {
  const { peer, connect, ends } = newSetting();
  const all = peer.all.evaluate(`(() => {
    const { apply, getOwnPropertyDescriptor } = Reflect;
    const { getReader } = ReadableStream.prototype;
    const { getWriter } = WritableStream.prototype;
    const { read } = ReadableStreamDefaultReader.prototype;
    const { write } = WritableStreamDefaultWriter.prototype;
    return (prototype, bytes) => {
      const { startTls, close } = prototype;
      const get = (name) => getOwnPropertyDescriptor(prototype, name).get;
      const [readable, writable] = [get("readable"), get("writable")];
      const options = { __proto__: null, secureTransport: "starttls", allowHalfOpen: false };
      return {
        options, startTls: (it) => apply(startTls, it, [{ __proto__: null, expectedServerHostname: "a" }]), close: (it) => apply(close, it, []),
        write: (it) => apply(write, apply(getWriter, apply(writable, it, []), []), [bytes]), read: (it) => apply(read, apply(getReader, apply(readable, it, []), []), []),
      };
    };
  })()`)(Object.getPrototypeOf(connect("a:1")), peer.all.evaluate("new Uint8Array([1, 2, 3])"));
  const recorder = peer.all.evaluate(`(${replaceEverything})()`);
  peer.all.evaluate("delete Object.prototype.then");
  Object.defineProperty(peer.record, "on", { get: () => recorder.on, set: (on) => (recorder.on = on) });
  await settled();
  const plain = peer.enter(() => connect("a:1", all.options));
  peer.enter(() => all.write(plain));
  const secure = peer.enter(() => all.startTls(plain));
  await settled();
  const [, first, second] = ends;
  second.pieces.push(text("x"), undefined);
  peer.enter(() => all.write(secure));
  peer.enter(() => all.read(secure));
  await settled();
  peer.enter(() => all.close(secure));
  await settled();
  assert.deepEqual([hexOf(first.written[0]), first.isAborted, hexOf(second.written[0]), second.isClosed], ["010203", true, "010203", true]);
  assert.deepEqual([...recorder.calls], []);
});
