// source: bellard/quickjs issue 311
// rule: an empty group that repeats does not hang the engine
// expected: null
export default [
  () => new RegExp("()*?a").exec(","),
  () => /(?:)*?a/.exec(","),
  () => /(?:a?)*?b/.exec("c"),
  () => /(?:a*)*b/.exec("c"),
  () => /(?:(?=x))*?a/.exec(","),
  () => /(?:(?:)*)*a/.exec(","),
  () => /(?:\b)*?a/.exec(","),
  () => /(\1)*?a/.exec(","),
  () => /(?:^|$)*?a/m.exec(","),
  () => /(?:){0,4294967295}a/.exec(","),
  () => /()*?a/gyv.exec(","),
  () => /(?<=(?:)*?a)b/.exec("cb"),
];
