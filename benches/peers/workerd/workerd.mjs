// One workerd process: starts it, asks it, reads its figures in /proc, and ends it. Ends no other process.

import { execFileSync, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import http from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const REQUEST_MS_MAX = 10_000;
const START_MS_MAX = 10_000;
// The unit of utime and stime in /proc/PID/stat: USER_HZ, 100 on every Linux that workerd is built for.
const CPU_TICK_MS = 10;

const CONFIG = fileURLToPath(new URL("config.capnp", import.meta.url));
const BINARIES = { x64: "workerd-linux-64", arm64: "workerd-linux-arm64" };

/** The binary of the platform's npm package; the wrapper in `workerd` would be one more process, and needs an install script. */
function binary() {
  const name = process.platform === "linux" ? BINARIES[process.arch] : undefined;
  if (name === undefined) throw new Error(`needs Linux on x64 or arm64, not ${process.platform} on ${process.arch}`);
  return fileURLToPath(new URL(`node_modules/@cloudflare/${name}/bin/workerd`, import.meta.url));
}

export function versions() {
  const manifest = JSON.parse(readFileSync(new URL("node_modules/workerd/package.json", import.meta.url), "utf8"));
  const reported = execFileSync(binary(), ["--version"], { encoding: "utf8", env: {} });
  return { workerd: manifest.version, workerd_reports: reported.trim(), node: process.version };
}

/** Milliseconds of a clock that only goes forward. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

export class Workerd {
  #child;
  #port;
  // The second is for who asks while a sandbox does not answer.
  #agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  #killOnExit = () => this.#child.kill("SIGKILL");

  /** Resolves when the process has answered its first request; `startedMs` is how long that took. */
  static async start() {
    const workerd = new Workerd();
    const began = now();
    await workerd.#spawn();
    await workerd.get("/empty");
    workerd.startedMs = now() - began;
    return workerd;
  }

  #spawn() {
    // The loader binding needs --experimental. No environment: workerd then can't differ from shell to shell.
    const flags = ["serve", "--experimental", "--control-fd=3", CONFIG];
    this.#child = spawn(binary(), flags, { stdio: ["ignore", 2, 2, "pipe"], env: {} });
    process.once("exit", this.#killOnExit);

    const listening = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("exit", (code, signal) => reject(new Error(`workerd ended: ${signal ?? `exit code ${code}`}`)));
      createInterface({ input: this.#child.stdio[3] }).on("line", (line) => {
        const message = JSON.parse(line);
        if (message.event === "listen") resolve(message.port);
      });
      setTimeout(() => reject(new Error(`workerd did not listen within ${START_MS_MAX} ms`)), START_MS_MAX).unref();
    });
    return listening.then((port) => {
      this.#port = port;
    });
  }

  get(path) {
    return this.#request("GET", path);
  }

  put(path, value) {
    return this.#request("PUT", path, JSON.stringify(value));
  }

  /** The answer, parsed, and the milliseconds from before the request to after the last byte of its answer. */
  #request(method, path, body) {
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.#port, agent: this.#agent, method, path };
      const began = now();
      const request = http.request(options, (response) => {
        let text = "";
        response.setEncoding("utf8");
        response.on("data", (part) => (text += part));
        response.on("error", reject);
        response.on("end", () => {
          const ms = now() - began;
          if (response.statusCode === 200) resolve({ ms, answer: JSON.parse(text) });
          else reject(new Error(`${method} ${path} answered ${response.statusCode}: ${text}`));
        });
      });
      request.setTimeout(REQUEST_MS_MAX, () => {
        request.destroy(new Error(`${method} ${path} did not answer within ${REQUEST_MS_MAX} ms`));
      });
      request.on("error", reject);
      request.end(body);
    });
  }

  /** Processor time of all threads so far, and the time that live threads could have run but had no core. */
  cpu() {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // The second field is the name in brackets, which may hold spaces; utime and stime are fields 14 and 15.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = Number(fields[11]) + Number(fields[12]);

    let waitedNs = 0;
    for (const thread of readdirSync(`/proc/${this.#child.pid}/task`)) {
      const [, waited] = readFileSync(`/proc/${this.#child.pid}/task/${thread}/schedstat`, "utf8").split(" ");
      waitedNs += Number(waited);
    }
    return { usedMs: ticks * CPU_TICK_MS, waitedMs: waitedNs / 1e6 };
  }

  residentBytes() {
    const status = readFileSync(`/proc/${this.#child.pid}/status`, "utf8");
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)[1]) * 1024;
  }

  /** How it ended, if it has. */
  get ended() {
    return this.#child.signalCode ?? this.#child.exitCode;
  }

  /** SIGKILL, since workerd does not heed SIGTERM while a guest runs, and has nothing to save. */
  async stop() {
    process.off("exit", this.#killOnExit);
    this.#agent.destroy();
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.#child.once("exit", resolve));
    this.#child.kill("SIGKILL");
    await ended;
  }
}
