// source: rquickjs issue 628
// rule: running out of memory while a call out is in flight is no different
// limits: {"memory_bytes_max":16777216}
// expected verdict: memory {"started":true,"subrequests_sent":1}
export default [
  async (_x, env) => { env.never(); await null; for (const all = []; ; ) all.push(new Uint8Array(1e5)); },
  async (_x, env) => { env.delay(50); await null; for (const all = []; ; ) all.push(new Uint8Array(1e5)); },
];
