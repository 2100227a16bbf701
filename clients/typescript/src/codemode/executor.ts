// An executor for `@cloudflare/codemode`: where that package runs what a model wrote.
//
// Its shapes are declared here as well, so that nobody needs the package to use ours.

import type { Verdict } from "../errors.js";
import type { Loader } from "../loader.js";
import type { Limits, LogLine, Module, Report, Usage, WorkerCode } from "../worker.js";
import { decode, encode } from "./codec.js";
import { guest, MAIN, PROGRAM } from "./guest.js";
import { problemOf, toolsOf } from "./names.js";

/** A namespace of tools. */
export interface ResolvedProvider {
  name: string;
  fns: Record<string, (...args: any[]) => Promise<unknown>>;
  /** JavaScript that runs before the program, with the namespace by its name. What it sets there goes before the tools. */
  prelude?: string;
}

/** A namespace that has one method for all its tools. */
export interface ConnectorBinding {
  name: string;
  binding: { callTool(method: string, args: unknown): Promise<unknown> };
}

export interface ExecuteOptions {
  connectors?: ConnectorBinding[];
}

/** What came of a program. */
export interface ExecuteResult {
  result: unknown;
  /** What it failed with, in words. */
  error?: string;
  /** What it wrote to the console, also where it failed. */
  logs?: string[];
  /** The name and the stack of what it threw, with its own lines and columns. */
  thrown?: { name: string; stack?: string };
  /** What stopped it. */
  verdict?: Verdict;
  /** What it cost. */
  usage?: Usage;
}

export interface CoracleExecutorOptions {
  loader: Loader;
  /**
   * How long a program may take, waiting included, in milliseconds. Default: 60,000. The server's `wall_ms_max` and
   * `subrequest_ms_max` have to allow it.
   */
  timeout?: number;
  /** Where `fetch()` of a program goes. Default: nowhere. */
  globalOutbound?: WorkerCode["globalOutbound"];
  /** Modules that a program can import. */
  modules?: Record<string, Module>;
  /** What a program finds in `env`. */
  bindings?: Record<string, unknown>;
  /** Limits of each program, besides the timeout. */
  limits?: Limits;
}

const TIMEOUT_MS = 60_000;

/** Where in the program something is, in a stack: line and column. */
const PLACE = /code\.program\.ts:(\d+:\d+)/;

type Answer = { result?: string | undefined; error?: undefined } | { error: string };

/**
 * Runs programs for `@cloudflare/codemode`, each in a sandbox of its own on a server.
 *
 * ```ts
 * const executor = new CoracleExecutor({ loader: await coracle.connect(url) });
 * const codemode = createCodeTool({ tools, executor });
 * ```
 */
export class CoracleExecutor {
  readonly #options: CoracleExecutorOptions;

  constructor(options: CoracleExecutorOptions) {
    this.#options = options;
  }

