// Frames of the WebSocket protocol (RFC 6455, the client's side).
//
//   newFrameReader(handle)     `handle(opcode, bytes)` gets each message when it is whole, and each control frame
//   readFrames(reader, bytes)  takes the next bytes, however they are cut; nothing more where the reader `isOver`
//   newFrame(opcode, payload)  a frame to send
//
// Whatever is wrong is answered, by `handle` too, as [close code, text], and undefined where nothing is.
// Must never: hold more than MESSAGE_BYTES_MAX of a message, or copy what is there with every piece that comes.

const MESSAGE_BYTES_MAX = 33554432;

const FRAME_TEXT = 1;
const FRAME_BINARY = 2;
const FRAME_CLOSE = 8;
const FRAME_PING = 9;
const FRAME_PONG = 10;

const protocolError = (text) => listOfTwo(1002, text);

function newFrameReader(handle) {
  return {
    __proto__: null,
    handle,
    isOver: false,
    // As long as the longest without a mask; `headerSize` is how much of it there is to be.
    header: new Uint8ArrayConstructor(10),
    headerLength: 0,
    headerSize: 2,
    // What the current frame's payload goes to, { opcode, bytes, length }: undefined between frames.
    target: undefined,
    isFinal: false,
    // Of the payload, what has not come yet.
    left: 0,
    // The message that has begun.
    message: undefined,
  };
}

function readFrames(reader, bytes) {
  const end = byteLength(bytes);
  let offset = 0;
  while (!reader.isOver) {
    let wrong;
    if (reader.target === undefined) {
      offset = readFrameHeader(reader, bytes, offset, end);
      if (reader.headerLength < reader.headerSize) return undefined;
      wrong = beginFrame(reader);
      if (wrong !== undefined) return wrong;
    }
    const length = MathMin(end - offset, reader.left);
    if (length > 0) appendPayload(reader, windowOf(bytes, offset, offset + length), length);
    offset += length;
    if (reader.left > 0) return undefined;
    wrong = endFrame(reader);
    if (wrong !== undefined) return wrong;
  }
  return undefined;
}

function readFrameHeader(reader, bytes, offset, end) {
  const { header } = reader;
  while (reader.headerLength < reader.headerSize && offset < end) {
    header[reader.headerLength++] = bytes[offset++];
    if (reader.headerLength === 2) {
      const length = header[1] & 127;
      reader.headerSize = length === 126 ? 4 : length === 127 ? 10 : 2;
    }
  }
  return offset;
}

function beginFrame(reader) {
  const { header, headerSize, message } = reader;
  reader.headerLength = 0;
  reader.headerSize = 2;
  const opcode = header[0] & 15;
  let length = header[1] & 127;
  if (headerSize > 2) {
    length = 0;
    for (let index = 2; index < headerSize; index++) length = length * 256 + header[index];
  }
  reader.isFinal = header[0] >= 128;
  reader.left = length;
  if ((header[0] & 112) !== 0) return protocolError("A frame has a reserved bit.");
  if (opcode > FRAME_PONG || (opcode > FRAME_BINARY && opcode < FRAME_CLOSE)) {
    return protocolError("A frame has the unknown opcode " + opcode + ".");
  }
  if (header[1] >= 128) return protocolError("A frame of the server's is masked.");
  if ((headerSize === 4 && length < 126) || (headerSize === 10 && length < 65536)) {
    return protocolError("A frame's length is longer than it needs to be.");
  }
  if (opcode >= FRAME_CLOSE) {
    if (!reader.isFinal) return protocolError("A control frame is fragmented.");
    if (length > 125) return protocolError("A control frame has more than 125 bytes.");
    reader.target = newPayload(opcode);
    return undefined;
  }
  if ((opcode === 0) !== (message !== undefined)) {
    return protocolError(opcode === 0 ? "A frame continues no message." : "A message begins inside another.");
  }
  reader.message = message ?? newPayload(opcode);
  reader.target = reader.message;
  return reader.message.length + length > MESSAGE_BYTES_MAX
    ? listOfTwo(1009, "A message has more than " + MESSAGE_BYTES_MAX + " bytes.")
    : undefined;
}

function newPayload(opcode) {
  return { __proto__: null, opcode, bytes: new Uint8ArrayConstructor(0), length: 0 };
}

// Room is doubled, so that all copying is in proportion to the message. It is made for what has come, and not for what a
// header says will.
function appendPayload(reader, piece, length) {
  const { target } = reader;
  const capacity = byteLength(target.bytes);
  if (target.length + length > capacity) {
    const whole = reader.isFinal ? target.length + reader.left : MESSAGE_BYTES_MAX;
    const grown = new Uint8ArrayConstructor(MathMax(target.length + length, MathMin(2 * capacity, whole)));
    TypedArrayPrototypeSet(grown, windowOf(target.bytes, 0, target.length));
    target.bytes = grown;
  }
  TypedArrayPrototypeSet(target.bytes, piece, target.length);
  target.length += length;
  reader.left -= length;
}

function endFrame(reader) {
  const { target, handle } = reader;
  reader.target = undefined;
  if (!reader.isFinal) return undefined;
  if (target === reader.message) reader.message = undefined;
  return handle(target.opcode, windowOf(target.bytes, 0, target.length));
}

// A frame of its own mask. The payload lies at a multiple of four in its buffer, right behind the mask, so that both are
// whole words.
function newFrame(opcode, payload) {
  const length = byteLength(payload);
  const headerSize = length < 126 ? 6 : length < 65536 ? 8 : 14;
  const place = MathCeil(headerSize / 4);
  const words = new Uint32ArrayConstructor(place + MathCeil(length / 4));
  const buffer = TypedArrayPrototypeGetBuffer(words);
  const frame = newBytes(buffer, 4 * place - headerSize, headerSize + length);
  frame[0] = 128 | opcode;
  frame[1] = 128 | (headerSize === 6 ? length : headerSize === 8 ? 126 : 127);
  let rest = length;
  for (let index = headerSize - 5; index > 1; index--) {
    frame[index] = rest % 256;
    rest = MathFloor(rest / 256);
  }
  host.fillRandom(buffer, 4 * place - 4, 4);
  TypedArrayPrototypeSet(frame, payload, headerSize);
  const mask = words[place - 1];
  const end = TypedArrayPrototypeGetLength(words);
  for (let index = place; index < end; index++) words[index] ^= mask;
  return frame;
}
