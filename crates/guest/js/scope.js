// Module scope: what Workers allow only inside a handler is refused while the modules are evaluated.
//
// Owns: whether the modules are being evaluated, the refusal, and what waits for the host. The refusal is
// what makes a loaded isolate's memory independent of the time and the network at which it was loaded.

let loading = false;

function setLoading(value) {
  loading = value;
}

function refuseInModuleScope() {
  if (loading) {
    throw new ErrorConstructor(
      "Disallowed operation called within global scope. Asynchronous I/O (ex: fetch() or connect()), setting a " +
        "timeout, and generating random values are not allowed within global scope. To fix this error, perform this " +
        "operation within a handler.",
    );
  }
}

// Defines a global as the web platform does: writable, configurable, not enumerable.
function defineGlobal(name, value) {
  ObjectDefineProperty(globalObject, name, {
    __proto__: null,
    value,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

// What waits for a host operation, by the operation's id: { run(kind, …), timer }, with a null prototype.
// `timer` is the id of the timer that waits, or 0.
const waiting = ObjectCreate(null);

// The import that requests go to, as crates/abi has it.
const OUTBOUND = 0;

// A host operation is done.
function settleOperation(operation, kind, value, more, message) {
  const waiter = waiting[operation];
  if (waiter === undefined) return;
  delete waiting[operation];
  try {
    waiter.run(kind, value, more, message);
  } catch (error) {
    reportUncaught(error, false);
  }
}

// A host operation will not be done: the invocation that started it is over.
function forgetOperation(operation) {
  if (forgetHold(operation)) return;
  const waiter = waiting[operation];
  if (waiter === undefined) return;
  delete waiting[operation];
  if (waiter.timer !== 0) delete timerOperations[waiter.timer];
}

// An error that nobody handles.
function reportUncaught(error, inPromise) {
  host.log(CONSOLE_ERROR, (inPromise ? "Uncaught (in promise) " : "Uncaught ") + inspect(error));
}
