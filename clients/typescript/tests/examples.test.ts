// examples/typescript, as it is in the repository.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { main } from "./examples/chat-room.js";
import { Server } from "./server.js";

let server: Server;
before(async () => {
  server = await Server.start();
});
after(() => server[Symbol.asyncDispose]());

describe("examples/typescript", () => {
  it("chat-room.ts gives an agent one object and nothing else", async () => {
    const { answer, posted, refused, stopped } = await main(server.url);
    assert.deepEqual(answer, { about: "the weather", posts: 2 });
    assert.deepEqual(posted, ["I was asked about the weather", "done"]);
    assert.match(refused, /not permitted to access the internet/);
    assert.equal(stopped, "cpu_ms_max");
    await server.isEmpty();
  });
});
