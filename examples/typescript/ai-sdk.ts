// A model of the AI SDK writes one program instead of calling tools one by one, and Coracle runs it.
//
// `clients/typescript/check` builds it and runs it against a server, with a model that is none. With `ai`, `zod`,
// `@cloudflare/codemode` and this package installed, compiled by your own build, and a model of yours:
// `node --import coracle/register`, and `main("ws://127.0.0.1:7071", openai("…"), "…")`.

import { createCodeTool } from "@cloudflare/codemode/ai";
import { generateText, type LanguageModel, stepCountIs, tool } from "ai";
import * as coracle from "coracle";
import { CoracleExecutor } from "coracle/codemode";
import { z } from "zod";

const STOCK = new Map([
  ["tea", { price: 3, left: 12 }],
  ["cake", { price: 4, left: 0 }],
  ["bread", { price: 2, left: 7 }],
]);

/** Tools as the AI SDK has them. None of them knows that programs will call it. */
const tools = {
  "list-goods": tool({
    description: "Lists the names of all goods",
    inputSchema: z.object({}),
    execute: async () => [...STOCK.keys()],
  }),
  "look-up": tool({
    description: "Says what a good costs and how many are left",
    inputSchema: z.object({ name: z.string() }),
    execute: async ({ name }) => STOCK.get(name) ?? null,
  }),
  "empty-the-shop": tool({
    description: "Sells everything",
    inputSchema: z.object({}),
    // Somebody has to be asked, so programs don't get it.
    needsApproval: true,
    execute: async () => "sold",
  }),
};

export async function main(url: string, model: LanguageModel, prompt: string): Promise<string> {
  const loader = await coracle.connect(url);
  try {
    const executor = new CoracleExecutor({ loader, timeout: 20_000, limits: { cpuMs: 500 } });
    const codemode = createCodeTool({ tools, executor });
    const { text } = await generateText({ model, prompt, tools: { codemode }, stopWhen: stepCountIs(5) });
    return text;
  } finally {
    loader[Symbol.dispose]();
  }
}
