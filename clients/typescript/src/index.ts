// Coracle from TypeScript: `connect`, and then the names of Cloudflare's Worker Loader.

export { batch, connect, type ConnectOptions } from "./connect.js";
export {
  ConnectError,
  DisconnectedError,
  RefusedError,
  VerdictError,
  type Refusal,
  type Verdict,
  type VerdictKind,
} from "./errors.js";
export { Loader } from "./loader.js";
export type {
  Entrypoint,
  EntrypointOptions,
  Fetcher,
  Limits,
  LogLine,
  Module,
  Report,
  Tail,
  Usage,
  Worker,
  WorkerCode,
} from "./worker.js";
export { workerLoader, type WorkerLoader, type WorkerStub } from "./worker-loader.js";
export { RpcPromise, RpcStub, RpcTarget } from "capnweb";
