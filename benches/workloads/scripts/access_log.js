// Reads an access log with a regular expression, and tells which paths fail and how slow they are.
const LINE = /^(?<address>\d+(?:\.\d+){3}) \[(?<time>[^\]]+)\] "(?<method>[A-Z]+) (?<path>\S+)" (?<status>\d{3}) (?<ms>\d+)ms$/gm;
const NUMBER_IN_PATH = /\/\d+(?=\/|$)/g;

export default {
  async run(log) {
    const paths = {};
    let lines = 0;
    for (const { groups } of log.matchAll(LINE)) {
      lines += 1;
      const path = groups.path.split("?")[0].replace(NUMBER_IN_PATH, "/:id");
      const seen = (paths[`${groups.method} ${path}`] ??= { calls: 0, failed: 0, ms_max: 0 });
      seen.calls += 1;
      if (groups.status[0] === "5") seen.failed += 1;
      seen.ms_max = Math.max(seen.ms_max, Number(groups.ms));
    }
    const unreadable = log.split("\n").filter((line) => line.trim() !== "").length - lines;
    return { lines, unreadable, paths };
  },
};
