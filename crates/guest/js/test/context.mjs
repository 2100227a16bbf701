// The prelude in a context of its own, put together as in the guest, with a host that notes what it is asked.

import { readFileSync } from "node:fs";
import { types } from "node:util";
import vm from "node:vm";

const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

// The files in the order in which the build joins them.
export const files = [...read("../../build.rs").matchAll(/^ {4}"(\w+\.js)",$/gm)].map(([, name]) => name);
export const texts = new Map(files.map((name) => [name, read(`../${name}`)]));
export const source = [...texts.values()].join("\n");

// What the tests ask the prelude for.
export const exported = "{ hooks, inspect, inspectKind, inspectView, makeConsole }";

// Stands in for the Rust core. `asked` notes every call as [name, ...arguments].
function newHost(asked, emit) {
  let operation = 100;
  const note = (name, answer) => (...args) => {
    asked.push([name, ...args]);
    return answer?.(...args);
  };
  return {
    log: emit,
    startTimer: note("startTimer", () => operation++),
    cancel: note("cancel"),
    startFetch: note("startFetch", () => operation++),
    random: note("random", () => 0.5),
    fillRandom: (buffer, offset, length) => void new Uint8Array(buffer, offset, length).fill(0xab),
    finish: note("finish"),
    finishThrown: note("finishThrown"),
    clone: note("clone", (value) => value),
    reportFinished() {},
    isPromise: types.isPromise,
    cleanStack: (text) => text.split("\n").filter((line) => !line.includes("coracle:prelude:")).join("\n"),
    compileCommonJs: note("compileCommonJs"),
    require: note("require", (importer, specifier) => `${specifier} for ${importer}`),
  };
}

// What the engine brings and a bare context of V8 does not.
const platform = `
  globalThis.queueMicrotask = (callback) => callback();
  // No Error, which V8 would ask for name and message when it is made.
  globalThis.DOMException = class DOMException {
    #name;
    #message;
    constructor(message = "", name = "Error") {
      this.#name = name;
      this.#message = message;
    }
    get name() { return this.#name; }
    get message() { return this.#message; }
  };
`;

// `messages` is what the console wrote, or what `emit` is given.
export function newContext(emit) {
  const context = vm.createContext();
  const evaluate = (code, filename) => vm.runInContext(code, context, { filename });
  evaluate(platform);
  evaluate("globalThis.clock = { now: 1000 }; Date.now = () => clock.now;");
  const messages = [];
  const asked = [];
  const host = newHost(asked, emit ?? ((level, text) => void messages.push([level, text])));
  const code = `(function (host) { "use strict"; ${source}\nreturn ${exported}; })`;
  const prelude = evaluate(code, "coracle:prelude")(host);
  return { context, evaluate, prelude, messages, host, asked };
}
