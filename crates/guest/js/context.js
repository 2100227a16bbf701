// `ctx`: what a call is told of itself, and what it may ask for.
//
// Must never: give away which invocation it is of.

const contextKey = ObjectCreate(null);

class ExecutionContext {
  #invocation;

  constructor(key, invocation, props) {
    if (key !== contextKey) throw new TypeErrorConstructor("Illegal constructor");
    this.#invocation = invocation;
    ObjectDefineProperty(this, "props", dataProperty(props ?? {}));
    ObjectDefineProperty(this, "exports", dataProperty(ownExports));
  }

  waitUntil(promise) {
    if (!(#invocation in this)) throw illegalInvocation();
    holdUntil(this.#invocation, promise);
  }

  passThroughOnException() {
    if (!(#invocation in this)) throw illegalInvocation();
  }

  abort(reason) {
    if (!(#invocation in this)) throw illegalInvocation();
    host.abort(reason === undefined ? new ErrorConstructor("The execution context was aborted.") : reason);
  }
}
ObjectDefineProperty(ExecutionContext.prototype, SymbolToStringTag, {
  __proto__: null,
  value: "ExecutionContext",
  configurable: true,
});

// 0 stands for whichever invocation is running.
function makeContext(props, invocation) {
  return new ExecutionContext(contextKey, invocation, props);
}
