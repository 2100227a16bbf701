
// Calls from outside: finding the callee by the rules of Workers RPC, calling it, reporting what came of it.
//
// Owns: the hooks that the Rust core calls, and the rules of what is visible from outside.
// Must never: let a call through to something that Workers RPC hides, or throw at the core.

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
  new TypeErrorConstructor(`The RPC receiver does not implement the method "${name}".`);

function isEntrypointClass(value) {
  if (typeof value !== "function") return false;
  for (let proto = ownData(value, "prototype"); proto !== null && proto !== undefined; ) {
    if (proto === WorkerEntrypointPrototype) return true;
    proto = ReflectGetPrototypeOf(proto);
  }
  return false;
}

function findEntrypoint(namespace, name) {
  if (!ObjectHasOwn(namespace, name)) {
    throw new ErrorConstructor(
      name === "default"
        ? "Worker has no default entrypoint: the main module has no default export."
        : `Worker has no such entrypoint: ${name}`,
    );
  }
  const exported = namespace[name];
  const isClass = isEntrypointClass(exported);
  if (!isClass && (typeof exported !== "object" || exported === null)) {
    const kind = typeof exported === "function" ? "a function or a class that does not extend WorkerEntrypoint" : `${typeof exported}`;
    throw new TypeErrorConstructor(
      `The export "${name}" can't be an entrypoint: it is ${kind}. Export an object with methods, or a class that ` +
        'extends WorkerEntrypoint from "cloudflare:workers".',
    );
  }
  return exported;
}

function makeContext(props) {
  return {
    props: props ?? {},
    waitUntil(promise) {
      waitUntil(promise);
    },
    passThroughOnException() {},
  };
}

// The property that callers see: of instances what their classes define, never what is on the instance itself or on
// Object.prototype; of plain objects their own.
function visibleOfInstance(instance, name, base) {
  for (let proto = ReflectGetPrototypeOf(instance); proto !== null && proto !== base && proto !== ObjectPrototype; ) {
    if (ReflectGetOwnPropertyDescriptor(proto, name) !== undefined) return instance[name];
    proto = ReflectGetPrototypeOf(proto);
  }
  throw notImplemented(name);
}

function isRpcTarget(value) {
  for (let proto = ReflectGetPrototypeOf(value); proto !== null; proto = ReflectGetPrototypeOf(proto)) {
    if (proto === RpcTargetPrototype) return true;
  }
  return false;
}

function visible(value, name) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) throw notImplemented(name);
  if (isRpcTarget(value)) {
    if (name === "dup" || name === "constructor") throw reserved(name);
    return visibleOfInstance(value, name, RpcTargetPrototype);
  }
  if (!ObjectHasOwn(value, name)) throw notImplemented(name);
  return value[name];
}

const reserved = (name) =>
  new TypeErrorConstructor(`'${name}' is a reserved method and cannot be called over RPC.`);

const wrongArity = (name) =>
  new TypeErrorConstructor(
    `Attempted to call RPC function "${name}" with the wrong number of arguments. When calling a top-level handler ` +
      "function that is not declared as part of a class, you must always send exactly one argument. In order to " +
      "support variable numbers of arguments, the server must use class-based syntax (extending WorkerEntrypoint) " +
      "instead.",
  );

const tooManyParameters = (name) =>
  new TypeErrorConstructor(
    `Cannot call handler function "${name}" over RPC because it has the wrong number of arguments. A simple function ` +
      "handler can only be called over RPC if it has exactly the arguments (arg, env, ctx), where only the first " +
      "argument comes from the client. To support multi-argument RPC functions, use class-based syntax (extending " +
      "WorkerEntrypoint) instead.",
  );

async function perform(namespace, entrypoint, path, isGet, args, props) {
  const exported = findEntrypoint(namespace, entrypoint);
  const context = makeContext(props);
  const isClass = typeof exported === "function";
  if (path.length === 0) {
    throw new TypeErrorConstructor(`The entrypoint "${entrypoint}" is not a function: name the method to call.`);
  }
  const name = path[0];
  if (reservedMethods[name] === true) throw reserved(name);
  let receiver = isClass ? ReflectConstruct(exported, twoArguments(context, env)) : exported;
  let value = isClass
    ? visibleOfInstance(receiver, name, WorkerEntrypointPrototype)
    : visible(receiver, name);
  for (let depth = 1; depth < path.length; depth++) {
    receiver = await value;
    value = visible(receiver, path[depth]);
  }
  if (isGet) return value;
  const last = path[path.length - 1];
  if (typeof value !== "function") throw new TypeErrorConstructor(`"${last}" is not a function.`);
  if (isClass || path.length > 1) return ReflectApply(value, receiver, args);
  if (args.length !== 1) throw wrongArity(name);
  if (ownData(value, "length") > 3) throw tooManyParameters(name);
  const handlerArguments = newList();
  handlerArguments[0] = args[0];
  handlerArguments[1] = env;
  handlerArguments[2] = context;
  return ReflectApply(value, receiver, handlerArguments);
}

function twoArguments(first, second) {
  const list = newList();
  list[0] = first;
  list[1] = second;
  return list;
}

// `reply` is [invocation, json, bytesMax, depthMax].
async function invoke(namespace, entrypoint, path, isGet, args, props, reply) {
  let value;
  try {
    value = await perform(namespace, entrypoint, path, isGet, args, props);
  } catch (error) {
    host.finishThrown(reply[0], error);
    return;
  }
  host.finish(reply[0], reply[1], reply[2], reply[3], value);
}

// A host operation is done: a timer is due, or a fetch was refused for `reason`.
function settle(operation, reason) {
  const callback = waiting[operation];
  if (callback === undefined) return;
  delete waiting[operation];
  try {
    callback(reason);
  } catch (error) {
    host.log(4, `Uncaught ${inspect(error)}`);
  }
}

function setLoading(value) {
  loading = value;
}

const commonJsCache = ObjectCreate(null);

const hooks = {
  __proto__: null,
  invoke,
  settle,
  setLoading,
  fillEnv,
  describe,
  reportRejection,
  mapEntries,
  setValues,
  regexpParts,
  dateValue: (date) => DatePrototypeGetTime(date),
  unbox,
  bigintText,
  bigint,
  mapFill,
  setFill,
  create,
  regexp,
  view,
  viewParts,
  domException,
  errorFill,
  errorParts,
  samples,
  commonJsCache,
  workersModuleSource,
  workersModuleExports,
};
