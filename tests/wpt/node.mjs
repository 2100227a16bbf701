// Runs one test in Node, as the sandbox does: `node node.mjs FILE`, with the script that tests.py has put together. Writes
// the results to stdout.

import { readFileSync } from "node:fs";
import vm from "node:vm";
import { webcrypto } from "node:crypto";

globalThis.crypto ??= webcrypto;
// What a test lets go unhandled is the harness's to judge, and no reason to end.
for (const event of ["uncaughtException", "unhandledRejection"]) process.on(event, () => {});
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = () => true;
process.stderr.write = () => true;
const run = vm.runInThisContext(readFileSync(process.argv[2], "utf8"), { filename: process.argv[2] });
write((await run.call(globalThis)) + "\n", () => process.exit(0));
