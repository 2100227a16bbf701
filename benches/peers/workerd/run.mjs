// Measures workerd's worker loader on this machine and prints one JSON object. `--quick` takes fewer samples.
// Progress goes to standard error. See README.md for what each figure is.

import { readFileSync } from "node:fs";
import os from "node:os";
import { parseArgs } from "node:util";
import * as phases from "./phases.mjs";
import { now, versions, Workerd } from "./workerd.mjs";

// The phases' times add up to less than secondsMax, which is for a workerd that hangs.
const FULL = {
  secondsMax: 150,
  starts: { count: 5, secondsMax: 8 },
  memory: { count: 500, secondsMax: 20 },
  coldSmall: { empty: { count: 500, secondsMax: 3 }, pairs: { count: 600, secondsMax: 20 } },
  coldScripts: { count: 300, secondsMax: 10 },
  coldBatches: { perBatch: 50, count: 10, secondsMax: 12 },
  coldLarge: { count: 200, secondsMax: 8 },
  tools: { sequential: { count: 300, secondsMax: 8 }, concurrent: { count: 50, secondsMax: 8 } },
  warm: { perBatch: 1000, batches: { count: 20, secondsMax: 6 }, requests: { count: 1000, secondsMax: 4 } },
  json: { warmUp: { count: 20, secondsMax: 2 }, timed: { count: 7, secondsMax: 3 } },
  interpreted: { warmUp: { count: 5, secondsMax: 8 }, timed: { count: 7, secondsMax: 10 } },
};
const QUICK = {
  secondsMax: 32,
  starts: { count: 3, secondsMax: 2 },
  memory: { count: 100, secondsMax: 3 },
  coldSmall: { empty: { count: 200, secondsMax: 1 }, pairs: { count: 120, secondsMax: 4 } },
  coldScripts: { count: 60, secondsMax: 2 },
  coldBatches: { perBatch: 20, count: 4, secondsMax: 2 },
  coldLarge: { count: 40, secondsMax: 2 },
  tools: { sequential: { count: 60, secondsMax: 2 }, concurrent: { count: 10, secondsMax: 2 } },
  warm: { perBatch: 500, batches: { count: 6, secondsMax: 1 }, requests: { count: 200, secondsMax: 1 } },
  json: { warmUp: { count: 10, secondsMax: 0.5 }, timed: { count: 7, secondsMax: 0.5 } },
  interpreted: { warmUp: { count: 5, secondsMax: 2 }, timed: { count: 7, secondsMax: 2 } },
};

const loadAverage = () => readFileSync("/proc/loadavg", "utf8").split(" ").slice(0, 3).map(Number);

function conditions(quick) {
  const processors = os.cpus();
  return {
    ...versions(),
    cpu_model: processors[0].model,
    cores: processors.length,
    memory_total_bytes: os.totalmem(),
    kernel: os.release(),
    load_average_before: loadAverage(),
    date: new Date().toISOString(),
    quick,
  };
}

async function measure(bounds) {
  const figures = {};
  const phase = async (name, ...workerd) => {
    process.stderr.write(`workerd: ${name} … `);
    const began = now();
    Object.assign(figures, await phases[name](...workerd, bounds[name]));
    process.stderr.write(`${((now() - began) / 1000).toFixed(1)} s\n`);
  };
  const withFreshWorkerd = async (...names) => {
    const workerd = await Workerd.start();
    try {
      for (const name of names) await phase(name, workerd);
    } finally {
      await workerd.stop();
    }
  };

  await phase("starts");
  await withFreshWorkerd("memory");
  await withFreshWorkerd("coldSmall", "coldScripts", "coldBatches", "coldLarge", "tools");
  await withFreshWorkerd("warm", "json", "interpreted");
  return figures;
}

function fail(error) {
  process.stderr.write(`\n${error.stack ?? error}\n`);
  process.exit(1);
}

function parseOptions() {
  try {
    return parseArgs({ options: { quick: { type: "boolean", default: false } } }).values;
  } catch (error) {
    process.stderr.write(`${error.message}\nusage: run [--quick]\n`);
    process.exit(2);
  }
}

const { quick } = parseOptions();
const bounds = quick ? QUICK : FULL;

// An exit of this process, whatever its reason, kills the workerd that it started (see workerd.mjs).
for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143], ["SIGHUP", 129]]) {
  process.once(signal, () => process.exit(code));
}
setTimeout(() => fail(new Error(`not done within ${bounds.secondsMax} s`)), bounds.secondsMax * 1000).unref();

try {
  const before = conditions(quick);
  const figures = await measure(bounds);
  const report = { peer: "workerd", ...figures, conditions: { ...before, load_average_after: loadAverage() } };
  process.stdout.write(`${JSON.stringify(report, null, 2)}\n`);
} catch (error) {
  fail(error);
}
