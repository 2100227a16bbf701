// What carries messages: a WebSocket, with a message in each of its own.

import type { RpcTransport } from "capnweb";
import { ConnectError } from "./errors.js";

// A close frame has room for so many bytes of text.
const REASON_BYTES_MAX = 123;

export class SocketTransport implements RpcTransport {
  readonly #socket: WebSocket;
  readonly #received: string[] = [];
  #waiting: { resolve(message: string): void; reject(error: Error): void } | undefined;
  #ended: Error | undefined;

  /** Takes a socket that is open. */
  constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.addEventListener("message", (event) => this.#receive(event.data));
    socket.addEventListener("close", (event) => {
      const reason = event.reason === "" ? String(event.code) : event.reason;
      this.#end(new ConnectError(`the connection to the server has ended: ${reason}`));
    });
    socket.addEventListener("error", () => this.#end(new ConnectError("the connection to the server is broken")));
  }

  async send(message: string): Promise<void> {
    this.#socket.send(message);
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
    const text = reason instanceof Error ? reason.message : String(reason);
    this.close(3000, new TextDecoder().decode(new TextEncoder().encode(text).slice(0, REASON_BYTES_MAX - 3)));
  }

  close(code: number, reason: string): void {
    this.#end(new ConnectError("the connection to the server was closed here"));
    this.#socket.close(code, reason);
  }

  #receive(data: unknown): void {
    if (typeof data !== "string") return this.abort("a message is not text");
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#received.push(data);
    else waiting.resolve(data);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#waiting?.reject(this.#ended);
    this.#waiting = undefined;
  }
}