  /** Runs a program. It does not throw: what goes wrong is in `error`. */
  async execute(
    code: string,
    providersOrFns: ResolvedProvider[] | ResolvedProvider["fns"],
    options: ExecuteOptions = {},
  ): Promise<ExecuteResult> {
    const providers = Array.isArray(providersOrFns) ? providersOrFns : [{ name: "codemode", fns: providersOrFns }];
    const connectors = options.connectors ?? [];
    const problem = problemOf(providers, connectors);
    if (problem !== undefined) return { result: undefined, error: problem };
    const tools = new Map<string, Map<string, ResolvedProvider["fns"][string]>>();
    for (const provider of providers) {
      const found = toolsOf(provider);
      if (typeof found === "string") return { result: undefined, error: found };
      tools.set(provider.name, found);
    }
    const bindings = new Map(connectors.map(({ name, binding }) => [name, binding]));
    const mark = crypto.randomUUID();
    try {
      using worker = this.#options.loader.load(this.#code(code, providers));
      using entrypoint = worker.getEntrypoint();
      using report = await this.#options.loader.report<any>(entrypoint, "evaluate", {
        providers: [...tools.keys()],
        connectors: [...bindings.keys()],
        call: (provider: string, tool: string, args: string) => answerOf(tools.get(provider)?.get(tool), tool, args),
        callConnector: (name: string, method: string, args: unknown) => bindings.get(name)!.callTool(method, args),
        mark,
      });
      return this.#resultOf(report, mark);
    } catch (error) {
      return { result: undefined, ...failure(error) };
    }
  }

  #code(code: string, providers: ResolvedProvider[]): WorkerCode {
    const { bindings, globalOutbound, limits, modules } = this.#options;
    const preludes = providers.flatMap(({ name, prelude }) =>
      prelude === undefined ? [] : [{ namespace: name, source: prelude }],
    );
    return {
      compatibilityDate: "2026-03-01",
      mainModule: MAIN,
      modules: { ...modules, [MAIN]: guest(preludes), [PROGRAM]: code },
      env: bindings ?? {},
      globalOutbound: globalOutbound ?? null,
      limits: { ...limits, wallMsMax: Math.max(1, Math.ceil(this.#timeoutMs)) },
    };
  }

  get #timeoutMs(): number {
    return this.#options.timeout ?? TIMEOUT_MS;
  }

  #resultOf(report: Report<any>, mark: string): ExecuteResult {
    const { usage, verdict } = report;
    const logs = report.logs.map(lineOf);
    if (verdict !== undefined) {
      const isTimeout = verdict.kind === "wall" && verdict.limit >= this.#timeoutMs;
      return { result: undefined, error: isTimeout ? "Execution timed out" : verdict.message, logs, verdict, usage };
    }
    if (report.error !== undefined) return { result: undefined, ...failure(report.error), logs, usage };
    const { error, result } = report.value;
    if (error === undefined) return { result: revived(result, mark), logs, usage };
    // The program shares its realm with who tells this.
    const { message, name, stack } = Object.fromEntries(
      ["message", "name", "stack"].map((key) => [key, typeof error[key] === "string" ? error[key] : "?"]),
    ) as Record<"message" | "name" | "stack", string>;
    return { result: undefined, error: message, logs, thrown: { name, stack }, usage };
  }
}

/** What a tool says to arguments. */
async function answerOf(
  tool: ResolvedProvider["fns"][string] | undefined,
  name: string,
  args: string,
): Promise<Answer> {
  if (tool === undefined) return { error: `Tool "${name}" not found` };
  try {
    return { result: encode(await tool(...(decode(args) as unknown[]))) };
  } catch (error) {
    return { error: messageOf(error) };
  }
}

/** What can be told of an error that the program did not throw: it could not be read, or it was turned away. */
function failure(error: unknown): Pick<ExecuteResult, "error" | "thrown"> {
  const message = messageOf(error);
  if (!(error instanceof SyntaxError)) return { error: message };
  const { name, stack = "" } = error;
  const place = PLACE.exec(stack)?.[1];
  return { error: place === undefined ? message : `${message} (line ${place})`, thrown: { name, stack } };
}

function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message || error.name : String(error);
  return text === "" ? "an empty error was thrown" : text;
}

function lineOf({ level, message }: LogLine): string {
  return level === "warn" || level === "error" ? `[${level}] ${message}` : message;
}

/** A result with what the protocol hasn't, and without references: what they lead to is gone. */
function revived(value: any, mark: string): unknown {
  if (typeof value === "function") throw new TypeError("the result has a reference in it, which is no result");
  if (Array.isArray(value)) return value.map((item) => revived(item, mark));
  // In Node, bytes come as a Buffer.
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (typeof value !== "object" || value === null || Object.getPrototypeOf(value) !== Object.prototype) return value;
  if (Object.hasOwn(value, mark)) {
    const of = value.of.map((item: unknown) => revived(item, mark));
    switch (value[mark]) {
      case "Map":
        return new Map(of.flatMap((key: unknown, index: number) => (index % 2 === 0 ? [[key, of[index + 1]]] : [])));
      case "Set":
        return new Set(of);
      case "RegExp":
        return new RegExp(of[0], of[1]);
      default:
        return of[0].buffer;
    }
  }
  for (const key of Object.keys(value)) {
    Object.defineProperty(value, key, {
      value: revived(value[key], mark),
      enumerable: true,
      writable: true,
      configurable: true,
    });
  }
  return value;
}
