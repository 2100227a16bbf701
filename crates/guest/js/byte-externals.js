// Byte streams that are passed by reference, and what stands for one that is somewhere else.
//
// Owns: the objects that others pull from and write to, and the sources and sinks over what others gave.
// Must never: pull before somebody reads, or let go of a stream's far end before it is over.
//
// What a source and a sink can be asked is in schema/value.md. A stream holds the invocation that gave it out, because what
// feeds it may wait for timers and calls of that invocation.

const PIECE_BYTES_MAX = 1048576;

class StreamSource extends RpcTarget {
  #source;
  #hold = holdInvocation(0);
  #isOver = false;
  #isPulling = false;

  constructor(source) {
    super();
    this.#source = source;
  }

  pull(bytesMax) {
    if (this.#isOver) return undefined;
    if (this.#isPulling) throw new TypeErrorConstructor("This stream is being pulled already.");
    const most = +bytesMax >= 1 ? MathMin(MathFloor(+bytesMax), PIECE_BYTES_MAX) : PIECE_BYTES_MAX;
    this.#isPulling = true;
    const deferred = newDeferred();
    react(
      this.#source.pull(most),
      (bytes) => {
        this.#isPulling = false;
        if (bytes === undefined) this.#end();
        deferred.resolve(bytes);
      },
      (error) => {
        this.#isPulling = false;
        this.#end();
        deferred.reject(error);
      },
    );
    return deferred.promise;
  }

  cancel(reason) {
    if (this.#isOver) return undefined;
    this.#end();
    return this.#source.cancel(reason);
  }

  [SymbolDispose]() {
    const cancelled = this.cancel(new ErrorConstructor("Nobody reads this stream any more."));
    if (cancelled !== undefined) markHandled(cancelled);
  }

  #end() {
    this.#isOver = true;
    endHold(this.#hold);
  }
}

class StreamSink extends RpcTarget {
  #sink;
  #hold = holdInvocation(0);
  #isOver = false;

  constructor(sink) {
    super();
    this.#sink = sink;
  }

  write(bytes) {
    if (this.#isOver) throw new TypeErrorConstructor("This stream is closed.");
    if (TypedArrayPrototypeGetToStringTag(bytes) !== "Uint8Array") {
      throw new TypeErrorConstructor("A byte stream takes a Uint8Array.");
    }
    return this.#sink.write(bytes);
  }

  close() {
    if (this.#isOver) return undefined;
    this.#end();
    return this.#sink.close();
  }

  abort(reason) {
    if (this.#isOver) return undefined;
    this.#end();
    return this.#sink.abort(reason);
  }

  [SymbolDispose]() {
    const aborted = this.abort(new ErrorConstructor("Nobody writes to this stream any more."));
    if (aborted !== undefined) markHandled(aborted);
  }

  #end() {
    this.#isOver = true;
    endHold(this.#hold);
  }
}

// The far end of a stream: `hook` is what it is reached by, and is let go of when the stream is over.
function farEnd(hook) {
  let isOver = false;
  return {
    __proto__: null,
    call(name, argument) {
      const path = newList();
      path[0] = name;
      const args = newList();
      if (argument !== undefined) args[0] = argument;
      return start(hook, path, false, args, true).promise;
    },
    end() {
      if (isOver) return;
      isOver = true;
      letHookGo(hook);
    },
  };
}

// Settles as the last call to the far end does, which is then let go of.
function lastCall(far, name, argument) {
  const deferred = newDeferred();
  react(
    far.call(name, argument),
    () => {
      far.end();
      deferred.resolve(undefined);
    },
    (error) => {
      far.end();
      deferred.reject(error);
    },
  );
  return deferred.promise;
}

function sourceBehind(hook) {
  const far = farEnd(hook);
  return {
    __proto__: null,
    pull(bytesMax) {
      const deferred = newDeferred();
      react(
        far.call("pull", bytesMax),
        (bytes) => {
          if (bytes === undefined) {
            far.end();
            deferred.resolve(undefined);
            return;
          }
          const isBytes = TypedArrayPrototypeGetToStringTag(bytes) === "Uint8Array";
          const length = isBytes ? TypedArrayPrototypeGetByteLength(bytes) : 0;
          if (length >= 1 && length <= bytesMax) {
            deferred.resolve(answerable(bytes));
            return;
          }
          far.end();
          deferred.reject(
            new TypeErrorConstructor("ReadableStream received over RPC sent something else than the bytes it was asked for."),
          );
        },
        (error) => {
          far.end();
          deferred.reject(error);
        },
      );
      return deferred.promise;
    },
    cancel: (reason) => lastCall(far, "cancel", reason),
  };
}

function sinkBehind(hook) {
  const far = farEnd(hook);
  return {
    __proto__: null,
    write: (bytes) => far.call("write", bytes),
    close: () => lastCall(far, "close", undefined),
    abort: (reason) => lastCall(far, "abort", reason),
  };
}
