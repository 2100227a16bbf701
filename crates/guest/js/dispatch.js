// Calls from outside: finding the callee by the rules of Workers RPC, calling it, reporting what came of it.
//
// Owns: the hooks that the Rust core calls, and the rules of what is visible from outside.
// Must never: let a call through to something that Workers RPC hides, or throw at the core.

const PATH_LENGTH_MAX = 64;

const reservedMethods = {
  __proto__: null,
  fetch: true,
  connect: true,
  alarm: true,
  webSocketMessage: true,
  webSocketClose: true,
  webSocketError: true,
  dup: true,
  constructor: true,
};

const notImplemented = (name) =>
  new TypeErrorConstructor('The RPC receiver does not implement the method "' + name + '".');

const reserved = (name) =>
  new TypeErrorConstructor("'" + name + "' is a reserved method and cannot be called over RPC.");

const wrongArity = (name) =>
  new TypeErrorConstructor(
    'Attempted to call RPC function "' +
      name +
      '" with the wrong number of arguments. When calling a top-level handler function that is not declared as part ' +
      "of a class, you must always send exactly one argument. In order to support variable numbers of arguments, the " +
      "server must use class-based syntax (extending WorkerEntrypoint) instead.",
  );

const tooManyParameters = (name) =>
  new TypeErrorConstructor(
    'Cannot call handler function "' +
      name +
      '" over RPC because it has the wrong number of arguments. A simple function handler can only be called over RPC ' +
      "if it has exactly the arguments (arg, env, ctx), where only the first argument comes from the client. To " +
      "support multi-argument RPC functions, use class-based syntax (extending WorkerEntrypoint) instead.",
  );

function inherits(object, prototype) {
  for (let it = ReflectGetPrototypeOf(object); it !== null; it = ReflectGetPrototypeOf(it)) {
    if (it === prototype) return true;
  }
  return false;
}

function isEntrypointClass(value) {
  if (typeof value !== "function") return false;
  const prototype = ownData(value, "prototype");
  return typeof prototype === "object" && prototype !== null && inherits(prototype, WorkerEntrypointPrototype);
}

function findEntrypoint(namespace, name) {
  if (!ObjectHasOwn(namespace, name)) {
    throw new ErrorConstructor(
      name === "default"
        ? "Worker has no default entrypoint: the main module has no default export."
        : "Worker has no such entrypoint: " + name,
    );
  }
  const exported = namespace[name];
  if (isEntrypointClass(exported) || (typeof exported === "object" && exported !== null)) return exported;
  let kind = exported === null ? "null" : typeof exported;
  if (kind === "function") kind = "a function or a class that does not extend WorkerEntrypoint";
  throw new TypeErrorConstructor(
    'The export "' +
      name +
      "\" can't be an entrypoint: it is " +
      kind +
      ". Export an object with methods, or a class that extends WorkerEntrypoint from \"cloudflare:workers\".",
  );
}

// Of instances callers see what their classes define: never what is on the instance itself, which would show private
// state that was only forgotten to be made private, and nothing of `base` or Object.prototype.
function visibleOfInstance(instance, name, base) {
  if (ObjectHasOwn(instance, name)) throw notImplemented(name);
  for (let it = ReflectGetPrototypeOf(instance); it !== null && it !== base && it !== ObjectPrototype; ) {
    if (ObjectHasOwn(it, name)) {
      // What can only be set is not there for those who call and read.
      const property = ReflectGetOwnPropertyDescriptor(it, name);
      if (ObjectHasOwn(property, "get") && property.get === undefined) throw notImplemented(name);
      return instance[name];
    }
    it = ReflectGetPrototypeOf(it);
  }
  throw notImplemented(name);
}

// Of plain objects and functions callers see their own properties. Instances of other classes show nothing.
function visible(value, name) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) throw notImplemented(name);
  if (inherits(value, RpcTargetPrototype)) {
    if (name === "dup" || name === "constructor") throw reserved(name);
    return visibleOfInstance(value, name, RpcTargetPrototype);
  }
  if (typeof value !== "function") {
    const prototype = ReflectGetPrototypeOf(value);
    if (prototype !== ObjectPrototype && prototype !== null) throw notImplemented(name);
  }
  if (!ObjectHasOwn(value, name)) throw notImplemented(name);
  return value[name];
}

// `target` is [entrypoint, export]: an object that was given out is called where there is one. `given` is [args, props,
// stubs], with the stubs in both of them, and `reply` is [invocation, isJson, bytesMax, depthMax].
function invoke(namespace, target, path, isGet, given, reply) {
  const call = {
    __proto__: null,
    path,
    isGet,
    args: given[0],
    depth: 0,
    invocation: reply[0],
    done: finish,
    failed: fail,
    state: { __proto__: null, reply, stubs: given[2] },
  };
  if (mainNamespace === undefined) noteNamespace(namespace);
  if (target[1] === 0) {
    enterEntrypoint(call, target[0], given[1]);
    return;
  }
  const object = exported[target[1]];
  if (object === undefined) fail(call.state, new ErrorConstructor("The object that is called is not there any more."));
  else proceed(call, object);
}

// The main module's exports.
let mainNamespace;

function noteNamespace(namespace) {
  mainNamespace = namespace;
}

// Enters the worker by one of its entrypoints. A call is { path, isGet, args, depth, invocation, done, failed, state }, and
// ends with done(state, value) or failed(state, error).
function enterEntrypoint(call, entrypoint, props) {
  try {
    begin(call, mainNamespace, entrypoint, props);
  } catch (error) {
    call.failed(call.state, error);
  }
}

