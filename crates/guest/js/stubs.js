// Stubs: what stands for an object that is somewhere else, and promises of what it answers, by the rules of Workers RPC.
//
// Owns: what this isolate holds of others (imports) and what others hold of it (exports), RpcStub, RpcPromise and
// RpcProperty, and when they are disposed of.
// Must never: hand out a hook, call what has been disposed of, or keep an import that nobody can reach any more without
// saying so to the host.
//
// A stub is a proxy of a function, so that it can be called. What it is of is in `handles`, which workers can't reach: a
// handle is { hook, path, life, isRoot, isBinding, answer }. A hook is what is at the other end, and how many stubs share it:
//   IMPORT   { id, made, isEntrypoint }  something outside, and what lets go of it when nobody refers to it any more
//   LOCAL    { target }             an object of this isolate, behind a stub all the same
//   LOOPBACK { entrypoint, props }  an entrypoint of this worker
//   PENDING  { answer }             what a call will answer
//   AWAITED  { answer }             an entrypoint of a worker that is not known yet

const IMPORT = 1;
const LOCAL = 2;
const LOOPBACK = 3;
const PENDING = 4;
const AWAITED = 5;

// Whose an external is, and its kind, as crates/guest/src/externals.rs has them.
const EXTERNAL_EXPORT = 0;
const EXTERNAL_IMPORT = 1;
const EXTERNAL_LOOPBACK = 2;
const KIND_TARGET = 0;
const KIND_SOURCE = 1;
const KIND_SINK = 2;
const KIND_LOADER = 3;
const KIND_ENTRYPOINT = 4;

const handles = new WeakMapConstructor();

class RpcStub {
  constructor(target) {
    const handle = handleOf(target);
    if (handle !== undefined) {
      // One of what it is a part of could do more.
      if (!handle.isRoot || handle.hook.kind === PENDING) {
        throw new TypeErrorConstructor("RpcStub: the target is a promise or a property of a stub: await it first.");
      }
      return dupOf(handle);
    }
    if ((typeof target !== "object" || target === null) && typeof target !== "function") {
      throw new TypeErrorConstructor("RpcStub: the target is neither an object nor a function.");
    }
    return newStub(localHook(target));
  }
}
class RpcPromise {
  constructor() {
    throw new TypeErrorConstructor("Illegal constructor");
  }
}
class RpcProperty {
  constructor() {
    throw new TypeErrorConstructor("Illegal constructor");
  }
}
const RpcStubPrototype = RpcStub.prototype;
const RpcPromisePrototype = RpcPromise.prototype;
const RpcPropertyPrototype = RpcProperty.prototype;

// Names that mean the stub itself. Everything else is on the other side.
const localNames = {
  __proto__: null,
  constructor: true,
  hasOwnProperty: true,
  isPrototypeOf: true,
  propertyIsEnumerable: true,
  toLocaleString: true,
  toString: true,
  valueOf: true,
  ["__proto__"]: true,
  __defineGetter__: true,
  __defineSetter__: true,
  __lookupGetter__: true,
  __lookupSetter__: true,
};

const tooDeep = () =>
  new TypeErrorConstructor("RPC pipelined property path is too deep (max " + PATH_LENGTH_MAX + ").");

function handleOf(value) {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return undefined;
  return WeakMapPrototypeGet(handles, value);
}

function isStub(value) {
  return handleOf(value) !== undefined;
}

// What this worker's own requests and connections go to. The host keeps it under a number; no stub is ever made of it.
const outboundHook = { __proto__: null, kind: IMPORT, id: OUTBOUND, isEntrypoint: true, references: 1 };

// --- the proxies ---

function newProxy(handle, prototype) {
  const target = () => {};
  ReflectDeleteProperty(target, "name");
  ReflectDeleteProperty(target, "length");
  ObjectSetPrototypeOf(target, prototype);
  const proxy = new ProxyConstructor(target, traps);
  WeakMapPrototypeSet(handles, target, handle);
  WeakMapPrototypeSet(handles, proxy, handle);
  return proxy;
}

function newStub(hook) {
  return newProxy(newHandle(hook, newList(), undefined), RpcStubPrototype);
}

function newRpcPromise(answer) {
  const hook = { __proto__: null, kind: PENDING, answer, references: 1 };
  const handle = newHandle(hook, newList(), undefined);
  handle.answer = answer;
  return newProxy(handle, RpcPromisePrototype);
}

