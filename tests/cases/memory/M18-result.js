// source: lobu issue 2645
// rule: a result that is too large is a verdict, and never cut
// limits: {"result_bytes_max":100000}
// expected verdict: result_size {"started":true,"limit":100000}
export default [
  () => { console.log("small"); return "x".repeat(200_000); },
  () => Array(30_000).fill("xxxxxx"),
  () => ({ a: { b: "\u0000".repeat(50_000) } }),
];
