// Loading workers: what `env.LOADER` is, with the API of the Workers documentation.
//
// Owns: WorkerLoader, WorkerStub, and the check of the shape of what they are given, in workerd's words.
// Must never: decide what a worker may do. The host checks all of it again, and gives no worker more than its parent has.
//
// Whatever is made here can be used at once: the host gives the worker and its entrypoints numbers that follow from the
// operations that ask for them. Only of a worker that is asked for by its id it isn't known yet which one it is: what
// is called of that waits here.

// WorkerLoader to the import that it is of, and WorkerStub to { made, answer, disposed }: what it is of (see `newMade`), or
// what will say so.
const workerLoaders = new WeakMapConstructor();
const workerStubs = new WeakMapConstructor();

const ANSWER_WORKER = 5;
const ANSWER_PROVIDE = 6;

// Kinds of modules, as crates/guest/src/loader.rs has them.
const MODULE_ES = 0;
const MODULE_COMMONJS = 1;
const MODULE_TEXT = 2;
const MODULE_JSON = 3;
const MODULE_DATA = 4;

const OUTBOUND_INHERIT = 0;
const OUTBOUND_NONE = 1;
const OUTBOUND_GATEWAY = 2;

class WorkerLoader {
  constructor() {
    throw new TypeErrorConstructor("Illegal constructor");
  }
  get(id, callback) {
    const loader = loaderOf(this);
    if (typeof callback !== "function") {
      throw new TypeErrorConstructor(
        "Failed to execute 'get' on 'WorkerLoader': parameter 2 is not of type 'function'.",
      );
    }
    refuseInModuleScope();
    const answer = newAnswer();
    if (id === undefined || id === null) {
      QueueMicrotask(() => provideWorker(loader, 0, callback, answer));
    } else {
      askFor(loader, webString(id), callback, answer);
    }
    return newWorkerStub(undefined, answer);
  }
  load(code) {
    const loader = loaderOf(this);
    if (code !== undefined && code !== null && typeof code !== "object" && typeof code !== "function") {
      throw new TypeErrorConstructor(
        "Failed to execute 'load' on 'WorkerLoader': parameter 1 is not of type 'WorkerCode'.",
      );
    }
    refuseInModuleScope();
    return newWorkerStub(startLoad(loader, 0, code), undefined);
  }
}

class WorkerStub {
  constructor() {
    throw new TypeErrorConstructor("Illegal constructor");
  }
  getEntrypoint(name, options) {
    const worker = workerOf(this);
    if (worker.disposed) throw new ErrorConstructor("Worker stub used after being disposed.");
    refuseInModuleScope();
    const wanted = readEntrypoint(name, options);
    if (worker.answer === undefined) return entrypointStub(worker.made, wanted, wanted.props);
    return entrypointLater(worker.answer, wanted);
  }
}

const WorkerLoaderPrototype = WorkerLoader.prototype;
const WorkerStubPrototype = WorkerStub.prototype;
defineTag(WorkerLoaderPrototype, "WorkerLoader");
defineTag(WorkerStubPrototype, "WorkerStub");
ObjectDefineProperty(WorkerStubPrototype, SymbolDispose, {
  __proto__: null,
  value: { dispose() { disposeWorker(workerOf(this)); } }.dispose,
  writable: true,
  configurable: true,
});

function loaderOf(loader) {
  const id = isObjectValue(loader) ? WeakMapPrototypeGet(workerLoaders, loader) : undefined;
  if (id === undefined) throw new TypeErrorConstructor("Illegal invocation");
  return id;
}

function workerOf(worker) {
  const state = isObjectValue(worker) ? WeakMapPrototypeGet(workerStubs, worker) : undefined;
  if (state === undefined) throw new TypeErrorConstructor("Illegal invocation");
  return state;
}

function isObjectValue(value) {
  return typeof value === "object" && value !== null;
}

function newWorkerLoader(id) {
  const loader = ObjectCreate(WorkerLoaderPrototype);
  WeakMapPrototypeSet(workerLoaders, loader, id);
  return loader;
}

// The import that a WorkerLoader is of, where it may be passed on: in the env of a worker that is being loaded.
function passedLoader(value) {
  return passing ? WeakMapPrototypeGet(workerLoaders, value) : undefined;
}
let passing = false;

function newWorkerStub(made, answer) {
  const worker = ObjectCreate(WorkerStubPrototype);
  WeakMapPrototypeSet(workerStubs, worker, { __proto__: null, made, answer, disposed: false });
  return worker;
}

