// The shapes of what is loaded and called: those of the Workers documentation, and what is ours besides.

import type { RpcStub, RpcTarget } from "capnweb";
import type { Verdict } from "./errors.js";

/** A module of a worker: a string is JavaScript or, by the ending of its name, TypeScript or JSX. */
export type Module =
  | string
  | { js: string }
  | { cjs: string }
  | { text: string }
  | { json: unknown }
  | { data: ArrayBuffer | ArrayBufferView };

/**
 * What an invocation may use. A limit can only lower what the server allows; of the worker's and the entrypoint's the lower one
 * wins. What is left out is the server's default, which `docs/limits.md` lists.
 */
export interface Limits {
  /** CPU time in milliseconds; the name that Workers have for `cpuMsMax`. */
  cpuMs?: number;
  /** Calls out of the sandbox; the name that Workers have for `subrequestsMax`. */
  subRequests?: number;
  /** Wasm fuel: about 15,000,000 a millisecond, the same for the same run. */
  fuelMax?: number;
  /** CPU time in milliseconds, that of evaluating the modules included; waiting is not counted. */
  cpuMsMax?: number;
  /** Fuel for evaluating the modules. */
  startupFuelMax?: number;
  /** Time from dispatch to answer in milliseconds, waiting included. */
  wallMsMax?: number;
  /** Memory of the sandbox in bytes. */
  memoryBytesMax?: number;
  /** Calls out of the sandbox that one invocation may start. */
  subrequestsMax?: number;
  /** Of these, how many may wait at once. */
  subrequestsInFlightMax?: number;
  /** How long one of these may wait for its answer, in milliseconds; then it throws. */
  subrequestMsMax?: number;
  /** Encoded arguments in bytes. */
  argsBytesMax?: number;
  /** Encoded result in bytes. */
  resultBytesMax?: number;
  /** Console output in bytes; what is beyond is dropped and marked. */
  logBytesMax?: number;
  /** Nesting of arguments and results. */
  valueDepthMax?: number;
  /** References that the sandbox may have given out and not got back. */
  exportsMax?: number;
}

/** Something that answers requests: a worker's entrypoint, or an object of yours that a worker's `fetch` goes to. */
export interface Fetcher {
  fetch(request: Request): Response | Promise<Response>;
}

/** Something that is told of each invocation when it is over. */
export interface Tail {
  tail(events: unknown[]): unknown;
}

/** What a worker is made of. */
export interface WorkerCode {
  /** `YYYY-MM-DD`. Default: the newest date that the server knows. */
  compatibilityDate?: string;
  compatibilityFlags?: string[];
  /** The name of the module whose exports are the entrypoints. */
  mainModule: string;
  modules: Record<string, Module>;
  /** The worker's bindings: data, functions, instances of `RpcTarget`, stubs, and a {@link Loader} of this connection. */
  env?: Record<string, unknown>;
  /**
   * Where `fetch()` and `connect()` of the worker go: `null` is nowhere; an object with `fetch` is asked for each
   * request; `{ policy }` names one of the server's policies. Left out, the policy of the tenant holds, which allows
   * nothing unless the server's operator says otherwise.
   */
  globalOutbound?: Fetcher | RpcStub<any> | { policy: string } | null;
  limits?: Limits;
  /** What is told of each invocation when it is over. */
  tails?: ((RpcTarget & Tail) | RpcStub<any>)[];
  /** What is told while it runs, by calls of `tailStream`. */
  streamingTails?: (RpcTarget | RpcStub<any>)[];
}

export interface EntrypointOptions {
  /** What the entrypoint finds as `ctx.props`. */
  props?: Record<string, unknown>;
  /** Limits of each invocation, besides those of the worker. */
  limits?: Limits;
}

type IsAny<T> = 0 extends 1 & T ? true : false;

/**
 * An entrypoint of a worker, or a promise of one: both are called in the same way, and calls don't wait for it. `T` is the
 * interface of the worker's methods; without it, every name is a method that takes and returns anything.
 */
export type Entrypoint<T = any> = Disposable &
  (IsAny<T> extends true ? { [method: string]: any } & AnyFetcher : Stub<T>);

interface AnyFetcher {
  fetch(request: Request): Promise<Response>;
}

type Stub<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R
    ? (...args: A) => Promise<Awaited<R>> & Pipelined<Awaited<R>>
    : Promise<Awaited<T[K]>>;
};

/** What can be called on a result that is not there yet. */
type Pipelined<T> = T extends object
  ? { [K in keyof T as T[K] extends (...args: any[]) => unknown ? K : never]: T[K] extends (...args: infer A) => infer R
      ? (...args: A) => Promise<Awaited<R>>
      : never } & Disposable
  : Disposable;

/** A worker, or a promise of one: its methods don't wait for it. */
export interface Worker extends Disposable {
  /** The named export of the main module; without a name, its default export. Whether it exists shows at the first call. */
  getEntrypoint<T = any>(name?: string, options?: EntrypointOptions): Entrypoint<T>;
  /** Evaluates the modules, if that has not happened yet. */
  ready(): Promise<void>;
}

/** What an invocation cost. */
export interface Usage {
  /** Fuel for evaluating the modules for this call; 0 where the sandbox was there already. */
  fuelLoad: number;
  fuelRun: number;
  /** Version of the price list that fuel was counted by. */
  fuelSchedule: number;
  cpuMicros: number;
  wallMicros: number;
  memoryPeakBytes: number;
  /** Growths of memory that were refused. */
  memoryDenied: number;
  subrequests: number;
  bytesIn: number;
  bytesOut: number;
  /** Whether the sandbox had served an invocation before. */
  isolateReused: boolean;
}

export interface LogLine {
  level: "debug" | "info" | "log" | "warn" | "error";
  message: string;
  /** The worker's clock, in milliseconds since the epoch. */
  timestamp: number;
}

/** Everything that is known of a call. Of `value`, `error` and `verdict` it has the one that the call ended with. */
export interface Report<T = unknown> extends Disposable {
  value?: T;
  /** What the worker threw. */
  error?: unknown;
  /** What stopped it. */
  verdict?: Verdict;
  usage: Usage;
  /** What it wrote to the console, in order, also where it failed. */
  logs: LogLine[];
  /** Bytes of console output beyond the limit. */
  logBytesDropped: number;
}
