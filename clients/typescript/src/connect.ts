// Getting in: over a WebSocket for as long as it is needed, or with one HTTP request.

import { newHttpBatchRpcSession, RpcSession } from "capnweb";
import { open } from "#websocket";
import { ConnectError } from "./errors.js";
import { Loader } from "./loader.js";
import { SocketTransport } from "./transport.js";

export interface ConnectOptions {
  /** The bearer token. Without one, servers without tokens let in who is on their machine. */
  token?: string;
  /** How long connecting and logging in may take, in milliseconds. Default: 10,000. */
  timeoutMs?: number;
}

const PATH = "/rpc";
const TIMEOUT_MS = 10_000;

/**
 * Connects to a server that was started with `--listen-web`, and logs in.
 *
 * @param url such as `ws://127.0.0.1:7071` or `https://coracle.example`; without a path, `/rpc` is taken.
 * @throws {ConnectError} when there is no connection to be had.
 * @throws {RefusedError} when the token is not accepted.
 */
export async function connect(url: string | URL, options: ConnectOptions = {}): Promise<Loader> {
  const address = addressOf(url, { "http:": "ws:", "https:": "wss:" });
  const socket = open(address.href);
  const timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
  const deadline = setTimeout(() => socket.close(), timeoutMs);
  try {
    await opened(socket, address);
    const transport = new SocketTransport(socket);
    const session = new RpcSession<any>(transport);
    const main: any = session.getRemoteMain();
    const ended = new Promise<Error>((resolve) => main.onRpcBroken((error: Error) => resolve(error)));
    const loader = await main.login(options.token);
    return new Loader(loader, { ended, close: () => transport.close(1000, "") });
  } catch (error) {
    socket.close();
    throw error;
  } finally {
    clearTimeout(deadline);
  }
}

/**
 * A login for a single HTTP request: everything that is called before the first `await` goes out with it, and nothing can be
 * called afterwards. Objects and functions of yours can't be called back, as there is nothing to call them through.
 *
 * ```ts
 * const answer = await coracle.batch(url, { token }).load(code).getEntrypoint().run(1);
 * ```
 */
export function batch(url: string | URL, options: Pick<ConnectOptions, "token"> = {}): Loader {
  const address = addressOf(url, { "ws:": "http:", "wss:": "https:" });
  const headers: HeadersInit = options.token === undefined ? {} : { authorization: `Bearer ${options.token}` };
  const request = new Request(address, { method: "POST", headers });
  const main: any = newHttpBatchRpcSession(request as any);
  const ended = new Promise<Error>((resolve) => main.onRpcBroken((error: Error) => resolve(error)));
  return new Loader(main.login(), { ended, close: () => main[Symbol.dispose]() });
}

function addressOf(url: string | URL, schemes: Record<string, string>): URL {
  const address = new URL(url);
  const scheme = schemes[address.protocol];
  if (scheme !== undefined) address.protocol = scheme;
  else if (!Object.values(schemes).includes(address.protocol)) {
    throw new TypeError(`${address.protocol}// is not spoken: give a URL with ws, wss, http or https`);
  }
  if (address.pathname === "/") address.pathname = PATH;
  return address;
}

function opened(socket: WebSocket, address: URL): Promise<void> {
  return new Promise((resolve, reject) => {
    const failed = (reason: string) => reject(new ConnectError(`can't connect to ${address.host}: ${reason}`));
    socket.addEventListener("open", () => resolve(), { once: true });
    socket.addEventListener("close", () => failed("it was closed before it began"), { once: true });
    socket.addEventListener(
      "error",
      (event) => failed((event as Event & { message?: string }).message ?? "the server can't be reached"),
      { once: true },
    );
  });
}