function disposeWorker(worker) {
  if (worker.disposed) return;
  worker.disposed = true;
  if (worker.answer === undefined) releaseMade(worker.made.token);
  else PromisePrototypeThen(worker.answer.promise, ({ token }) => releaseMade(token), () => {});
}

// A worker or an entrypoint of one, by its import, which is let go of once: by disposal, or when everybody here has
// forgotten it. Whoever uses it holds what this answers; the token in it stays behind.
function newMade(id) {
  const made = { __proto__: null, token: { __proto__: null, id, released: false } };
  FinalizationRegistryPrototypeRegister(forgottenMade, made, made.token);
  return made;
}
const forgottenMade = new FinalizationRegistryConstructor((token) => releaseMade(token));

function releaseMade(token) {
  if (token.released) return;
  token.released = true;
  host.releaseImport(token.id);
}

// --- by id ---

function askFor(loader, id, callback, answer) {
  const operation = host.startGet(loader, id);
  waiting[operation] = {
    __proto__: null,
    timer: 0,
    run(kind, value, more, message) {
      if (kind === ANSWER_WORKER) answer.resolve(newMade(value));
      else if (kind === ANSWER_PROVIDE) provideWorker(loader, operation, callback, answer);
      else answer.reject(errorOfAnswer(kind, value, more, message));
    },
  };
}

// Runs the callback, and loads what it returns: for everybody who has asked for the same id, if there is one.
function provideWorker(loader, get, callback, answer) {
  const state = { __proto__: null, loader, get, answer };
  let code;
  try {
    code = ReflectApply(callback, undefined, newList());
  } catch (error) {
    workerNotProvided(state, error);
    return;
  }
  settle(code, workerProvided, workerNotProvided, state);
}

function workerProvided(state, code) {
  let made;
  try {
    if (code !== undefined && code !== null && typeof code !== "object" && typeof code !== "function") {
      throw new TypeErrorConstructor("Incorrect type for Promise: the provided value is not of type 'WorkerCode'.");
    }
    made = startLoad(state.loader, state.get, code);
  } catch (error) {
    workerNotProvided(state, error);
    return;
  }
  state.answer.resolve(made);
}

function workerNotProvided(state, error) {
  if (state.get !== 0) host.notProvided(state.get, error);
  state.answer.reject(error);
}

// --- entrypoints ---

function readEntrypoint(name, options) {
  const wanted = { __proto__: null, name: "default", props: undefined, cpuMs: 0, subRequests: 0 };
  if (name !== undefined && name !== null) wanted.name = webString(name);
  if (options === undefined || options === null) return wanted;
  if (typeof options !== "object" && typeof options !== "function") {
    throw new TypeErrorConstructor(
      "Failed to execute 'getEntrypoint' on 'WorkerStub': parameter 2 is not of type 'EntrypointOptions'.",
    );
  }
  readLimits(options, wanted, "EntrypointOptions");
  const props = options.props;
  if (props !== undefined && !isObjectValue(props)) throw wrongType("props", "EntrypointOptions", "Object");
  wanted.props = props;
  return wanted;
}

function entrypointStub(worker, wanted, props) {
  const id = host.startEntrypoint(worker.token.id, wanted.name, props, wanted.cpuMs, wanted.subRequests);
  return newStub({ __proto__: null, kind: IMPORT, id, isEntrypoint: true, references: 1, made: newMade(id) });
}

// An entrypoint of a worker that is not known yet. The props are copied now.
function entrypointLater(worker, wanted) {
  const copied = wanted.props === undefined ? undefined : host.copyReferences(wanted.props);
  const answer = newAnswer();
  PromisePrototypeThen(
    worker.promise,
    (made) => {
      try {
        const stub = entrypointStub(made, wanted, copied === undefined ? undefined : copied[0]);
        answer.value = stub;
        if (answer.disposed) dispose(handleOf(stub));
        answer.resolve(stub);
      } catch (error) {
        answer.reject(error);
      }
      if (copied !== undefined) disposeAll(copied[1]);
    },
    (error) => {
      if (copied !== undefined) disposeAll(copied[1]);
      answer.reject(error);
    },
  );
  return newStub({ __proto__: null, kind: AWAITED, answer, references: 1 });
}

// --- what a worker is made of ---

const wrongType = (field, type, expected) =>
  new TypeErrorConstructor(
    "Incorrect type for the '" + field + "' field on '" + type + "': the provided value is not of type '" + expected + "'.",
  );

// A string, as the web platform converts to one.
function webString(value) {
  return typeof value === "symbol" ? "" + value : StringConstructor(value);
}

