// TransformStream (Streams standard).
//
// Owns: the back-pressure from the readable to the writable side. A transform of ours has algorithms instead of a
// worker's transformer.

let transformState;
let setTransformState;

class TransformStream {
  #state;
  static {
    transformState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
    setTransformState = (object, state) => (object.#state = state);
  }

  constructor(transformer = undefined, writableStrategy = undefined, readableStrategy = undefined) {
    const what = "TransformStream: the transformer";
    const givenWritable = toStrategy(writableStrategy, "TransformStream");
    const givenReadable = toStrategy(readableStrategy, "TransformStream");
    if (transformer !== undefined && !isObject(transformer)) throw new TypeErrorConstructor(what + " is not an object.");
    const members = transformer ?? NO_MEMBERS;
    const cancel = toMethod(members, "cancel", what);
    const flush = toMethod(members, "flush", what);
    if (members.readableType !== undefined) throw new RangeErrorConstructor(what + " must have no readableType.");
    const start = toMethod(members, "start", what);
    const transform = toMethod(members, "transform", what);
    if (members.writableType !== undefined) throw new RangeErrorConstructor(what + " must have no writableType.");
    const readableHighWaterMark = highWaterMarkOf(givenReadable, 0);
    const readableSize = sizeOf(givenReadable);
    const writableHighWaterMark = highWaterMarkOf(givenWritable, 1);
    const writableSize = sizeOf(givenWritable);
    const started = newDeferred();
    const algorithms = {
      __proto__: null,
      transform: transform === undefined ? undefined : (chunk, it) => callForPromise(transform, transformer, [chunk, it.object]),
      flush: flush === undefined ? undefined : (it) => callForPromise(flush, transformer, [it.object]),
      cancel: cancel === undefined ? undefined : (reason) => callForPromise(cancel, transformer, [reason]),
    };
    const state = newTransformState(algorithms, started.promise, writableHighWaterMark, writableSize, readableHighWaterMark, readableSize);
    this.#state = state;
    state.object = new TransformStreamDefaultController(INTERNAL, state);
    started.resolve(start === undefined ? undefined : ReflectApply(start, transformer, [state.object]));
  }

  get readable() {
    return this.#state.readable.object;
  }
  get writable() {
    return this.#state.writable.object;
  }
}
defineInterface("TransformStream", TransformStream);

let transformControllerState;

class TransformStreamDefaultController {
  #state;
  static {
    transformControllerState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  constructor(token = undefined, state = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    this.#state = state;
  }

  get desiredSize() {
    return desiredSizeOf(this.#state.readable.controller);
  }
  enqueue(chunk = undefined) {
    transformEnqueue(this.#state, chunk);
  }
  error(reason = undefined) {
    transformError(this.#state, reason);
  }
  terminate() {
    transformTerminate(this.#state);
  }
}
defineInterface("TransformStreamDefaultController", TransformStreamDefaultController);

// The record of a transform is also that of its controller. `algorithms` are { transform(chunk, it), flush(it),
// cancel(reason) } of ours: each answers with a promise, or undefined for one that is resolved, and may be left out.
// `started` is a promise.
function newTransformState(algorithms, started, writableHighWaterMark, writableSize, readableHighWaterMark, readableSize) {
  const state = {
    __proto__: null,
    object: undefined,
    algorithms,
    readable: newReadable(),
    writable: newWritable(),
    hasBackpressure: undefined,
    backpressureChange: undefined,
    finishing: undefined,
  };
  const start = () => started;
  setUpWritableController(
    state.writable,
    {
      __proto__: null,
      start,
      write: (chunk) => transformWrite(state, chunk),
      close: () => transformClose(state),
      abort: (reason) => transformAbort(state, reason),
      size: writableSize,
    },
    writableHighWaterMark,
  );
  setUpDefaultController(
    state.readable,
    {
      __proto__: null,
      start,
      pull: () => {
        setBackpressure(state, false);
        return state.backpressureChange.promise;
      },
      cancel: (reason) => transformCancel(state, reason),
      size: readableSize,
    },
    readableHighWaterMark,
  );
  setBackpressure(state, true);
  return state;
}

// One whose algorithms may throw instead of answering with a rejected promise, and that has the usual strategies.
function newTransform(transform, flush, cancel) {
  const safely = (run) =>
    run === undefined
      ? undefined
      : (first, second) => {
          try {
            return run(first, second);
          } catch (error) {
            return PromiseReject(error);
          }
        };
  const algorithms = { __proto__: null, transform: safely(transform), flush: safely(flush), cancel: safely(cancel) };
  return newTransformState(algorithms, RESOLVED, 1, undefined, 0, undefined);
}

function transformError(state, error) {
  defaultError(state.readable.controller, error);
  transformErrorWritable(state, error);
}

function transformErrorWritable(state, error) {
  clearTransform(state);
  writableErrorIfNeeded(state.writable.controller, error);
  unblockWrite(state);
}

function unblockWrite(state) {
  if (state.hasBackpressure) setBackpressure(state, false);
}

function clearTransform(state) {
  state.algorithms = NO_ALGORITHMS;
}

function setBackpressure(state, hasBackpressure) {
  if (state.backpressureChange !== undefined) state.backpressureChange.resolve();
  state.backpressureChange = newDeferred();
  state.hasBackpressure = hasBackpressure;
}

function transformEnqueue(state, chunk) {
  const { controller } = state.readable;
  if (!canCloseOrEnqueue(controller)) {
    throw new TypeErrorConstructor("Nothing can be enqueued: the readable side is closed or errored.");
  }
  try {
    defaultEnqueue(controller, chunk);
  } catch (error) {
    transformErrorWritable(state, error);
    throw state.readable.storedError;
  }
  const hasBackpressure = !shouldDefaultPull(controller);
  if (hasBackpressure !== state.hasBackpressure) setBackpressure(state, true);
}

function transformTerminate(state) {
  defaultClose(state.readable.controller);
  transformErrorWritable(state, new TypeErrorConstructor("The transform was terminated."));
}

function performTransform(state, chunk) {
  const { transform } = state.algorithms;
  let transformed;
  if (transform !== undefined) {
    transformed = transform(chunk, state);
  } else {
    try {
      transformEnqueue(state, chunk);
    } catch (error) {
      transformed = PromiseReject(error);
    }
  }
  const deferred = newDeferred();
  react(
    transformed ?? RESOLVED,
    () => deferred.resolve(),
    (error) => {
      transformError(state, error);
      deferred.reject(error);
    },
  );
  return deferred.promise;
}

// --- what the two sides call ---

function transformWrite(state, chunk) {
  if (!state.hasBackpressure) return performTransform(state, chunk);
  const deferred = newDeferred();
  react(
    state.backpressureChange.promise,
    () => {
      const { writable } = state;
      if (writable.state === "erroring") deferred.reject(writable.storedError);
      else react(performTransform(state, chunk), () => deferred.resolve(), deferred.reject);
    },
    deferred.reject,
  );
  return deferred.promise;
}

// The first of abort, cancel and close is the one that counts.
function finishOnce(state, run, onDone, onError) {
  if (state.finishing !== undefined) return state.finishing.promise;
  const finishing = newDeferred();
  state.finishing = finishing;
  const finished = run();
  clearTransform(state);
  react(
    finished ?? RESOLVED,
    () => onDone(finishing),
    (error) => onError(finishing, error),
  );
  return finishing.promise;
}

function transformAbort(state, reason) {
  const { readable } = state;
  const { cancel } = state.algorithms;
  return finishOnce(
    state,
    () => (cancel === undefined ? undefined : cancel(reason)),
    (finishing) => {
      if (readable.state === "errored") {
        finishing.reject(readable.storedError);
        return;
      }
      defaultError(readable.controller, reason);
      finishing.resolve();
    },
    (finishing, error) => {
      defaultError(readable.controller, error);
      finishing.reject(error);
    },
  );
}

function transformClose(state) {
  const { readable } = state;
  const { flush } = state.algorithms;
  return finishOnce(
    state,
    () => (flush === undefined ? undefined : flush(state)),
    (finishing) => {
      if (readable.state === "errored") {
        finishing.reject(readable.storedError);
        return;
      }
      defaultClose(readable.controller);
      finishing.resolve();
    },
    (finishing, error) => {
      defaultError(readable.controller, error);
      finishing.reject(error);
    },
  );
}

function transformCancel(state, reason) {
  const { writable } = state;
  const { cancel } = state.algorithms;
  return finishOnce(
    state,
    () => (cancel === undefined ? undefined : cancel(reason)),
    (finishing) => {
      if (writable.state === "errored") {
        finishing.reject(writable.storedError);
        return;
      }
      writableErrorIfNeeded(writable.controller, reason);
      unblockWrite(state);
      finishing.resolve();
    },
    (finishing, error) => {
      writableErrorIfNeeded(writable.controller, error);
      unblockWrite(state);
      finishing.reject(error);
    },
  );
}
