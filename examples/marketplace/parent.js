// Runs what a model wrote, every time in a worker of its own.
//
// `search` gives a program the document of an API and no way out. `execute` gives it fetch(), which leads through GlobalOutbound
// below and no further. What GlobalOutbound lets through leaves by the policy of the server, which puts the credential in: neither
// the program nor this worker ever has it.

import { WorkerEntrypoint } from "cloudflare:workers";
import spec from "./openapi.json";

const PROGRAM_CHARS_MAX = 20_000;
const ANSWER_CHARS_MAX = 12_000;
const LIMITS = { cpuMs: 50, subRequests: 10 };

export default class extends WorkerEntrypoint {
  /** Runs `async () => …` over `spec`. Its answer has `text`, and `isError`. */
  async search(code) {
    return await this.#run("search", code, {
      globalOutbound: null,
      modules: { "worker.js": moduleOf(code, `import spec from "./spec.json";`), "spec.json": { json: spec } },
    });
  }

  /** Runs `async () => …`, which may send requests to `api`. */
  async execute(code) {
    return await this.#run("execute", code, {
      globalOutbound: this.ctx.exports.GlobalOutbound({}),
      modules: { "worker.js": moduleOf(code, `const api = ${JSON.stringify(this.env.API_ORIGIN)};`) },
    });
  }

  async #run(tool, code, capabilities) {
    if (code.length > PROGRAM_CHARS_MAX) {
      return { isError: true, text: `the program has ${code.length} characters, and may have ${PROGRAM_CHARS_MAX}` };
    }
    // An id that nobody else has: no run finds anything of another.
    const worker = this.env.LOADER.get(`marketplace-${tool}-${crypto.randomUUID()}`, () => ({
      compatibilityDate: "2026-06-01",
      mainModule: "worker.js",
      limits: LIMITS,
      ...capabilities,
    }));
    const entrypoint = worker.getEntrypoint();
    try {
      const { result, error } = await entrypoint.evaluate();
      if (error !== undefined) return { isError: true, text: cut(String(error)) };
      return { isError: false, text: cut(JSON.stringify(result, null, 1) ?? "undefined") };
    } catch (error) {
      return { isError: true, text: cut(String(error)) };
    } finally {
      entrypoint[Symbol.dispose]();
      worker[Symbol.dispose]();
    }
  }
}

// The code stands in a module of its own worker: whatever it is, it breaks nothing but that.
function moduleOf(code, constants) {
  return `
    import { WorkerEntrypoint } from "cloudflare:workers";
    ${constants}
    export default class extends WorkerEntrypoint {
      async evaluate() {
        try {
          return { result: await (${code})() };
        } catch (error) {
          return { error: String(error) };
        }
      }
    }`;
}

function cut(text) {
  if (text.length <= ANSWER_CHARS_MAX) return text;
  const note = `\n… cut: it had ${text.length} characters`;
  return text.slice(0, ANSWER_CHARS_MAX - note.length) + note;
}

/** The way out: requests to one origin. */
export class GlobalOutbound extends WorkerEntrypoint {
  async fetch(request) {
    const { origin } = new URL(request.url);
    if (origin !== this.env.API_ORIGIN) return new Response(`${origin} is not where programs may go`, { status: 403 });
    return await fetch(request);
  }
}
