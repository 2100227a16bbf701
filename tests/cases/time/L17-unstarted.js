// source: cloudflare-os issue 444
// rule: a call whose modules are too much for memory has not started
// limits: {"memory_bytes_max":16777216}
// expected verdict: memory {"started":false,"subrequests_sent":0}
const all = [];
for (;;) all.push(new Uint8Array(1e5));
export default { run(_) { return "never"; } };
