// CompressionStream and DecompressionStream (Compression standard). The Rust core does the work.

class CompressionStream {
  #state;
  constructor(format) {
    requireArguments("CompressionStream", arguments.length, 1);
    this.#state = newCoderTransform("CompressionStream", format, true);
  }
  get readable() {
    return this.#state.readable.object;
  }
  get writable() {
    return this.#state.writable.object;
  }
}
defineInterface("CompressionStream", CompressionStream);

class DecompressionStream {
  #state;
  constructor(format) {
    requireArguments("DecompressionStream", arguments.length, 1);
    this.#state = newCoderTransform("DecompressionStream", format, false);
  }
  get readable() {
    return this.#state.readable.object;
  }
  get writable() {
    return this.#state.writable.object;
  }
}
defineInterface("DecompressionStream", DecompressionStream);

function newCoderTransform(what, format, isCompressing) {
  const name = toText(format);
  const coder = host.newCoder(name, isCompressing);
  if (coder === undefined) throw new TypeErrorConstructor(what + ": the format is gzip, deflate or deflate-raw, not " + name + ".");
  const code = (it, bytes, isLast) => {
    const buffer = TypedArrayPrototypeGetBuffer(bytes);
    const coded = host.code(coder, buffer, TypedArrayPrototypeGetByteOffset(bytes), byteLength(bytes), isLast);
    if (coded === undefined) throw new TypeErrorConstructor(what + ": the bytes are not valid " + name + ", or end too soon.");
    if (byteLength(coded) > 0) transformEnqueue(it, coded);
  };
  const transform = (chunk, it) => {
    const bytes = bytesOf(chunk);
    if (bytes === undefined) throw new TypeErrorConstructor(what + ": a chunk is neither an ArrayBuffer nor a view of one.");
    code(it, bytes, false);
  };
  return newTransform(transform, (it) => code(it, new Uint8ArrayConstructor(0), true));
}
