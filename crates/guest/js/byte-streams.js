// Streams of bytes as the rest of the prelude uses them: as sources to pull from and sinks to write to.
//
//   isReadableStream(value), isWritableStream(value), isReadableStreamLocked(stream), isWritableStreamLocked(stream)
//   takeByteSource(stream)   locks a ReadableStream; answers a source of it
//   newByteStream(source)    a readable byte stream over a source, which is pulled only when somebody reads
//   takeByteSink(stream)     locks a WritableStream; answers a sink of it
//   newSinkStream(sink)      a WritableStream over a sink
//   newBytesSource(bytes)    a source of copies of bytes that are there already
//
// A source is { pull(maxBytes), cancel(reason) }. `pull` answers with a promise of a Uint8Array of 1 to maxBytes bytes, or
// of undefined at the end; it is called once at a time. `cancel` answers with a promise. Of strings a source has the UTF-8;
// chunks that are no bytes are a TypeError for both ends.
// A sink is { write(bytes), close(), abort(reason) }. Each answers with a promise; that of `write` is settled when there is
// room for more.
//
// Whoever has pulled bytes must have done with them before it pulls again: they may be a window of a worker's buffer. What
// a source of somebody else's answers, and is the whole of its buffer, belongs to the stream.
// Must never: resolve a promise with what asks Object.prototype for a `then`.

const PULL_BYTES_MAX = 65536;

function isReadableStream(value) {
  return readableState(value) !== undefined;
}

function isWritableStream(value) {
  return writableState(value) !== undefined;
}

function isReadableStreamLocked(stream) {
  return readableState(stream).reader !== undefined;
}

function isWritableStreamLocked(stream) {
  return writableState(stream).writer !== undefined;
}

// The bytes of a chunk; throws where it has none.
function chunkBytes(chunk) {
  if (typeof chunk === "string") return encodeText(chunk);
  const bytes = bytesOf(chunk);
  if (bytes === undefined) throw new TypeErrorConstructor("The stream is to have bytes, but a chunk is neither a string nor an ArrayBuffer or a view of one.");
  return bytes;
}

// Bytes that a promise may be resolved with: it finds that they have no `then` before it asks what they inherit from.
function answerable(bytes) {
  ObjectDefineProperty(bytes, "then", { __proto__: null, value: undefined, configurable: true });
  return bytes;
}

function windowOf(bytes, from, to) {
  return newBytes(TypedArrayPrototypeGetBuffer(bytes), TypedArrayPrototypeGetByteOffset(bytes) + from, to - from);
}

function takeByteSource(stream) {
  const reader = acquireReader(toReadable(stream, "The stream"), DEFAULT);
  let left;

  // The next bytes of what is left.
  const take = (maxBytes) => {
    const length = byteLength(left);
    const bytes = windowOf(left, 0, MathMin(length, maxBytes));
    left = length > maxBytes ? windowOf(left, maxBytes, length) : undefined;
    return answerable(bytes);
  };

  return {
    __proto__: null,
    pull(maxBytes) {
      const deferred = newDeferred();
      const request = newReadRequest(
        (chunk) => {
          try {
            left = chunkBytes(chunk);
          } catch (error) {
            markHandled(readerCancel(reader, error));
            deferred.reject(error);
            return;
          }
          if (byteLength(left) > 0) {
            deferred.resolve(take(maxBytes));
          } else {
            left = undefined;
            QueueMicrotask(() => readerRead(reader, request));
          }
        },
        () => deferred.resolve(),
        deferred.reject,
      );
      if (left !== undefined) deferred.resolve(take(maxBytes));
      else readerRead(reader, request);
      return deferred.promise;
    },
    cancel(reason) {
      left = undefined;
      return readerCancel(reader, reason);
    },
  };
}

