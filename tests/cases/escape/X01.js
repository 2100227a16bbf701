// source: vm2, category 1; vm2 issue 184
// rule: what is reachable from a worker's globals evaluates no text and is no host's object
// expected: {"evaluated":["EvalError","EvalError","EvalError"],"hosts":[]}
export default {
  run(_) {
    const tries = [
      () => this.constructor.constructor("return globalThis")(),
      () => (async () => {}).constructor("return 1")(),
      () => Object.getPrototypeOf(function* () {}).constructor("return 1")(),
    ];
    const evaluated = tries.map((attempt) => {
      try { return String(attempt()); } catch (error) { return error.name; }
    });
    const hosts = ["process", "std", "os", "Javy", "bjson", "scriptArgs", "require", "module", "Deno", "host"];
    return { evaluated, hosts: hosts.filter((name) => name in globalThis) };
  },
};
