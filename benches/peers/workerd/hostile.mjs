// What each hostile worker does to a workerd of its own, and to who asks it for nothing meanwhile: one JSON object on standard
// output. `limits` are set as its documentation has them.

import { hostileJobs } from "./workloads.mjs";
import { now, versions, Workerd } from "./workerd.mjs";

const RESIDENT_BYTES_MAX = 6 * 2 ** 30;
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const mib = (bytes) => Math.round(bytes / 2 ** 20);

/** Answers what became of a request: `{ ms }`, or `{ ms, failed }`. */
async function outcome(request) {
  const began = now();
  try {
    await request;
    return { ms: now() - began };
  } catch (error) {
    return { ms: now() - began, failed: error.message };
  }
}

async function endure(job) {
  const workerd = await Workerd.start();
  try {
    await workerd.put("/jobs", [{ ...job, limits: { cpuMs: 50, subRequests: 5 } }]);
    const before = workerd.residentBytes();
    let peak = before;
    let tooLarge = false;
    const watch = setInterval(() => {
      if (workerd.ended !== null) return;
      try {
        peak = Math.max(peak, workerd.residentBytes());
      } catch {
        // It ends just now.
        return;
      }
      // The machine is not to run out of memory.
      if (peak > RESIDENT_BYTES_MAX) {
        tooLarge = true;
        workerd.stop();
      }
    }, 20);
    const hostile = outcome(workerd.get("/cold?first=0"));
    await sleep(150);
    const neighbour = await outcome(workerd.get("/empty"));
    const worker = await hostile;
    clearInterval(watch);
    await sleep(100);
    return {
      worker,
      neighbour,
      grown_mib: mib(peak - before),
      process: tooLarge ? "ended here at 6 GiB" : workerd.ended === null ? "lives" : `ended: ${workerd.ended}`,
      serves: workerd.ended === null && (await outcome(workerd.get("/empty"))).failed === undefined,
    };
  } finally {
    await workerd.stop();
  }
}

for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]]) {
  process.once(signal, () => process.exit(code));
}
const outcomes = {};
for (const job of hostileJobs()) {
  process.stderr.write(`workerd: ${job.id} … `);
  outcomes[job.id] = await endure(job);
  process.stderr.write(`${JSON.stringify(outcomes[job.id])}\n`);
}
process.stdout.write(`${JSON.stringify({ ...versions(), outcomes }, null, 2)}\n`);
process.exit(0);
