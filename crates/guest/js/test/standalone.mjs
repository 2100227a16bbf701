// The cases as one script for a QuickJS shell, the engine that counts: V8 hides what only QuickJS does,
// such as to call String.prototype.concat for a template literal. run.mjs hands it to the shell that the
// environment variable CORACLE_QJS names (it must offer `print`), and skips it where there is none.

import { consoleCases, inspectCases } from "./cases.mjs";
import { replaceEverything } from "./hostile.mjs";

const literal = (expected) => (expected instanceof RegExp ? `${expected}` : JSON.stringify(expected));

// The script prints what differs, then `<number> checks, <number> failures`. `hostile` replaces every
// built-in first and leaves out the cases that run user code by design.
export function standaloneScript(source, hostile) {
  const inspected = inspectCases.filter(([value]) => !hostile || !/Proxy/.test(value));
  const called = consoleCases.filter(([calls]) => !hostile || !/Proxy|%j|here/.test(calls));
  return `
globalThis.clock = { now: 1000 };
Date.now = () => clock.now;
((print) => {
  const { apply, ownKeys } = Reflect;
  const exec = Function.prototype.call.bind(RegExp.prototype.exec);
  const prelude = (function (host) { "use strict"; ${source}
    return { inspect, makeConsole }; })(undefined);
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
})(print);
`;
}
