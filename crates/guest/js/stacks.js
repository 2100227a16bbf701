// What a worker sees of stacks: its own frames, never ours.
//
// Owns: `error.stack` and Error.captureStackTrace, and what call sites give away.
// Must never: let user code get hold of a function of the prelude's.
//
// `host.cleanStack(text, classes)` removes the prelude's frames and those of the error's own constructors,
// and counts columns as everybody else does. The header with name and message, which QuickJS leaves out, is
// put before the frames as in V8, because what is logged and returned is `error.stack` more often than
// anything else.

const STACK_CLASSES_MAX = 16;

// QuickJS-ng gives `Error.prepareStackTrace` a call site for every frame, and `getFunction` returns the
// function even where it is strict: in any callback from the prelude, user code could pick up the
// prelude's own functions. Call sites keep their other methods, which return only text and numbers.
// (V8's can't be deleted, and returns no strict functions.)
{
  Error.prepareStackTrace = (_error, sites) => sites;
  const sites = new Error().stack;
  Error.prepareStackTrace = undefined;
  const site = ArrayIsArray(sites) ? sites[0] : undefined;
  if (site?.getFunction !== undefined) {
    const isDeleted = ReflectDeleteProperty(ReflectGetPrototypeOf(site), "getFunction");
    if (!isDeleted && site.getFunction() !== undefined) throw new Error("call sites give functions away");
  }
}

// Where a function was written is its own affair, and the engine tells it of ours as well.
ReflectDeleteProperty(Function.prototype, "fileName");
ReflectDeleteProperty(Function.prototype, "lineNumber");
ReflectDeleteProperty(Function.prototype, "columnNumber");

// It counts our frames, too, of which there are four below every handler.
Error.stackTraceLimit = 20;

// The engine's stack of an error as a worker sees it, without a header; undefined where there is none.
function stackFrames(error) {
  const frames =
    ErrorPrototypeGetStack === undefined ? ownData(error, "stack") : ErrorPrototypeGetStack(error);
  if (typeof frames !== "string") return undefined;
  return isEngineStack(frames) ? host.cleanStack(frames, classNames(error)) : frames;
}

// The engine's own text is frames and nothing else; what Error.prepareStackTrace made is left as it is.
function isEngineStack(text) {
  return text === "" || StringPrototypeStartsWith(text, "    at ");
}

// The names of an error's classes: their constructors are on the stack when it is made, but nobody wants to know
// where the class was written.
function classNames(error) {
  const names = newList();
  try {
    let it = ReflectGetPrototypeOf(error);
    for (let i = 0; it !== null && i < STACK_CLASSES_MAX; i++) {
      const constructor = ownData(it, "constructor");
      const name = typeof constructor === "function" ? ownData(constructor, "name") : undefined;
      if (typeof name === "string") names[names.length] = name;
      it = ReflectGetPrototypeOf(it);
    }
  } catch {
    // The trap of a Proxy threw.
  }
  return names;
}

if (ErrorPrototypeGetStack !== undefined) {
  const header = (error) => {
    let name;
    let message;
    try {
      name = error.name;
      message = error.message;
    } catch {
      // A getter of the worker's threw.
    }
    if (typeof name !== "string") name = "Error";
    return typeof message === "string" && message !== "" ? name + ": " + message : name;
  };
  const accessors = {
    get stack() {
      const frames = ErrorPrototypeGetStack(this);
      if (typeof frames !== "string" || !isEngineStack(frames)) return frames;
      const text = host.cleanStack(frames, classNames(this));
      return text === "" ? header(this) : header(this) + "\n" + text;
    },
  };
  ObjectDefineProperty(ErrorPrototype, "stack", {
    __proto__: null,
    get: ReflectGetOwnPropertyDescriptor(accessors, "stack").get,
  });

  const captureStackTrace = Error.captureStackTrace;
  const functions = {
    captureStackTrace(target, until) {
      captureStackTrace(target, until);
      const frames = ownData(target, "stack");
      if (typeof frames !== "string" || !isEngineStack(frames)) return;
      ObjectDefineProperty(target, "stack", {
        __proto__: null,
        value: header(target) + "\n" + host.cleanStack(frames, newList()),
      });
    },
  };
  ObjectDefineProperty(Error, "captureStackTrace", { __proto__: null, value: functions.captureStackTrace });
}
