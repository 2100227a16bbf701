// Runs code that a language model wrote, every time in a worker of its own.
//
// What the code may do is what it is given here, and nothing else: `search` gives it a catalogue and no way out;
// `execute` gives it a way out that leads through the gateway below. It has no variables of this process, no files,
// and no time to waste.

import { WorkerEntrypoint } from "cloudflare:workers";
import catalogue from "./catalogue.json";

const LIMITS = { cpuMs: 500, subRequests: 20 };

export default class extends WorkerEntrypoint {
  /** Runs `async (catalogue) => …` over what this shop sells. */
  async search(source) {
    return await this.#run(source, { env: { CATALOGUE: catalogue }, globalOutbound: null });
  }

  /** Runs `async () => …`, which may send requests to the shop's own API. */
  async execute(source) {
    return await this.#run(source, { globalOutbound: this.ctx.exports.Gateway({}) });
  }

  async #run(source, capabilities) {
    // An id that nobody else has: no run finds anything of another.
    const worker = this.env.LOADER.get("run-" + crypto.randomUUID(), () => ({
      compatibilityDate: "2026-06-01",
      mainModule: "run.js",
      modules: { "run.js": moduleOf(source) },
      limits: LIMITS,
      ...capabilities,
    }));
    const entrypoint = worker.getEntrypoint();
    try {
      const { value, error } = await entrypoint.run();
      if (error !== undefined) throw new Error(error);
      return value;
    } finally {
      entrypoint[Symbol.dispose]();
      worker[Symbol.dispose]();
    }
  }
}

// The source stands in a module of its own worker: whatever it is, it breaks nothing but that.
function moduleOf(source) {
  return `
    import { WorkerEntrypoint } from "cloudflare:workers";
    const program = ${source}
    ;
    export default class extends WorkerEntrypoint {
      async run() {
        try {
          return { value: await program(this.env.CATALOGUE) };
        } catch (error) {
          return { error: String(error) };
        }
      }
    }`;
}

/** The way out: requests to one host, with a key that the code never sees. */
export class Gateway extends WorkerEntrypoint {
  async fetch(request) {
    const { host } = new URL(request.url);
    if (host !== this.env.API_HOST) {
      return new Response(`${host} is not a host that this code may call`, { status: 403 });
    }
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${this.env.API_KEY}`);
    return await this.env.API.fetch(new Request(request, { headers }));
  }
}