// Follows the first name of the path, which has rules of its own.
function begin(call, namespace, entrypoint, props) {
  const { path, isGet, args } = call;
  const exported = findEntrypoint(namespace, entrypoint);
  if (path.length === 0) {
    throw new TypeErrorConstructor('The entrypoint "' + entrypoint + '" is not a function: name the method to call.');
  }
  if (path.length > PATH_LENGTH_MAX) throw tooDeep();
  const name = path[0];
  const isHandler = (name === "fetch" || name === "connect") && path.length === 1 && !isGet;
  if (reservedMethods[name] === true && !isHandler) throw reserved(name);
  const context = makeContext(props, call.invocation);
  const isClass = typeof exported === "function";
  const receiver = isClass ? ReflectConstruct(exported, [context, env]) : exported;
  if (isHandler) {
    const enter = name === "fetch" ? enterFetch : enterConnect;
    enter(call, receiver, isClass ? undefined : context);
    return;
  }
  const value = isClass ? visibleOfInstance(receiver, name, WorkerEntrypointPrototype) : visibleOfExport(receiver, name);
  if (path.length > 1) {
    call.depth = 1;
    settle(value, proceed, failCall, call);
  } else if (isGet) {
    settle(value, call.done, call.failed, call.state);
  } else if (isClass) {
    settle(apply(value, receiver, args, path), call.done, call.failed, call.state);
  } else {
    settle(applyHandler(value, receiver, args, context, name), call.done, call.failed, call.state);
  }
}

function visibleOfExport(exported, name) {
  if (inherits(exported, RpcTargetPrototype)) return visible(exported, name);
  if (!ObjectHasOwn(exported, name)) throw notImplemented(name);
  return exported[name];
}

// Follows what is left of the path, from what the names before have led to.
function follow(call, receiver) {
  const { path, isGet, args, depth } = call;
  const handle = handleOf(receiver);
  if (handle !== undefined) {
    followStub(call, handle);
    return;
  }
  if (depth === path.length) {
    settle(isGet ? receiver : apply(receiver, undefined, args, path), call.done, call.failed, call.state);
    return;
  }
  const value = visible(receiver, path[depth]);
  call.depth = depth + 1;
  if (depth + 1 < path.length) {
    settle(value, proceed, failCall, call);
  } else {
    settle(isGet ? value : apply(value, receiver, args, path), call.done, call.failed, call.state);
  }
}

// The rest of the path is on the other side of a stub.
function followStub(call, handle) {
  checkUsable(handle);
  const path = newList();
  for (let index = 0; index < handle.path.length; index++) path[index] = handle.path[index];
  for (let index = call.depth; index < call.path.length; index++) path[path.length] = call.path[index];
  if (call.isGet && path.length === 0) {
    call.done(call.state, newStub(shared(handle.hook)));
    return;
  }
  const answer = start(handle.hook, path, call.isGet, call.args, false);
  PromisePrototypeThen(
    answer.promise,
    (value) => call.done(call.state, value),
    (error) => call.failed(call.state, error),
  );
}

function proceed(call, receiver) {
  try {
    follow(call, receiver);
  } catch (error) {
    call.failed(call.state, error);
  }
}

// (The lists of arguments are made of what is written down, so they have all their elements, and inherit none.)
function apply(value, receiver, args, path) {
  if (typeof value !== "function") {
    throw new TypeErrorConstructor('"' + ArrayPrototypeJoin(path, ".") + '" is not a function.');
  }
  return ReflectApply(value, receiver, args);
}

function applyHandler(value, receiver, args, context, name) {
  if (typeof value === "function") {
    if (ownData(value, "length") > 3) throw tooManyParameters(name);
    if (args.length !== 1) throw wrongArity(name);
  }
  return apply(value, receiver, [args[0], env, context], [name]);
}

// The host is told when what is ready now has run: what that writes to the console belongs to the call. The stubs in the
// arguments were the call's; who wanted to keep one has taken a dup.
function finish({ reply, stubs }, value) {
  forgetCallSignal(reply[0]);
  const disposer = disposerOf(value);
  const id = disposer === undefined ? 0 : exportTarget(disposer, KIND_TARGET)[1];
  host.finish(reply[0], reply[1], reply[2], reply[3], value, id);
  disposeAll(stubs);
  QueueMicrotask(host.reportFinished);
}

function fail({ reply, stubs }, error) {
  forgetCallSignal(reply[0]);
  host.finishThrown(reply[0], error);
  disposeAll(stubs);
  QueueMicrotask(host.reportFinished);
}

function failCall(call, error) {
  call.failed(call.state, error);
}

// The modules that are there without being loaded. Evaluated once, before the snapshot; `import.meta` of each is its own.
const builtInModules = {
  __proto__: null,
  "cloudflare:workers": { __proto__: null, source: workersModuleSource, exports: workersModuleExports },
  "cloudflare:sockets": {
    __proto__: null,
    source: "export const { connect } = import.meta.exports;\n",
    exports: { __proto__: null, connect },
  },
};

const hooks = {
  __proto__: null,
  invoke,
  settle: settleOperation,
  forget: forgetOperation,
  externalOf,
  interfaceContent,
  newInterface,
  stubOf,
  copyStub,
  releaseExport,
  cancelCall,
  disposeAll,
  disposeReturned,
  setLoading,
  setLogArguments,
  fillEnv,
  inspect: (value) => inspect(value),
  reportUncaught,
  requireCommonJs,
  mapEntries,
  setValues,
  regexpParts,
  dateValue,
  unbox,
  box,
  bigintText,
  bigint,
  newMap,
  mapFill,
  newSet,
  setFill,
  newRegExp,
  newDataView,
  viewWindow,
  newDOMException,
  errorPrototype,
  stacks,
  samples,
  builtInModules,
};
