// Makes modules of about 20 kB, no two alike: what a model or a bundler writes, mostly helpers of which a call uses few.
//
// `source(seed)` is deterministic: a seed gives the same text in every engine. The file is itself a worker
// (`run(seed)` returns the source), so that a bench without a JavaScript engine of its own can ask a sandbox for it.
// What it makes is a worker whose `run(argument)` returns `{ seed, parts, checksum }`.

const SOURCE_BYTES_MIN = 20_000;

/** A small generator of numbers (mulberry32); not for secrets. */
function numbers(seed) {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

const NOUNS = ["Order", "Invoice", "Ticket", "Session", "Customer", "Parcel", "Report", "Device", "Payment", "Route"];
const FIELDS = ["amount", "weight", "score", "length", "latency", "balance", "priority", "distance"];

/** The kinds of parts; each declares the function `<name>(n)`, which takes and returns an integer. */
const PARTS = [
  (name, noun, field, number) => `
// Keeps the ${noun.toLowerCase()}s whose ${field} is over the threshold, and sums them up.
const ${name}Threshold = ${number(50)};
function ${name}(n) {
  const rows = Array.from({ length: ${3 + number(6)} }, (_, i) => ({ id: i, ${field}: (n * i + ${number(1_000)}) % 97 }));
  return rows
    .filter((row) => row.${field} > ${name}Threshold)
    .map(({ id, ${field} }) => ${field} * (id + 1))
    .reduce((sum, value) => sum + value, 0);
}
`,
  (name, noun, field, number) => `
class ${name}Store {
  #items = new Map();
  constructor(capacity = ${4 + number(12)}) {
    this.capacity = capacity;
  }
  put(key, ${field}) {
    if (this.#items.size >= this.capacity && !this.#items.has(key)) {
      this.#items.delete(this.#items.keys().next().value);
    }
    this.#items.set(key, { key, ${field}, at: ${number(100_000)} });
    return this;
  }
  get ${field}() {
    let total = 0;
    for (const item of this.#items.values()) total += item.${field};
    return total;
  }
}
const ${name} = (n) => new ${name}Store().put("${noun}", n).put("${field}", ${number(500)}).put("${noun}", n + 1).${field};
`,
  (name, noun, field, number) => `
function ${name}(n) {
  const text = \`${noun.toLowerCase()}/\${n}/${field}?page=\${n % ${2 + number(9)}}&size=${10 + number(90)}\`;
  const query = Object.fromEntries(text.split("?")[1].split("&").map((pair) => pair.split("=")));
  const match = /^(\\w+)\\/(\\d+)\\/(\\w+)/.exec(text);
  if (match === null) throw new TypeError("not a ${noun.toLowerCase()}: " + text);
  return match[1].length + Number(match[2]) + Number(query.size) + match[3].length;
}
`,
  (name, noun, field, number) => `
/** Checks one ${noun.toLowerCase()}; returns how many rules it breaks. */
function ${name}(n) {
  const value = { id: n, ${field}: n % ${5 + number(40)}, owner: n % 2 ? "${noun}" : null, tags: ["${field}"] };
  const problems = [];
  if (typeof value.id !== "number" || value.id < 0) problems.push("id must be a positive number");
  if (value.${field} > ${number(30)}) problems.push("${field} is over its maximum");
  if (value.owner === null) problems.push(\`owner of ${noun} \${value.id} is missing\`);
  switch (value.${field} % 4) {
    case 0:
      problems.push("${field} is even");
      break;
    case 3:
      return problems.length + ${number(10)};
    default:
  }
  return problems.length;
}
`,
  (name, noun, field, number) => `
const ${name}Table = { ${[0, 1, 2, 3].map((i) => `"${field}-${i}": ${number(900)}`).join(", ")}, ${noun}: [${number(9)}, ${number(9)}, ${number(9)}] };
const ${name} = (n) => {
  const { ${noun}: steps, ...rest } = ${name}Table;
  const walk = (depth) => (depth <= 0 ? steps[0] : walk(depth - 1) + steps[depth % steps.length]);
  return Object.values(rest).reduce((most, value) => Math.max(most, value), 0) + walk(n % 7);
};
`,
  (name, noun, field, number) => `
async function ${name}Later(items, { retries = ${1 + number(4)}, step = ${1 + number(20)} } = {}) {
  for (let attempt = 0; attempt <= retries; attempt++) {
    try {
      const found = await Promise.all(items.map(async (item) => item.${field} + attempt * step));
      return found.sort((a, b) => b - a)[0];
    } catch (error) {
      if (attempt === retries) throw new Error("${noun} failed: " + error.message, { cause: error });
    }
  }
}
function ${name}(n) {
  let hash = ${1 + number(100_000)};
  for (const character of "${noun}-${field}-" + n) hash = (Math.imul(hash, 31) + character.codePointAt(0)) | 0;
  return hash & 0xffff;
}
`,
];

/** The text of the module for a seed. */
export function source(seed) {
  const number = numbers(seed);
  const names = [];
  let text = `// Made for seed ${seed}.\n`;
  while (text.length < SOURCE_BYTES_MIN) {
    const noun = NOUNS[number(NOUNS.length)];
    const field = FIELDS[number(FIELDS.length)];
    const name = `${field}Of${noun}${names.length}`;
    text += PARTS[number(PARTS.length)](name, noun, field, number);
    names.push(name);
  }
  const used = names.filter((_, i) => i % 8 === 0);
  return `${text}
const PARTS = { ${used.join(", ")} };

export default {
  async run(argument) {
    let checksum = 0;
    for (const part of Object.values(PARTS)) checksum = (checksum + part(argument)) % 1_000_003;
    return { seed: ${seed}, parts: ${names.length}, checksum };
  },
};
`;
}

export default {
  async run(seed) {
    return source(seed);
  },
};
