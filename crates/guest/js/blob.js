// Blob and File (File API).
//
//   isBlob(value)
//   blobParts(blob)     { type, bytes }, for a File with { name, lastModified }; the bytes must not be changed
//   newBlobOf(parts)    the other way round; the bytes belong to the blob from then on
//
// Owns: a blob's bytes, which never change: whoever reads them gets a copy.

let blobState;
let setBlobState;

class Blob {
  // { bytes, type }
  #state;
  static {
    blobState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
    setBlobState = (blob, state) => (blob.#state = state);
  }

  constructor(blobParts = undefined, options = undefined) {
    if (blobParts === INTERNAL) {
      this.#state = options;
      return;
    }
    this.#state = toBlobState(blobParts, toDictionary(options, "Blob: the options"), "Blob");
  }

  get size() {
    return byteLength(this.#state.bytes);
  }
  get type() {
    return this.#state.type;
  }

  slice(start = 0, end = undefined, contentType = "") {
    const { bytes } = this.#state;
    const length = byteLength(bytes);
    const from = toSlicePlace(start, length);
    const to = MathMax(end === undefined ? length : toSlicePlace(end, length), from);
    return newBlob(windowOf(bytes, from, to), toBlobType(contentType));
  }

  stream() {
    return newByteStream(newBytesSource(this.#state.bytes));
  }
  text() {
    return ofBlob(this, decodeUtf8);
  }
  arrayBuffer() {
    return ofBlob(this, (bytes) => TypedArrayPrototypeGetBuffer(copyBytes(bytes)));
  }
  bytes() {
    return ofBlob(this, copyBytes);
  }
}
defineInterface("Blob", Blob);

function ofBlob(blob, convert) {
  const state = blobState(blob);
  if (state === undefined) return PromiseReject(illegalInvocation());
  try {
    return promiseOf(convert(state.bytes));
  } catch (error) {
    return PromiseReject(error);
  }
}

class File extends Blob {
  #name;
  #lastModified;

  constructor(fileBits, fileName, options = undefined) {
    super();
    if (fileBits === INTERNAL) {
      setBlobState(this, fileName);
      this.#name = fileName.name;
      this.#lastModified = fileName.lastModified;
      return;
    }
    requireArguments("File", arguments.length, 2);
    const members = toDictionary(options, "File: the options");
    const what = "File";
    const state = toBlobState(requireSequence(fileBits, what), members, what);
    const name = toWellFormed(fileName);
    const lastModified = members.lastModified;
    const time = lastModified === undefined ? DateNow() : MathTrunc(+lastModified) || 0;
    setBlobState(this, { __proto__: null, bytes: state.bytes, type: state.type, name, lastModified: time });
    this.#name = name;
    this.#lastModified = time;
  }

  get name() {
    return this.#name;
  }
  get lastModified() {
    return this.#lastModified;
  }
  get webkitRelativePath() {
    this.#name;
    return "";
  }
}
defineInterface("File", File);

function isBlob(value) {
  return blobState(value) !== undefined;
}

function blobParts(blob) {
  const { bytes, type, name, lastModified } = blobState(blob);
  return { __proto__: null, type, bytes, name, lastModified };
}

function newBlobOf({ type, bytes, name, lastModified }) {
  return name === undefined ? newBlob(bytes, type) : newFile(bytes, type, name, lastModified ?? DateNow());
}

function newBlob(bytes, type) {
  return new Blob(INTERNAL, { __proto__: null, bytes, type, name: undefined, lastModified: undefined });
}

function newFile(bytes, type, name, lastModified) {
  return new File(INTERNAL, { __proto__: null, bytes, type, name, lastModified });
}

function requireSequence(value, what) {
  if (value === undefined) throw new TypeErrorConstructor(what + ": the parts are not iterable.");
  return value;
}

// Text stays text until it is known which line ends it is to have.
function toBlobPart(part) {
  const blob = blobState(part);
  if (blob !== undefined) return blob.bytes;
  if (!isBuffer(part)) return toWellFormed(part);
  const bytes = bytesOf(part);
  return bytes === undefined ? new Uint8ArrayConstructor(0) : copyBytes(bytes);
}

function toBlobState(parts, members, what) {
  const pieces = parts === undefined ? newList() : toSequence(parts, what + ": the parts", toBlobPart);
  let length = 0;
  const endings = members.endings;
  const lines = endings === undefined ? "transparent" : toText(endings);
  const isNative = lines === "native";
  if (!isNative && lines !== "transparent") {
    throw new TypeErrorConstructor(what + ': endings is "transparent" or "native".');
  }
  const type = members.type;
  const text = type === undefined ? "" : toBlobType(type);
  for (let index = 0; index < pieces.length; index++) {
    if (typeof pieces[index] === "string") {
      pieces[index] = host.encodeText(isNative ? withNativeEndings(pieces[index]) : pieces[index]);
    }
    length += byteLength(pieces[index]);
  }
  return { __proto__: null, bytes: joinBytes(pieces, length), type: text, name: undefined, lastModified: undefined };
}

function withNativeEndings(text) {
  if (StringPrototypeIndexOf(text, "\r") === -1) return text;
  let result = "";
  for (let index = 0; index < text.length; index++) {
    if (text[index] !== "\r") {
      result += text[index];
      continue;
    }
    result += "\n";
    if (text[index + 1] === "\n") index++;
  }
  return result;
}

// In lower case, or nothing where it has what is not printable.
function toBlobType(value) {
  const text = toText(value);
  for (let index = 0; index < text.length; index++) {
    const unit = StringPrototypeCharCodeAt(text, index);
    if (unit < 0x20 || unit > 0x7e) return "";
  }
  return StringPrototypeToLowerCase(text);
}

function toSlicePlace(value, length) {
  const place = MathTrunc(+value) || 0;
  return place < 0 ? MathMax(length + place, 0) : MathMin(place, length);
}
