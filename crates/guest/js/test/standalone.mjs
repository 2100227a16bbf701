// The cases as two scripts for a QuickJS shell, the engine that counts: V8 hides what only QuickJS does,
// such as to call String.prototype.concat for a template literal. run.mjs hands them to the shell that the
// environment variable CORACLE_QJS names (it must offer `print` and `--include`), and skips it where there
// is none.

import { consoleCases, inspectCases } from "./cases.mjs";
import { replaceEverything } from "./hostile.mjs";

const literal = (expected) => (expected instanceof RegExp ? `${expected}` : JSON.stringify(expected));

// The first script: the prelude, in a file of its own, by whose name its stack frames are known.
export const preludeScript = (source, exported) =>
  `globalThis.preparePrelude = (function (host) { "use strict"; ${source}\nreturn ${exported}; });`;

// The second. It prints what differs, then `<number> checks, <number> failures`. `hostile` replaces every
// built-in first and leaves out the cases that run user code by design.
export function standaloneScript(hostile) {
  const inspected = inspectCases.filter(([value]) => !hostile || !/Proxy/.test(value));
  const called = consoleCases.filter(([calls]) => !hostile || !/Proxy|%j|here/.test(calls));
  return `
globalThis.clock = { now: 1000 };
Date.now = () => clock.now;
((print, prepare) => {
  const { apply, ownKeys } = Reflect;
  const exec = Function.prototype.call.bind(RegExp.prototype.exec);
  const host = {
    __proto__: null, log() {}, random() {}, clone() {}, fillRandom() {},
    // As the Rust core does, without the columns.
    cleanStack(text) {
      let clean = "";
      for (let start = 0; start < text.length; ) {
        let end = start;
        while (end < text.length && text[end] !== "\\n") end++;
        let line = "";
        for (let i = start; i < end; i++) line += text[i];
        if (exec(/prelude\.js:/, line) === null) clean += clean === "" ? line : "\\n" + line;
        start = end + 1;
      }
      return clean;
    },
  };
  delete globalThis.preparePrelude;
  const prelude = prepare(host);
  let messages;
  const real = prelude.makeConsole((level, text) => { messages[messages.length++] = { __proto__: null, level, text }; });
  const clear = () => { messages = { __proto__: null, length: 0 }; };
  const inspected = [${inspected.map(([value, expected]) => `[${value}, ${literal(expected)}]`)}];
  const called = [${called.map(([calls, expected]) => `[${calls}, [${expected.map(([level, text]) => `[${level}, ${literal(text)}]`)}]]`)}];
  const values = [];
  for (let i = 0; i < inspected.length; i++) values[i] = inspected[i][0]();
  const names = ownKeys(real);
  globalThis.console = real;
  const recorder = ${hostile ? `(${replaceEverything})()` : "{ calls: [] }"};
  if (${hostile}) {
    globalThis.console = { __proto__: null };
    for (let i = 0; i < names.length; i++) console[names[i]] = (...args) => {
      recorder.on = true;
      try { apply(real[names[i]], undefined, args); } finally { recorder.on = false; }
    };
  }
  let checks = 0;
  let failures = 0;
  function check(what, actual, expected) {
    checks++;
    const same = typeof expected === "string" ? actual === expected : exec(expected, actual) !== null;
    if (!same) print("differs: " + what + "\\nactual: " + actual + "\\nexpected: " + expected);
    if (recorder.calls.length > 0) print("called: " + what + ": " + recorder.calls[0]);
    if (!same || recorder.calls.length > 0) failures++;
    recorder.calls.length = 0;
  }
  for (let i = 0; i < inspected.length; i++) {
    recorder.on = true;
    const text = prelude.inspect(values[i]);
    recorder.on = false;
    check(inspected[i][0], text, inspected[i][1]);
  }
  for (let i = 0; i < called.length; i++) {
    const calls = called[i][0];
    const expected = called[i][1];
    clear();
    console.countReset(); console.countReset("x"); console.countReset("Symbol(s)");
    clear();
    calls();
    check(calls, "" + messages.length, "" + expected.length);
    for (let j = 0; j < messages.length && j < expected.length; j++) {
      check(calls, "" + messages[j].level, "" + expected[j][0]);
      check(calls, messages[j].text, expected[j][1]);
    }
  }
  print(checks + " checks, " + failures + " failures");
})(print, preparePrelude);
`;
}
