// source: quickjs-ng issue 963; bellard/quickjs issue 384
// rule: what is no date is NaN
// expected: null
export default [
  () => Date.parse("1065873600"),
  () => Date.parse(""),
  () => Date.parse("x"),
  () => Date.parse("2024-13-01"),
  () => Date.parse("2024-01-32"),
  () => Date.parse("2024-01-01T25:00:00Z"),
  () => Date.parse("2024-01-01T24:00:01Z"),
  () => Date.parse("-000000-01-01T00:00:00Z"),
  () => Date.parse("+275760-09-13T00:00:00.001Z"),
  () => new Date(8.64e15 + 1).getTime(),
  () => new Date(NaN).setFullYear(NaN),
  () => Date.parse("\u0000"),
  () => Date.parse("1".repeat(1e5)),
];
