// What is measured, one function a phase. A phase ends after its count or its time, whichever comes first, so that a busy
// machine gives fewer samples and not a longer run; `n` in the result says how many there were.

import { check, jobsOf, jsonOperationsPerCall, largeJobs, programJobs, toolJobs } from "./workloads.mjs";
import { now, Workerd } from "./workerd.mjs";

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Calls `action(0)`, `action(1)`, … and gathers what they resolve to: at least one, at most `count`. */
async function repeat({ count, secondsMax }, action) {
  const until = now() + secondsMax * 1000;
  const samples = [];
  do samples.push(await action(samples.length));
  while (samples.length < count && now() < until);
  return samples;
}

function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];
}

const rounded = (value) => Number(value.toPrecision(4));

function summary(samples) {
  return {
    p50: rounded(quantile(samples, 0.5)),
    p99: rounded(quantile(samples, 0.99)),
    min: rounded(Math.min(...samples)),
    n: samples.length,
  };
}

const upload = (workerd, jobs) => workerd.put("/jobs", jobs.map(({ id, source, argument }) => ({ id, source, argument })));

/** From before the process is spawned to the end of the parent's first (empty) answer. */
export async function starts(bounds) {
  const samples = await repeat(bounds, async () => {
    const workerd = await Workerd.start();
    await workerd.stop();
    return workerd.startedMs;
  });
  return { start_to_first_answer_ms: summary(samples) };
}

/** Growth of the resident set over sandboxes that were loaded, called once and live on. Wants a fresh process. */
export async function memory(workerd, bounds) {
  const warmUp = 10;
  const jobs = jobsOf("small", warmUp + bounds.count);
  await upload(workerd, jobs);
  const visit = async (i) => check(jobs[i], (await workerd.get(`/named?first=${i}`)).answer);
  for (let i = 0; i < warmUp; i++) await visit(i);

  const before = workerd.residentBytes();
  const visited = await repeat(bounds, (i) => visit(warmUp + i));
  await sleep(200);
  const bytes = (workerd.residentBytes() - before) / visited.length;
  return { memory_per_live_isolate_bytes: Math.round(bytes), memory_live_isolates: visited.length };
}

/** Pairs of an empty request and one that loads, calls and drops a sandbox. Processor time is taken over the pairs. */
async function coldPairs(workerd, jobs, bounds) {
  await upload(workerd, jobs);
  const before = workerd.cpu();
  const pairs = await repeat(bounds, async (i) => {
    const empty = await workerd.get("/empty");
    const cold = await workerd.get(`/cold?first=${i}`);
    check(jobs[i], cold.answer);
    return { emptyMs: empty.ms, coldMs: cold.ms };
  });
  const after = workerd.cpu();

  const empty = pairs.map(({ emptyMs }) => emptyMs);
  const whole = pairs.map(({ coldMs }) => coldMs);
  const emptyP50 = quantile(empty, 0.5);
  return {
    empty,
    whole,
    engine: whole.map((ms) => ms - emptyP50),
    cpuMsPerPair: (after.usedMs - before.usedMs) / pairs.length,
    waitedMsPerPair: (after.waitedMs - before.waitedMs) / pairs.length,
  };
}

/** The first requests to a parent are slow (its own code is cold), and what an empty one costs is subtracted later. */
async function emptyCpuMs(workerd, bounds) {
  const before = workerd.cpu().usedMs;
  const samples = await repeat(bounds, () => workerd.get("/empty"));
  return (workerd.cpu().usedMs - before) / samples.length;
}

export async function coldSmall(workerd, { empty, pairs }) {
  const emptyCpu = await emptyCpuMs(workerd, empty);
  const cold = await coldPairs(workerd, jobsOf("small", pairs.count), pairs);
  return {
    cold_engine_ms: summary(cold.engine),
    cold_http_ms: summary(cold.whole),
    empty_http_ms: summary(cold.empty),
    cpu_ms_per_cold_sandbox: rounded(cold.cpuMsPerPair - emptyCpu),
    run_queue_wait_ms_per_cold_sandbox: rounded(cold.waitedMsPerPair),
  };
}

/** The same with the scripts, which have work to do. */
export async function coldScripts(workerd, bounds) {
  const cold = await coldPairs(workerd, jobsOf("scripts", bounds.count), bounds);
  return { cold_scripts_engine_ms: summary(cold.engine), cold_scripts_http_ms: summary(cold.whole) };
}

