// Counts tokens: for each line of the input, a text as JSON, a line with a number. o200k_base is that of GPT-4o and later.
import { createInterface } from "node:readline";
import { encode } from "gpt-tokenizer/encoding/o200k_base";

for await (const line of createInterface({ input: process.stdin })) console.log(encode(JSON.parse(line), { allowedSpecial: "all" }).length);
