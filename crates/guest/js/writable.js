// WritableStream (Streams standard): the stream, its writers and its controller.
//
// Owns: the order in which a sink is called: start, then one write after the other, then close or abort.

let writableState;

class WritableStream {
  #state;
  static {
    writableState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(underlyingSink = undefined, strategy = undefined) {
    this.#state = newWritableState(this);
    if (underlyingSink === INTERNAL) return;
    const given = toStrategy(strategy, "WritableStream");
    const what = "WritableStream: the sink";
    if (underlyingSink !== undefined && !isObject(underlyingSink)) throw new TypeErrorConstructor(what + " is not an object.");
    const members = underlyingSink ?? NO_MEMBERS;
    const abort = toMethod(members, "abort", what);
    const close = toMethod(members, "close", what);
    const start = toMethod(members, "start", what);
    if (members.type !== undefined) throw new RangeErrorConstructor(what + " must have no type.");
    const write = toMethod(members, "write", what);
    const size = sizeOf(given);
    const highWaterMark = highWaterMarkOf(given, 1);
    const objectOf = (controller) =>
      (controller.object = controller.object ?? new WritableStreamDefaultController(INTERNAL, controller));
    const algorithms = {
      __proto__: null,
      start: start === undefined ? undefined : (controller) => promiseOf(ReflectApply(start, underlyingSink, [objectOf(controller)])),
      write: write === undefined ? undefined : (chunk, controller) => callForPromise(write, underlyingSink, [chunk, objectOf(controller)]),
      close: close === undefined ? undefined : () => callForPromise(close, underlyingSink, newList()),
      abort: abort === undefined ? undefined : (reason) => callForPromise(abort, underlyingSink, [reason]),
      size,
    };
    setUpWritableController(this.#state, algorithms, highWaterMark);
  }

  get locked() {
    return this.#state.writer !== undefined;
  }

  abort(reason = undefined) {
    const state = writableState(this);
    if (state === undefined) return PromiseReject(illegalInvocation());
    if (state.writer !== undefined) return PromiseReject(isLockedError("WritableStream.abort"));
    return writableAbort(state, reason);
  }

  close() {
    const state = writableState(this);
    if (state === undefined) return PromiseReject(illegalInvocation());
    if (state.writer !== undefined) return PromiseReject(isLockedError("WritableStream.close"));
    if (isCloseQueuedOrInFlight(state)) return PromiseReject(closingError());
    return writableClose(state);
  }

  getWriter() {
    return new WritableStreamDefaultWriter(INTERNAL, acquireWriter(this.#state));
  }
}
defineInterface("WritableStream", WritableStream);

// `closeRequest`, `inFlightWrite`, `inFlightClose` and those in `writeRequests` are deferred; `pendingAbort` is { deferred,
// reason, wasErroring }.
function newWritableState(object) {
  return {
    __proto__: null,
    object,
    state: "writable",
    storedError: undefined,
    writer: undefined,
    controller: undefined,
    writeRequests: newQueue(),
    inFlightWrite: undefined,
    closeRequest: undefined,
    inFlightClose: undefined,
    pendingAbort: undefined,
    hasBackpressure: false,
  };
}

function newWritable() {
  return writableState(new WritableStream(INTERNAL));
}

function closingError() {
  return new TypeErrorConstructor("The stream is closed, or about to be.");
}

// --- the stream ---

function isCloseQueuedOrInFlight(stream) {
  return stream.closeRequest !== undefined || stream.inFlightClose !== undefined;
}

function isOperationInFlight(stream) {
  return stream.inFlightWrite !== undefined || stream.inFlightClose !== undefined;
}

function writableAbort(stream, reason) {
  if (stream.state === "closed" || stream.state === "errored") return PromiseResolve(undefined);
  const { controller } = stream;
  controller.abortSignal = controller.abortSignal ?? newAbortSignal();
  abortSignal(controller.abortSignal, abortReason(reason));
  // A listener may have done something.
  if (stream.state === "closed" || stream.state === "errored") return PromiseResolve(undefined);
  if (stream.pendingAbort !== undefined) return stream.pendingAbort.deferred.promise;
  const wasErroring = stream.state === "erroring";
  const pending = { __proto__: null, deferred: newDeferred(), reason: wasErroring ? undefined : reason, wasErroring };
  stream.pendingAbort = pending;
  if (!wasErroring) startErroring(stream, reason);
  return pending.deferred.promise;
}

function writableClose(stream) {
  if (stream.state === "closed" || stream.state === "errored") return PromiseReject(closingError());
  const deferred = newDeferred();
  stream.closeRequest = deferred;
  const { writer } = stream;
  if (writer !== undefined && stream.hasBackpressure && stream.state === "writable") resolvePending(writer.ready);
  enqueueWithSize(stream.controller, CLOSE, 0);
  advanceQueue(stream.controller);
  return deferred.promise;
}

// What the queue has where the stream is to be closed.
const CLOSE = ObjectCreate(null);

function dealWithRejection(stream, error) {
  if (stream.state === "writable") startErroring(stream, error);
  else finishErroring(stream);
}

function startErroring(stream, reason) {
  stream.state = "erroring";
  stream.storedError = reason;
  if (stream.writer !== undefined) stream.writer.ready = rejectPending(stream.writer.ready, reason);
  if (!isOperationInFlight(stream) && stream.controller.isStarted) finishErroring(stream);
}

function finishErroring(stream) {
  stream.state = "errored";
  resetQueue(stream.controller);
  const { storedError } = stream;
  const requests = queueTake(stream.writeRequests);
  for (let index = 0; index < requests.length; index++) requests[index].reject(storedError);
  const pending = stream.pendingAbort;
  if (pending === undefined) {
    rejectCloseAndClosed(stream);
    return;
  }
  stream.pendingAbort = undefined;
  if (pending.wasErroring) {
    pending.deferred.reject(storedError);
    rejectCloseAndClosed(stream);
    return;
  }
  const { abort } = stream.controller.algorithms;
  const aborted = abort === undefined ? undefined : abort(pending.reason);
  clearAlgorithms(stream.controller);
  react(
    aborted ?? RESOLVED,
    () => {
      pending.deferred.resolve();
      rejectCloseAndClosed(stream);
    },
    (error) => {
      pending.deferred.reject(error);
      rejectCloseAndClosed(stream);
    },
  );
}

function rejectCloseAndClosed(stream) {
  if (stream.closeRequest !== undefined) {
    stream.closeRequest.reject(stream.storedError);
    stream.closeRequest = undefined;
  }
  const { writer } = stream;
  if (writer !== undefined) writer.closed = rejectPending(writer.closed, stream.storedError);
}

function finishInFlightClose(stream) {
  stream.inFlightClose.resolve();
  stream.inFlightClose = undefined;
  if (stream.state === "erroring") {
    stream.storedError = undefined;
    if (stream.pendingAbort !== undefined) {
      stream.pendingAbort.deferred.resolve();
      stream.pendingAbort = undefined;
    }
  }
  stream.state = "closed";
  if (stream.writer !== undefined) resolvePending(stream.writer.closed);
}

function finishInFlightCloseWithError(stream, error) {
  stream.inFlightClose.reject(error);
  stream.inFlightClose = undefined;
  if (stream.pendingAbort !== undefined) {
    stream.pendingAbort.deferred.reject(error);
    stream.pendingAbort = undefined;
  }
  dealWithRejection(stream, error);
}

function updateBackpressure(stream, hasBackpressure) {
  const { writer } = stream;
  if (writer !== undefined && hasBackpressure !== stream.hasBackpressure) {
    if (hasBackpressure) writer.ready = newPending();
    else resolvePending(writer.ready);
  }
  stream.hasBackpressure = hasBackpressure;
}

// --- writers ---

// A writer's record { stream, closed, ready }, the last two of them deferred.
function acquireWriter(stream) {
  if (stream.writer !== undefined) throw isLockedError("WritableStream.getWriter");
  const writer = { __proto__: null, stream, closed: newPending(), ready: newPending() };
  stream.writer = writer;
  if (stream.state === "writable") {
    if (isCloseQueuedOrInFlight(stream) || !stream.hasBackpressure) resolvePending(writer.ready);
  } else if (stream.state === "erroring") {
    writer.ready = rejectPending(writer.ready, stream.storedError);
  } else if (stream.state === "closed") {
    resolvePending(writer.ready);
    resolvePending(writer.closed);
  } else {
    writer.ready = rejectPending(writer.ready, stream.storedError);
    writer.closed = rejectPending(writer.closed, stream.storedError);
  }
  return writer;
}

function newPending() {
  const deferred = newDeferred();
  deferred.isPending = true;
  return deferred;
}

function resolvePending(deferred) {
  deferred.isPending = false;
  deferred.resolve();
}

// Answers what is rejected now: another one, where it was settled already.
function rejectPending(deferred, error) {
  const pending = deferred.isPending ? deferred : newPending();
  pending.isPending = false;
  pending.reject(error);
  markHandled(pending.promise);
  return pending;
}

function writerRelease(writer) {
  const { stream } = writer;
  const error = new TypeErrorConstructor("This writer was released and can't be used to write any more.");
  writer.ready = rejectPending(writer.ready, error);
  writer.closed = rejectPending(writer.closed, error);
  stream.writer = undefined;
  writer.stream = undefined;
}

function writerDesiredSize(writer) {
  const { stream } = writer;
  if (stream.state === "errored" || stream.state === "erroring") return null;
  return stream.state === "closed" ? 0 : writableDesiredSize(stream.controller);
}

function writerWrite(writer, chunk) {
  const { stream } = writer;
  const { controller } = stream;
  const size = chunkSize(controller, chunk);
  // The size function may have done something.
  if (stream !== writer.stream) return PromiseReject(writerReleasedError());
  if (stream.state === "errored") return PromiseReject(stream.storedError);
  if (isCloseQueuedOrInFlight(stream) || stream.state === "closed") return PromiseReject(closingError());
  if (stream.state === "erroring") return PromiseReject(stream.storedError);
  const deferred = newDeferred();
  queuePush(stream.writeRequests, deferred);
  writableEnqueue(controller, chunk, size);
  return deferred.promise;
}

function writerCloseWithErrorPropagation(writer) {
  const { stream } = writer;
  if (isCloseQueuedOrInFlight(stream) || stream.state === "closed") return PromiseResolve(undefined);
  if (stream.state === "errored") return PromiseReject(stream.storedError);
  return writableClose(stream);
}

function writerReleasedError() {
  return new TypeErrorConstructor("This writer has no stream: it was released.");
}

let writerState;

class WritableStreamDefaultWriter {
  #writer;
  static {
    writerState = (value) => (isObject(value) && #writer in value ? value.#writer : undefined);
  }

  constructor(stream, writer = undefined) {
    if (stream === INTERNAL) {
      this.#writer = writer;
      return;
    }
    const state = writableState(stream);
    if (state === undefined) throw new TypeErrorConstructor("WritableStreamDefaultWriter: the argument is not a WritableStream.");
    this.#writer = acquireWriter(state);
  }

  get closed() {
    const writer = writerState(this);
    return writer === undefined ? PromiseReject(illegalInvocation()) : writer.closed.promise;
  }
  get desiredSize() {
    const writer = this.#writer;
    if (writer.stream === undefined) throw writerReleasedError();
    return writerDesiredSize(writer);
  }
  get ready() {
    const writer = writerState(this);
    return writer === undefined ? PromiseReject(illegalInvocation()) : writer.ready.promise;
  }
  abort(reason = undefined) {
    const writer = writerState(this);
    if (writer === undefined) return PromiseReject(illegalInvocation());
    if (writer.stream === undefined) return PromiseReject(writerReleasedError());
    return writableAbort(writer.stream, reason);
  }
  close() {
    const writer = writerState(this);
    if (writer === undefined) return PromiseReject(illegalInvocation());
    if (writer.stream === undefined) return PromiseReject(writerReleasedError());
    if (isCloseQueuedOrInFlight(writer.stream)) return PromiseReject(closingError());
    return writableClose(writer.stream);
  }
  releaseLock() {
    const writer = this.#writer;
    if (writer.stream !== undefined) writerRelease(writer);
  }
  write(chunk = undefined) {
    const writer = writerState(this);
    if (writer === undefined) return PromiseReject(illegalInvocation());
    if (writer.stream === undefined) return PromiseReject(writerReleasedError());
    return writerWrite(writer, chunk);
  }
}
defineInterface("WritableStreamDefaultWriter", WritableStreamDefaultWriter);

// --- the controller ---

let writableControllerState;

class WritableStreamDefaultController {
  #controller;
  static {
    writableControllerState = (value) => (isObject(value) && #controller in value ? value.#controller : undefined);
  }

  constructor(token = undefined, controller = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#controller = controller;
  }

  get signal() {
    const controller = this.#controller;
    controller.abortSignal = controller.abortSignal ?? newAbortSignal();
    return controller.abortSignal.object;
  }
  error(error = undefined) {
    const controller = this.#controller;
    if (controller.stream.state === "writable") writableError(controller, error);
  }
}
defineInterface("WritableStreamDefaultController", WritableStreamDefaultController);

// `algorithms` are { start, write, close, abort, size } of ours, as those of a readable stream's controller.
function setUpWritableController(stream, algorithms, highWaterMark) {
  const controller = {
    __proto__: null,
    object: undefined,
    stream,
    queue: newQueue(),
    queueSize: 0,
    isStarted: false,
    highWaterMark,
    algorithms,
    abortSignal: undefined,
  };
  stream.controller = controller;
  updateBackpressure(stream, hasBackpressure(controller));
  const { start } = algorithms;
  const started = start === undefined ? undefined : start(controller);
  react(
    started ?? RESOLVED,
    () => {
      controller.isStarted = true;
      advanceQueue(controller);
    },
    (error) => {
      controller.isStarted = true;
      dealWithRejection(stream, error);
    },
  );
  return controller;
}

function writableDesiredSize(controller) {
  return controller.highWaterMark - controller.queueSize;
}

function hasBackpressure(controller) {
  return writableDesiredSize(controller) <= 0;
}

function chunkSize(controller, chunk) {
  const { size } = controller.algorithms;
  if (size === undefined) return 1;
  try {
    return size(chunk);
  } catch (error) {
    writableErrorIfNeeded(controller, error);
    return 1;
  }
}

function writableEnqueue(controller, chunk, size) {
  try {
    enqueueWithSize(controller, chunk, size);
  } catch (error) {
    writableErrorIfNeeded(controller, error);
    return;
  }
  const { stream } = controller;
  if (!isCloseQueuedOrInFlight(stream) && stream.state === "writable") {
    updateBackpressure(stream, hasBackpressure(controller));
  }
  advanceQueue(controller);
}

function writableErrorIfNeeded(controller, error) {
  if (controller.stream.state === "writable") writableError(controller, error);
}

function writableError(controller, error) {
  clearAlgorithms(controller);
  startErroring(controller.stream, error);
}

function advanceQueue(controller) {
  const { stream } = controller;
  if (!controller.isStarted || stream.inFlightWrite !== undefined) return;
  if (stream.state === "erroring") {
    finishErroring(stream);
    return;
  }
  if (queueLength(controller.queue) === 0) return;
  const { value } = queueFirst(controller.queue);
  if (value === CLOSE) processClose(controller);
  else processWrite(controller, value);
}

function processClose(controller) {
  const { stream } = controller;
  stream.inFlightClose = stream.closeRequest;
  stream.closeRequest = undefined;
  dequeue(controller);
  const { close } = controller.algorithms;
  const closed = close === undefined ? undefined : close();
  clearAlgorithms(controller);
  react(
    closed ?? RESOLVED,
    () => finishInFlightClose(stream),
    (error) => finishInFlightCloseWithError(stream, error),
  );
}

function processWrite(controller, chunk) {
  const { stream } = controller;
  stream.inFlightWrite = queueShift(stream.writeRequests);
  const { write } = controller.algorithms;
  const written = write === undefined ? undefined : write(chunk, controller);
  react(
    written ?? RESOLVED,
    () => {
      stream.inFlightWrite.resolve();
      stream.inFlightWrite = undefined;
      dequeue(controller);
      if (!isCloseQueuedOrInFlight(stream) && stream.state === "writable") {
        updateBackpressure(stream, hasBackpressure(controller));
      }
      advanceQueue(controller);
    },
    (error) => {
      if (stream.state === "writable") clearAlgorithms(controller);
      stream.inFlightWrite.reject(error);
      stream.inFlightWrite = undefined;
      dealWithRejection(stream, error);
    },
  );
}
