// A server of the Model Context Protocol whose tools become one: `code`, a program that calls them, which Coracle runs.
//
// `clients/typescript/check` builds it and runs it against a server. With `@modelcontextprotocol/sdk`, `zod`,
// `@cloudflare/codemode` and this package installed, compiled by your own build: `node mcp-sdk.js ws://127.0.0.1:7071`, which
// an agent starts and speaks to over stdin and stdout.

import { codeMcpServer } from "@cloudflare/codemode/mcp";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import * as coracle from "coracle";
import { CoracleExecutor } from "coracle/codemode";
import { z } from "zod";

/** The server that there was before, with as many tools as it likes. */
function weatherServer(): McpServer {
  const server = new McpServer({ name: "weather", version: "1.0.0" });
  const degrees: Record<string, number> = { Oslo: 4, Rome: 21, Cairo: 33 };
  server.registerTool("list-cities", { description: "The cities that are known" }, () => ({
    content: [{ type: "text", text: JSON.stringify(Object.keys(degrees)) }],
  }));
  server.registerTool(
    "temperature",
    { description: "How warm it is", inputSchema: { city: z.string() } },
    ({ city }) => {
      const found = degrees[city];
      if (found === undefined) return { content: [{ type: "text", text: `${city} is not known` }], isError: true };
      return { content: [{ type: "text", text: String(found) }] };
    },
  );
  return server;
}

/** The one that an agent gets instead. */
export const codeServer = (loader: coracle.Loader): Promise<McpServer> =>
  codeMcpServer({ server: weatherServer(), executor: new CoracleExecutor({ loader, timeout: 20_000 }) });

const url = process.argv[2];
if (url?.startsWith("ws")) {
  const server = await codeServer(await coracle.connect(url));
  await server.connect(new StdioServerTransport());
}
