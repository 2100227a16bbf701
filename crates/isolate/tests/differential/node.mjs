// node node.mjs COUNT: a line of JSON with the outcomes of so many cases of each area.

import { names, outcomes } from "./outcomes.mjs";

const count = Number(process.argv[2]);
for (const name of names) console.log(JSON.stringify([name, await outcomes(name, 0, count)]));
