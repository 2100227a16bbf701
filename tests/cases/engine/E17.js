// source: javy issue 626
// rule: top-level await, async exports and timers work
// expected: ["awaited","made",3,"later"]
import text from "./made.js";
const awaited = await Promise.resolve("awaited");
const { sum } = await import("./sum.js");
export default {
  run: async (_) => [awaited, await text, sum, await new Promise((done) => setTimeout(done, 1, "later"))],
};
// module: made.js
const made = await (async () => "made")();
export default Promise.resolve(made);
// module: sum.js
export let sum = 0;
for await (const n of (async function* () { yield 1; yield 2; })()) sum += n;
