// examples/typescript, as it is in the repository.

import assert from "node:assert/strict";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import * as agentBinding from "./examples/agent-binding.js";
import * as chatRoom from "./examples/chat-room.js";
import * as searchAndExecute from "./examples/search-and-execute.js";
import { Server } from "./server.js";

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

describe("examples/typescript", () => {
  it("chat-room.ts gives an agent one object and nothing else", async () => {
    const { answer, posted, refused, stopped } = await chatRoom.main(server.url);
    assert.deepEqual(answer, { about: "the weather", posts: 2 });
    assert.deepEqual(posted, ["I was asked about the weather", "done"]);
    assert.match(refused, /not permitted to access the internet/);
    assert.equal(stopped, "cpu_ms_max");
    await server.isEmpty();
  });

  it("agent-binding.ts loads one as a Worker does", async () => {
    assert.deepEqual(await agentBinding.main(server.url), {
      found: ["Ann: who brings the tea?"],
      messages: ["Ann: who brings the tea?", "Bo: the train is late", "agent: I have read 2 about tea"],
    });
    await server.isEmpty();
  });

  it("search-and-execute.ts gives code an API by way of a gateway", async () => {
    const asked: string[] = [];
    await using api = await Api.start(asked);
    const told = await searchAndExecute.main(server.url, api.origin);
    assert.deepEqual(told["found"], ["/items/{id}"]);
    assert.deepEqual(told["items"], ["tea", "cake"]);
    assert.deepEqual(asked, ["GET /items?limit=2 Bearer a secret"]);
    assert.equal(told["elsewhere"], 403);
    assert.match(String(told["curious"]), /process/);
    assert.match(String(told["offline"]), /not permitted to access the internet/);
    assert.match(String(told["endless"]), /cpu_ms_max/);
    await server.isEmpty();
  });
});

/** An API that notes what it is asked. */
class Api implements AsyncDisposable {
  private constructor(private readonly server: HttpServer) {}

  static async start(asked: string[]): Promise<Api> {
    const server = createServer((request, response) => {
      asked.push(`${request.method} ${request.url} ${request.headers.authorization}`);
      response.setHeader("content-type", "application/json").end(JSON.stringify(["tea", "cake"]));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Api(server);
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
