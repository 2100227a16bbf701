// Getting in, and the end of a login.

import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import * as coracle from "coracle";
import { Server } from "./server.js";

const TOKEN = "0123456789abcdef0123";
const code: coracle.WorkerCode = {
  mainModule: "main.js",
  modules: { "main.js": "export default { run(n) { return n + 1 } }" },
};

let folder: string;
let server: Server;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "coracle-"));
  writeFileSync(join(folder, "tokens"), `acme:${TOKEN}\n`);
  server = await Server.start("--token-file", join(folder, "tokens"));
});
after(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

const refusedWith = (text: RegExp) => (error: unknown) => {
  assert(error instanceof coracle.RefusedError, String(error));
  assert.equal(error.refusal.kind, "failed");
  assert.match(error.message, text);
  return true;
};

describe("a login", () => {
  it("acts for the token's tenant", async () => {
    const loader = await coracle.connect(server.url, { token: TOKEN });
    assert.equal(await loader.tenant(), "acme");
    assert.equal(await loader.load(code).getEntrypoint().run(1), 2);
    loader[Symbol.dispose]();
    assert(await loader.ended);
    await server.isEmpty();
  });

  it("needs the right token", async () => {
    await assert.rejects(coracle.connect(server.url), refusedWith(/wants a bearer token/));
    await assert.rejects(coracle.connect(server.url, { token: "wrong" }), refusedWith(/the token is not known/));
    await assert.rejects(coracle.connect(`${server.url}/rpc?token=${TOKEN}`), coracle.ConnectError);
    await server.isEmpty();
  });

  it("of a batch has its token in the header", async () => {
    const good = coracle.batch(`http://${server.web}`, { token: TOKEN });
    assert.equal(await good.load(code).getEntrypoint().run(1), 2);
    const without = coracle.batch(`http://${server.web}`);
    await assert.rejects(async () => without.tenant(), refusedWith(/wants a bearer token/));
    const wrong = coracle.batch(`http://${server.web}`, { token: "wrong" });
    await assert.rejects(async () => wrong.tenant(), /401/);
    await server.isEmpty();
  });

  it("ends with the server, and says so", async () => {
    await using other = await Server.start();
    const loader = await coracle.connect(other.url);
    const waiting = loader
      .load({
        mainModule: "main.js",
        modules: { "main.js": "export default { run() { return new Promise((r) => setTimeout(r, 20_000)) } }" },
      })
      .getEntrypoint()
      .run(1);
    const failed = assert.rejects(async () => waiting, coracle.ConnectError);
    await other.settles("coracle_calls_in_flight", 1);
    await other[Symbol.asyncDispose]();
    await failed;
    assert(await loader.ended);
  });

  it("fails in words where nobody listens", async () => {
    await assert.rejects(coracle.connect("ws://127.0.0.1:1"), coracle.ConnectError);
    await assert.rejects(coracle.connect("ftp://127.0.0.1"), TypeError);
  });
});
