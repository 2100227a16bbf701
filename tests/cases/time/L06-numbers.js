// source: built-ins that run long
// rule: arithmetic on large numbers and buffers is stopped within one operation
// limits: {"cpu_ms_max":50}
// expected verdict: cpu|memory
export default [
  () => { for (;;) (2n ** 1_000_000n).toString(); },
  () => { for (;;) 3n ** 600_000n; },
  () => BigInt("9".repeat(300_000)),
  () => { const n = 3n ** 100_000n; for (;;) n * n; },
  () => { const n = 3n ** 300_000n; for (;;) n / (n >> 500_000n); },
  () => { const n = 3n ** 300_000n; for (;;) n % (n >> 500_000n); },
  () => { for (let n = 3n; ; n = (n * n) % (2n ** 50_000n)); },
  () => { for (let n = 1n; ; n = (n << 1_000n) % (1n << 900_000n)); },
  () => new Float64Array(4e6).map(() => Math.random()).sort(),
  () => new Float64Array(4e6).sort((a, b) => b - a),
  () => { const bytes = new Uint8Array(4e7); for (;;) bytes.fill(1); },
  () => { const bytes = new Uint8Array(4e7); for (;;) bytes.copyWithin(1, 0); },
  () => { const bytes = new Uint8Array(2e7); for (;;) bytes.set(bytes.subarray(1)); },
  () => { const bytes = new Uint8Array(1e7); for (;;) bytes.slice(); },
  () => { const bytes = new Uint8Array(4e7); for (;;) bytes.indexOf(1); },
  () => { const bytes = new Uint8Array(4e7); for (;;) bytes.reverse(); },
  () => { const bytes = new BigInt64Array(1e6); for (;;) bytes.join(); },
  () => { const bytes = new Float64Array(1e6); for (;;) Array.from(bytes); },
  () => { const buffer = new ArrayBuffer(1e7); for (let b = buffer; ; ) b = b.transfer(b.byteLength + 1); },
  () => { for (;;) new Uint8Array(3e7); },
  () => { for (;;) crypto.getRandomValues(new Uint8Array(65536)); },
  async () => { const bytes = new Uint8Array(1e7); for (;;) await crypto.subtle.digest("SHA-512", bytes); },
  async () => {
    const key = await crypto.subtle.importKey("raw", new Uint8Array(8), "PBKDF2", false, ["deriveBits"]);
    return crypto.subtle.deriveBits({ name: "PBKDF2", salt: new Uint8Array(8), iterations: 4e9, hash: "SHA-512" }, key, 512);
  },
  async () => {
    const key = await crypto.subtle.generateKey({ name: "AES-GCM", length: 256 }, false, ["encrypt"]);
    const iv = new Uint8Array(12), bytes = new Uint8Array(1e6);
    for (;;) await crypto.subtle.encrypt({ name: "AES-GCM", iv }, key, bytes);
  },
  async () => {
    const bytes = new Uint8Array(1e6);
    for (;;) await new Response(new Blob([bytes]).stream().pipeThrough(new CompressionStream("gzip"))).arrayBuffer();
  },
  async () => {
    let bytes = new Uint8Array(1e7);
    for (;;) {
      const packed = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate-raw"));
      bytes = await new Response(packed.pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
    }
  },
];
