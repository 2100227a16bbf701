// The workloads that all peers share, as jobs for the parent worker: `{ id, source, argument }`, with the answer that
// each must give. See ../../workloads.

import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { source as largeSource } from "../../workloads/large.mjs";

const FOLDER = new URL("../../workloads/", import.meta.url);
const read = (file) => readFileSync(new URL(file, FOLDER), "utf8");
const manifest = JSON.parse(read("manifest.json"));

const RUN = randomUUID();
let made = 0;

/** The ten workers of a set in turn; a comment makes every source one that workerd has never seen. */
export function jobsOf(set, count) {
  const workers = manifest[set].map((entry) => ({ ...entry, source: read(entry.file) }));
  return Array.from({ length: count }, (_, i) => {
    const { file, source, argument, expected } = workers[i % workers.length];
    made += 1;
    return { id: `${file} ${RUN} ${made}`, source: `${source}// ${RUN} ${made}\n`, argument, expected };
  });
}

/** Workers that call a function, each of a source that workerd has never seen. */
export function toolJobs(name, count) {
  const { file, expected } = manifest.tools[name];
  const text = read(file);
  return Array.from({ length: count }, () => {
    made += 1;
    return { id: `${file} ${made}`, source: `${text}// ${RUN} ${made}\n`, expected };
  });
}

/** Workers that do harm, one each; there is no answer that they must give. */
export function hostileJobs() {
  return manifest.hostile.map((file) => ({ id: file, source: read(file), argument: null }));
}

/** Modules of 20 kB, each of a seed of its own; what they must answer is found by running them here. */
export function largeJobs(count) {
  const { argument } = manifest.large;
  const firstSeed = Math.floor(Math.random() * 0x7fffffff);
  const job = async (_, i) => {
    const source = largeSource(firstSeed + i);
    const { default: worker } = await import(`data:text/javascript,${encodeURIComponent(source)}`);
    return { id: `large ${firstSeed + i}`, source, argument, expected: await worker.run(argument) };
  };
  return Promise.all(Array.from({ length: count }, job));
}

/** One job a program of `cpu.js` or `json.js`, all in one sandbox, and the one that does nothing, for the difference. */
export function programJobs(suite) {
  const { file, programs } = manifest[suite];
  const job = (name, expected) => ({ id: file, source: read(file), argument: name, expected });
  return {
    nothing: job("nothing", 0),
    programs: programs.map(({ name, expected }) => job(name, expected)),
  };
}

export const jsonOperationsPerCall = manifest.json.operations_per_call;

/** Fails unless the answer is right: a sandbox that answers nonsense quickly is not to be timed. */
export function check({ id, expected }, answer) {
  if (JSON.stringify(answer) !== JSON.stringify(expected)) {
    throw new Error(`${id} answered ${JSON.stringify(answer)}, not ${JSON.stringify(expected)}`);
  }
}
