// AbortController, AbortSignal (DOM standard) and scheduler.wait.
//
// Owns: what is told when a signal aborts: first our own algorithms, then listeners.
// Must never: let a signal that has aborted keep what would have been told.

// A signal's state { isAborted, reason, algorithms, sources, dependents, object }, or undefined for what is none.
let signalState;

class AbortSignal extends EventTarget {
  #state;
  static {
    signalState = (value) => (isObject(value) && #state in value ? value.#state : undefined);
  }

  // The state must not go through super(), which could be anybody's.
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
    super();
    this.#state = {
      __proto__: null,
      isAborted: false,
      reason: undefined,
      algorithms: undefined,
      sources: undefined,
      dependents: undefined,
      object: this,
    };
  }

  static abort(reason = undefined) {
    const signal = newAbortSignal();
    signal.isAborted = true;
    signal.reason = abortReason(reason);
    return signal.object;
  }

  static timeout(milliseconds) {
    requireArguments("AbortSignal.timeout", arguments.length, 1);
    const delay = toEnforcedInteger(milliseconds, NumberMaxSafeInteger, "AbortSignal.timeout: the delay");
    refuseInModuleScope();
    const signal = newAbortSignal();
    startDelay(delay, () => {
      abortSignal(signal, newDOMException("The operation was aborted due to timeout", "TimeoutError"));
    });
    return signal.object;
  }

  static any(signals) {
    requireArguments("AbortSignal.any", arguments.length, 1);
    const given = toSequence(signals, "AbortSignal.any: the argument");
    const states = newList();
    for (let index = 0; index < given.length; index++) {
      states[index] = signalState(given[index]);
      if (states[index] === undefined) throw new TypeErrorConstructor("AbortSignal.any: an element is not an AbortSignal.");
    }
    return newDependentSignal(states).object;
  }

  get aborted() {
    return this.#state.isAborted;
  }
  get reason() {
    return this.#state.reason;
  }
  throwIfAborted() {
    const state = this.#state;
    if (state.isAborted) throw state.reason;
  }
}
defineInterface("AbortSignal", AbortSignal);
defineHandler(AbortSignal.prototype, "abort");

class AbortController {
  #signal = newAbortSignal();

  constructor() {}

  get signal() {
    return this.#signal.object;
  }
  abort(reason = undefined) {
    abortSignal(this.#signal, abortReason(reason));
  }
}
defineInterface("AbortController", AbortController);

function newAbortSignal() {
  return signalState(new AbortSignal(INTERNAL));
}

function abortReason(reason) {
  return reason === undefined ? newDOMException("The operation was aborted", "AbortError") : reason;
}

// One that aborts with the first of `states`. It depends on those signals only that depend on no others themselves.
function newDependentSignal(states) {
  const signal = newAbortSignal();
  for (let index = 0; index < states.length; index++) {
    if (!states[index].isAborted) continue;
    signal.isAborted = true;
    signal.reason = states[index].reason;
    return signal;
  }
  signal.sources = newList();
  for (let index = 0; index < states.length; index++) {
    const sources = states[index].sources;
    if (sources === undefined) dependOn(signal, states[index]);
    for (let inner = 0; sources !== undefined && inner < sources.length; inner++) dependOn(signal, sources[inner]);
  }
  return signal;
}

function dependOn(signal, source) {
  for (let index = 0; index < signal.sources.length; index++) {
    if (signal.sources[index] === source) return;
  }
  signal.sources[signal.sources.length] = source;
  source.dependents = source.dependents ?? newList();
  source.dependents[source.dependents.length] = signal;
}

// All dependents have aborted before the first listener is called.
function abortSignal(signal, reason) {
  if (signal.isAborted) return;
  signal.isAborted = true;
  signal.reason = reason;
  const { dependents } = signal;
  signal.dependents = undefined;
  const told = newList();
  for (let index = 0; dependents !== undefined && index < dependents.length; index++) {
    const dependent = dependents[index];
    if (dependent.isAborted) continue;
    dependent.isAborted = true;
    dependent.reason = reason;
    told[told.length] = dependent;
  }
  tellAborted(signal);
  for (let index = 0; index < told.length; index++) tellAborted(told[index]);
}

function tellAborted(signal) {
  const { algorithms } = signal;
  signal.algorithms = undefined;
  if (algorithms !== undefined) SetPrototypeForEach(algorithms, (run) => run(signal.reason));
  if (hasListeners(signal.object, "abort")) dispatchTrusted(signal.object, new Event("abort"));
}

// Calls `run(reason)`, which must not throw, when the signal aborts; not if it has already.
function addAbortAlgorithm(signal, run) {
  if (signal.isAborted) return;
  signal.algorithms = signal.algorithms ?? new SetConstructor();
  SetPrototypeAdd(signal.algorithms, run);
}

function removeAbortAlgorithm(signal, run) {
  if (signal.algorithms !== undefined) SetPrototypeDelete(signal.algorithms, run);
}

// The state of the signal that options name, if they name one.
function toSignal(value, what) {
  if (value === undefined || value === null) return undefined;
  const state = signalState(value);
  if (state === undefined) throw new TypeErrorConstructor(what + ": the signal is not an AbortSignal.");
  return state;
}

// --- scheduler ---

class Scheduler {
  constructor(token = undefined) {
    if (token !== INTERNAL) throw illegalConstructor();
  }

  wait(delay, options = undefined) {
    const deferred = newDeferred();
    try {
      requireArguments("scheduler.wait", arguments.length, 1);
      const milliseconds = toMilliseconds(delay);
      const signal = toSignal(toDictionary(options, "scheduler.wait: the second argument").signal, "scheduler.wait");
      refuseInModuleScope();
      if (signal?.isAborted) throw signal.reason;
      const abort = (reason) => {
        cancelDelay(operation);
        deferred.reject(reason);
      };
      const operation = startDelay(milliseconds, () => {
        if (signal !== undefined) removeAbortAlgorithm(signal, abort);
        deferred.resolve();
      });
      if (signal !== undefined) addAbortAlgorithm(signal, abort);
    } catch (error) {
      deferred.reject(error);
    }
    return deferred.promise;
  }
}
defineInterface("Scheduler", Scheduler);
defineGlobal("scheduler", new Scheduler(INTERNAL));
