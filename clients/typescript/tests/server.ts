// The real server, in a process of its own, on ports that the system chooses.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

const BINARY = process.env["CORACLE_BINARY"] ?? "coracle";

export class Server implements AsyncDisposable {
  private constructor(
    private readonly child: ChildProcess,
    /** Such as `127.0.0.1:40001`. */
    readonly web: string,
    readonly admin: string,
  ) {}

  static async start(...settings: string[]): Promise<Server> {
    const ports = ["--listen", "--listen-web", "--admin"].filter((port) => !settings.includes(port));
    const child = spawn(BINARY, ["serve", ...ports.flatMap((port) => [port, "127.0.0.1:0"]), ...settings], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const seen: string[] = [];
    for await (const line of createInterface(child.stderr!)) {
      const found = /; web on ([^;]+); admin on ([^;]+);/.exec(line);
      if (found !== null) {
        child.stderr!.resume();
        return new Server(child, found[1]!, found[2]!);
      }
      seen.push(line);
    }
    throw new Error(`the server did not start: ${seen.join("\n")}`);
  }

  get url(): string {
    return `ws://${this.web}`;
  }

  async metric(series: string): Promise<number> {
    const answer = await fetch(`http://${this.admin}/metrics`);
    const line = (await answer.text()).split("\n").find((line) => line.startsWith(`${series} `));
    if (line === undefined) throw new Error(`there is no ${series}`);
    return Number(line.slice(series.length + 1));
  }

  /** Has it shut down as an orchestrator does, and waits until it has. */
  async terminate(): Promise<number | null> {
    const ended = new Promise<number | null>((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGTERM");
    return ended;
  }

  /** Waits until a series has this value. */
  async settles(series: string, expected: number): Promise<void> {
    let found = NaN;
    for (let attempt = 0; attempt < 500; attempt++) {
      found = await this.metric(series);
      if (found === expected) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${series} is ${found}, not ${expected}`);
  }

  /** Waits until nothing of any client's is left. */
  async isEmpty(): Promise<void> {
    for (const gauge of [
      "coracle_connections",
      "coracle_sessions_live",
      "coracle_workers_live",
      "coracle_isolates_live",
      "coracle_calls_in_flight",
    ]) {
      await this.settles(gauge, 0);
    }
    if ((await this.metric("coracle_panics_total")) !== 0) throw new Error("the server has panicked");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return;
    const ended = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill("SIGKILL");
    await ended;
  }
}
