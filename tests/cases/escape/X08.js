// source: deno issues 4383 and 29980; vm2, category 13
// rule: import() finds the worker's own modules only, and says the same whether the target exists or not
// expected: ["No such module","No such module","No such module","No such module","No such module","No such module"]
export default {
  async run(_) {
    const names = [
      "file:///etc/passwd", "file:///etc/nothing", "http://127.0.0.1/x.js",
      "data:text/javascript,export default 1", "../x", "node:fs",
    ];
    const tried = [];
    for (const name of names) {
      try { await import(name); tried.push("loaded " + name); }
      catch (error) { tried.push(error.message.split(" \"")[0]); }
    }
    return tried;
  },
};