// The handle of a property shares the life of the stub or promise that it is of. (None refers to itself: what nobody refers
// to any more goes at once, and not when garbage is collected.)
function newHandle(hook, path, life) {
  return {
    __proto__: null,
    hook,
    path,
    life: life ?? { __proto__: null, disposed: false },
    isRoot: life === undefined,
    isBinding: false,
    answer: undefined,
  };
}

// What is in `env` or `ctx.exports` is there for every call: returning it gives none of it away.
function markBinding(value) {
  const handle = handleOf(value);
  if (handle !== undefined) handle.isBinding = true;
}

function propertyOf(handle, name) {
  if (handle.path.length >= PATH_LENGTH_MAX) throw tooDeep();
  const path = newList();
  for (let index = 0; index < handle.path.length; index++) path[index] = handle.path[index];
  path[path.length] = name;
  return newProxy(newHandle(handle.hook, path, handle.life), RpcPropertyPrototype);
}

function checkUsable(handle) {
  if (isDisposed(handle)) throw disposedError(handle);
}

function isDisposed(handle) {
  return handle.life.disposed;
}

function disposedError(handle) {
  const what = handle.hook.kind === PENDING ? "promise" : "stub";
  return new ErrorConstructor("RPC " + what + " used after being disposed.");
}

function usable(handle) {
  checkUsable(handle);
  return handle.hook;
}

function isEntrypoint(hook) {
  return hook.kind === LOOPBACK || hook.kind === AWAITED || (hook.kind === IMPORT && hook.isEntrypoint);
}

const traps = {
  __proto__: null,
  get(target, key) {
    const handle = WeakMapPrototypeGet(handles, target);
    if (ObjectHasOwn(target, key)) return target[key];
    if (typeof key === "symbol") {
      if (key === SymbolDispose) return () => dispose(handle);
      if (key === SymbolToStringTag) return handle.isRoot ? (handle.hook.kind === PENDING ? "RpcPromise" : "RpcStub") : "RpcProperty";
      return ObjectPrototype[key];
    }
    if (localNames[key] === true) return target[key];
    if (handle.isRoot && handle.hook.kind !== PENDING) {
      if (key === "then") return undefined;
      if (key === "dup") return () => dupOf(handle);
      if (isEntrypoint(handle.hook)) {
        if (key === "fetch") return (input, init) => fetchFrom(usable(handle), new Request(input, init));
        if (key === "connect") return (address, options) => connectTo(usable(handle), address, options);
      }
    } else if (key === "then" || key === "catch" || key === "finally") {
      return thenable(handle, key);
    }
    return propertyOf(handle, key);
  },
  apply(_target, _self, args) {
    const handle = WeakMapPrototypeGet(handles, _target);
    if (isDisposed(handle)) return newRpcPromise(rejected(disposedError(handle)));
    if (handle.hook.kind === LOOPBACK && handle.path.length === 0) return specialise(handle.hook, args);
    return newRpcPromise(start(handle.hook, handle.path, false, args, false));
  },
  construct() {
    throw new TypeErrorConstructor("An RPC stub is not a constructor.");
  },
};

function thenable(handle, key) {
  return (first, second) => {
    if (handle.answer === undefined) {
      try {
        checkUsable(handle);
        handle.answer = start(handle.hook, handle.path, true, undefined, false);
      } catch (error) {
        handle.answer = rejected(error);
      }
    } else if (handle.life.disposed && handle.hook.kind === PENDING) {
      return PromisePrototypeThen(PromiseReject(new ErrorConstructor("RPC promise used after being disposed.")), first, second);
    }
    const { promise } = handle.answer;
    if (key === "then") return PromisePrototypeThen(promise, first, second);
    if (key === "catch") return PromisePrototypeThen(promise, undefined, first);
    return PromisePrototypeFinally(promise, first);
  };
}

// --- answers ---

// What a call will answer: { promise, resolve, reject, stubs }.
function newAnswer() {
  const answer = {
    __proto__: null,
    promise: undefined,
    resolve: undefined,
    reject: undefined,
    stubs: undefined,
    value: undefined,
    disposed: false,
    operation: 0,
  };
  answer.promise = new PromiseConstructor((resolve, reject) => {
    answer.resolve = resolve;
    answer.reject = reject;
  });
  // What a worker has made of Promise.prototype.constructor is not asked.
  ObjectDefineProperty(answer.promise, "constructor", { __proto__: null, value: undefined });
  // A call that nobody waits for is no unhandled rejection.
  PromisePrototypeThen(answer.promise, undefined, () => {});
  return answer;
}

