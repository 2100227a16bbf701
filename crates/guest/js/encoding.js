// TextEncoder and TextDecoder (Encoding standard). The Rust core encodes and decodes.
//
// Must never: hand a decoder's native state out.

class TextEncoder {
  // Read only to find out whether `this` is one.
  #brand = true;

  constructor() {}

  get encoding() {
    this.#brand;
    return "utf-8";
  }

  encode(input = "") {
    this.#brand;
    return encodeText(input);
  }

  encodeInto(source, destination) {
    this.#brand;
    requireArguments("TextEncoder.encodeInto", arguments.length, 2);
    const text = toWellFormed(source);
    if (!isObject(destination) || TypedArrayPrototypeGetToStringTag(destination) !== "Uint8Array") {
      throw new TypeErrorConstructor("TextEncoder.encodeInto: the destination is not a Uint8Array.");
    }
    const buffer = TypedArrayPrototypeGetBuffer(destination);
    const offset = TypedArrayPrototypeGetByteOffset(destination);
    const figures = host.encodeInto(text, buffer, offset, TypedArrayPrototypeGetByteLength(destination));
    return { read: figures[0], written: figures[1] };
  }
}
defineInterface("TextEncoder", TextEncoder);

// UTF-8 of what is converted to text.
function encodeText(value) {
  return host.encodeText(toWellFormed(value));
}

class TextDecoder {
  #state;

  constructor(label = "utf-8", options = undefined) {
    const text = toText(label);
    const members = toDictionary(options, "TextDecoder: the second argument");
    const fatal = !!members.fatal;
    const ignoreBOM = !!members.ignoreBOM;
    this.#state = newDecoderState(text, fatal, ignoreBOM);
  }

  get encoding() {
    return this.#state.encoding;
  }
  get fatal() {
    return this.#state.fatal;
  }
  get ignoreBOM() {
    return this.#state.ignoreBOM;
  }

  decode(input = undefined, options = undefined) {
    const state = this.#state;
    let bytes;
    if (input !== undefined) {
      bytes = bytesOf(input);
      if (bytes === undefined) {
        if (!isBuffer(input)) throw new TypeErrorConstructor("TextDecoder.decode: the input is neither an ArrayBuffer nor a view of one.");
        bytes = new Uint8ArrayConstructor(0); // detached
      }
    }
    const stream = !!toDictionary(options, "TextDecoder.decode: the second argument").stream;
    return decodeWith(state, bytes, stream);
  }
}
defineInterface("TextDecoder", TextDecoder);

function newDecoderState(label, fatal, ignoreBOM) {
  const encoding = host.encodingName(label);
  if (encoding === undefined) {
    throw new RangeErrorConstructor("TextDecoder: '" + label + "' is no encoding that is known.");
  }
  return { __proto__: null, encoding, fatal, ignoreBOM, native: undefined };
}

// Decodes the next bytes, all that is left unless there are more to come.
function decodeWith(state, bytes, isMoreToCome) {
  if (state.native === undefined) {
    if (bytes === undefined && !isMoreToCome) return "";
    state.native = host.newDecoder(state.encoding, state.ignoreBOM);
  }
  const { native } = state;
  if (!isMoreToCome) state.native = undefined;
  const buffer = bytes === undefined ? undefined : TypedArrayPrototypeGetBuffer(bytes);
  const offset = bytes === undefined ? 0 : TypedArrayPrototypeGetByteOffset(bytes);
  const length = bytes === undefined ? 0 : byteLength(bytes);
  const text = host.decode(native, buffer, offset, length, state.fatal, !isMoreToCome);
  if (text === undefined) {
    state.native = undefined;
    throw new TypeErrorConstructor("The bytes are not valid " + state.encoding + ".");
  }
  return text;
}

// Text of a body: UTF-8, without its byte order mark.
function decodeUtf8(bytes) {
  return decodeWith({ __proto__: null, encoding: "utf-8", fatal: false, ignoreBOM: false, native: undefined }, bytes, false);
}
