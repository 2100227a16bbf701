// The default controller of a ReadableStream, `ReadableStream.from`, and tee of streams that are no byte streams.
//
// Owns: when a source is asked for more: while there is less in the queue than the strategy wants, or somebody waits.

let defaultControllerState;

class ReadableStreamDefaultController {
  #controller;
  static {
    defaultControllerState = (value) => (isObject(value) && #controller in value ? value.#controller : undefined);
  }

  constructor(token = undefined, controller = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#controller = controller;
  }

  get desiredSize() {
    return desiredSizeOf(this.#controller);
  }
  close() {
    const controller = this.#controller;
    if (!canCloseOrEnqueue(controller)) throw new TypeErrorConstructor("The stream can't be closed: it is closed or errored already.");
    defaultClose(controller);
  }
  enqueue(chunk = undefined) {
    const controller = this.#controller;
    if (!canCloseOrEnqueue(controller)) throw new TypeErrorConstructor("Nothing can be enqueued: the stream is closed or errored.");
    defaultEnqueue(controller, chunk);
  }
  error(error = undefined) {
    defaultError(this.#controller, error);
  }
}
defineInterface("ReadableStreamDefaultController", ReadableStreamDefaultController);

// `algorithms` are { start, pull, cancel, size } of ours: the first three answer with a promise or undefined for one that
// is resolved, `size` with a number; each may be left out. `start` may throw.
function setUpDefaultController(stream, algorithms, highWaterMark) {
  const controller = {
    __proto__: null,
    kind: DEFAULT,
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
  };
  stream.controller = controller;
  startController(controller, callDefaultPull, defaultError);
  return controller;
}

function startController(controller, pull, fail) {
  const { start } = controller.algorithms;
  const started = start === undefined ? undefined : start(controller);
  react(
    started ?? RESOLVED,
    () => {
      controller.isStarted = true;
      pull(controller);
    },
    (error) => fail(controller, error),
  );
}

function setUpDefaultSource(stream, source, highWaterMark, size) {
  const { self, start, pull, cancel } = source;
  const objectOf = (controller) =>
    (controller.object = controller.object ?? new ReadableStreamDefaultController(INTERNAL, controller));
  setUpDefaultController(stream, sourceAlgorithms(self, start, pull, cancel, size, objectOf), highWaterMark);
}

// `objectOf(controller)` is what the source's functions are given.
function sourceAlgorithms(self, start, pull, cancel, size, objectOf) {
  return {
    __proto__: null,
    start: start === undefined ? undefined : (controller) => promiseOf(ReflectApply(start, self, [objectOf(controller)])),
    pull: pull === undefined ? undefined : (controller) => callForPromise(pull, self, [objectOf(controller)]),
    cancel: cancel === undefined ? undefined : (reason) => callForPromise(cancel, self, [reason]),
    size,
  };
}

function desiredSizeOf(controller) {
  const { state } = controller.stream;
  if (state === "errored") return null;
  return state === "closed" ? 0 : controller.highWaterMark - controller.queueSize;
}

function canCloseOrEnqueue(controller) {
  return !controller.isCloseRequested && controller.stream.state === "readable";
}

function isReadWaiting(stream, kind) {
  const { reader } = stream;
  return reader !== undefined && reader.kind === kind && queueLength(reader.requests) > 0;
}

function shouldDefaultPull(controller) {
  if (!canCloseOrEnqueue(controller) || !controller.isStarted) return false;
  return isReadWaiting(controller.stream, DEFAULT) || desiredSizeOf(controller) > 0;
}

function callDefaultPull(controller) {
  callPull(controller, shouldDefaultPull, defaultError);
}

function callPull(controller, shouldPull, fail) {
  if (!shouldPull(controller)) return;
  if (controller.isPulling) {
    controller.pullAgain = true;
    return;
  }
  controller.isPulling = true;
  const { pull } = controller.algorithms;
  const pulled = pull === undefined ? undefined : pull(controller);
  react(
    pulled ?? RESOLVED,
    () => {
      controller.isPulling = false;
      if (!controller.pullAgain) return;
      controller.pullAgain = false;
      callPull(controller, shouldPull, fail);
    },
    (error) => fail(controller, error),
  );
}

const NO_ALGORITHMS = { __proto__: null, start: undefined, pull: undefined, cancel: undefined, size: undefined };

function clearAlgorithms(controller) {
  controller.algorithms = NO_ALGORITHMS;
}

function defaultClose(controller) {
  if (!canCloseOrEnqueue(controller)) return;
  controller.isCloseRequested = true;
  if (queueLength(controller.queue) === 0) {
    clearAlgorithms(controller);
    readableClose(controller.stream);
  }
}

// Throws what the strategy's size function throws.
function defaultEnqueue(controller, chunk) {
  if (!canCloseOrEnqueue(controller)) return;
  const { stream } = controller;
  if (isReadWaiting(stream, DEFAULT)) {
    queueShift(stream.reader.requests).chunkSteps(chunk);
  } else {
    try {
      const { size } = controller.algorithms;
      enqueueWithSize(controller, chunk, size === undefined ? 1 : size(chunk));
    } catch (error) {
      defaultError(controller, error);
      throw error;
    }
  }
  callDefaultPull(controller);
}

function defaultError(controller, error) {
  if (controller.stream.state !== "readable") return;
  resetQueue(controller);
  clearAlgorithms(controller);
  readableError(controller.stream, error);
}

function defaultCancelSteps(controller, reason) {
  resetQueue(controller);
  const { cancel } = controller.algorithms;
  const cancelled = cancel === undefined ? undefined : cancel(reason);
  clearAlgorithms(controller);
  return cancelled ?? RESOLVED;
}

function defaultPullSteps(controller, request) {
  const { stream } = controller;
  if (queueLength(controller.queue) > 0) {
    const chunk = dequeue(controller);
    if (controller.isCloseRequested && queueLength(controller.queue) === 0) {
      clearAlgorithms(controller);
      readableClose(stream);
    } else {
      callDefaultPull(controller);
    }
    request.chunkSteps(chunk);
  } else {
    queuePush(stream.reader.requests, request);
    callDefaultPull(controller);
  }
}

// --- ReadableStream.from ---

function readableFrom(iterable) {
  if (!isObject(iterable) && typeof iterable !== "string") throw notIterable();
  let method = iterable[SymbolAsyncIterator];
  const isAsync = method !== undefined && method !== null;
  if (!isAsync) method = iterable[SymbolIterator];
  if (typeof method !== "function") throw notIterable();
  const iterator = ReflectApply(method, iterable, newList());
  if (!isObject(iterator)) throw new TypeErrorConstructor("ReadableStream.from: the iterator is not an object.");
  const next = iterator.next;
  const stream = newReadable();

  const pull = (controller) => {
    const pulled = newDeferred();
    const enqueue = (value) => {
      enqueueQuietly(controller, value);
      pulled.resolve();
    };
    const onStep = (step) => {
      try {
        if (!isObject(step)) throw notAnAnswer();
        if (step.done) {
          defaultClose(controller);
          pulled.resolve();
        } else if (isAsync) {
          enqueue(step.value);
        } else {
          react(promiseOf(step.value), enqueue, pulled.reject);
        }
      } catch (error) {
        pulled.reject(error);
      }
    };
    react(callForPromise(next, iterator, newList()), onStep, pulled.reject);
    return pulled.promise;
  };

  const cancel = (reason) => {
    let finish;
    try {
      finish = iterator.return;
    } catch (error) {
      return PromiseReject(error);
    }
    if (finish === undefined || finish === null) return undefined;
    const cancelled = newDeferred();
    const onAnswer = (answer) => (isObject(answer) ? cancelled.resolve() : cancelled.reject(notAnAnswer()));
    react(callForPromise(finish, iterator, [reason]), onAnswer, cancelled.reject);
    return cancelled.promise;
  };

  setUpDefaultController(stream, { __proto__: null, start: undefined, pull, cancel, size: undefined }, 0);
  return stream.object;
}

function notAnAnswer() {
  return new TypeErrorConstructor("ReadableStream.from: what the iterator answered is not an object.");
}

function notIterable() {
  return new TypeErrorConstructor("ReadableStream.from: the argument is not iterable.");
}

// --- tee ---

// Two streams of one. `cloneForSecond` gives the second copies, so that they have nothing in common.
function readableTee(stream, cloneForSecond) {
  if (stream.controller.kind === BYTES) return byteTee(stream);
  const reader = acquireReader(stream, DEFAULT);
  const branches = listOfTwo(newReadable(), newReadable());
  const tee = newTee(reader);
  let isReading = false;
  let readAgain = false;
  const pull = () => {
    if (isReading) {
      readAgain = true;
      return undefined;
    }
    isReading = true;
    const request = newReadRequest(
      (chunk) =>
        QueueMicrotask(() => {
          readAgain = false;
          const copy = cloneForSecond ? cloneChunk(chunk) : chunk;
          if (!tee.isCanceled[0]) enqueueQuietly(branches[0].controller, chunk);
          if (!tee.isCanceled[1]) enqueueQuietly(branches[1].controller, copy);
          isReading = false;
          if (readAgain) pull();
        }),
      () => {
        isReading = false;
        if (!tee.isCanceled[0]) defaultClose(branches[0].controller);
        if (!tee.isCanceled[1]) defaultClose(branches[1].controller);
        if (!tee.isCanceled[0] || !tee.isCanceled[1]) tee.cancelled.resolve();
      },
      () => {
        isReading = false;
      },
    );
    readerRead(reader, request);
    return undefined;
  };
  for (let index = 0; index < 2; index++) {
    const cancel = (reason) => teeCancel(tee, index, reason);
    setUpDefaultController(branches[index], { __proto__: null, start: undefined, pull, cancel, size: undefined }, 1);
  }
  react(readerClosed(reader), ignore, (error) => {
    defaultError(branches[0].controller, error);
    defaultError(branches[1].controller, error);
    if (!tee.isCanceled[0] || !tee.isCanceled[1]) tee.cancelled.resolve();
  });
  return branches;
}

function newTee(reader) {
  const tee = { __proto__: null, reader, isCanceled: listOfTwo(false, false), reasons: listOfTwo(undefined, undefined) };
  tee.cancelled = newDeferred();
  return tee;
}

// The stream is cancelled when both of its branches are.
function teeCancel(tee, index, reason) {
  tee.isCanceled[index] = true;
  tee.reasons[index] = reason;
  if (tee.isCanceled[1 - index]) {
    const both = toArray(tee.reasons);
    react(readableCancel(tee.reader.stream, both), tee.cancelled.resolve, tee.cancelled.reject);
  }
  return tee.cancelled.promise;
}

function enqueueQuietly(controller, chunk) {
  try {
    defaultEnqueue(controller, chunk);
  } catch {
    // The stream has the error.
  }
}

// What tee of a body copies: bytes, as what they are. Other chunks the body would refuse anyway.
function cloneChunk(chunk) {
  const bytes = bytesOf(chunk);
  if (bytes === undefined) return chunk;
  const buffer = TypedArrayPrototypeGetBuffer(copyBytes(bytes));
  if (!ArrayBufferIsView(chunk)) return buffer;
  const { kind, length, elementSize } = toView(chunk, "tee");
  return newView(kind, buffer, 0, length / elementSize);
}
