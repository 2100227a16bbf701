// A login: what loads workers.

import { RpcTarget } from "capnweb";
import type { Fetcher, Report, Worker, WorkerCode } from "./worker.js";

/** A connection, and the login that was made with it. */
export interface Connection {
  /** What the server calls the session, or a promise of it. */
  session: any;
  /** Settles when the connection has ended, with the reason. */
  ended: Promise<Error>;
  isOver(): boolean;
  close(): void;
}

/**
 * What loads workers. Everything that came from it ends when it is disposed of, or when its connection ends. After that it
 * connects again by itself when it is used.
 */
export class Loader implements Disposable {
  #connection: Connection;
  readonly #connect: (() => Connection) | undefined;
  /** Those that were left, with what is still underway on them. */
  readonly #left = new Set<Connection>();
  #isDisposed = false;

  /** Use `connect`. */
  constructor(connection: Connection, connect?: () => Connection) {
    this.#connection = connection;
    this.#connect = connect;
  }

  /** The session of a connection that there is. */
  get #session(): any {
    const isGone = this.#connection.isOver() || this.#left.has(this.#connection);
    if (isGone && this.#connect !== undefined && !this.#isDisposed) this.#connection = this.#connect();
    return this.#connection.session;
  }

  /**
   * Loads a worker. Each is one of its own: two loads never share module state. Nothing has to be awaited before it is used;
   * what is wrong with the code shows where it is.
   */
  load(code: WorkerCode): Worker {
    return this.#session.load(this.#prepared(code));
  }

  /**
   * The worker that this login has by that id, with its module state. Where there is none, `source` is asked for the code, once,
   * whoever else asks for the same id meanwhile. What fails is not kept.
   */
  get(id: string, source: () => WorkerCode | Promise<WorkerCode>): Worker {
    return this.#session.get(id, async () => this.#prepared(await source()));
  }

  /**
   * Calls a method, and answers with all that is known of the call: what it came to, what it cost, what it wrote to the console.
   * It does not throw what the worker throws. The target is an entrypoint, or a function or an object that a worker returned.
   */
  report<T = unknown>(target: object, method: string | string[], ...args: unknown[]): Promise<Report<T>> {
    return this.#session.report(target, method, args);
  }

  /** The tenant that pays for what is done here. */
  tenant(): Promise<string> {
    return this.#session.tenant();
  }

  /**
   * Has the next use connect anew, to another server where it knows several. For when a server is shutting down and refuses new
   * work, with a `RefusedError` of the kind `disconnected`: what is underway on the old connection goes on to its end, or to that
   * of the loader.
   */
  renew(): void {
    const connection = this.#connection;
    if (this.#connect === undefined || connection.isOver()) return;
    this.#left.add(connection);
    connection.ended.then(() => this.#left.delete(connection));
  }

  /** Settles when the connection has ended that there is now, with the reason. */
  get ended(): Promise<Error> {
    return this.#connection.ended;
  }

  /** Ends the login and everything that came from it, then the connection. */
  [Symbol.dispose](): void {
    this.#isDisposed = true;
    for (const connection of [...this.#left, this.#connection]) connection.close();
  }

  /**
   * A loader in `env` is the worker's to load workers with, as a worker loader binding. Whatever has a `fetch` can be where
   * requests go; what is passed by reference is an `RpcTarget`.
   */
  #prepared(code: WorkerCode): unknown {
    const prepared: Record<string, unknown> = { ...code };
    if (code?.env !== undefined && code.env !== null) {
      const env = Object.entries(code.env).map(([name, value]) => [
        name,
        value instanceof Loader ? value.#session : value,
      ]);
      prepared["env"] = Object.fromEntries(env);
    }
    const outbound = code?.globalOutbound;
    if (isPlainFetcher(outbound)) prepared["globalOutbound"] = new Outbound(outbound);
    return prepared;
  }
}

class Outbound extends RpcTarget {
  readonly #fetcher: Fetcher;

  constructor(fetcher: Fetcher) {
    super();
    this.#fetcher = fetcher;
  }

  fetch(request: Request): Response | Promise<Response> {
    return this.#fetcher.fetch(request);
  }
}

// (Stubs are functions.)
function isPlainFetcher(outbound: unknown): outbound is Fetcher {
  if (typeof outbound !== "object" || outbound === null || outbound instanceof RpcTarget) return false;
  return typeof (outbound as { fetch?: unknown }).fetch === "function";
}
