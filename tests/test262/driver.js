// The main module of every test's worker: evaluates the harness and the test in module scope, where code may be made of text,
// and says how it went.
//
// A script is evaluated by an indirect eval, which is the nearest to a script that a worker has: what it declares with let,
// const and class ends with it, and its variables can be deleted. A module is imported. What tests do to the globals must not
// reach this module, so it calls nothing of theirs afterwards.

import harness from "test262-harness.txt";
import test from "test262-test.txt";
import how from "test262-how.json";

const evaluate = eval;
const ErrorOf = Object;
const transfer = Function.prototype.call.bind(ArrayBuffer.prototype.transfer);
const isDetached = Function.prototype.call.bind(Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, "detached").get);
const define = Object.defineProperty;

let text = "";
let settle;
const done = new Promise((resolve) => (settle = resolve));

function describe(error) {
  try {
    return (ErrorOf(error).constructor?.name ?? "nothing") + "\n" + error?.message;
  } catch {
    return "unknown\n";
  }
}

define(globalThis, "print", {
  value(message) {
    if (message === "Test262:AsyncTestComplete") text ||= "done\n\n";
    else text ||= "failed\n\n" + message;
    settle();
  },
  writable: true,
  configurable: true,
});
define(globalThis, "$262", {
  value: {
    global: globalThis,
    detachArrayBuffer: (buffer) => void (isDetached(buffer) || transfer(buffer)),
    evalScript: (source) => evaluate(source),
  },
  writable: true,
  configurable: true,
});

try {
  if (harness !== "") evaluate(harness);
  if (how.module !== null) await import(how.module);
  else evaluate(test);
  if (how.isAsync) await done;
  else text = "done\n\n";
} catch (error) {
  text ||= "threw\n" + describe(error);
}

export default {
  outcome(_) {
    return text;
  },
};
