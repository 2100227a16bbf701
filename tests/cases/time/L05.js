// source: patterns that backtrack
// rule: a regular expression that backtracks without end is stopped within its one call
// limits: {"cpu_ms_max":50}
// expected verdict: cpu
export default [
  () => /^(a+)+$/.test("a".repeat(40) + "!"),
  () => /(x+x+)+y/.exec("x".repeat(64)),
  () => /^(a|a)*$/.test("a".repeat(40) + "b"),
  () => /^(a|aa)+$/.test("a".repeat(64) + "b"),
  () => /^(?:a?){40}a{40}!/.test("a".repeat(40)),
  () => /^(([a-z])+.)+[A-Z]([a-z])+$/.test("a".repeat(64)),
  () => /^(\w+\s?)+$/iu.test("a".repeat(40) + "!"),
  () => /^(.*,)+x/.test("1,".repeat(64)),
  () => /^(a*)*\1b/.test("a".repeat(40)),
  () => /(?:a+)+b/y.test("a".repeat(40)),
  () => /(?<=b(?:a+)+)c/.test("a".repeat(40) + "c"),
  () => /^(?=(?:a+)+$)/.test("a".repeat(40) + "!"),
  () => /^(?!(?:a+)+$)b/.test("a".repeat(40) + "!"),
  () => /^(?:[\p{L}--[b]]+)+$/v.test("a".repeat(40) + "!"),
  () => /^(?<all>\p{L}+)+$/u.test("ä".repeat(40) + "!"),
  () => /^(?:\u{1f600}+)+$/u.test("\u{1f600}".repeat(40) + "!"),
  () => /(a*)*(a*)*(a*)*(a*)*(a*)*z/.test("a".repeat(200)),
  () => /a*a*a*a*a*a*b/.test("a".repeat(2_000)),
  () => /^([a-z0-9]+[-_.]?)+@/.test("a".repeat(64)),
  () => "a".repeat(40).replace(/(?:a+)+b/g, ""),
  () => "a".repeat(40).split(/(?:a+)+b/),
  () => [..."a".repeat(40).matchAll(/(?:a+)+b/g)],
  () => "a".repeat(40).search(/(?:a+)+b/),
  () => "x".repeat(2_000_000).replace(/x*y/g, ""),
  () => /(?:(?:a{0,60}){0,60}){0,60}b/.test("a".repeat(60)),
];
