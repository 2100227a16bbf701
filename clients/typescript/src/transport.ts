// What carries messages: a WebSocket, with a message in each of its own.

import type { RpcTransport } from "capnweb";
import { DisconnectedError } from "./errors.js";

// A close frame has room for so many bytes of text.
const REASON_BYTES_MAX = 123;

export class SocketTransport implements RpcTransport {
  #socket: WebSocket | undefined;
  readonly #opening = new AbortController();
  readonly #unsent: string[] = [];
  readonly #received: string[] = [];
  #waiting: { resolve(message: string): void; reject(error: Error): void } | undefined;
  #ended: Error | undefined;

  /** Takes what opens a socket. Until it is open, messages wait. */
  constructor(open: (signal: AbortSignal) => Promise<WebSocket>) {
    open(this.#opening.signal).then(
      (socket) => this.#begin(socket),
      (error) => this.end(error),
    );
  }

  /** Whether nothing goes through it any more. */
  get isOver(): boolean {
    return this.#ended !== undefined;
  }

  async send(message: string): Promise<void> {
    if (this.#socket === undefined) this.#unsent.push(message);
    else this.#socket.send(message);
  }

  receive(): Promise<string> {
    const message = this.#received.shift();
    if (message !== undefined) return Promise.resolve(message);
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
    });
  }

  abort(reason: unknown): void {
    const error = reason instanceof Error ? reason : new DisconnectedError(String(reason), true);
    const text = new TextDecoder().decode(new TextEncoder().encode(error.message).slice(0, REASON_BYTES_MAX - 3));
    this.end(error, 3000, text);
  }

  /** Ends it, with the error that everything gets which still wants something of it. */
  end(error: Error, code = 1000, reason = ""): void {
    this.#ended ??= error;
    this.#waiting?.reject(this.#ended);
    this.#waiting = undefined;
    this.#unsent.length = 0;
    this.#opening.abort();
    this.#socket?.close(code, reason);
  }

  #begin(socket: WebSocket): void {
    if (this.#ended !== undefined) return socket.close();
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#receive(event.data));
    socket.addEventListener("close", (event) => {
      const reason = event.reason === "" ? String(event.code) : event.reason;
      this.end(new DisconnectedError(`the connection to the server has ended: ${reason}`, true));
    });
    socket.addEventListener("error", () => {
      this.end(new DisconnectedError("the connection to the server is broken", true));
    });
    for (const message of this.#unsent.splice(0)) socket.send(message);
  }

  #receive(data: unknown): void {
    if (typeof data !== "string") return this.abort("a message is not text");
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#received.push(data);
    else waiting.resolve(data);
  }
}