// Starts loading a worker.
function startLoad(loader, get, code) {
  if (code === undefined || code === null) {
    throw new TypeErrorConstructor(
      "Cannot initialize WorkerCode with required members from an undefined or null value.",
    );
  }
  const compatibilityDate = webString(code.compatibilityDate);
  const compatibilityFlags = readFlags(code.compatibilityFlags);
  const limits = { __proto__: null, cpuMs: 0, subRequests: 0 };
  readLimits(code, limits, "WorkerCode");
  const mainModule = webString(code.mainModule);
  const modules = readModules(code.modules, mainModule);
  checkDate(compatibilityDate);
  const flags = checkFlags(compatibilityFlags, !!code.allowExperimental);
  const outbound = readOutbound(code.globalOutbound);
  const tails = readTails(code);
  const { env } = code;
  if (env !== undefined && !isObjectValue(env)) throw wrongType("env", "WorkerCode", "Object");
  const head = newList();
  head[0] = compatibilityDate;
  head[1] = flags;
  head[2] = mainModule;
  head[3] = modules;
  head[4] = outbound[0];
  head[5] = outbound[1];
  head[6] = tails;
  head[7] = limits.cpuMs;
  head[8] = limits.subRequests;
  passing = true;
  try {
    return newMade(host.startLoad(loader, get, head, env));
  } finally {
    passing = false;
  }
}

function readFlags(value) {
  const flags = newList();
  if (value === undefined) return flags;
  if (!ArrayIsArray(value)) throw wrongType("compatibilityFlags", "WorkerCode", "Array");
  for (let index = 0; index < value.length; index++) flags[index] = webString(value[index]);
  return flags;
}

const isCompatibilityDate = (date) => {
  const parts = RegExpPrototypeExec(compatibilityDatePattern, date);
  if (parts === null) return false;
  const year = NumberParseInt(parts[1], 10);
  const month = NumberParseInt(parts[2], 10);
  const day = NumberParseInt(parts[3], 10);
  let days = 31;
  if (month === 4 || month === 6 || month === 9 || month === 11) days = 30;
  if (month === 2) days = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month >= 1 && month <= 12 && day >= 1 && day <= days;
};
const compatibilityDatePattern = /^(2[0-9]{3})-([0-9]{2})-([0-9]{2})$/;

// By the rules of crates/loader/src/code/compatibility.rs.
function checkDate(date) {
  if (!isCompatibilityDate(date)) throw new ErrorConstructor("Invalid compatibility date: " + date);
  // Dates of this form sort as text.
  if (date > host.compatibilityDateNewest) {
    throw new ErrorConstructor(
      'This Worker requires compatibility date "' +
        date +
        '", but the newest date supported by this server binary is "' +
        host.compatibilityDateNewest +
        '".',
    );
  }
}

// Flags that ask for what is not settled yet. With `allowExperimental` they ask for nothing here.
const experimentalFlags = { __proto__: null, experimental: true, enable_abortsignal_rpc: true };

// Answers the flags that the host is to know of.
function checkFlags(flags, allowExperimental) {
  const known = host.compatibilityFlags;
  const seen = { __proto__: null };
  const kept = newList();
  for (let index = 0; index < flags.length; index++) {
    const flag = flags[index];
    if (experimentalFlags[flag] === true) {
      if (allowExperimental) continue;
      throw new ErrorConstructor(
        "The compatibility flag " +
          flag +
          " is experimental and may break or be removed in a future version of " +
          "workerd. To use this flag, you must pass --experimental on the command line.",
      );
    }
    let isKnown = false;
    for (let at = 0; at < known.length; at++) isKnown = isKnown || known[at] === flag;
    if (!isKnown) throw new ErrorConstructor("No such compatibility flag: " + flag);
    if (seen[flag] === true) throw new ErrorConstructor("Compatibility flag specified multiple times: " + flag);
    seen[flag] = true;
    kept[kept.length] = flag;
  }
  return kept;
}

// `limits: { cpuMs, subRequests }` of `options`, into `into`; 0 and what is not there ask for nothing.
function readLimits(options, into, type) {
  const { limits } = options;
  if (limits === undefined) return;
  if (!isObjectValue(limits)) throw wrongType("limits", type, "Limits");
  into.cpuMs = readLimit(limits.cpuMs);
  into.subRequests = readLimit(limits.subRequests);
}

function readLimit(value) {
  if (value === undefined) return 0;
  const number = +value;
  if (number !== MathFloor(number) || number - number !== 0) {
    throw new TypeErrorConstructor("The value cannot be converted because it is not an integer.");
  }
  if (number < 0) {
    throw new TypeErrorConstructor(
      "The value cannot be converted because it is negative and this API expects a positive number.",
    );
  }
  if (number > 4294967295) {
    throw new TypeErrorConstructor("Value out of range. Must be less than or equal to 4294967295.");
  }
  return number;
}

