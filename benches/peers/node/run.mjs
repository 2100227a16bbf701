// The programs of `cpu.js` and `json.js` in this Node, warm: what interpreted code is compared with. Prints one JSON
// object of milliseconds, the best of as many rounds as fit into a second.

import { readFileSync } from "node:fs";

const FOLDER = new URL("../../workloads/", import.meta.url);
const manifest = JSON.parse(readFileSync(new URL("manifest.json", FOLDER), "utf8"));
const ROUNDS_MIN = 7;
const TIME_MS_MAX = 1_000;

async function best(worker, { name, expected }) {
  let least = Infinity;
  const until = performance.now() + TIME_MS_MAX;
  for (let round = 0; round < ROUNDS_MIN || (round < 100 && performance.now() < until); round++) {
    const began = performance.now();
    const answer = await worker.run(name);
    least = Math.min(least, performance.now() - began);
    if (JSON.stringify(answer) !== JSON.stringify(expected)) throw new Error(`${name} answered ${answer}`);
  }
  return least;
}

const report = { version: process.version, v8: process.versions.v8, program_ms: {} };
for (const { file, programs } of [manifest.cpu, manifest.json]) {
  const { default: worker } = await import(new URL(file, FOLDER));
  for (const program of programs) report.program_ms[program.name] = await best(worker, program);
}
console.log(JSON.stringify(report));