function rejected(error) {
  const answer = newAnswer();
  answer.reject(error);
  return answer;
}

// The value that arrived and the stubs in it belong to whoever called.
function fulfil(answer, value, stubs) {
  if (answer.disposed) {
    disposeAll(stubs);
    value = undefined;
  } else if (stubs.length > 0 && !isObjectValue(value) && typeof value !== "function") {
    // Nothing refers to them.
    disposeAll(stubs);
  } else if (stubs.length > 0) {
    answer.stubs = stubs;
    if (!isStub(value)) {
      ObjectDefineProperty(value, SymbolDispose, {
        __proto__: null,
        value: () => disposeAll(stubs),
        configurable: true,
        writable: true,
      });
    }
  }
  answer.value = value;
  answer.resolve(value);
}

// Streams are among what a value refers to; they are let go of when they are over.
function disposeAll(stubs) {
  for (let index = 0; index < stubs.length; index++) {
    const handle = WeakMapPrototypeGet(handles, stubs[index]);
    if (handle !== undefined) dispose(handle);
  }
}

// What a result refers to is whoever's gets the result.
function disposeReturned(stubs) {
  for (let index = 0; index < stubs.length; index++) {
    const handle = WeakMapPrototypeGet(handles, stubs[index]);
    if (handle !== undefined && !handle.isBinding) dispose(handle);
  }
}

// The caller does not want the answer any more.
function callBack(answer) {
  if (answer.operation === 0) return;
  delete waiting[answer.operation];
  host.cancel(answer.operation);
}

// --- calls ---

// Starts a call, or a read, of what is at `path` behind a hook. `isStream`: what is behind it is a source or a sink.
function start(hook, path, isGet, args, isStream) {
  if (path.length > PATH_LENGTH_MAX) throw tooDeep();
  refuseInModuleScope();
  if (hook.kind === IMPORT) return startImport(hook.id, path, isGet, args, isStream, hook);
  const answer = newAnswer();
  // Arguments are taken as they are now, wherever they go.
  const copied = isGet ? undefined : host.copyReferences(args);
  const call = {
    __proto__: null,
    path,
    isGet,
    args: copied === undefined ? undefined : copied[0],
    depth: 0,
    invocation: 0,
    done: fulfilWithCopy,
    failed: rejectWithCopy,
    state: { __proto__: null, answer, stubs: copied === undefined ? newList() : copied[1], hook: undefined },
  };
  if (hook.kind === LOCAL) {
    QueueMicrotask(() => proceed(call, hook.target));
  } else if (hook.kind === LOOPBACK) {
    QueueMicrotask(() => enterEntrypoint(call, hook.entrypoint, hook.props));
  } else {
    call.done = fulfilAsIs;
    call.failed = rejectAsIs;
    // The call needs what it waits for until it is done, though somebody disposes of that meanwhile.
    call.state.hook = shared(hook);
    PromisePrototypeThen(
      hook.answer.promise,
      (value) => proceed(call, value),
      (error) => rejectAsIs(call.state, error),
    );
  }
  return answer;
}

// (The hook is kept until there is an answer: who forgets a stub has not taken back what was called through it.)
function startImport(id, path, isGet, args, isStream, hook) {
  const answer = newAnswer();
  answer.operation = host.startCall(id, path, isGet, isGet ? newList() : args, isStream);
  waiting[answer.operation] = {
    __proto__: null,
    timer: 0,
    hook,
    run(kind, value, more, message) {
      answer.operation = 0;
      if (kind === ANSWER_VALUE) fulfil(answer, value, more);
      else answer.reject(errorOfAnswer(kind, value, more, message));
    },
  };
  return answer;
}

const ANSWER_VALUE = 1;
const ANSWER_THREW = 2;
const ANSWER_VERDICT = 3;

function errorOfAnswer(kind, value, more, message) {
  if (kind === ANSWER_THREW) {
    if ((typeof value === "object" && value !== null) || typeof value === "function") {
      if (!isStub(value)) ReflectDefineProperty(value, "remote", dataProperty(true));
      return value;
    }
    return remoteError(more, message);
  }
  const error = new ErrorConstructor(message);
  if (kind === ANSWER_VERDICT) ReflectDefineProperty(error, "verdict", dataProperty(value));
  return error;
}

