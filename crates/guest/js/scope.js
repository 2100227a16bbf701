
// Intrinsics that only the files from here on use; see primordials.js.
const BigIntFunction = BigInt;
const BigIntPrototypeToString = uncurry(BigInt.prototype.toString);
const MapPrototypeForEach = uncurry(Map.prototype.forEach);
const NumberPrototypeToString = uncurry(Number.prototype.toString);
const ObjectFunction = Object;
const PromiseReject = Promise.reject.bind(Promise);
const PromiseResolve = Promise.resolve.bind(Promise);
const RegExpConstructor = RegExp;
const SetConstructor = Set;
const SetPrototypeAdd = uncurry(Set.prototype.add);
const SetPrototypeForEach = uncurry(Set.prototype.forEach);

// Module scope: what Workers allow only inside a handler is refused while the modules are evaluated.
//
// Owns: whether the modules are being evaluated, and the refusal. This is what makes a loaded isolate's memory
// independent of the time and the network at which it was loaded.

let loading = false;

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
  ObjectDefineProperty(globalThis, name, {
    __proto__: null,
    value,
    writable: true,
    enumerable: false,
    configurable: true,
  });
}

// The host's promises: what waits for an operation of the host's, by the operation's id.
const waiting = ObjectCreate(null);
