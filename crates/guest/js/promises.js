// Waiting for what a worker returns.
//
// Owns: `settle`, the only place where the prelude waits for what may be a promise, and `react`, where it waits for one
// of its own.
// Must never: let what the worker did to Promise.prototype or Object.prototype keep a result from arriving,
// or hand one of our promises out.
//
// `await` asks a promise for its `constructor`, and where that is not Promise, for its `then`; an async
// function that returns a value asks the value for its `then`. Workers may have put anything there. So
// nothing is returned from an async function of ours, and a promise whose class is plain Promise answers
// for its constructor itself while it is asked.

// Calls `onValue(state, value)` or `onError(state, error)` once `value` is settled.
async function awaitAndCall(value, onValue, onError, state) {
  let settled;
  try {
    settled = await value;
  } catch (error) {
    onError(state, error);
    return;
  }
  onValue(state, settled);
}

function settle(value, onValue, onError, state) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) {
    onValue(state, value);
  } else if (isPatched() && isPlainPromise(value)) {
    const isDefined = ReflectDefineProperty(value, "constructor", {
      __proto__: null,
      value: PromiseConstructor,
      configurable: true,
    });
    awaitAndCall(value, onValue, onError, state);
    if (isDefined) ReflectDeleteProperty(value, "constructor");
  } else {
    awaitAndCall(value, onValue, onError, state);
  }
}

// Whether a worker has changed what promises answer for their constructor. A getter that it put there runs, and learns
// nothing by that.
function isPatched() {
  try {
    return PromisePrototype.constructor !== PromiseConstructor;
  } catch {
    return true;
  }
}

function isPlainPromise(value) {
  if (!host.isPromise(value)) return false;
  return ReflectGetPrototypeOf(value) === PromisePrototype && !ObjectHasOwn(value, "constructor");
}

// --- promises of our own ---

function newDeferred() {
  const deferred = { __proto__: null, promise: undefined, resolve: undefined, reject: undefined };
  deferred.promise = new PromiseConstructor((resolve, reject) => {
    deferred.resolve = resolve;
    deferred.reject = reject;
  });
  return deferred;
}

// Calls one of two functions of ours, which must not throw, once `promise` is settled. It is a plain promise that we have
// made. `then` asks it for a class to make another of; nobody answers where its constructor is undefined.
function react(promise, onValue, onError) {
  if (!isPatched() && !isSpeciesPatched()) {
    PromisePrototypeThen(promise, onValue, onError);
    return;
  }
  const isDefined = ReflectDefineProperty(promise, "constructor", {
    __proto__: null,
    value: undefined,
    configurable: true,
  });
  PromisePrototypeThen(promise, onValue, onError);
  if (isDefined) ReflectDeleteProperty(promise, "constructor");
}

function isSpeciesPatched() {
  try {
    return PromiseConstructor[SymbolSpecies] !== PromiseConstructor;
  } catch {
    return true;
  }
}

// That it rejects is no news.
function markHandled(promise) {
  react(promise, undefined, ignore);
}

function ignore() {}

// A promise of what a function of the worker's returned, as Web IDL makes it.
function promiseOf(value) {
  return new PromiseConstructor((resolve) => resolve(value));
}
