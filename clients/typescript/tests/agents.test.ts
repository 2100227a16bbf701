// The Vercel AI SDK and the MCP SDK, unmodified, with programs that run here: examples/typescript, and OpenAPI.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { openApiMcpServer } from "@cloudflare/codemode/mcp";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import type { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { MockLanguageModelV3 } from "ai/test";
import * as coracle from "coracle";
import { CoracleExecutor } from "coracle/codemode";
import "coracle/register";
import { codeServer } from "./examples/mcp-sdk.js";
import { Server } from "./server.js";

const aiSdk = await import("./examples/ai-sdk.js");

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

/** A model that answers with these programs, one after the other, and then repeats what it was told last. */
function modelThatWrites(...programs: string[]): MockLanguageModelV3 {
  const usage = {
    inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
    outputTokens: { total: 1, text: 1, reasoning: 0 },
  };
  let step = 0;
  return new MockLanguageModelV3({
    doGenerate: async ({ prompt }) => {
      const code = programs[step++];
      if (code !== undefined) {
        const call = {
          type: "tool-call",
          toolCallId: `call-${step}`,
          toolName: "codemode",
          input: JSON.stringify({ code }),
        };
        return { content: [call as any], finishReason: { unified: "tool-calls", raw: undefined }, usage, warnings: [] };
      }
      const text = JSON.stringify((prompt.at(-1) as any).content[0].output.value);
      return {
        content: [{ type: "text", text }],
        finishReason: { unified: "stop", raw: undefined },
        usage,
        warnings: [],
      };
    },
  });
}

/** Asks a tool of an MCP server, and answers with its text. */
async function ask(
  mcp: McpServer,
  name: string,
  code: string,
): Promise<{ text: string; isError: boolean; tools: any[] }> {
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: "agent", version: "1.0.0" });
  await Promise.all([mcp.connect(theirs), client.connect(ours)]);
  const { tools } = await client.listTools();
  const { content, isError } = (await client.callTool({ name, arguments: { code } })) as any;
  await client.close();
  return { text: content[0].text, isError: isError === true, tools };
}

describe("the AI SDK", () => {
  it("runs the program of a model, which calls its tools", async () => {
    const model = modelThatWrites(`async () => {
      const names = await codemode.list_goods({});
      const goods = await Promise.all(names.map(async (name) => ({ name, ...(await codemode.look_up({ name })) })));
      return goods.filter(({ left }) => left > 0).map(({ name }) => name);
    }`);
    const text = await aiSdk.main(server.url, model, "What can I buy?");
    assert.deepEqual(JSON.parse(text).result, ["tea", "bread"]);
    const { tools, prompt } = model.doGenerateCalls[0]!;
    assert.match((tools![0] as any).description, /look_up: \(input: LookUpInput\)/);
    assert.doesNotMatch((tools![0] as any).description, /empty_the_shop/);
    assert.match(JSON.stringify(prompt), /What can I buy/);
    await server.isEmpty();
  });

  it("tells the model what its program failed with", async () => {
    const invalid = modelThatWrites("async () => codemode.look_up({ name: 5 })");
    assert.match(await aiSdk.main(server.url, invalid, "?"), /Code execution failed: .*expected string/s);
    const missing = modelThatWrites("async () => codemode.empty_the_shop({})");
    assert.match(await aiSdk.main(server.url, missing, "?"), /Tool \\"empty_the_shop\\" not found/);
    const endless = modelThatWrites("async () => { for (;;); }");
    assert.match(await aiSdk.main(server.url, endless, "?"), /cpu_ms_max/);
    await server.isEmpty();
  });
});

describe("the MCP SDK", () => {
  it("has one tool for all tools of a server", async () => {
    using loader = await coracle.connect(server.url);
    const code = `async () => {
      const cities = await codemode.list_cities({});
      const all = await Promise.all(cities.map((city) => codemode.temperature({ city })));
      return cities[all.indexOf(Math.max(...all))];
    }`;
    const { text, isError, tools } = await ask(await codeServer(loader), "code", code);
    assert.equal(text, "Cairo");
    assert.equal(isError, false);
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["code"],
    );
    const unknown = await ask(await codeServer(loader), "code", "async () => codemode.temperature({ city: 'Ys' })");
    assert.deepEqual([unknown.isError, unknown.text], [true, "Error: Ys is not known"]);
  });

  it("has two tools for all operations of an OpenAPI document", async () => {
    using loader = await coracle.connect(server.url);
    const requests: unknown[] = [];
    const open = () =>
      openApiMcpServer({
        executor: new CoracleExecutor({ loader }),
        spec: {
          openapi: "3.1.0",
          info: { title: "Shop", version: "1" },
          paths: {
            "/pets": { get: { operationId: "listPets", responses: { 200: { $ref: "#/components/responses/Pets" } } } },
          },
          components: { responses: { Pets: { description: "All pets" } } },
        },
        request: async (options) => (requests.push(options), ["cat", "dog"]),
      });
    const found = await ask(
      open(),
      "search",
      `async () => {
      const { paths } = await codemode.spec();
      return Object.entries(paths).map(([path, { get }]) => [path, get.operationId, get.responses[200].description]);
    }`,
    );
    assert.deepEqual(JSON.parse(found.text), [["/pets", "listPets", "All pets"]]);
    const pets = await ask(
      open(),
      "execute",
      "async () => (await codemode.request({ method: 'GET', path: '/pets' })).length",
    );
    assert.deepEqual([pets.text, pets.isError], ["2", false]);
    assert.deepEqual(requests, [{ method: "GET", path: "/pets" }]);
  });
});