/** Many sandboxes in one request, one after the other: no HTTP between them, but none is freed before the request ends. */
export async function coldBatches(workerd, { perBatch, ...bounds }) {
  const jobs = jobsOf("small", perBatch * bounds.count);
  await upload(workerd, jobs);
  const samples = await repeat(bounds, async (batch) => {
    const first = batch * perBatch;
    const empty = await workerd.get("/empty");
    const { ms, answer } = await workerd.get(`/cold-batch?first=${first}&count=${perBatch}`);
    answer.forEach((one, i) => check(jobs[first + i], one));
    return (ms - empty.ms) / perBatch;
  });
  return { cold_batch_ms: { ...summary(samples), per_batch: perBatch } };
}

export async function coldLarge(workerd, bounds) {
  const cold = await coldPairs(workerd, await largeJobs(bounds.count), bounds);
  return { cold_20k_ms: summary(cold.engine) };
}

/** A sandbox of its own for each request, which calls a function of the parent: ten times in turn, a thousand times at once. */
export async function tools(workerd, bounds) {
  const timed = async (name, { count, secondsMax }) => {
    const jobs = toolJobs(name, count);
    await upload(workerd, jobs);
    const samples = await repeat({ count, secondsMax }, async (i) => {
      const { ms, answer } = await workerd.get(`/tools?first=${i}`);
      check(jobs[i], answer);
      return ms;
    });
    return summary(samples);
  };
  return {
    tools_sequential_http_ms: await timed("sequential", bounds.sequential),
    tools_concurrent_http_ms: await timed("concurrent", bounds.concurrent),
  };
}

/** Calls on one reused stub, inside the parent; and one call a request, as a client over the network sees a warm one. */
export async function warm(workerd, { perBatch, batches, requests }) {
  const jobs = jobsOf("small", 10);
  await upload(workerd, jobs);
  await workerd.get(`/warm-batch?first=0&count=${perBatch}`);
  const inside = await repeat(batches, async (batch) => {
    const first = batch % jobs.length;
    const empty = await workerd.get("/empty");
    const { ms, answer } = await workerd.get(`/warm-batch?first=${first}&count=${perBatch}`);
    check(jobs[first], answer);
    return (ms - empty.ms) / perBatch;
  });
  const outside = await repeat(requests, async (i) => {
    const { ms, answer } = await workerd.get(`/named?first=${i % jobs.length}`);
    check(jobs[i % jobs.length], answer);
    return ms;
  });
  return { warm_call_ms: { ...summary(inside), per_batch: perBatch }, warm_http_ms: summary(outside) };
}

/**
 * Best time of each program in one warm sandbox. A call that does nothing goes before each, and the best of those is
 * subtracted: the same estimate of both, so that neither is luckier.
 */
async function bestOfPrograms(workerd, suite, { warmUp, timed }) {
  const { nothing, programs } = programJobs(suite);
  await upload(workerd, [nothing, ...programs]);
  const best = programs.map(() => ({ whole: Infinity, nothing: Infinity }));
  const round = async (record) => {
    for (const [i, program] of programs.entries()) {
      const without = await workerd.get("/named?first=0");
      const { ms, answer } = await workerd.get(`/named?first=${i + 1}`);
      check(program, answer);
      if (record) {
        best[i].whole = Math.min(best[i].whole, ms);
        best[i].nothing = Math.min(best[i].nothing, without.ms);
      }
    }
  };
  await repeat(warmUp, () => round(false));
  const rounds = await repeat(timed, () => round(true));
  const ms = programs.map(({ argument }, i) => [argument, best[i].whole - best[i].nothing]);
  return { rounds: rounds.length, ms: Object.fromEntries(ms) };
}

export async function interpreted(workerd, bounds) {
  const { rounds, ms } = await bestOfPrograms(workerd, "cpu", bounds);
  const entries = Object.entries(ms).map(([name, value]) => [name, rounded(value)]);
  return { cpu_program_ms: Object.fromEntries(entries), cpu_program_rounds: rounds };
}

export async function json(workerd, bounds) {
  const { ms } = await bestOfPrograms(workerd, "json", bounds);
  const perThousand = (value) => rounded((value * 1000) / jsonOperationsPerCall);
  return {
    json_parse_ms_per_1000_ops: perThousand(ms.parse),
    json_stringify_ms_per_1000_ops: perThousand(ms.stringify),
  };
}