function remoteError(name, message) {
  const found = errorPrototype(name);
  const error = new ErrorConstructor(message);
  ObjectSetPrototypeOf(error, found[0]);
  if (!found[1]) ObjectDefineProperty(error, "name", { __proto__: null, value: name, writable: true, configurable: true });
  ReflectDefineProperty(error, "remote", dataProperty(true));
  return error;
}

// A call within the isolate is answered with a copy, as if it had gone out and come back.
function fulfilWithCopy({ answer, stubs }, value) {
  disposeAll(stubs);
  let copied;
  try {
    copied = host.copyReferences(value);
  } catch (error) {
    answer.reject(error);
    return;
  }
  disposeReturned(copied[2]);
  const disposer = disposerOf(value);
  if (disposer !== undefined) {
    // Defined, not set: a worker may have put a setter where arrays inherit from.
    ObjectDefineProperty(copied[1], copied[1].length, dataProperty(newStub(localHook(disposer))));
  }
  fulfil(answer, copied[0], copied[1]);
}

function rejectWithCopy({ answer, stubs }, error) {
  disposeAll(stubs);
  let copied = error;
  try {
    copied = host.copyReferences(error)[0];
  } catch {
    // What can't be copied is known by its name and message.
    copied = remoteError("Error", inspect(error));
  }
  answer.reject(errorOfAnswer(ANSWER_THREW, copied, "Error", inspect(error)));
}

function fulfilAsIs({ answer, stubs, hook }, value) {
  disposeAll(stubs);
  letHookGo(hook);
  fulfil(answer, value, newList());
}

function rejectAsIs({ answer, stubs, hook }, error) {
  disposeAll(stubs);
  letHookGo(hook);
  answer.reject(error);
}

// --- ownership ---

function dupOf(handle) {
  checkUsable(handle);
  return newStub(shared(handle.hook));
}

function dispose(handle) {
  if (handle.life.disposed) return;
  const { hook } = handle;
  handle.life.disposed = true;
  // Whoever keeps a stub that is disposed of keeps nothing alive with it.
  handle.hook = { __proto__: null, kind: hook.kind, isEntrypoint: hook.isEntrypoint };
  letHookGo(hook);
}

function letHookGo(hook) {
  if (--hook.references > 0) return;
  if (hook.kind === IMPORT) {
    releaseMade(hook.made.token);
  } else if (hook.kind === LOCAL) {
    letTargetGo(hook.target);
  } else if (hook.kind === AWAITED) {
    hook.answer.disposed = true;
    if (hook.answer.value !== undefined) dispose(handleOf(hook.answer.value));
  } else if (hook.kind === PENDING) {
    const { answer } = hook;
    answer.disposed = true;
    if (answer.stubs !== undefined) disposeAll(answer.stubs);
  }
}

// Objects of this isolate that others hold, by the id that they were given out with.
const exported = { __proto__: null, none: undefined };
let exportLast = 0;
// How often an object is held: by exports and by stubs of its own isolate.
const targetHolds = new WeakMapConstructor();

function holdTarget(target) {
  WeakMapPrototypeSet(targetHolds, target, (WeakMapPrototypeGet(targetHolds, target) ?? 0) + 1);
}

// The last hold ends: the object may tidy up.
function letTargetGo(target) {
  const left = WeakMapPrototypeGet(targetHolds, target) - 1;
  if (left > 0) {
    WeakMapPrototypeSet(targetHolds, target, left);
    return;
  }
  WeakMapPrototypeDelete(targetHolds, target);
  QueueMicrotask(() => {
    const disposer = target[SymbolDispose];
    if (typeof disposer === "function") ReflectApply(disposer, target, newList());
  });
}

// What the codec asks of an object that it can't copy: [whose, id, kind], [whose, entrypoint, props], or undefined where it
// can't be passed by reference either.
function externalOf(value, isProxy) {
  const handle = handleOf(value);
  if (handle === undefined) {
    const loader = passedLoader(value);
    if (loader !== undefined) return external(EXTERNAL_IMPORT, loader, KIND_LOADER);
    // What is behind a proxy can't be known, so that it is not copied.
    if (isProxy || isTarget(value)) return exportTarget(value, KIND_TARGET);
    if (isReadableStream(value)) return exportTarget(new StreamSource(takeByteSource(value)), KIND_SOURCE);
    if (isWritableStream(value)) return exportTarget(new StreamSink(takeByteSink(value)), KIND_SINK);
    return undefined;
  }
  if (!handle.isRoot || handle.hook.kind === PENDING) return undefined;
  checkUsable(handle);
  const { hook } = handle;
  // Once it is known, it is what it was waiting for.
  if (hook.kind === AWAITED) return hook.answer.value === undefined ? undefined : externalOf(hook.answer.value);
  if (hook.kind === IMPORT) {
    return external(EXTERNAL_IMPORT, hook.id, hook.isEntrypoint ? KIND_ENTRYPOINT : KIND_TARGET);
  }
  if (hook.kind === LOCAL) return exportTarget(hook.target, KIND_TARGET);
  return external(EXTERNAL_LOOPBACK, hook.entrypoint, hook.props);
}

