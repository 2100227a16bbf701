
// The module "cloudflare:workers": base classes that mark what can be called, and `env`.
//
// Owns: the env object, which is one and the same in the module and in every handler's arguments.

class WorkerEntrypoint {
  constructor(ctx, env) {
    this.ctx = ctx;
    this.env = env;
  }
}

class RpcTarget {}

const env = {};
const WorkerEntrypointPrototype = WorkerEntrypoint.prototype;
const RpcTargetPrototype = RpcTarget.prototype;

// Evaluated once, before the snapshot. `import.meta` of that module is its own.
const workersModuleSource = `
const { WorkerEntrypoint, RpcTarget, env, waitUntil } = import.meta.exports;
export { WorkerEntrypoint, RpcTarget, env, waitUntil };
`;

function waitUntil(promise) {
  // Handled, so that a rejection is not reported twice. The isolate runs what is pending as long as it lives.
  PromisePrototypeThen(PromiseResolve(promise), undefined, (reason) => reportRejection(reason));
}

const workersModuleExports = { WorkerEntrypoint, RpcTarget, env, waitUntil };

function fillEnv(bindings) {
  if (bindings === undefined) return;
  const names = ObjectKeys(bindings);
  for (let index = 0; index < names.length; index++) {
    const name = names[index];
    ObjectDefineProperty(env, name, {
      __proto__: null,
      value: bindings[name],
      writable: true,
      enumerable: true,
      configurable: true,
    });
  }
}

function reportRejection(reason) {
  host.log(4, `Uncaught (in promise) ${inspect(reason)}`);
}
