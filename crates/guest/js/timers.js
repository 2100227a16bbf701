// setTimeout, setInterval and their clear functions.
//
// Owns: which callback belongs to which timer. The host keeps the time: a timer is a host operation that it settles.
// Must never: run a callback that was cleared, or evaluate a string.

// A timer's public id to the host operation that it waits for now; an interval's changes with every round.
// The property keeps its shape apart from that of `waiting`, which gets the same keys in the same order: the engine
// copies a shape that two objects share each time one of them grows.
const timerOperations = { __proto__: null, none: undefined };

const DELAY_MAX = 2147483647;

function toMilliseconds(delay) {
  const number = +delay;
  // As in browsers: what is not a positive 31-bit number counts as none.
  return number >= 1 && number <= DELAY_MAX ? MathFloor(number) : 0;
}

// Calls a function of ours after `delay` ms. Answers what `cancelDelay` takes.
function startDelay(delay, run) {
  const operation = host.startTimer(MathMin(delay, DELAY_MAX));
  waiting[operation] = { __proto__: null, timer: 0, run };
  return operation;
}

function cancelDelay(operation) {
  if (waiting[operation] === undefined) return;
  delete waiting[operation];
  host.cancel(operation);
}

{
  let nextId = 1;

  const start = (id, callback, delay, args, repeat) => {
    const operation = host.startTimer(delay);
    timerOperations[id] = operation;
    waiting[operation] = {
      __proto__: null,
      timer: id,
      run() {
        delete timerOperations[id];
        if (repeat) start(id, callback, delay, args, true);
        ReflectApply(callback, globalObject, args);
      },
    };
  };

  const set = (name, callback, delay, args, repeat) => {
    refuseInModuleScope();
    if (typeof callback !== "function") {
      throw new TypeErrorConstructor("Failed to execute '" + name + "': parameter 1 is not of type 'Function'.");
    }
    const time = toMilliseconds(delay);
    const id = nextId++;
    start(id, callback, time, args, repeat);
    return id;
  };

  const clear = (id) => {
    if (typeof id !== "number") return;
    const operation = timerOperations[id];
    if (operation === undefined) return;
    delete timerOperations[id];
    delete waiting[operation];
    host.cancel(operation);
  };

  const functions = {
    setTimeout(callback, delay, ...args) {
      return set("setTimeout", callback, delay, args, false);
    },
    setInterval(callback, delay, ...args) {
      return set("setInterval", callback, delay, args, true);
    },
    clearTimeout(id) {
      clear(id);
    },
    clearInterval(id) {
      clear(id);
    },
  };
  defineGlobal("setTimeout", functions.setTimeout);
  defineGlobal("setInterval", functions.setInterval);
  defineGlobal("clearTimeout", functions.clearTimeout);
  defineGlobal("clearInterval", functions.clearInterval);
}
