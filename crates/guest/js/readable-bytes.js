// Byte streams (Streams standard): their controller, BYOB readers and requests.
//
// Owns: whose turn the bytes are, those of a reader's own buffer or of the queue. A buffer that is given over is
// transferred: whoever gave it can't see it any more.
//
// A pull-into descriptor is { buffer, bufferLength, offset, length, filled, minimum, elementSize, kind, reader }: `kind`
// is the view's class, `reader` what reads into it, DEFAULT, BYTES or NONE. The queue holds { buffer, offset, length }.

const NONE = 2;

const viewConstructors = { __proto__: null };
{
  const names = ["Int8", "Uint8", "Uint8Clamped", "Int16", "Uint16", "Int32", "Uint32", "Float16", "Float32", "Float64", "BigInt64", "BigUint64"];
  for (let index = 0; index < names.length; index++) {
    const name = names[index] + "Array";
    viewConstructors[name] = globalObject[name];
  }
}

let byteControllerState;

class ReadableByteStreamController {
  #controller;
  static {
    byteControllerState = (value) => (isObject(value) && #controller in value ? value.#controller : undefined);
  }

  constructor(token = undefined, controller = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#controller = controller;
  }

  get byobRequest() {
    return byobRequestOf(this.#controller);
  }
  get desiredSize() {
    return desiredSizeOf(this.#controller);
  }
  close() {
    const controller = this.#controller;
    if (!canCloseOrEnqueue(controller)) throw new TypeErrorConstructor("The stream can't be closed: it is closed or errored already.");
    byteClose(controller);
  }
  enqueue(chunk) {
    const controller = this.#controller;
    requireArguments("ReadableByteStreamController.enqueue", arguments.length, 1);
    const view = toView(chunk, "ReadableByteStreamController.enqueue");
    if (view.length === 0 || view.bufferLength === 0) throw new TypeErrorConstructor("An empty chunk can't be enqueued.");
    if (!canCloseOrEnqueue(controller)) throw new TypeErrorConstructor("Nothing can be enqueued: the stream is closed or errored.");
    byteEnqueue(controller, view);
  }
  error(error = undefined) {
    byteError(this.#controller, error);
  }
}
defineInterface("ReadableByteStreamController", ReadableByteStreamController);

let byobRequestState;

class ReadableStreamBYOBRequest {
  #request;
  static {
    byobRequestState = (value) => (isObject(value) && #request in value ? value.#request : undefined);
  }

  constructor(token = undefined, request = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#request = request;
  }

  get view() {
    return this.#request.view;
  }
  respond(bytesWritten) {
    const request = this.#request;
    requireArguments("ReadableStreamBYOBRequest.respond", arguments.length, 1);
    const written = toEnforcedInteger(bytesWritten, NumberMaxSafeInteger, "ReadableStreamBYOBRequest.respond: the number of bytes");
    if (request.controller === undefined) throw requestUsedError();
    if (isDetached(TypedArrayPrototypeGetBuffer(request.view))) throw new TypeErrorConstructor("The request's buffer is detached.");
    byteRespond(request.controller, written);
  }
  respondWithNewView(view) {
    const request = this.#request;
    requireArguments("ReadableStreamBYOBRequest.respondWithNewView", arguments.length, 1);
    const parts = toView(view, "ReadableStreamBYOBRequest.respondWithNewView");
    if (request.controller === undefined) throw requestUsedError();
    byteRespondWithNewView(request.controller, parts);
  }
}
defineInterface("ReadableStreamBYOBRequest", ReadableStreamBYOBRequest);

function requestUsedError() {
  return new TypeErrorConstructor("This BYOB request has been answered already.");
}

let byobReaderState;

class ReadableStreamBYOBReader {
  #reader;
  static {
    byobReaderState = (value) => (isObject(value) && #reader in value ? value.#reader : undefined);
  }

  constructor(stream, reader = undefined) {
    this.#reader = stream === INTERNAL ? reader : acquireReader(toReadable(stream, "ReadableStreamBYOBReader"), BYTES);
  }

  get closed() {
    const reader = byobReaderState(this);
    return reader === undefined ? PromiseReject(illegalInvocation()) : readerClosed(reader);
  }

  cancel(reason = undefined) {
    return cancelByReader(byobReaderState(this), reason);
  }

  read(view, options = undefined) {
    const reader = byobReaderState(this);
    if (reader === undefined) return PromiseReject(illegalInvocation());
    try {
      requireArguments("ReadableStreamBYOBReader.read", arguments.length, 1);
      return readInto(reader, toView(view, "ReadableStreamBYOBReader.read"), toMinimum(options));
    } catch (error) {
      return PromiseReject(error);
    }
  }

  // Workers' older name for `read(view, { min })`.
  readAtLeast(minimum, view) {
    const reader = byobReaderState(this);
    if (reader === undefined) return PromiseReject(illegalInvocation());
    try {
      requireArguments("ReadableStreamBYOBReader.readAtLeast", arguments.length, 2);
      const least = toEnforcedInteger(minimum, NumberMaxSafeInteger, "ReadableStreamBYOBReader.readAtLeast: the least");
      return readInto(reader, toView(view, "ReadableStreamBYOBReader.readAtLeast"), least);
    } catch (error) {
      return PromiseReject(error);
    }
  }

  releaseLock() {
    const reader = this.#reader;
    if (reader.stream !== undefined) readerRelease(reader);
  }
}
defineInterface("ReadableStreamBYOBReader", ReadableStreamBYOBReader);

function toMinimum(options) {
  const { min } = toDictionary(options, "ReadableStreamBYOBReader.read: the options");
  return min === undefined ? 1 : toEnforcedInteger(min, NumberMaxSafeInteger, "ReadableStreamBYOBReader.read: min");
}

function readInto(reader, view, minimum) {
  if (view.length === 0 || view.bufferLength === 0) throw new TypeErrorConstructor("The view to be read into is empty.");
  if (minimum === 0) throw new TypeErrorConstructor("At least one element has to be read.");
  if (minimum > view.length / view.elementSize) {
    throw new RangeErrorConstructor("The view has not as many elements as have to be read.");
  }
  if (reader.stream === undefined) throw readerReleasedError();
  const deferred = newDeferred();
  byobRead(reader, view, minimum, newPromisedRequest(deferred));
  return deferred.promise;
}

// What a view is { buffer, bufferLength, offset, length, elementSize, kind }, lengths in bytes.
function toView(value, what) {
  if (!isObject(value) || !ArrayBufferIsView(value)) throw new TypeErrorConstructor(what + ": the argument is not a view of a buffer.");
  const kind = TypedArrayPrototypeGetToStringTag(value);
  const isTyped = kind !== undefined;
  const buffer = isTyped ? TypedArrayPrototypeGetBuffer(value) : DataViewPrototypeGetBuffer(value);
  if (isDetached(buffer)) throw new TypeErrorConstructor(what + ": the view's buffer is detached.");
  return {
    __proto__: null,
    buffer,
    bufferLength: ArrayBufferPrototypeGetByteLength(buffer),
    offset: isTyped ? TypedArrayPrototypeGetByteOffset(value) : DataViewPrototypeGetByteOffset(value),
    length: isTyped ? TypedArrayPrototypeGetByteLength(value) : DataViewPrototypeGetByteLength(value),
    elementSize: isTyped ? TypedArrayPrototypeGetByteLength(value) / MathMax(TypedArrayPrototypeGetLength(value), 1) || 1 : 1,
    kind: kind ?? "DataView",
  };
}

const isDetached = ArrayBufferPrototypeGetDetached;

// --- the controller ---

// `algorithms` as those of a default controller, without `size`.
function setUpByteController(stream, algorithms, highWaterMark, autoAllocateChunkSize) {
  const controller = {
    __proto__: null,
    kind: BYTES,
    object: undefined,
    stream,
    queue: newQueue(),
    queueSize: 0,
    isStarted: false,
    isCloseRequested: false,
    isPulling: false,
    pullAgain: false,
    highWaterMark,
    algorithms,
    autoAllocateChunkSize,
    byobRequest: undefined,
    pending: newQueue(),
  };
  stream.controller = controller;
  startController(controller, callBytePull, byteError);
  return controller;
}

function setUpByteSource(stream, source, highWaterMark) {
  const { self, start, pull, cancel, autoAllocateChunkSize } = source;
  if (autoAllocateChunkSize === 0) throw new TypeErrorConstructor("ReadableStream: autoAllocateChunkSize must not be 0.");
  const objectOf = (controller) =>
    (controller.object = controller.object ?? new ReadableByteStreamController(INTERNAL, controller));
  const algorithms = sourceAlgorithms(self, start, pull, cancel, undefined, objectOf);
  setUpByteController(stream, algorithms, highWaterMark, autoAllocateChunkSize);
}

function shouldBytePull(controller) {
  if (!canCloseOrEnqueue(controller) || !controller.isStarted) return false;
  const { stream } = controller;
  return isReadWaiting(stream, DEFAULT) || isReadWaiting(stream, BYTES) || desiredSizeOf(controller) > 0;
}

function callBytePull(controller) {
  callPull(controller, shouldBytePull, byteError);
}

function byteError(controller, error) {
  if (controller.stream.state !== "readable") return;
  invalidateByobRequest(controller);
  controller.pending = newQueue();
  resetQueue(controller);
  clearAlgorithms(controller);
  readableError(controller.stream, error);
}

function byteClose(controller) {
  if (!canCloseOrEnqueue(controller)) return;
  if (controller.queueSize > 0) {
    controller.isCloseRequested = true;
    return;
  }
  if (queueLength(controller.pending) > 0) {
    const first = queueFirst(controller.pending);
    if (first.filled % first.elementSize !== 0) {
      const error = new TypeErrorConstructor("The stream was closed in the middle of an element that is being read.");
      byteError(controller, error);
      throw error;
    }
  }
  clearAlgorithms(controller);
  readableClose(controller.stream);
}

function byteEnqueue(controller, view) {
  const { stream } = controller;
  const { offset, length } = view;
  if (!canCloseOrEnqueue(controller)) return;
  const buffer = ArrayBufferPrototypeTransfer(view.buffer);
  if (queueLength(controller.pending) > 0) {
    const first = queueFirst(controller.pending);
    if (isDetached(first.buffer)) {
      throw new TypeErrorConstructor("The buffer of the BYOB request is detached, and can't be filled with what was enqueued.");
    }
    invalidateByobRequest(controller);
    first.buffer = ArrayBufferPrototypeTransfer(first.buffer);
    if (first.reader === NONE) enqueueDetachedPullInto(controller, first);
  }
  if (stream.reader !== undefined && stream.reader.kind === DEFAULT) {
    serveDefaultRequests(controller);
    if (!isReadWaiting(stream, DEFAULT)) {
      enqueueBytes(controller, buffer, offset, length);
    } else {
      if (queueLength(controller.pending) > 0) queueShift(controller.pending);
      queueShift(stream.reader.requests).chunkSteps(newBytes(buffer, offset, length));
    }
  } else if (stream.reader !== undefined) {
    enqueueBytes(controller, buffer, offset, length);
    fillPullIntos(controller);
  } else {
    enqueueBytes(controller, buffer, offset, length);
  }
  callBytePull(controller);
}

function enqueueBytes(controller, buffer, offset, length) {
  queuePush(controller.queue, { __proto__: null, buffer, offset, length });
  controller.queueSize += length;
}

function enqueueCopy(controller, buffer, offset, length) {
  const copy = new Uint8ArrayConstructor(length);
  TypedArrayPrototypeSet(copy, newBytes(buffer, offset, length));
  enqueueBytes(controller, TypedArrayPrototypeGetBuffer(copy), 0, length);
}

// Of a reader that was released: what it has read already goes back.
function enqueueDetachedPullInto(controller, descriptor) {
  if (descriptor.filled > 0) enqueueCopy(controller, descriptor.buffer, descriptor.offset, descriptor.filled);
  queueShift(controller.pending);
}

function serveDefaultRequests(controller) {
  const { reader } = controller.stream;
  while (queueLength(reader.requests) > 0) {
    if (controller.queueSize === 0) return;
    serveFromQueue(controller, queueShift(reader.requests));
  }
}

function serveFromQueue(controller, request) {
  const { buffer, offset, length } = queueShift(controller.queue);
  controller.queueSize -= length;
  afterQueue(controller);
  request.chunkSteps(newBytes(buffer, offset, length));
}

// Bytes were taken from the queue.
function afterQueue(controller) {
  if (controller.queueSize === 0 && controller.isCloseRequested) {
    clearAlgorithms(controller);
    readableClose(controller.stream);
  } else {
    callBytePull(controller);
  }
}

function byteCancelSteps(controller, reason) {
  invalidateByobRequest(controller);
  controller.pending = newQueue();
  resetQueue(controller);
  const { cancel } = controller.algorithms;
  const cancelled = cancel === undefined ? undefined : cancel(reason);
  clearAlgorithms(controller);
  return cancelled ?? RESOLVED;
}

function bytePullSteps(controller, request) {
  const { stream, autoAllocateChunkSize } = controller;
  if (controller.queueSize > 0) {
    serveFromQueue(controller, request);
    return;
  }
  if (autoAllocateChunkSize !== undefined) {
    let buffer;
    try {
      buffer = new ArrayBufferConstructor(autoAllocateChunkSize);
    } catch (error) {
      request.errorSteps(error);
      return;
    }
    queuePush(controller.pending, newPullInto(buffer, 0, autoAllocateChunkSize, 1, 1, "Uint8Array", DEFAULT));
  }
  queuePush(stream.reader.requests, request);
  callBytePull(controller);
}

function byteReleaseSteps(controller) {
  if (queueLength(controller.pending) === 0) return;
  const first = queueFirst(controller.pending);
  first.reader = NONE;
  controller.pending = newQueue();
  queuePush(controller.pending, first);
}

function newPullInto(buffer, offset, length, minimum, elementSize, kind, reader) {
  const bufferLength = ArrayBufferPrototypeGetByteLength(buffer);
  return { __proto__: null, buffer, bufferLength, offset, length, filled: 0, minimum, elementSize, kind, reader };
}

// --- reading into a reader's own buffer ---

// `minimum` counts elements.
function byobRead(reader, view, minimum, request) {
  const { stream } = reader;
  stream.isDisturbed = true;
  if (stream.state === "errored") request.errorSteps(stream.storedError);
  else bytePullInto(stream.controller, view, minimum, request);
}

function bytePullInto(controller, view, minimum, request) {
  const { stream } = controller;
  const { offset, length, elementSize, kind } = view;
  let buffer;
  try {
    buffer = ArrayBufferPrototypeTransfer(view.buffer);
  } catch (error) {
    request.errorSteps(error);
    return;
  }
  const descriptor = newPullInto(buffer, offset, length, minimum * elementSize, elementSize, kind, BYTES);
  if (queueLength(controller.pending) > 0) {
    queuePush(controller.pending, descriptor);
    queuePush(stream.reader.requests, request);
    return;
  }
  if (stream.state === "closed") {
    request.closeSteps(newView(kind, buffer, offset, 0));
    return;
  }
  if (controller.queueSize > 0) {
    if (fillFromQueue(controller, descriptor)) {
      const filled = filledView(descriptor);
      afterQueue(controller);
      request.chunkSteps(filled);
      return;
    }
    if (controller.isCloseRequested) {
      const error = new TypeErrorConstructor("The stream was closed in the middle of an element that is being read.");
      byteError(controller, error);
      request.errorSteps(error);
      return;
    }
  }
  queuePush(controller.pending, descriptor);
  queuePush(stream.reader.requests, request);
  callBytePull(controller);
}

function newView(kind, buffer, offset, length) {
  return kind === "DataView"
    ? new DataViewConstructor(buffer, offset, length)
    : ReflectConstruct(viewConstructors[kind], [buffer, offset, length]);
}

function filledView(descriptor) {
  const { kind, offset, filled, elementSize } = descriptor;
  return newView(kind, ArrayBufferPrototypeTransfer(descriptor.buffer), offset, filled / elementSize);
}

// Whether there is as much as the reader wants.
function fillFromQueue(controller, descriptor) {
  const most = MathMin(controller.queueSize, descriptor.length - descriptor.filled);
  const mostFilled = descriptor.filled + most;
  const aligned = mostFilled - (mostFilled % descriptor.elementSize);
  const isReady = mostFilled >= descriptor.minimum && aligned > 0;
  let left = isReady ? aligned - descriptor.filled : most;
  while (left > 0) {
    const head = queueFirst(controller.queue);
    const length = MathMin(left, head.length);
    const target = newBytes(descriptor.buffer, descriptor.offset + descriptor.filled, length);
    TypedArrayPrototypeSet(target, newBytes(head.buffer, head.offset, length));
    if (head.length === length) {
      queueShift(controller.queue);
    } else {
      head.offset += length;
      head.length -= length;
    }
    controller.queueSize -= length;
    descriptor.filled += length;
    left -= length;
  }
  return isReady;
}

function fillPullIntos(controller) {
  const ready = newList();
  while (queueLength(controller.pending) > 0 && controller.queueSize > 0) {
    const first = queueFirst(controller.pending);
    if (!fillFromQueue(controller, first)) break;
    queueShift(controller.pending);
    ready[ready.length] = first;
  }
  for (let index = 0; index < ready.length; index++) commitPullInto(controller.stream, ready[index]);
}

function commitPullInto(stream, descriptor) {
  const isClosed = stream.state === "closed";
  const view = filledView(descriptor);
  const request = queueShift(stream.reader.requests);
  if (isClosed) request.closeSteps(view);
  else request.chunkSteps(view);
}

// --- BYOB requests: what a source is given to write to ---

function byobRequestOf(controller) {
  if (controller.byobRequest === undefined) {
    if (queueLength(controller.pending) === 0) return null;
    const first = queueFirst(controller.pending);
    const view = newBytes(first.buffer, first.offset + first.filled, first.length - first.filled);
    const request = { __proto__: null, controller, view, object: undefined };
    request.object = new ReadableStreamBYOBRequest(INTERNAL, request);
    controller.byobRequest = request;
  }
  return controller.byobRequest.object;
}

function invalidateByobRequest(controller) {
  const request = controller.byobRequest;
  if (request === undefined) return;
  request.controller = undefined;
  request.view = null;
  controller.byobRequest = undefined;
}

function byteRespond(controller, written) {
  const first = queueFirst(controller.pending);
  if (controller.stream.state === "closed") {
    if (written !== 0) throw new TypeErrorConstructor("The stream is closed: nothing can be written any more.");
  } else {
    if (written === 0) throw new TypeErrorConstructor("At least one byte has to be written, unless the stream is closed.");
    if (first.filled + written > first.length) throw new RangeErrorConstructor("The view has not as many bytes as were written.");
  }
  first.buffer = ArrayBufferPrototypeTransfer(first.buffer);
  byteRespondInternal(controller, written);
}

function byteRespondWithNewView(controller, view) {
  const first = queueFirst(controller.pending);
  if (controller.stream.state === "closed") {
    if (view.length !== 0) throw new TypeErrorConstructor("The stream is closed: nothing can be written any more.");
  } else if (view.length === 0) {
    throw new TypeErrorConstructor("At least one byte has to be written, unless the stream is closed.");
  }
  if (first.offset + first.filled !== view.offset) throw new RangeErrorConstructor("The view begins elsewhere than the one of the request.");
  if (first.bufferLength !== view.bufferLength) throw new RangeErrorConstructor("The view's buffer has another length than the request's.");
  if (first.filled + view.length > first.length) throw new RangeErrorConstructor("The view is longer than the one of the request.");
  const written = view.length;
  first.buffer = ArrayBufferPrototypeTransfer(view.buffer);
  byteRespondInternal(controller, written);
}

function byteRespondInternal(controller, written) {
  const first = queueFirst(controller.pending);
  invalidateByobRequest(controller);
  if (controller.stream.state === "closed") respondInClosed(controller, first);
  else respondInReadable(controller, written, first);
  callBytePull(controller);
}

function respondInClosed(controller, first) {
  if (first.reader === NONE) queueShift(controller.pending);
  const { stream } = controller;
  if (stream.reader === undefined || stream.reader.kind !== BYTES) return;
  const filled = newList();
  while (filled.length < queueLength(stream.reader.requests)) filled[filled.length] = queueShift(controller.pending);
  for (let index = 0; index < filled.length; index++) commitPullInto(stream, filled[index]);
}

function respondInReadable(controller, written, descriptor) {
  descriptor.filled += written;
  if (descriptor.reader === NONE) {
    enqueueDetachedPullInto(controller, descriptor);
    fillPullIntos(controller);
    return;
  }
  if (descriptor.filled < descriptor.minimum) return;
  queueShift(controller.pending);
  const remainder = descriptor.filled % descriptor.elementSize;
  if (remainder > 0) {
    enqueueCopy(controller, descriptor.buffer, descriptor.offset + descriptor.filled - remainder, remainder);
    descriptor.filled -= remainder;
  }
  const { stream } = controller;
  if (descriptor.reader === DEFAULT) {
    queueShift(stream.reader.requests).chunkSteps(filledView(descriptor));
  } else {
    commitPullInto(stream, descriptor);
  }
  fillPullIntos(controller);
}
