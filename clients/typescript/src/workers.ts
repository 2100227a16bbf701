// What `cloudflare:workers` is outside of Workers: the classes that libraries written for Workers extend.
//
// `coracle/register` has Node take it for that module; with a bundler, alias `cloudflare:workers` to `coracle/workers`.

import { RpcTarget } from "capnweb";

export { RpcPromise, RpcStub, RpcTarget } from "capnweb";

/** An object that is passed by reference and has a context and bindings. */
abstract class WithContext<Env, Context> extends RpcTarget {
  constructor(
    protected readonly ctx: Context,
    protected readonly env: Env,
  ) {
    super();
  }
}

/** The base of entrypoints and of Code Mode's connectors. Here, whoever makes one says what its context is. */
export abstract class WorkerEntrypoint<Env = unknown, Context = any> extends WithContext<Env, Context> {}

/** The base of classes that are durable on Workers. There is no storage here but what its context has. */
export abstract class DurableObject<Env = unknown, Context = any> extends WithContext<Env, Context> {}
