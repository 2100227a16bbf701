// What is outside, played: `fetch` and `connect` are answered, sources and sinks are fed and read, timers run.

import { setImmediate as turn } from "node:timers/promises";

import { newContext } from "./context.mjs";

export const bytesOf = (hex) => Uint8Array.from(Buffer.from(hex.replaceAll(" ", ""), "hex"));
export const hexOf = (bytes) => Buffer.from(bytes).toString("hex");
export { turn };

// Whose jobs run: those of the peer that was made last.
let latest;

// Lets all that is ready run, and timers of no time. The jobs are the prelude's work.
export async function settled() {
  latest.on = true;
  for (let round = 0; round < 20; round++) await turn();
  latest.on = false;
}

// `answers` has what `fetch`, `connect` and others are answered with: functions of (args, peer), by name.
export function newPeer(answers) {
  const all = newContext();
  const { hooks } = all.prelude;
  const none = all.evaluate("Object.setPrototypeOf([], null)");
  const record = { on: false };
  latest = record;
  const peer = { all, hooks, record, calls: [], timers: new Map(), ends: new Map() };
  let operation = 1000;
  let end = 1;
  // Does the prelude's work, or ours.
  const during = (on) => (work) => {
    const before = record.on;
    record.on = on;
    try {
      return work();
    } finally {
      record.on = before;
    }
  };
  const enter = (peer.enter = during(true));
  const pause = (peer.pause = during(false));
  const settle = (id, ...outcome) => enter(() => hooks.settle(id, ...outcome));
  const answer = (id, value) => settle(id, 1, value, none);
  const fail = (id, message) => settle(id, 4, "", "", message);
  peer.fire = (id) => {
    peer.timers.delete(id);
    settle(id, 0);
  };
  all.host.startTimer = (ms) => {
    const id = operation++;
    peer.timers.set(id, ms);
    if (ms === 0) setImmediate(() => peer.timers.has(id) && peer.fire(id));
    return id;
  };
  all.host.cancel = (id) => void peer.timers.delete(id);
  all.host.releaseImport = () => {};
  // Every mask is another.
  let mask = 0;
  all.host.fillRandom = (buffer, offset, length) => {
    const bytes = new Uint8Array(buffer, offset, length);
    for (let index = 0; index < length; index++) bytes[index] = (mask += 37);
  };

  // One direction of a connection. A source has pieces, `undefined` for its end; a sink what was written.
  const pulls = {
    pull(at, id, [most]) {
      at.pulling = [id, most];
      peer.feed(at);
    },
    cancel(at, id) {
      at.isCancelled = true;
      answer(id, undefined);
    },
    write(at, id, [bytes]) {
      const piece = new Uint8Array(bytes);
      if (at.isBroken) {
        fail(id, "broken pipe");
        return;
      }
      at.written.push(piece);
      if (at.isStuck) at.stuck = id;
      else answer(id, undefined);
    },
    close(at, id) {
      at.isClosed = true;
      answer(id, undefined);
    },
    abort(at, id) {
      at.isAborted = true;
      answer(id, undefined);
    },
  };
  peer.feed = (at) => {
    if (at.pulling === undefined || at.pieces.length === 0) return;
    const [id, most] = at.pulling;
    at.pulling = undefined;
    const piece = at.pieces.shift();
    if (piece instanceof Error) fail(id, piece.message);
    else if (piece === undefined) answer(id, undefined);
    else {
      if (piece.length > most) at.pieces.unshift(piece.subarray(most));
      answer(id, makeBytes(piece.subarray(0, most)));
    }
  };
  const newBytes = all.evaluate("((Bytes) => (length) => new Bytes(length))(Uint8Array)");
  const makeBytes = (piece) => {
    const bytes = newBytes(piece.length);
    Uint8Array.prototype.set.call(bytes, piece);
    return bytes;
  };
  peer.push = (at, ...pieces) => {
    at.pieces.push(...pieces);
    peer.feed(at);
  };
  peer.unstick = (at) => {
    at.isStuck = false;
    answer(at.stuck, undefined);
  };
  // A pair of streams, and what is at their other ends.
  peer.newEnds = () => {
    const at = { pieces: [], written: [] };
    const [source, sink] = [end++, end++];
    peer.ends.set(source, at).set(sink, at);
    const ends = all.evaluate("({ __proto__: null })");
    ends.readable = enter(() => hooks.stubOf(1, source, 1));
    ends.writable = enter(() => hooks.stubOf(1, sink, 2));
    return [ends, at];
  };
  peer.newFunction = (name) => {
    peer.ends.set(end, name);
    return hooks.stubOf(1, end++, 0);
  };
  all.host.startCall = (id, path, _isGet, args) => {
    const operationId = operation++;
    const given = Array.from({ length: args.length }, (_, index) => args[index]);
    const call = () => {
      const at = peer.ends.get(id);
      const name = typeof at === "string" ? at : path[0];
      if (typeof at === "object") {
        pulls[name](at, operationId, given);
        return;
      }
      peer.calls.push([name, given]);
      try {
        answer(operationId, answers[name](given, peer));
      } catch (error) {
        fail(operationId, error.message);
      }
    };
    setImmediate(() => pause(call));
    return operationId;
  };
  return peer;
}

// The answer to the request for a WebSocket.
export function newSwitch(peer, members = {}) {
  const [ends, at] = peer.newEnds();
  const content = peer.all.evaluate("(text) => JSON.parse(text)")(JSON.stringify({ status: 101, ...members }));
  content.webSocket = ends;
  return [peer.enter(() => peer.hooks.newInterface(2, content)), at];
}

// What a client's frames say: [opcode, payload in hex], each of which must be masked.
export function framesOf(at) {
  const bytes = Buffer.concat(at.written);
  const frames = [];
  for (let offset = 0; offset < bytes.length; ) {
    const [first, second] = [bytes[offset], bytes[offset + 1]];
    if ((first & 0xf0) !== 0x80 || (second & 0x80) === 0) throw new Error("a frame is not final, or not masked");
    let length = second & 127;
    offset += 2;
    if (length === 126) {
      length = bytes.readUInt16BE(offset);
      offset += 2;
    } else if (length === 127) {
      length = Number(bytes.readBigUInt64BE(offset));
      offset += 8;
    }
    const mask = bytes.subarray(offset, offset + 4);
    const payload = bytes.subarray(offset + 4, offset + 4 + length).map((byte, index) => byte ^ mask[index % 4]);
    frames.push([first & 15, hexOf(payload), hexOf(mask)]);
    offset += 4 + length;
  }
  return frames;
}
