// Getting in: over a WebSocket for as long as it is needed, or with one HTTP request.

import { newHttpBatchRpcSession, RpcSession } from "capnweb";
import { DisconnectedError, RefusedError } from "./errors.js";
import { type Connection, Loader } from "./loader.js";
import { Replicas } from "./replicas.js";
import { SocketTransport } from "./transport.js";

export interface ConnectOptions {
  /** The bearer token. Without one, servers without tokens let in who is on their machine. */
  token?: string;
  /** How long connecting to a server, and then logging in, may take, in milliseconds each. Default: 10,000. */
  timeoutMs?: number;
  /**
   * After a connection was lost, how long the next use of the loader tries to connect again, in milliseconds. Default: 30,000;
   * with 0 each server is tried once.
   */
  reconnectMs?: number;
}

const PATH = "/rpc";
const TIMEOUT_MS = 10_000;
const RECONNECT_MS = 30_000;

/**
 * Connects to a server that was started with `--listen-web`, and logs in. Of several URLs a random one is taken, and the next one
 * where it does not answer. Each is tried once.
 *
 * A connection that is lost takes along everything that came from it; the loader connects again when it is used.
 *
 * @param urls such as `ws://127.0.0.1:7071` or `https://coracle.example`; without a path, `/rpc` is taken.
 * @throws {ConnectError} when there is no connection to be had.
 * @throws {RefusedError} when the token is not accepted.
 */
export async function connect(
  urls: string | URL | readonly (string | URL)[],
  options: ConnectOptions = {},
): Promise<Loader> {
  const all = typeof urls === "string" || urls instanceof URL ? [urls] : urls;
  const replicas = new Replicas(all.map((url) => addressOf(url, { "http:": "ws:", "https:": "wss:" })));
  const { token, timeoutMs = TIMEOUT_MS, reconnectMs = RECONNECT_MS } = options;
  const again = () => {
    const openAny = (signal: AbortSignal) => replicas.openAny(timeoutMs, reconnectMs, signal);
    const { connection, isIn } = login(replicas, token, timeoutMs, openAny);
    // Whoever uses it is told.
    isIn.catch(() => {});
    return connection;
  };
  for (let tried = 1; ; tried++) {
    const { connection, isIn } = login(replicas, token, timeoutMs, (signal) => replicas.openOne(timeoutMs, signal));
    try {
      await isIn;
      return new Loader(connection, again);
    } catch (error) {
      const isFinal = error instanceof RefusedError && error.refusal.kind === "failed";
      if (isFinal || tried >= replicas.count) throw error;
    }
  }
}

/** A login that does not wait for its connection. Where either fails, everything that is called on it fails in the same way. */
function login(
  replicas: Replicas,
  token: string | undefined,
  timeoutMs: number,
  open: (signal: AbortSignal) => Promise<WebSocket>,
): { connection: Connection; isIn: Promise<void> } {
  let deadline: ReturnType<typeof setTimeout> | undefined;
  const transport = new SocketTransport(async (signal) => {
    const socket = await open(signal);
    deadline = setTimeout(() => {
      // What was sent along with the login may have run.
      transport.end(new DisconnectedError(`the server did not answer the login within ${timeoutMs} ms`, true));
    }, timeoutMs);
    return socket;
  });
  const main: any = new RpcSession<any>(transport).getRemoteMain();
  const ended = new Promise<Error>((resolve) => main.onRpcBroken(resolve));
  const session = main.login(token);
  const connection: Connection = {
    session,
    ended,
    isOver: () => transport.isOver,
    close: () => transport.end(new DisconnectedError("the connection to the server was closed here", false)),
  };
  const isIn = session.then(
    (stub: unknown) => {
      clearTimeout(deadline);
      replicas.answered();
      // (A promise that has been kept can be called, and not be passed on.)
      connection.session = stub;
    },
    (error: Error) => {
      clearTimeout(deadline);
      transport.end(error);
      throw error;
    },
  );
  return { connection, isIn };
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
  const connection = { session: main.login(), ended, isOver: () => false, close: () => main[Symbol.dispose]() };
  return new Loader(connection);
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