function newByteStream(source) {
  const stream = newReadable();
  const pull = (controller) => {
    const deferred = newDeferred();
    const onBytes = (bytes) => {
      try {
        // Whoever reads may have cancelled it meanwhile.
        if (stream.state === "readable") {
          if (bytes === undefined) endBytes(controller);
          else deliverBytes(controller, bytes);
        }
        deferred.resolve();
      } catch (error) {
        deferred.reject(error);
      }
    };
    react(source.pull(MathMin(wantedBytes(controller), PULL_BYTES_MAX)), onBytes, deferred.reject);
    return deferred.promise;
  };
  const cancel = (reason) => source.cancel(reason);
  setUpByteController(stream, { __proto__: null, start: undefined, pull, cancel, size: undefined }, 0, undefined);
  return stream.object;
}

// As many as fit the view that is waiting.
function wantedBytes(controller) {
  if (queueLength(controller.pending) === 0) return PULL_BYTES_MAX;
  const first = queueFirst(controller.pending);
  return first.length - first.filled;
}

function endBytes(controller) {
  byteClose(controller);
  if (queueLength(controller.pending) > 0) byteRespond(controller, 0);
}

// Gives bytes to whoever waits. Answers how many were taken: a reader's own view has only so much room.
function deliverBytes(controller, bytes) {
  const length = byteLength(bytes);
  if (queueLength(controller.pending) === 0) {
    const isWhole = length === ArrayBufferPrototypeGetByteLength(TypedArrayPrototypeGetBuffer(bytes));
    byteEnqueue(controller, viewOfBytes(isWhole ? bytes : copyBytes(bytes)));
    return length;
  }
  const first = queueFirst(controller.pending);
  const taken = MathMin(length, first.length - first.filled);
  const target = newBytes(first.buffer, first.offset + first.filled, taken);
  TypedArrayPrototypeSet(target, windowOf(bytes, 0, taken));
  byteRespond(controller, taken);
  return taken;
}

function newBytesSource(bytes) {
  let offset = 0;
  return {
    __proto__: null,
    pull(maxBytes) {
      const length = byteLength(bytes);
      if (offset === length) return PromiseResolve(undefined);
      const start = offset;
      offset = MathMin(start + maxBytes, length);
      const deferred = newDeferred();
      deferred.resolve(answerable(copyBytes(windowOf(bytes, start, offset))));
      return deferred.promise;
    },
    cancel() {
      offset = byteLength(bytes);
      return RESOLVED;
    },
  };
}

function takeByteSink(stream) {
  const state = writableState(stream);
  if (state === undefined) throw new TypeErrorConstructor("The stream is not a WritableStream.");
  const writer = acquireWriter(state);
  return {
    __proto__: null,
    write(bytes) {
      markHandled(writerWrite(writer, bytes));
      return writer.ready.promise;
    },
    close: () => writerCloseWithErrorPropagation(writer),
    abort: (reason) => writableAbort(state, reason),
  };
}

function newSinkStream(sink) {
  const stream = newWritable();
  const algorithms = {
    __proto__: null,
    start: undefined,
    write(chunk) {
      try {
        return sink.write(chunkBytes(chunk));
      } catch (error) {
        return PromiseReject(error);
      }
    },
    close: () => sink.close(),
    abort: (reason) => sink.abort(reason),
    size: undefined,
  };
  setUpWritableController(stream, algorithms, 1);
  return stream.object;
}

// All bytes of a source, at most `maxBytes`, as one Uint8Array: calls `onBytes(bytes)` or `onError(error)`.
function readAll(source, onBytes, onError) {
  const pieces = newList();
  let length = 0;
  const onPiece = (piece) => {
    if (piece === undefined) {
      onBytes(pieces.length === 1 ? pieces[0] : joinBytes(pieces, length));
      return;
    }
    pieces[pieces.length] = copyBytes(piece);
    length += byteLength(piece);
    next();
  };
  const next = () => react(source.pull(PULL_BYTES_MAX), onPiece, onError);
  next();
}
