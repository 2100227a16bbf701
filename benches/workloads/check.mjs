// Runs every workload in Node, and compares the answers with those in manifest.json.
//
//   node check.mjs            fails at the first answer that differs
//   node check.mjs --write    replaces the answers, after a workload or an argument was changed on purpose

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { source } from "./large.mjs";

const MANIFEST = new URL("manifest.json", import.meta.url);
const BYTES = { small: [100, 250], scripts: [200, 2_000] };

const manifest = JSON.parse(readFileSync(MANIFEST, "utf8"));
const write = process.argv.includes("--write");

/** Data as a client of a sandbox sees it: through JSON. */
const plain = (value) => JSON.parse(JSON.stringify(value));

async function answer(url, argument) {
  const { default: worker } = await import(url);
  return plain(await worker.run(plain(argument), {}, {}));
}

function settle(where, entry, key, found) {
  if (write) entry[key] = found;
  else assert.deepEqual(found, entry[key], `${where}: ${key}`);
}

for (const [set, [bytesMin, bytesMax]] of Object.entries(BYTES)) {
  for (const entry of manifest[set]) {
    const url = new URL(entry.file, import.meta.url);
    const { length } = readFileSync(url);
    assert(length >= bytesMin && length <= bytesMax, `${entry.file} has ${length} bytes`);
    settle(entry.file, entry, "expected", await answer(url, entry.argument));
  }
}
for (const { file, programs } of [manifest.cpu, manifest.json]) {
  for (const program of programs) {
    settle(`${file} ${program.name}`, program, "expected", await answer(new URL(file, import.meta.url), program.name));
  }
}
// Their class is of a module that Node does not have: a stand-in is enough.
for (const entry of Object.values(manifest.tools)) {
  const text = readFileSync(new URL(entry.file, import.meta.url), "utf8").replace(/^import .*$/m, "class WorkerEntrypoint {}");
  const { default: Tools } = await import(`data:text/javascript,${encodeURIComponent(text)}`);
  settle(entry.file, entry, "expected", await new Tools().run(async () => 1));
}
const { large } = manifest;
const text = source(large.seed);
settle(large.file, large, "bytes", Buffer.byteLength(text));
settle(large.file, large, "sha256", createHash("sha256").update(text).digest("hex"));
settle(large.file, large, "expected", await answer(`data:text/javascript,${encodeURIComponent(text)}`, large.argument));

if (write) writeFileSync(MANIFEST, `${JSON.stringify(manifest, null, 2)}\n`);
console.log(`${manifest.small.length} small, ${manifest.scripts.length} scripts, ${manifest.cpu.programs.length} cpu, ${manifest.json.programs.length} json, 1 large: ${write ? "written" : "as expected"}`);
