// Waiting for what a worker returns.
//
// Owns: `settle`, the only place where the prelude waits for a promise.
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
