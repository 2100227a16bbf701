// Transforms that come with the platform: TextEncoderStream and TextDecoderStream (Encoding standard), and those of Workers,
// IdentityTransformStream and FixedLengthStream.

class TextEncoderStream {
  #state;

  constructor() {
    // The first half of a character whose second half is in the next chunk.
    let pending = "";
    const transform = (chunk, it) => {
      const text = pending + toText(chunk);
      const last = text.length === 0 ? 0 : StringPrototypeCharCodeAt(text, text.length - 1);
      const isCut = last >= 0xd800 && last <= 0xdbff;
      pending = isCut ? text[text.length - 1] : "";
      const bytes = encodeText(isCut ? StringPrototypeSlice(text, 0, -1) : text);
      if (byteLength(bytes) > 0) transformEnqueue(it, bytes);
    };
    const flush = (it) => {
      if (pending !== "") transformEnqueue(it, encodeText(pending));
    };
    this.#state = newTransform(transform, flush);
  }

  get encoding() {
    this.#state;
    return "utf-8";
  }
  get readable() {
    return this.#state.readable.object;
  }
  get writable() {
    return this.#state.writable.object;
  }
}
defineInterface("TextEncoderStream", TextEncoderStream);

class TextDecoderStream {
  #state;
  #decoder;

  constructor(label = "utf-8", options = undefined) {
    const text = toText(label);
    const members = toDictionary(options, "TextDecoderStream: the second argument");
    const fatal = !!members.fatal;
    const ignoreBOM = !!members.ignoreBOM;
    const decoder = newDecoderState(text, fatal, ignoreBOM);
    const transform = (chunk, it) => {
      if (!isBuffer(chunk)) throw new TypeErrorConstructor("TextDecoderStream: a chunk is neither an ArrayBuffer nor a view of one.");
      const decoded = decodeWith(decoder, bytesOf(chunk), true);
      if (decoded !== "") transformEnqueue(it, decoded);
    };
    const flush = (it) => {
      const decoded = decodeWith(decoder, undefined, false);
      if (decoded !== "") transformEnqueue(it, decoded);
    };
    this.#state = newTransform(transform, flush);
    this.#decoder = decoder;
  }

  get encoding() {
    return this.#decoder.encoding;
  }
  get fatal() {
    return this.#decoder.fatal;
  }
  get ignoreBOM() {
    return this.#decoder.ignoreBOM;
  }
  get readable() {
    return this.#state.readable.object;
  }
  get writable() {
    return this.#state.writable.object;
  }
}
defineInterface("TextDecoderStream", TextDecoderStream);

// Bytes go in and come out. A write is done when all of it has been read.
class IdentityTransformStream extends TransformStream {
  constructor() {
    super();
    setTransformState(this, newIdentityState(undefined));
  }
}
defineInterface("IdentityTransformStream", IdentityTransformStream);

// The same, of so many bytes and no other number, which is the Content-Length where its readable side is a body.
class FixedLengthStream extends IdentityTransformStream {
  constructor(length) {
    requireArguments("FixedLengthStream", arguments.length, 1);
    const expected = +(typeof length === "bigint" ? StringConstructor(length) : length);
    if (!(expected >= 0 && expected <= NumberMaxSafeInteger) || MathTrunc(expected) !== expected) {
      throw new TypeErrorConstructor("FixedLengthStream: the length is not an integer from 0 to " + NumberMaxSafeInteger + ".");
    }
    super();
    setTransformState(this, newIdentityState(expected));
  }
}
defineInterface("FixedLengthStream", FixedLengthStream);

function newIdentityState(expected) {
  const readable = newReadable();
  const writable = newWritable();
  readable.expectedLength = expected;
  let left = expected;
  // What was written and not yet read { bytes, deferred }, and who waits for more.
  let written;
  let wanted;

  const deliver = () => {
    if (written === undefined || wanted === undefined) return;
    const { bytes, deferred } = written;
    const waiting = wanted;
    wanted = undefined;
    // (Asked before they are given away.)
    const length = byteLength(bytes);
    const taken = deliverBytes(readable.controller, bytes);
    if (taken === length) {
      written = undefined;
      deferred.resolve();
    } else {
      written.bytes = windowOf(bytes, taken, length);
    }
    waiting.resolve();
  };
  const fail = (error) => {
    if (written !== undefined) written.deferred.reject(error);
    written = undefined;
    if (wanted !== undefined) wanted.resolve();
    wanted = undefined;
  };

  const pull = () => {
    wanted = newDeferred();
    const { promise } = wanted;
    deliver();
    return promise;
  };
  const cancel = (reason) => {
    fail(reason);
    writableErrorIfNeeded(writable.controller, reason);
  };
  const write = (chunk) => {
    let bytes;
    try {
      bytes = chunkBytes(chunk);
      if (left !== undefined) {
        if (byteLength(bytes) > left) throw new TypeErrorConstructor("Attempt to write too many bytes through a FixedLengthStream.");
        left -= byteLength(bytes);
      }
    } catch (error) {
      byteError(readable.controller, error);
      return PromiseReject(error);
    }
    if (byteLength(bytes) === 0) return undefined;
    written = { __proto__: null, bytes: copyBytes(bytes), deferred: newDeferred() };
    const { promise } = written.deferred;
    deliver();
    return promise;
  };
  const close = () => {
    if (left !== undefined && left > 0) {
      const error = new TypeErrorConstructor("FixedLengthStream did not see all expected bytes before close().");
      byteError(readable.controller, error);
      return PromiseReject(error);
    }
    if (readable.state === "readable") endBytes(readable.controller);
    fail();
    return undefined;
  };
  const abort = (reason) => {
    fail(reason);
    byteError(readable.controller, reason);
  };
  setUpByteController(readable, { __proto__: null, start: undefined, pull, cancel, size: undefined }, 0, undefined);
  setUpWritableController(writable, { __proto__: null, start: undefined, write, close, abort, size: undefined }, 1);
  return { __proto__: null, readable, writable };
}
