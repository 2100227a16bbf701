// Coracle for `@cloudflare/codemode`.

export {
  CoracleExecutor,
  type ConnectorBinding,
  type CoracleExecutorOptions,
  type ExecuteOptions,
  type ExecuteResult,
  type ResolvedProvider,
} from "./executor.js";
export { workerLoader, type WorkerLoader, type WorkerStub } from "../worker-loader.js";
