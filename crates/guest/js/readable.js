// ReadableStream (Streams standard): the stream itself and what is common to both kinds of readers.
//
// Owns: a stream's state. Controllers and readers of the two kinds are in readable-default.js and readable-bytes.js.

const DEFAULT = 0;
const BYTES = 1;

// A stream's record, or undefined for what is none.
let readableState;

class ReadableStream {
  #state;
  static {
    readableState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(underlyingSource = undefined, strategy = undefined) {
    this.#state = newReadableState(this);
    if (underlyingSource === INTERNAL) return;
    const given = toStrategy(strategy, "ReadableStream");
    const source = toUnderlyingSource(underlyingSource);
    if (source.isBytes) {
      if (given.size !== undefined) {
        throw new RangeErrorConstructor("ReadableStream: the strategy of a byte stream has no size function.");
      }
      setUpByteSource(this.#state, source, highWaterMarkOf(given, 0));
    } else {
      const size = sizeOf(given);
      setUpDefaultSource(this.#state, source, highWaterMarkOf(given, 1), size);
    }
  }

  static from(asyncIterable) {
    requireArguments("ReadableStream.from", arguments.length, 1);
    return readableFrom(asyncIterable);
  }

  get locked() {
    return this.#state.reader !== undefined;
  }

  cancel(reason = undefined) {
    const state = readableState(this);
    if (state === undefined) return PromiseReject(illegalInvocation());
    if (state.reader !== undefined) return PromiseReject(isLockedError("ReadableStream.cancel"));
    return readableCancel(state, reason);
  }

  getReader(options = undefined) {
    const state = this.#state;
    const mode = toDictionary(options, "ReadableStream.getReader: the argument").mode;
    if (mode === undefined) return newReaderObject(acquireReader(state, DEFAULT));
    if (toText(mode) !== "byob") throw new TypeErrorConstructor('ReadableStream.getReader: the only mode is "byob".');
    return newReaderObject(acquireReader(state, BYTES));
  }

  pipeThrough(transform, options = undefined) {
    const state = this.#state;
    requireArguments("ReadableStream.pipeThrough", arguments.length, 1);
    const pair = toDictionary(transform, "ReadableStream.pipeThrough: the transform");
    const readable = pair.readable;
    if (readableState(readable) === undefined) {
      throw new TypeErrorConstructor("ReadableStream.pipeThrough: the transform's readable is not a ReadableStream.");
    }
    const writable = writableState(pair.writable);
    if (writable === undefined) {
      throw new TypeErrorConstructor("ReadableStream.pipeThrough: the transform's writable is not a WritableStream.");
    }
    const given = toPipeOptions(options, "ReadableStream.pipeThrough");
    if (state.reader !== undefined || writable.writer !== undefined) throw isLockedError("ReadableStream.pipeThrough");
    markHandled(pipe(state, writable, given));
    return readable;
  }

  pipeTo(destination, options = undefined) {
    const state = readableState(this);
    if (state === undefined) return PromiseReject(illegalInvocation());
    try {
      requireArguments("ReadableStream.pipeTo", arguments.length, 1);
      const writable = writableState(destination);
      if (writable === undefined) {
        throw new TypeErrorConstructor("ReadableStream.pipeTo: the destination is not a WritableStream.");
      }
      const given = toPipeOptions(options, "ReadableStream.pipeTo");
      if (state.reader !== undefined || writable.writer !== undefined) throw isLockedError("ReadableStream.pipeTo");
      return pipe(state, writable, given);
    } catch (error) {
      return PromiseReject(error);
    }
  }

  tee() {
    const branches = readableTee(this.#state, false);
    return [branches[0].object, branches[1].object];
  }

  values(options = undefined) {
    const state = this.#state;
    const preventCancel = !!toDictionary(options, "ReadableStream.values: the argument").preventCancel;
    return newReadableIterator(acquireReader(state, DEFAULT), preventCancel);
  }
}
defineInterface("ReadableStream", ReadableStream);
ObjectDefineProperty(ReadableStream.prototype, SymbolAsyncIterator, {
  __proto__: null,
  value: ReadableStream.prototype.values,
  writable: true,
  enumerable: false,
  configurable: true,
});

function newReadableState(object) {
  return {
    __proto__: null,
    object,
    state: "readable",
    storedError: undefined,
    isDisturbed: false,
    reader: undefined,
    controller: undefined,
  };
}

// A stream that a worker may have, and whose controller is yet to come.
function newReadable() {
  return readableState(new ReadableStream(INTERNAL));
}

function isLockedError(what) {
  return new TypeErrorConstructor(what + ": the stream is locked to a reader or writer.");
}

// The members are read in the order that Web IDL has for them.
function toUnderlyingSource(given) {
  const what = "ReadableStream: the source";
  if (given !== undefined && !isObject(given)) throw new TypeErrorConstructor(what + " is not an object.");
  const members = given ?? NO_MEMBERS;
  const autoAllocateChunkSize = members.autoAllocateChunkSize;
  const source = {
    __proto__: null,
    self: given,
    autoAllocateChunkSize: autoAllocateChunkSize === undefined ? undefined : toEnforcedInteger(autoAllocateChunkSize, NumberMaxSafeInteger, what + ": autoAllocateChunkSize"),
    cancel: toMethod(members, "cancel", what),
    pull: toMethod(members, "pull", what),
    start: toMethod(members, "start", what),
    isBytes: false,
  };
  const type = members.type;
  if (type !== undefined) {
    if (toText(type) !== "bytes") throw new TypeErrorConstructor(what + ': the only type is "bytes".');
    source.isBytes = true;
  }
  return source;
}

function readableCancel(stream, reason) {
  stream.isDisturbed = true;
  if (stream.state === "closed") return PromiseResolve(undefined);
  if (stream.state === "errored") return PromiseReject(stream.storedError);
  readableClose(stream);
  const { reader } = stream;
  if (reader !== undefined && reader.kind === BYTES) {
    const requests = queueTake(reader.requests);
    for (let index = 0; index < requests.length; index++) requests[index].closeSteps(undefined);
  }
  const { controller } = stream;
  const cancelled = controller.kind === BYTES ? byteCancelSteps(controller, reason) : defaultCancelSteps(controller, reason);
  const deferred = newDeferred();
  react(cancelled, () => deferred.resolve(), deferred.reject);
  return deferred.promise;
}

function readableClose(stream) {
  stream.state = "closed";
  const { reader } = stream;
  if (reader === undefined) return;
  if (reader.closed !== undefined) reader.closed.resolve();
  if (reader.kind === DEFAULT) {
    const requests = queueTake(reader.requests);
    for (let index = 0; index < requests.length; index++) requests[index].closeSteps(undefined);
  }
}

function readableError(stream, error) {
  stream.state = "errored";
  stream.storedError = error;
  const { reader } = stream;
  if (reader === undefined) return;
  if (reader.closed !== undefined) {
    reader.closed.reject(error);
    markHandled(reader.closed.promise);
  }
  readerErrorRequests(reader, error);
}

// --- readers ---

// A reader's record { kind, stream, closed, requests }. `closed` is made when somebody asks for it.
function acquireReader(stream, kind) {
  if (stream.reader !== undefined) throw isLockedError("ReadableStream.getReader");
  if (kind === BYTES && stream.controller.kind !== BYTES) {
    throw new TypeErrorConstructor("ReadableStream.getReader: a BYOB reader is only to be had of a byte stream.");
  }
  const reader = { __proto__: null, kind, stream, closed: undefined, requests: newQueue() };
  stream.reader = reader;
  return reader;
}

function readerClosed(reader) {
  if (reader.closed === undefined) {
    reader.closed = newDeferred();
    const { stream } = reader;
    if (stream === undefined || stream.state === "errored") {
      reader.closed.reject(stream === undefined ? readerReleasedError() : stream.storedError);
      markHandled(reader.closed.promise);
    } else if (stream.state === "closed") {
      reader.closed.resolve();
    }
  }
  return reader.closed.promise;
}

function readerReleasedError() {
  return new TypeErrorConstructor("This reader was released and can't be used to read any more.");
}

function readerCancel(reader, reason) {
  return readableCancel(reader.stream, reason);
}

// What the reader waits for ends with an error.
function readerRelease(reader) {
  const { stream } = reader;
  const error = readerReleasedError();
  if (reader.closed !== undefined) {
    if (stream.state !== "readable") reader.closed = newDeferred();
    reader.closed.reject(error);
    markHandled(reader.closed.promise);
  }
  if (stream.controller.kind === BYTES) byteReleaseSteps(stream.controller);
  stream.reader = undefined;
  reader.stream = undefined;
  readerErrorRequests(reader, error);
}

function readerErrorRequests(reader, error) {
  const requests = queueTake(reader.requests);
  for (let index = 0; index < requests.length; index++) requests[index].errorSteps(error);
}

// Reads by a default reader. A request has the functions of ours chunkSteps(chunk), closeSteps() and errorSteps(error).
function readerRead(reader, request) {
  const { stream } = reader;
  stream.isDisturbed = true;
  if (stream.state === "closed") request.closeSteps();
  else if (stream.state === "errored") request.errorSteps(stream.storedError);
  else if (stream.controller.kind === BYTES) bytePullSteps(stream.controller, request);
  else defaultPullSteps(stream.controller, request);
}

function newReadRequest(chunkSteps, closeSteps, errorSteps) {
  return { __proto__: null, chunkSteps, closeSteps, errorSteps };
}

// What a worker's `read()` is told: a promise of { value, done }.
function newPromisedRequest(deferred) {
  return newReadRequest(
    (value) => deferred.resolve({ value, done: false }),
    (value) => deferred.resolve({ value, done: true }),
    deferred.reject,
  );
}

function readerOrNone(value, kind) {
  const reader = readerState(value);
  return reader !== undefined && reader.kind === kind ? reader : undefined;
}

// The record of a reader of either kind, or undefined for what is none.
function readerState(value) {
  return defaultReaderState(value) ?? byobReaderState(value);
}

function newReaderObject(reader) {
  return reader.kind === BYTES ? new ReadableStreamBYOBReader(INTERNAL, reader) : new ReadableStreamDefaultReader(INTERNAL, reader);
}

let defaultReaderState;

class ReadableStreamDefaultReader {
  #reader;
  static {
    defaultReaderState = (value) => (isObject(value) && #reader in value ? value.#reader : undefined);
  }

  constructor(stream, reader = undefined) {
    this.#reader = stream === INTERNAL ? reader : acquireReader(toReadable(stream, "ReadableStreamDefaultReader"), DEFAULT);
  }

  get closed() {
    const reader = defaultReaderState(this);
    return reader === undefined ? PromiseReject(illegalInvocation()) : readerClosed(reader);
  }

  cancel(reason = undefined) {
    return cancelByReader(defaultReaderState(this), reason);
  }

  read() {
    const reader = defaultReaderState(this);
    if (reader === undefined) return PromiseReject(illegalInvocation());
    if (reader.stream === undefined) return PromiseReject(readerReleasedError());
    const deferred = newDeferred();
    readerRead(reader, newPromisedRequest(deferred));
    return deferred.promise;
  }

  releaseLock() {
    const reader = this.#reader;
    if (reader.stream !== undefined) readerRelease(reader);
  }
}
defineInterface("ReadableStreamDefaultReader", ReadableStreamDefaultReader);

function cancelByReader(reader, reason) {
  if (reader === undefined) return PromiseReject(illegalInvocation());
  if (reader.stream === undefined) return PromiseReject(readerReleasedError());
  return readerCancel(reader, reason);
}

function toReadable(value, what) {
  const stream = readableState(value);
  if (stream === undefined) throw new TypeErrorConstructor(what + ": the argument is not a ReadableStream.");
  return stream;
}

// --- asynchronous iteration ---

let newReadableIterator;
{
  const states = new WeakMapConstructor();
  const prototype = ObjectCreate(AsyncIteratorPrototype);

  // Ends a call of next() or return(): the next one need not wait for it.
  const settleCall = (state, call, settleWith, value) => {
    call.isSettled = true;
    if (state.ongoing === call) state.ongoing = undefined;
    settleWith(value);
  };
  const newCall = () => {
    const call = newDeferred();
    call.isSettled = false;
    return call;
  };

  const nextSteps = (state, call) => {
    const resolve = (value, done) => settleCall(state, call, call.resolve, { value, done });
    if (state.isFinished) return resolve(undefined, true);
    const end = () => {
      state.isFinished = true;
      readerRelease(state.reader);
    };
    const request = newReadRequest(
      // (A turn later, as if it were a promise of a promise: the source is asked for more first.)
      (value) => QueueMicrotask(() => resolve(value, false)),
      () => {
        end();
        QueueMicrotask(() => resolve(undefined, true));
      },
      (error) => {
        end();
        QueueMicrotask(() => settleCall(state, call, call.reject, error));
      },
    );
    readerRead(state.reader, request);
  };

  const returnSteps = (state, call, value) => {
    const end = () => settleCall(state, call, call.resolve, { value, done: true });
    if (state.isFinished) return end();
    state.isFinished = true;
    const cancelled = state.preventCancel ? RESOLVED : readerCancel(state.reader, value);
    readerRelease(state.reader);
    react(cancelled, end, (error) => settleCall(state, call, call.reject, error));
  };

  // One after the other.
  const start = (iterator, steps, value) => {
    const state = isObject(iterator) ? WeakMapPrototypeGet(states, iterator) : undefined;
    if (state === undefined) return PromiseReject(illegalInvocation());
    const call = newCall();
    const { ongoing } = state;
    if (ongoing === undefined) {
      steps(state, call, value);
      if (!call.isSettled) state.ongoing = call;
    } else {
      const go = () => steps(state, call, value);
      state.ongoing = call;
      react(ongoing.promise, go, go);
    }
    return call.promise;
  };

  const methods = {
    next() {
      return start(this, nextSteps);
    },
    return(value) {
      return start(this, returnSteps, value);
    },
  };
  ObjectDefineProperty(prototype, "next", dataProperty(methods.next));
  ObjectDefineProperty(prototype, "return", dataProperty(methods.return));

  newReadableIterator = (reader, preventCancel) => {
    const iterator = ObjectCreate(prototype);
    WeakMapPrototypeSet(states, iterator, { __proto__: null, reader, preventCancel, ongoing: undefined, isFinished: false });
    return iterator;
  };
}
