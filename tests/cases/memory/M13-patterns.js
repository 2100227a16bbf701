// source: quickjs-ng, bug1591
// rule: a pattern with too many groups is a SyntaxError
// expected: "SyntaxError"
// expected: "RangeError"
export default [
  ...[
    "(".repeat(1e5) + ")".repeat(1e5),
    "()".repeat(1e5),
    Array.from({ length: 1e5 }, (_, i) => `(?<n${i}>x)`).join(""),
    "(?=".repeat(1e5) + ")".repeat(1e5),
    "(?<=".repeat(1e5) + ")".repeat(1e5),
    "(?<a>x)|".repeat(1e5),
    "(?i:".repeat(1e5) + ")".repeat(1e5),
  ].map((pattern) => () => { try { new RegExp(pattern); return "compiled"; } catch (error) { return error.name; } }),
];