function external(whose, id, kind) {
  const parts = listOfTwo(whose, id);
  parts[2] = kind;
  return parts;
}

function exportTarget(target, kind) {
  const id = ++exportLast;
  exported[id] = target;
  holdTarget(target);
  return external(EXTERNAL_EXPORT, id, kind);
}

// What an external becomes here.
function stubOf(whose, id, kind) {
  if (kind === KIND_LOADER) return newWorkerLoader(id);
  const hook = whose === EXTERNAL_IMPORT ? importHook(id, kind) : localHook(exported[id]);
  if (kind === KIND_SOURCE) return newByteStream(sourceBehind(hook));
  if (kind === KIND_SINK) return newSinkStream(sinkBehind(hook));
  return newStub(hook);
}

function importHook(id, kind) {
  return { __proto__: null, kind: IMPORT, id, made: newMade(id), isEntrypoint: kind === KIND_ENTRYPOINT, references: 1 };
}

function localHook(target) {
  if (target === undefined) throw new ErrorConstructor("The object that comes home is not there any more.");
  holdTarget(target);
  return { __proto__: null, kind: LOCAL, target, references: 1 };
}

function isTarget(value) {
  return typeof value === "function" || inherits(value, RpcTargetPrototype);
}

// Nobody outside holds an export any more.
function releaseExport(id) {
  const target = exported[id];
  if (target === undefined) return;
  delete exported[id];
  letTargetGo(target);
}

// What a stub is copied to, for somebody in this isolate; undefined where there is nothing to refer to.
function copyStub(value, isProxy) {
  const handle = handleOf(value);
  if (handle !== undefined) {
    if (!handle.isRoot || handle.hook.kind === PENDING) return undefined;
    return dupOf(handle);
  }
  if (isProxy || isTarget(value)) return newStub(localHook(value));
  if (isReadableStream(value)) return newByteStream(takeByteSource(value));
  if (isWritableStream(value)) return newSinkStream(takeByteSink(value));
  return undefined;
}

function shared(hook) {
  hook.references++;
  return hook;
}

// What is to be held by whoever gets a copy of a result that wants to know when it has been disposed of. It shows nothing
// of the result, which has more to it than was copied.
function disposerOf(value) {
  if (!isObjectValue(value) || isStub(value)) return undefined;
  try {
    // What is looked at may be a Proxy.
    if (isTarget(value)) return undefined;
    const disposer = value[SymbolDispose];
    if (typeof disposer !== "function") return undefined;
    return { __proto__: null, [SymbolDispose]: () => ReflectApply(disposer, value, newList()) };
  } catch {
    return undefined;
  }
}

// --- this worker's own entrypoints ---

function specialise(hook, args) {
  const options = args.length > 0 ? args[0] : undefined;
  const props = options === undefined || options === null ? undefined : options.props;
  return newStub({ __proto__: null, kind: LOOPBACK, entrypoint: hook.entrypoint, props, references: 1 });
}

function fillExports(exports, namespace) {
  // As in Workers, the default export comes first.
  addExport(exports, namespace, "default");
  const names = ReflectOwnKeys(namespace);
  for (let index = 0; index < names.length; index++) {
    if (typeof names[index] === "string" && names[index] !== "default") addExport(exports, namespace, names[index]);
  }
}

function addExport(exports, namespace, name) {
  if (!ObjectHasOwn(namespace, name)) return;
  const value = namespace[name];
  if (!isEntrypointClass(value) && (typeof value !== "object" || value === null)) return;
  const hook = { __proto__: null, kind: LOOPBACK, entrypoint: name, props: undefined, references: 1 };
  const stub = newStub(hook);
  markBinding(stub);
  ObjectDefineProperty(exports, name, dataProperty(stub));
}
