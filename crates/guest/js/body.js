// Bodies of requests and responses (Fetch standard): what they are made of, and how they are read.
//
// Owns: whether a body was used. A body of bytes becomes a stream only when somebody asks for one.
//
// A body is { bytes, stream, length, type, isUsed, isShared, failure }: bytes or a ReadableStream (or both undefined, for one that
// was given away), the length where it is known, the MIME type that it brings; `isShared` where a clone has the same bytes;
// `failure` is { reason } where its request was aborted before it was read.

const BODY_USED = "Body has already been used. It can only be used once. Use tee() first if you need to read it twice.";

function newBody(bytes, stream, length, type) {
  return { __proto__: null, bytes, stream, length, type, isUsed: false, isShared: false, failure: undefined };
}

// The body of what a worker gave for one.
function extractBody(value) {
  if (isObject(value)) {
    const stream = readableState(value);
    if (stream !== undefined) {
      if (stream.isDisturbed || stream.reader !== undefined) {
        throw new TypeErrorConstructor("This ReadableStream is disturbed (has already been read from) or locked, and cannot be used as a body.");
      }
      return newBody(undefined, value, stream.expectedLength, undefined);
    }
    const blob = blobState(value);
    if (blob !== undefined) {
      const body = bytesBody(blob.bytes, blob.type === "" ? undefined : blob.type);
      body.isShared = true;
      return body;
    }
    const form = formState(value);
    if (form !== undefined) {
      const boundary = newBoundary();
      return bytesBody(serializeMultipart(form, boundary), "multipart/form-data; boundary=" + boundary);
    }
    const params = paramsState(value);
    if (params !== undefined) {
      return bytesBody(host.encodeText(host.formSerialize(params.list)), "application/x-www-form-urlencoded;charset=UTF-8");
    }
    const bytes = bytesOf(value);
    if (bytes !== undefined) return bytesBody(copyBytes(bytes), undefined);
    if (isBuffer(value)) return bytesBody(new Uint8ArrayConstructor(0), undefined);
  }
  return bytesBody(encodeText(value), "text/plain;charset=UTF-8");
}

function bytesBody(bytes, type) {
  return newBody(bytes, undefined, byteLength(bytes), type);
}

function isBodyUsed(body) {
  if (body === undefined) return false;
  return body.isUsed || (body.stream !== undefined && readableState(body.stream).isDisturbed);
}

function isBodyUnusable(body) {
  return isBodyUsed(body) || (body?.stream !== undefined && readableState(body.stream).reader !== undefined);
}

function checkBodyUsable(body) {
  if (isBodyUnusable(body)) throw new TypeErrorConstructor(BODY_USED);
}

// The stream that a worker sees.
function bodyStream(body) {
  if (body === undefined) return null;
  if (body.stream === undefined) {
    const source = newBytesSource(body.isUsed ? new Uint8ArrayConstructor(0) : body.bytes);
    body.stream = newByteStream(source);
    // Whoever has read it has never let go.
    if (body.isUsed) {
      markHandled(readableCancel(readableState(body.stream), undefined));
      acquireReader(readableState(body.stream), DEFAULT);
    }
  }
  return body.stream;
}

// A second body with the same content.
function cloneBody(body) {
  if (body === undefined) return undefined;
  checkBodyUsable(body);
  if (body.stream === undefined) {
    body.isShared = true;
    const clone = bytesBody(body.bytes, body.type);
    clone.isShared = true;
    return clone;
  }
  const branches = readableTee(readableState(body.stream), true);
  body.stream = branches[0].object;
  return newBody(undefined, branches[1].object, body.length, body.type);
}

// The body, which whoever had it no longer has.
function moveBody(body) {
  if (body === undefined) return undefined;
  checkBodyUsable(body);
  const moved = newBody(body.bytes, undefined, body.length, body.type);
  moved.isShared = body.isShared;
  if (body.stream !== undefined) {
    moved.bytes = undefined;
    moved.stream = newByteStream(takeByteSource(body.stream));
    readableState(body.stream).isDisturbed = true;
  }
  body.isUsed = true;
  return moved;
}

// What leaves: undefined, { bytes } or { stream, length }. The body is used up; the stream is yet to be locked.
function bodyParts(body) {
  if (body === undefined) return undefined;
  checkBodyUsable(body);
  body.isUsed = true;
  if (body.stream !== undefined) return { __proto__: null, bytes: undefined, stream: body.stream, length: body.length };
  return { __proto__: null, bytes: body.bytes, stream: undefined, length: body.length };
}

function bodyOfParts(parts) {
  if (parts === undefined || parts === null) return undefined;
  if (parts.stream !== undefined) return newBody(undefined, parts.stream, parts.length, undefined);
  return bytesBody(parts.bytes, undefined);
}

// Reads all of a body, and answers with a promise of what `convert(bytes)` makes of it.
function consumeBody(body, convert) {
  if (body?.failure !== undefined) return PromiseReject(body.failure.reason);
  if (isBodyUnusable(body)) return PromiseReject(new TypeErrorConstructor(BODY_USED));
  const deferred = newDeferred();
  const onBytes = (bytes) => {
    try {
      deferred.resolve(convert(bytes));
    } catch (error) {
      deferred.reject(error);
    }
  };
  if (body === undefined) {
    onBytes(new Uint8ArrayConstructor(0));
  } else if (body.stream === undefined) {
    body.isUsed = true;
    const { bytes } = body;
    body.bytes = undefined;
    onBytes(body.isShared ? copyBytes(bytes) : bytes);
  } else {
    body.isUsed = true;
    readAll(takeByteSource(body.stream), onBytes, deferred.reject);
  }
  return deferred.promise;
}

// Gives a class the members of a body. `recordOf(value)` answers with a record that has `body` and `headers`, or undefined.
function defineBodyMembers(constructor, recordOf) {
  const consume = (value, convert) => {
    const record = recordOf(value);
    if (record === undefined) return PromiseReject(illegalInvocation());
    return consumeBody(record.body, (bytes) => convert(bytes, record));
  };
  const members = {
    get body() {
      const record = recordOf(this);
      if (record === undefined) throw illegalInvocation();
      return bodyStream(record.body);
    },
    get bodyUsed() {
      const record = recordOf(this);
      if (record === undefined) throw illegalInvocation();
      return isBodyUsed(record.body);
    },
    arrayBuffer() {
      return consume(this, (bytes) => TypedArrayPrototypeGetBuffer(wholeBytes(bytes)));
    },
    blob() {
      return consume(this, (bytes, record) => {
        const type = mimeTypeOf(record.headers);
        return newBlob(bytes, type === undefined ? "" : serializeMimeType(type));
      });
    },
    bytes() {
      return consume(this, wholeBytes);
    },
    formData() {
      return consume(this, (bytes, record) => parseForm(bytes, mimeTypeOf(record.headers)));
    },
    json() {
      return consume(this, (bytes) => JSONParse(decodeUtf8(bytes)));
    },
    text() {
      return consume(this, decodeUtf8);
    },
  };
  const names = ReflectOwnKeys(members);
  for (let index = 0; index < names.length; index++) {
    ObjectDefineProperty(constructor.prototype, names[index], ReflectGetOwnPropertyDescriptor(members, names[index]));
  }
}

// Bytes that are all of their buffer.
function wholeBytes(bytes) {
  const isWhole = byteLength(bytes) === ArrayBufferPrototypeGetByteLength(TypedArrayPrototypeGetBuffer(bytes));
  return isWhole ? bytes : copyBytes(bytes);
}
