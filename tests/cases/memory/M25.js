// source: wasmtime issue 4153
// rule: memory that is denied is a memory verdict, whatever the script makes of it
// limits: {"memory_bytes_max":16777216,"cpu_ms_max":20000}
// expected verdict: memory {"started":true,"limit":16777216}
export default [
  () => { try { for (const all = []; ; ) all.push(new Uint8Array(1e5)); } catch { return "survived"; } },
  () => { for (;;) try { for (const all = []; ; ) all.push(new Uint8Array(1e5)); } catch {} },
  () => { try { for (const all = []; ; ) all.push(new Uint8Array(1e5)); } finally { return "survived"; } },
  () => { try { for (const all = []; ; ) all.push(new Uint8Array(1e5)); } catch { throw new Error("mine"); } },
  () => new Promise((_, no) => { for (const all = []; ; ) all.push(new Uint8Array(1e5)); }).catch(() => "survived"),
  async () => { await null; try { new Uint8Array(1e8); } catch { return "survived"; } },
  () => { try { new Uint8Array(1e8); } catch { return "survived"; } },
  () => { try { "x".repeat(1e8); } catch { return "survived"; } },
  () => { try { Array(1e8).fill(0); } catch { return "survived"; } },
  () => { try { new Uint8Array(1e6).map(() => { for (const all = []; ; ) all.push({}); }); } catch { return "survived"; } },
];
