// How calls fail, beyond what a worker throws.
//
// Errors come off the wire as plain `Error`s. What makes one a verdict is a property that the server sets and takes from
// whatever a worker throws, so that `instanceof` here asks for that.

import type { Usage } from "./worker.js";

export type VerdictKind =
  | "fuel"
  | "cpu"
  | "startup"
  | "wall"
  | "memory"
  | "stack"
  | "subrequests"
  | "timers"
  | "exports"
  | "args_size"
  | "result_size"
  | "value_depth"
  | "hung"
  | "cancelled"
  | "isolate_lost"
  | "isolate_evicted"
  | "trap";

/** What stopped an invocation. A worker can't forge one. */
export interface Verdict {
  kind: VerdictKind;
  /** The limit that was exceeded, in the spelling of `docs/limits.md`, such as `memory_bytes_max`; empty where none was. */
  limitName: string;
  /** In the unit of the limit's name. */
  used: number;
  limit: number;
  /** A sentence that says what happened and what can be done. */
  message: string;
  /** Whether any code of the invocation ran. If not, it is safe to retry. */
  started: boolean;
  /** Calls that had left the sandbox before. */
  subrequestsSent: number;
}

/** Why the server did not take a request on. */
export interface Refusal {
  /** `overloaded`: retry later. `disconnected`: connect again. `failed`: the same request would be refused again. */
  kind: "overloaded" | "disconnected" | "failed";
}

const has = (value: unknown, name: string): boolean =>
  value instanceof Error && typeof (value as unknown as Record<string, unknown>)[name] === "object";

/** An invocation was stopped: by a limit, or because nothing could have settled it. `error instanceof VerdictError` is how to ask. */
export class VerdictError extends Error {
  declare readonly verdict: Verdict;
  /** What the invocation had cost by then. */
  declare readonly usage: Usage;

  private constructor() {
    super();
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return has(value, "verdict");
  }
}

/** The server refused a request: code that can't be loaded, a login, too much at once. `error instanceof RefusedError` is how to ask. */
export class RefusedError extends Error {
  declare readonly refusal: Refusal;

  private constructor() {
    super();
  }

  static override [Symbol.hasInstance](value: unknown): boolean {
    return has(value, "refusal");
  }
}

/** There is no connection, or none any more. */
export class ConnectError extends Error {
  override readonly name: string = "ConnectError";

  constructor(
    message: string,
    /** Whether trying again may help. */
    readonly retryable: boolean,
  ) {
    super(message);
  }
}

/**
 * The connection ended, and with it everything that came from it: entrypoints, functions and objects, and the calls that were
 * underway, of which nobody knows whether they ran. `retryable` tells whether the loader connects again when it is used: it does,
 * unless it was disposed of.
 */
export class DisconnectedError extends ConnectError {
  override readonly name = "DisconnectedError";
}
