// Code Mode in two tools. `search` gives a model's code a description of an API and no network; `execute` gives it that API,
// through a gateway that lets requests to one origin through and adds a key that the code never sees.
//
// `clients/typescript/check` builds it and runs it against a server. With the package installed, compiled by your own build:
// `node search-and-execute.js ws://127.0.0.1:7071 https://api.example`.

import * as coracle from "coracle";
import { WorkerEntrypoint } from "coracle/workers";

interface Env {
  LOADER: coracle.WorkerLoader;
  API_ORIGIN: string;
  API_KEY: string;
}

interface Evaluated {
  result?: unknown;
  error?: string;
}

const SPEC = {
  "/items": { get: { summary: "Lists the items", query: ["limit"] } },
  "/items/{id}": { get: { summary: "One item" }, delete: { summary: "Removes an item" } },
};

/** Where requests of `execute` go. */
class GlobalOutbound extends WorkerEntrypoint<Env> {
  async fetch(request: Request): Promise<Response> {
    if (new URL(request.url).origin !== this.env.API_ORIGIN) {
      return new Response("this origin is not allowed", { status: 403 });
    }
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${this.env.API_KEY}`);
    return fetch(new Request(request, { headers }));
  }
}

/** A worker whose `evaluate` runs a function that a model wrote, with these constants. */
function sourceOf(code: string, constants: Record<string, unknown>): string {
  const lines = Object.entries(constants).map(([name, value]) => `const ${name} = ${JSON.stringify(value)};`);
  return `
    import { WorkerEntrypoint } from "cloudflare:workers";
    ${lines.join("\n")}
    export default class extends WorkerEntrypoint {
      async evaluate() {
        try {
          return { result: await (${code})() };
        } catch (error) {
          return { error: error instanceof Error ? error.message : String(error) };
        }
      }
    }
  `;
}

async function evaluate(worker: coracle.WorkerStub): Promise<unknown> {
  using gone = worker;
  const { result, error }: Evaluated = await gone.getEntrypoint().evaluate();
  if (error !== undefined) throw new Error(error);
  return result;
}

export const search = (env: Env, code: string): Promise<unknown> =>
  evaluate(
    env.LOADER.get(`search-${crypto.randomUUID()}`, () => ({
      compatibilityDate: "2026-03-01",
      globalOutbound: null,
      limits: { cpuMs: 50 },
      mainModule: "worker.js",
      modules: { "worker.js": sourceOf(code, { spec: SPEC }) },
    })),
  );

export const execute = (env: Env, code: string): Promise<unknown> =>
  evaluate(
    env.LOADER.get(`execute-${crypto.randomUUID()}`, () => ({
      compatibilityDate: "2026-03-01",
      globalOutbound: new GlobalOutbound({}, env),
      limits: { cpuMs: 100, subRequests: 10 },
      mainModule: "worker.js",
      modules: { "worker.js": sourceOf(code, { origin: env.API_ORIGIN }) },
    })),
  );

export async function main(url: string, apiOrigin: string): Promise<Record<string, unknown>> {
  const loader = await coracle.connect(url);
  try {
    const env: Env = { LOADER: coracle.workerLoader(loader), API_ORIGIN: apiOrigin, API_KEY: "a secret" };
    const told = (error: Error) => error.message;
    return {
      found: await search(env, "async () => Object.keys(spec).filter((path) => spec[path].delete)"),
      items: await execute(env, "async () => (await fetch(origin + '/items?limit=2')).json()"),
      elsewhere: await execute(env, "async () => (await fetch('https://example.com/')).status"),
      curious: await execute(env, "async () => process.env").catch(told),
      offline: await search(env, "async () => (await fetch('https://example.com/')).status").catch(told),
      endless: await execute(env, "async () => { for (;;); }").catch(told),
    };
  } finally {
    loader[Symbol.dispose]();
  }
}

const [url, apiOrigin] = process.argv.slice(2);
if (url?.startsWith("ws") && apiOrigin !== undefined) console.log(await main(url, apiOrigin));
