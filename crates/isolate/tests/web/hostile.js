// Everything that a worker can reach is replaced by what records its use; the classes' uses must record nothing.
import { replaceEverything } from "hostile.js";
import { webOperations } from "operations.js";

export default {
  run() {
    const operations = webOperations();
    const { setTimeout } = globalThis;
    const PromiseHere = Promise;
    const recorder = replaceEverything();
    // The language itself asks what a promise is resolved with whether it is a thenable.
    delete Object.prototype.then;
    const failures = [];
    const fail = (text) => { failures[failures.length] = text; };
    const check = (name, result, expected) => {
      recorder.on = false;
      if (result !== expected) fail(name + ": " + result);
      for (let index = 0; index < recorder.calls.length; index++) fail(name + " called " + recorder.calls[index]);
      recorder.calls.length = 0;
    };
    return new PromiseHere((resolve) => {
      // Without `await`, which would call what is replaced.
      const step = (index) => {
        if (index === operations.length) return void resolve({ checks: 2 * index, failures });
        const { 0: name, 1: run, 2: expected } = operations[index];
        let result;
        recorder.on = true;
        try { result = run(); } catch (error) { result = "threw"; }
        if (typeof result !== "object" || result === null) {
          check(name, result, expected);
          return void step(index + 1);
        }
        setTimeout(() => {
          check(name, result.later, expected);
          step(index + 1);
        }, 1);
      };
      step(0);
    });
  },
};
