// The web platform's classes: what user code replaces is neither called nor seen by them.
// Run with `node --test crates/guest/js/test/`.

import assert from "node:assert/strict";
import { setImmediate } from "node:timers/promises";
import { test } from "node:test";

import { newContext } from "./context.mjs";
import { replaceEverything } from "./hostile.mjs";
import { webOperations } from "./web-operations.mjs";

for (const hostile of [false, true]) {
  test(`the web platform's classes work${hostile ? " where every built-in is replaced" : ""}`, async () => {
    const { evaluate } = newContext();
    const operations = evaluate(`(${webOperations})()`);
    const recorder = hostile ? evaluate(`(${replaceEverything})()`) : { on: false, calls: [] };
    // The language itself asks what a promise is resolved with whether it is a thenable.
    if (hostile) evaluate("delete Object.prototype.then");
    for (const [name, run, expected] of operations) {
      recorder.on = true;
      let result;
      try {
        result = run();
        if (typeof result === "object" && result !== null) await setImmediate();
      } catch (error) {
        recorder.on = false;
        throw new Error(`${name}: ${error?.stack ?? error}`);
      }
      recorder.on = false;
      assert.equal(result?.later ?? result, expected, name);
      assert.deepEqual([...recorder.calls], [], name);
    }
  });
}
