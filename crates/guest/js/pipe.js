// Piping a readable stream to a writable one (Streams standard).
//
// Owns: the order in which either side hears of the other's end. A chunk is read only where it can be written at once.

// { preventAbort, preventCancel, preventClose, signal } with the signal's record or undefined.
function toPipeOptions(value, what) {
  const members = toDictionary(value, what + ": the options");
  const preventAbort = !!members.preventAbort;
  const preventCancel = !!members.preventCancel;
  const preventClose = !!members.preventClose;
  const { signal } = members;
  const state = signal === undefined ? undefined : signalState(signal);
  if (signal !== undefined && state === undefined) throw new TypeErrorConstructor(what + ": the signal is not an AbortSignal.");
  return { __proto__: null, preventAbort, preventCancel, preventClose, signal: state };
}

const PIPE_OPTIONS = { __proto__: null, preventAbort: false, preventCancel: false, preventClose: false, signal: undefined };

// A chunk that a transform passes on at once is written to the next pipe within the write to this one, and so on through a
// chain: after so many, the next one waits its turn, for a chain may be longer than the stack.
const PIPE_NESTING_MAX = 8;
let pipeNesting = 0;

// A promise that is settled when all is done.
function pipe(source, destination, options) {
  const { preventAbort, preventCancel, preventClose, signal } = options;
  const reader = acquireReader(source, DEFAULT);
  const writer = acquireWriter(destination);
  source.isDisturbed = true;
  const done = newDeferred();
  let isShuttingDown = false;
  let currentWrite = RESOLVED;

  const finish = (isError, error) => {
    writerRelease(writer);
    readerRelease(reader);
    if (signal !== undefined) removeAbortAlgorithm(signal, abort);
    if (isError) done.reject(error);
    else done.resolve();
  };

  // Calls `next` when all that was read is written.
  const afterWrites = (next) => {
    const last = currentWrite;
    const go = () => (last === currentWrite ? next() : afterWrites(next));
    react(last, go, go);
  };

  // `action` answers with a promise, or is undefined.
  const shutDown = (action, isError, error) => {
    if (isShuttingDown) return;
    isShuttingDown = true;
    const act = () => {
      if (action === undefined) return finish(isError, error);
      react(action(), () => finish(isError, error), (newError) => finish(true, newError));
    };
    if (destination.state === "writable" && !isCloseQueuedOrInFlight(destination)) afterWrites(act);
    else act();
  };

  const abort = () => {
    const { reason } = signal;
    const both = () => {
      const aborted = !preventAbort && destination.state === "writable" ? writableAbort(destination, reason) : RESOLVED;
      const cancelled = !preventCancel && source.state === "readable" ? readableCancel(source, reason) : RESOLVED;
      return bothOf(aborted, cancelled);
    };
    shutDown(both, true, reason);
  };
  if (signal !== undefined) {
    if (signal.isAborted) {
      abort();
      return done.promise;
    }
    addAbortAlgorithm(signal, abort);
  }

  const onSourceError = (error) => shutDown(preventAbort ? undefined : () => writableAbort(destination, error), true, error);
  const onDestinationError = (error) => shutDown(preventCancel ? undefined : () => readableCancel(source, error), true, error);
  const onSourceClosed = () => shutDown(preventClose ? undefined : () => writerCloseWithErrorPropagation(writer), false);

  if (source.state === "errored") onSourceError(source.storedError);
  else react(readerClosed(reader), ignore, onSourceError);
  if (destination.state === "errored") onDestinationError(destination.storedError);
  else react(writer.closed.promise, ignore, onDestinationError);
  if (source.state === "closed") onSourceClosed();
  else react(readerClosed(reader), onSourceClosed, ignore);
  if (isCloseQueuedOrInFlight(destination) || destination.state === "closed") {
    const error = new TypeErrorConstructor("The destination of the pipe is closed, or about to be.");
    shutDown(preventCancel ? undefined : () => readableCancel(source, error), true, error);
  }

  const write = (chunk) => {
    currentWrite = writerWrite(writer, chunk);
    markHandled(currentWrite);
    QueueMicrotask(step);
  };
  const request = newReadRequest(
    (chunk) => {
      if (pipeNesting < PIPE_NESTING_MAX) {
        pipeNesting++;
        try {
          write(chunk);
        } finally {
          pipeNesting--;
        }
        return;
      }
      // It counts as being written from now on: nothing overtakes it.
      const later = newDeferred();
      currentWrite = later.promise;
      QueueMicrotask(() => {
        if (writer.stream !== undefined) write(chunk);
        react(currentWrite, later.resolve, later.resolve);
      });
    },
    ignore,
    ignore,
  );
  const step = () => {
    if (isShuttingDown) return;
    const { ready } = writer;
    if (ready.isPending) react(ready.promise, step, ignore);
    else if (writerDesiredSize(writer) > 0) readerRead(reader, request);
    else react(ready.promise, step, ignore);
  };
  react(RESOLVED, step, ignore);
  return done.promise;
}

// A promise that is settled with two others: with the first error, or when both are done.
function bothOf(first, second) {
  const deferred = newDeferred();
  let waiting = 2;
  const onDone = () => {
    waiting--;
    if (waiting === 0) deferred.resolve();
  };
  react(first, onDone, deferred.reject);
  react(second, onDone, deferred.reject);
  return deferred.promise;
}
