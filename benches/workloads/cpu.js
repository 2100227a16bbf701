// Twelve CPU-bound programs, after the groups of the engines' own suites. Each is self-contained, so that one program's
// types do not colour another's code, does the same work on every call, and returns a number that depends on all of it.
// The loop variables are `let`, as people write them.

function fibonacci() {
  function fibonacciOf(n) {
    return n < 2 ? n : fibonacciOf(n - 1) + fibonacciOf(n - 2);
  }
  return fibonacciOf(27);
}

function integerLoop() {
  let sum = 0;
  for (let i = 0; i < 1_000_000; i++) sum = (sum + i * 3) % 1_000_003;
  return sum;
}

function floatLoop() {
  let x = 0.5;
  let sum = 0;
  for (let i = 0; i < 300_000; i++) {
    x = 3.7 * x * (1 - x);
    sum += x * 0.25 + i * 1e-6;
  }
  return Math.round(sum * 1000);
}

// Outside of the function: a class made anew on every call would have its inline caches cold on every call.
class Vector {
  constructor(x, y) {
    this.x = x;
    this.y = y;
  }
  add(other) {
    this.x = (this.x + other.x) & 0xffff;
    this.y = (this.y + other.y) & 0xffff;
    return this;
  }
}

function propertiesAndMethods() {
  // Many vectors: a compiler could keep the fields of two in registers.
  const vectors = Array.from({ length: 64 }, (_, i) => new Vector(i, i * 3));
  for (let i = 0; i < 300_000; i++) {
    const other = vectors[(i * 5 + 1) & 63];
    vectors[i & 63].add(other);
    other.x ^= i & 15;
  }
  return vectors.reduce((sum, { x, y }) => sum + x * 3 + y, 0);
}

function arraysAndTypedArrays() {
  const count = 40_000;
  const numbers = [];
  for (let i = 0; i < count; i++) numbers.push((i * 7_919) % 1_009);
  const words = new Uint32Array(count);
  const floats = new Float64Array(count);
  for (let i = 0; i < count; i++) {
    words[i] = numbers[i] ^ numbers[count - 1 - i];
    floats[i] = words[i] / 3;
  }
  let sum = 0;
  for (let round = 0; round < 3; round++) {
    const bytes = new Uint8Array(words.buffer, round * 4_096, count);
    for (let i = 1; i < count; i++) sum = (sum + words[i] + bytes[i] * numbers[i - 1]) >>> 0;
    const half = numbers.slice(round * 1_000, round * 1_000 + count / 2).reverse();
    while (half.length > 0) sum += half.pop() & half.length;
    numbers.copyWithin(0, 100, 20_000);
    sum += numbers.indexOf(1_008) + numbers.lastIndexOf(round) + words.subarray(round).indexOf(77);
  }
  return sum + Math.round(floats[count >> 1] * 3);
}

function filterMapReduce() {
  const rows = Array.from({ length: 20_000 }, (_, i) => ({ id: i, price: (i * 37) % 500, paid: i % 3 !== 0 }));
  let total = 0;
  for (let round = 0; round < 5; round++) {
    total += rows
      .filter((row) => row.paid && row.id % 5 !== round)
      .map((row) => ({ ...row, price: row.price + round }))
      .reduce((sum, row) => sum + row.price, 0);
  }
  return total;
}

function stringAppend() {
  let length = 0;
  let last = 0;
  for (let round = 0; round < 10; round++) {
    let text = "";
    for (let i = 0; i < 20_000; i++) text += "ab" + i;
    length += text.length;
    last += text.charCodeAt(text.length - 1 - round);
  }
  return length + last;
}

function templateStrings() {
  let length = 0;
  for (let i = 0; i < 60_000; i++) {
    const line = `order ${i}: ${i % 7} pieces at ${i * 3} cents, ${i % 2 === 0 ? "paid" : "open"}`;
    length += line.length + line.charCodeAt(i % 20);
  }
  return length;
}

function splitMapJoin() {
  const text = Array.from({ length: 2_000 }, (_, i) => `field-${i}=Value ${i * 13}`).join(";");
  let sum = 0;
  for (let round = 0; round < 12; round++) {
    const joined = text
      .split(";")
      .map((pair) => pair.split("="))
      .map(([key, value]) => value.toUpperCase() + ":" + key.slice(6))
      .join(",");
    sum += joined.length + joined.charCodeAt(round * 100);
  }
  return sum;
}

function sortWithComparator() {
  let random = 12_345;
  const numbers = [];
  for (let i = 0; i < 50_000; i++) {
    random = (Math.imul(random, 1_103_515_245) + 12_345) & 0x7fffffff;
    numbers.push(random);
  }
  numbers.sort((a, b) => a - b);
  return numbers[0] + numbers[25_000] + numbers[49_999];
}

function regularExpression() {
  let addresses = "";
  for (let i = 0; i < 2_000; i++) addresses += `user${i}@example${i % 7}.com, `;
  let sum = 0;
  for (let round = 0; round < 6; round++) {
    // Another text each time, in case that an engine remembers the matches of the last one.
    const text = `${round}: ${addresses}`;
    const found = text.match(/[a-z0-9]+@[a-z0-9]+\.com/g);
    sum += found.length + found[round].length + text.replace(/\d+@/g, "@").length;
  }
  return sum;
}

function mapAndSet() {
  const keys = Array.from({ length: 2_000 }, (_, i) => `key-${i}-${i * 31}`);
  let sum = 0;
  for (let round = 0; round < 10; round++) {
    const counts = new Map();
    const seen = new Set();
    for (let i = 0; i < 8_000; i++) {
      const key = keys[(i * 7 + round) % 2_000];
      counts.set(key, (counts.get(key) ?? 0) + 1);
      if (i % 3 === 0) seen.add(key);
    }
    for (const [key, count] of counts) if (seen.has(key)) sum += count * key.length;
    sum += counts.size;
  }
  return sum;
}

const PROGRAMS = {
  fibonacci,
  integer_loop: integerLoop,
  float_loop: floatLoop,
  properties_and_methods: propertiesAndMethods,
  arrays_and_typed_arrays: arraysAndTypedArrays,
  filter_map_reduce: filterMapReduce,
  string_append: stringAppend,
  template_strings: templateStrings,
  split_map_join: splitMapJoin,
  sort_with_comparator: sortWithComparator,
  regular_expression: regularExpression,
  map_and_set: mapAndSet,
  // What a call costs without work; the others' times are taken over it.
  nothing: () => 0,
};

export default {
  async run(name) {
    if (!Object.hasOwn(PROGRAMS, name)) throw new RangeError(`no program named ${name}`);
    return PROGRAMS[name]();
  },
};
