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

const contextMethods = {
  waitUntil(promise) {
    waitUntil(promise);
  },
  passThroughOnException() {},
};

function makeContext(props) {
  return {
    props: props ?? {},
    waitUntil: contextMethods.waitUntil,
    passThroughOnException: contextMethods.passThroughOnException,
  };
}

// A call under way. Its prototype ends the chain, so that nothing of the worker's is asked for what it has or has not;
// that costs less than an object made without a prototype.
class Call {
  constructor(path, isGet, args, props, reply) {
    this.path = path;
    this.isGet = isGet;
    this.args = args;
    this.reply = reply;
    this.context = makeContext(props);
    this.isClass = false;
    this.receiver = undefined;
    this.depth = 1; // names of the path that have been followed
  }
}
ObjectSetPrototypeOf(Call.prototype, null);

// Of instances callers see what their classes define: never what is on the instance itself, which would show private
// state that was only forgotten to be made private, and nothing of `base` or Object.prototype.
function visibleOfInstance(instance, name, base) {
  if (ObjectHasOwn(instance, name)) throw notImplemented(name);
  for (let it = ReflectGetPrototypeOf(instance); it !== null && it !== base && it !== ObjectPrototype; ) {
    if (ObjectHasOwn(it, name)) return instance[name];
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

// `reply` is [invocation, isJson, bytesMax, depthMax].
function invoke(namespace, entrypoint, path, isGet, args, props, reply) {
  const call = new Call(path, isGet, args, props, reply);
  try {
    advance(call, begin(call, namespace, entrypoint));
  } catch (error) {
    fail(call, error);
  }
}

// The value under the first name of the path.
function begin(call, namespace, entrypoint) {
  const { path, context } = call;
  const exported = findEntrypoint(namespace, entrypoint);
  if (path.length === 0) {
    throw new TypeErrorConstructor('The entrypoint "' + entrypoint + '" is not a function: name the method to call.');
  }
  if (path.length > PATH_LENGTH_MAX) {
    throw new TypeErrorConstructor("RPC pipelined property path is too deep (max " + PATH_LENGTH_MAX + ").");
  }
  const name = path[0];
  if (reservedMethods[name] === true) throw reserved(name);
  if (typeof exported === "function") {
    call.isClass = true;
    call.receiver = ReflectConstruct(exported, listOfTwo(context, env));
    return visibleOfInstance(call.receiver, name, WorkerEntrypointPrototype);
  }
  call.receiver = exported;
  if (inherits(exported, RpcTargetPrototype)) return visible(exported, name);
  if (!ObjectHasOwn(exported, name)) throw notImplemented(name);
  return exported[name];
}

// `value` is what the path means as far as it has been followed.
function advance(call, value) {
  if (call.depth < call.path.length) return settle(value, step, fail, call);
  settle(call.isGet ? value : apply(call, value), finish, fail, call);
}

function step(call, receiver) {
  try {
    call.receiver = receiver;
    const value = visible(receiver, call.path[call.depth]);
    call.depth++;
    advance(call, value);
  } catch (error) {
    fail(call, error);
  }
}

function apply(call, value) {
  const { path, args, receiver } = call;
  if (typeof value !== "function") {
    throw new TypeErrorConstructor('"' + ArrayPrototypeJoin(path, ".") + '" is not a function.');
  }
  if (call.isClass || path.length > 1) return ReflectApply(value, receiver, args);
  if (ownData(value, "length") > 3) throw tooManyParameters(path[0]);
  if (args.length !== 1) throw wrongArity(path[0]);
  const handlerArguments = newList();
  handlerArguments[0] = args[0];
  handlerArguments[1] = env;
  handlerArguments[2] = call.context;
  return ReflectApply(value, receiver, handlerArguments);
}

function finish({ reply }, value) {
  host.finish(reply[0], reply[1], reply[2], reply[3], value);
}

function fail({ reply }, error) {
  host.finishThrown(reply[0], error);
}

const hooks = {
  __proto__: null,
  invoke,
  settle: settleOperation,
  forget: forgetOperation,
  setLoading,
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
  workersModuleSource,
  workersModuleExports,
};
