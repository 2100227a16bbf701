// The same behaviours asked of the package's own executor where it is at home: in workerd, with workerd's loader. So the list says
// what the package does, and not what we think that it does.

import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { behaviours } from "./codemode-behaviours.js";

const WORKERD = process.env["CORACLE_WORKERD"];

const PARENT = `
import { WorkerEntrypoint } from "cloudflare:workers";
import { DynamicWorkerExecutor } from "./index.js";
import { behaviours } from "./codemode-behaviours.js";

// A worker's requests go to a service there, so an object becomes one.
let outbound;
export class Outbound extends WorkerEntrypoint {
  fetch(request) { return outbound.fetch(request); }
}

export default {
  async fetch(request, env, ctx) {
    const make = (options) => {
      const own = { loader: env.LOADER, ...options };
      if (options.globalOutbound !== undefined) {
        outbound = options.globalOutbound;
        own.globalOutbound = ctx.exports.Outbound({});
      }
      return new DynamicWorkerExecutor(own);
    };
    try {
      await behaviours[Number(new URL(request.url).pathname.slice(1))].holds(make);
      return new Response("holds");
    } catch (error) {
      return new Response(String(error?.stack ?? error));
    }
  },
};
`;

/** workerd with the package and the list, on a port that the system chooses. */
async function start(folder: string): Promise<{ child: ChildProcess; port: number }> {
  const packages = fileURLToPath(new URL("../node_modules/", import.meta.url));
  const codemode = join(packages, "@cloudflare/codemode/dist");
  const modules = readdirSync(codemode).filter((name) =>
    /^(index|base|json|resolve|run-code|truncate).*\.js$/.test(name),
  );
  for (const name of modules) copyFileSync(join(codemode, name), join(folder, name));
  copyFileSync(join(packages, "acorn/dist/acorn.mjs"), join(folder, "acorn"));
  const list = ["codemode-behaviour.js", "codemode-behaviours.js"];
  for (const name of list) copyFileSync(fileURLToPath(new URL(name, import.meta.url)), join(folder, name));
  writeFileSync(join(folder, "parent.js"), PARENT);
  writeFileSync(join(folder, "coracle"), `export { RpcTarget } from "cloudflare:workers";`);
  const names = ["parent.js", ...modules, "acorn", "coracle", ...list];
  const embedded = names.map((name) => `(name = "${name}", esModule = embed "${name}")`);
  const config = `using Workerd = import "/workerd/workerd.capnp";
    const config :Workerd.Config = (
      services = [(name = "parent", worker = .parent)],
      sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "parent")],
    );
    const parent :Workerd.Worker = (
      modules = [${embedded.join(", ")}],
      compatibilityDate = "2026-06-01",
      compatibilityFlags = ["nodejs_compat", "experimental", "enable_ctx_exports"],
      bindings = [(name = "LOADER", workerLoader = ())],
    );`;
  writeFileSync(join(folder, "config.capnp"), config);
  const child = spawn(WORKERD!, ["serve", "--experimental", "--control-fd=1", join(folder, "config.capnp")], {
    env: {},
    stdio: ["ignore", "pipe", "pipe"],
  });
  const said: string[] = [];
  createInterface(child.stderr!).on("line", (line) => said.push(line));
  for await (const line of createInterface(child.stdout!)) {
    const { port } = JSON.parse(line);
    child.stdout!.resume();
    if (port !== undefined) return { child, port };
  }
  throw new Error(`workerd did not start: ${said.join("\n")}`);
}

describe(
  "DynamicWorkerExecutor, run by workerd",
  { skip: WORKERD === undefined && "CORACLE_WORKERD is not set" },
  () => {
    let folder: string;
    let workerd: { child: ChildProcess; port: number };
    before(async () => {
      folder = mkdtempSync(join(tmpdir(), "coracle-"));
      workerd = await start(folder);
    });
    after(() => {
      workerd.child.kill("SIGKILL");
      rmSync(folder, { recursive: true });
    });

    behaviours.forEach(({ name }, index) => {
      it(name, async () => {
        const answer = await fetch(`http://127.0.0.1:${workerd.port}/${index}`);
        assert.equal(await answer.text(), "holds");
      });
    });
  },
);
