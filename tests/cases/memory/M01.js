// source: isolated-vm issue 107
// rule: what makes much of little runs out of memory, and takes nobody along
// limits: {"memory_bytes_max":16777216}
// expected verdict: memory {"started":true,"limit":16777216}
export default [
  () => [...".".repeat(1e9)],
  () => "x".repeat(1e9),
  () => Array.from("x".repeat(5e8)),
  () => "x".repeat(5e8).split("").map((x) => x + x),
  () => { for (let text = "x"; ; ) text = [text, text].join(); },
  () => { for (let all = [1]; ; ) all = [...all, ...all]; },
  () => { for (let all = [1]; ; ) all = all.concat(all); },
  () => { for (const all = [1]; ; ) all.push(...all.slice(0, 1000)); },
  () => JSON.stringify(Array(1e3).fill("\u0000".repeat(1e5))),
  () => "a".repeat(1e5).replace(/a/g, "$`"),
  () => "x".repeat(1e6).replaceAll("", "y".repeat(100)),
  () => Array(1e4).fill("x".repeat(1e5)).join(),
  () => ({}).x?.y ?? [..."x".repeat(1e7)].map((x) => ({ x })),
];
