export default { run() { return /^(a+)+$/.test("a".repeat(40) + "!"); } };
