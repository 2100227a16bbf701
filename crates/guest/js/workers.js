// The module "cloudflare:workers": base classes that mark what can be called, and `env`.
//
// Owns: the env object, which is one and the same in the module and in every handler's arguments.

class WorkerEntrypoint {
  constructor(ctx, env) {
    // Defined, not set: a class may have accessors of these names.
    ObjectDefineProperty(this, "ctx", dataProperty(ctx));
    ObjectDefineProperty(this, "env", dataProperty(env));
  }
}

// There are no Durable Objects here. The class is, because code that has one besides its entrypoints is to run.
class DurableObject {
  constructor(ctx, env) {
    ObjectDefineProperty(this, "ctx", dataProperty(ctx));
    ObjectDefineProperty(this, "env", dataProperty(env));
  }
}

const env = {};
const WorkerEntrypointPrototype = WorkerEntrypoint.prototype;

// Evaluated once, before the snapshot. `import.meta` of that module is its own.
const workersModuleSource =
  "const { WorkerEntrypoint, DurableObject, RpcTarget, RpcStub, RpcPromise, RpcProperty, env, exports, waitUntil, abortIsolate } = import.meta.exports;\n" +
  "export { WorkerEntrypoint, DurableObject, RpcTarget, RpcStub, RpcPromise, RpcProperty, env, exports, waitUntil, abortIsolate };\n";

// Of the call whose entry it is called in.
function waitUntil(promise) {
  holdUntil(0, promise);
}

// `ctx.exports`: a stub for each export of the main module that can be called. Made when it is first looked at, because
// hardly any worker does.
const ownExports = new ProxyConstructor({}, {
  __proto__: null,
  get: (exports, name) => filledExports(exports)[name],
  has: (exports, name) => ReflectHas(filledExports(exports), name),
  ownKeys: (exports) => ReflectOwnKeys(filledExports(exports)),
  getOwnPropertyDescriptor: (exports, name) => ReflectGetOwnPropertyDescriptor(filledExports(exports), name),
});
let exportsFilled = false;

function filledExports(exports) {
  if (exportsFilled || mainNamespace === undefined) return exports;
  exportsFilled = true;
  fillExports(exports, mainNamespace);
  return exports;
}

// Ends the isolate, and every call in it with this.
function abortIsolate(reason) {
  refuseInModuleScope();
  host.abort(reason === undefined ? new ErrorConstructor("The isolate was aborted.") : new ErrorConstructor(StringConstructor(reason)));
}

const workersModuleExports = {
  WorkerEntrypoint,
  DurableObject,
  RpcTarget,
  RpcStub,
  RpcPromise,
  RpcProperty,
  env,
  exports: ownExports,
  waitUntil,
  abortIsolate,
};

function fillEnv(bindings, stubs) {
  for (let index = 0; index < stubs.length; index++) markBinding(stubs[index]);
  if (bindings === undefined) return;
  const names = ObjectKeys(bindings);
  for (let index = 0; index < names.length; index++) {
    ObjectDefineProperty(env, names[index], dataProperty(bindings[names[index]]));
  }
}
