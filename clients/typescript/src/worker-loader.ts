// A loader as libraries that are written for Workers expect it: a binding whose workers and entrypoints are objects.
//
// Stubs of `capnweb` are functions and promises. Such libraries ask whether what they have is an object before they let go of it,
// and would keep every worker.

import type { Loader } from "./loader.js";
import type { EntrypointOptions, WorkerCode } from "./worker.js";

/** A `WorkerLoader` of Workers: what `LOADER` is there. */
export interface WorkerLoader {
  load(code: WorkerCode): WorkerStub;
  get(id: string, source: () => WorkerCode | Promise<WorkerCode>): WorkerStub;
}

export interface WorkerStub extends Disposable {
  getEntrypoint(name?: string, options?: EntrypointOptions): any;
}

/**
 * The binding `LOADER` of a login.
 *
 * ```ts
 * const executor = new DynamicWorkerExecutor({ loader: workerLoader(await coracle.connect(url)) });
 * ```
 */
export function workerLoader(loader: Loader): WorkerLoader {
  return {
    load: (code) => stubOf(loader.load(code)),
    get: (id, source) => stubOf(loader.get(id, source)),
  };
}

function stubOf(worker: ReturnType<Loader["load"]>): WorkerStub {
  return {
    getEntrypoint: (name, options) => objectOf(worker.getEntrypoint(name, options)),
    [Symbol.dispose]: () => worker[Symbol.dispose](),
  };
}

/** An entrypoint that is an object, and no promise. */
function objectOf(entrypoint: any): object {
  const own = { [Symbol.dispose]: () => entrypoint[Symbol.dispose]() };
  return new Proxy(own, {
    get: (_, name) => (name === Symbol.dispose ? own[Symbol.dispose] : name === "then" ? undefined : entrypoint[name]),
  });
}
