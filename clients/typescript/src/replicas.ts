// Where servers are, and when they are tried: another one after each connection, and ever more slowly while none answers.

import { open } from "#websocket";
import { ConnectError } from "./errors.js";

// The first wait is at most so long, in milliseconds; each further one may be twice as long.
const WAIT_MS = 100;
const WAIT_MS_MAX = 5_000;

/** How long to wait after so many rounds in which no server answered. All clients of a server that is back don't come at once. */
export function waitMs(rounds: number, random: () => number = Math.random): number {
  return random() * Math.min(WAIT_MS_MAX, WAIT_MS * 2 ** rounds);
}

export class Replicas {
  readonly #addresses: URL[];
  #next: number;
  #roundsFailed = 0;

  constructor(addresses: URL[]) {
    if (addresses.length === 0) throw new TypeError("there is no URL to connect to");
    this.#addresses = addresses;
    this.#next = Math.floor(Math.random() * addresses.length);
  }

  get count(): number {
    return this.#addresses.length;
  }

  /** Opens a socket to the next one, within so many milliseconds. @throws {ConnectError} */
  openOne(timeoutMs: number, signal: AbortSignal): Promise<WebSocket> {
    const address = this.#addresses[this.#next]!;
    this.#next = (this.#next + 1) % this.#addresses.length;
    return opened(address, timeoutMs, signal);
  }

  /** Opens a socket to whichever answers, for as long as there is patience. @throws {ConnectError} the last failure. */
  async openAny(timeoutMs: number, patienceMs: number, signal: AbortSignal): Promise<WebSocket> {
    const until = performance.now() + patienceMs;
    for (;;) {
      const leftMs = until - performance.now();
      await wait(Math.min(waitMs(this.#roundsFailed), leftMs), signal);
      this.#roundsFailed += 1;
      for (let tried = 1; ; tried++) {
        try {
          return await this.openOne(timeoutMs, signal);
        } catch (error) {
          if (signal.aborted || (tried >= this.count && performance.now() >= until)) throw error;
          if (tried >= this.count) break;
        }
      }
    }
  }

  /** One of them has let us in. */
  answered(): void {
    this.#roundsFailed = 0;
  }
}

function wait(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}

function opened(address: URL, timeoutMs: number, signal: AbortSignal): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const failed = (reason: string) => {
      clearTimeout(timer);
      reject(new ConnectError(`can't connect to ${address.host}: ${reason}`, true));
    };
    if (signal.aborted) return reject(new ConnectError("connecting was given up", false));
    const socket = open(address.href);
    const timer = setTimeout(() => {
      failed(`no answer within ${timeoutMs} ms`);
      socket.close();
    }, timeoutMs);
    signal.addEventListener("abort", () => socket.close(), { once: true });
    socket.addEventListener("open", () => (clearTimeout(timer), resolve(socket)), { once: true });
    socket.addEventListener("close", () => failed("it was closed before it began"), { once: true });
    socket.addEventListener(
      "error",
      (event) => failed((event as Event & { message?: string }).message ?? "the server can't be reached"),
      { once: true },
    );
  });
}
