// source: quickjs-ng issue 1354
// rule: a pattern that is none is a SyntaxError
// expected: "SyntaxError"
export default [
  ...[
    ["[", "v"], ["[a--", "v"], ["[a&&", "v"], ["[[a]", "v"], ["[a&&&b]", "v"], ["[a--b&&c]", "v"], ["[(]", "v"], ["[\\q{a", "v"],
    ["[^\\q{ab}]", "v"], ["\\p{Nothing}", "v"], ["[", ""], ["(", ""], [")", ""], ["*", ""], ["a**", ""], ["(?<a", ""], ["(?<a>x)(?<a>y)", ""],
    ["\\k<b>(?<a>x)", ""], ["(?<=a", ""], ["a{2,1}", ""], ["[b-a]", ""], ["\\u{110000}", "u"], ["\\u{", "u"], ["\\1", "u"], ["]", "u"],
    ["{", "u"], ["\\-", "u"], ["a", "uv"], ["a", "gg"], ["a", "z"], ["(?i-i:a)", ""], ["(?ii:a)", ""], ["(?-:a)", ""], ["(?z:a)", ""],
  ].map(([pattern, flags]) => () => { try { return String(new RegExp(pattern, flags)); } catch (error) { return error.name; } }),
];
