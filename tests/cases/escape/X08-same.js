// source: deno issue 4383
// rule: the error is the same whether the file is there or not
// expected: 1
export default {
  async run(_) {
    const names = ["/etc/passwd", "/etc/nothing1", "/proc/self/environ", "/proc/self/nothing"];
    const told = await Promise.all(names.map((name) => import(name).catch((error) => `${error.name}: ${error.message}`.replaceAll(name, "it"))));
    return new Set(told).size;
  },
};