// [how, stub]: where the worker's requests go.
function readOutbound(value) {
  if (value === undefined) return listOfTwo(OUTBOUND_INHERIT, undefined);
  if (value === null) return listOfTwo(OUTBOUND_NONE, undefined);
  if (!isService(value)) throw wrongType("globalOutbound", "WorkerCode", "Fetcher");
  return listOfTwo(OUTBOUND_GATEWAY, value);
}

function isService(value) {
  const handle = handleOf(value);
  return handle !== undefined && handle.isRoot && handle.hook.kind !== PENDING;
}

function readTails(code) {
  const tails = newList();
  addTails(tails, code.tails, "tails");
  addTails(tails, code.streamingTails, "streamingTails");
  return tails;
}

function addTails(tails, list, field) {
  if (list === undefined) return;
  if (!ArrayIsArray(list)) throw wrongType(field, "WorkerCode", "Array");
  for (let index = 0; index < list.length; index++) {
    const tail = list[index];
    if (!isService(tail)) throw wrongType(field, "WorkerCode", "Fetcher");
    tails[tails.length] = tail;
  }
}

// [name, kind, body, …]
function readModules(modules, mainModule) {
  if (!isObjectValue(modules)) throw wrongType("modules", "WorkerCode", "object");
  const names = ObjectKeys(modules);
  if (names.length === 0) {
    throw new TypeErrorConstructor("Dynamic Worker code must contain at least one module.");
  }
  const flat = newList();
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    const module = modules[name];
    if (typeof module === "string") addNamed(flat, name, module, mainModule);
    else if (isObjectValue(module)) addTyped(flat, name, module, mainModule);
    else {
      throw new TypeErrorConstructor(
        "Incorrect type for map entry '" + name + "': the provided value is not of type 'string or Module'.",
      );
    }
  }
  return flat;
}

function addModule(flat, name, kind, body) {
  flat[flat.length] = name;
  flat[flat.length] = kind;
  flat[flat.length] = body;
}

function endsWith(name, ending) {
  return StringPrototypeSlice(name, -ending.length) === ending;
}

// A module of which only the name says what it is.
function addNamed(flat, name, body, mainModule) {
  // Workers take only the first of these.
  const isES =
    endsWith(name, ".js") ||
    endsWith(name, ".ts") ||
    endsWith(name, ".mts") ||
    endsWith(name, ".tsx") ||
    endsWith(name, ".jsx");
  if (isES) {
    addModule(flat, name, MODULE_ES, body);
    return;
  }
  if (endsWith(name, ".py")) throw pythonModule(name, mainModule);
  throw new TypeErrorConstructor(
    "Module name must end with '.js' or '.py' (or the content must be an object indicating the type explicitly). Got: " +
      name,
  );
}

function pythonModule(name, mainModule) {
  return new TypeErrorConstructor(
    endsWith(mainModule, ".py")
      ? 'Module "' + name + '" is a Python module, which is not available here.'
      : 'Module "' + name + "\" is a Python module, but the main module isn't a Python module.",
  );
}

// A module that says what it is.
function addTyped(flat, name, module, mainModule) {
  const { js, cjs, text: plain, data, json, py, wasm } = module;
  let count = 0;
  if (js !== undefined) count++;
  if (cjs !== undefined) count++;
  if (plain !== undefined) count++;
  if (data !== undefined) count++;
  if (json !== undefined) count++;
  if (py !== undefined) count++;
  if (wasm !== undefined) count++;
  if (count !== 1) {
    throw new TypeErrorConstructor(
      "Each module must contain exactly one of 'js', 'cjs', 'text', 'data', 'json', 'py', or 'wasm'. Module '" +
        name +
        "' contained " +
        count +
        " properties.",
    );
  }
  if (js !== undefined) addModule(flat, name, MODULE_ES, webString(js));
  else if (cjs !== undefined) addModule(flat, name, MODULE_COMMONJS, webString(cjs));
  else if (plain !== undefined) addModule(flat, name, MODULE_TEXT, webString(plain));
  else if (json !== undefined) addModule(flat, name, MODULE_JSON, jsonText(json));
  else if (data !== undefined) addModule(flat, name, MODULE_DATA, data);
  else if (py !== undefined) throw pythonModule(name, mainModule);
  else throw new TypeErrorConstructor('Module "' + name + '" is WebAssembly, which is not available yet.');
}

function jsonText(value) {
  const json = JSONStringify(value);
  if (json === undefined) throw wrongType("json", "Module", "object");
  return json;
}
