// source: lobu issue 2645
// rule: much on the console leaves the result alone
// limits: {"log_bytes_max":10000}
// expected: "small"
export default [
  () => { for (let i = 0; i < 1_000; i++) console.log("x".repeat(1_000)); return "small"; },
  () => { console.log("x".repeat(1_000_000)); return "small"; },
  () => { console.log({ text: "x".repeat(1_000_000) }); return "small"; },
];
