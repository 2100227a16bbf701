// source: vm2 issue 130; vm2, category 23
// rule: buffers count for memory like all else
// limits: {"memory_bytes_max":16777216,"cpu_ms_max":20000}
// expected verdict: memory {"started":true,"limit":16777216}
// expected throw: {"name":"RangeError"}
export default [
  () => new Uint8Array(1e9),
  () => new ArrayBuffer(2 ** 32),
  () => new ArrayBuffer(2 ** 31),
  () => new ArrayBuffer(2 ** 53),
  () => new Float64Array(2 ** 29),
  () => new BigInt64Array(2 ** 31 - 1),
  () => { const all = []; for (let i = 0; i < 10_000; i++) all.push(new ArrayBuffer(1e6)); },
  () => { const all = []; for (let i = 0; i < 10_000; i++) all.push(new ArrayBuffer(0, { maxByteLength: 1e6 })); for (const b of all) b.resize(1e6); },
  () => new ArrayBuffer(1, { maxByteLength: 2 ** 31 }).resize(2 ** 31),
  () => new ArrayBuffer(1).transfer(1e9),
  () => { for (const all = []; ; ) all.push(new Uint8Array(10).toSorted()); },
  () => { const bytes = new Uint8Array(1e6); for (const all = []; ; ) all.push(bytes.slice()); },
  () => { const bytes = new Uint8Array(1e6); for (const all = []; ; ) all.push(structuredClone(bytes)); },
  () => Uint8Array.from({ length: 1e9 }),
  () => new Uint16Array(Array(1e8)),
  () => new TextEncoder().encode("\uffff".repeat(1e7)),
  () => new TextDecoder("latin1").decode(new Uint8Array(8e6).fill(255)).repeat(3),
  () => btoa("x".repeat(7e6)).repeat(2),
  () => { const all = []; for (;;) all.push(crypto.getRandomValues(new Uint8Array(65536))); },
  async () => { const blob = new Blob([new Uint8Array(3e6)]); return (await new Blob(Array(100).fill(blob)).arrayBuffer()).byteLength; },
  async () => {
    const zeros = new ReadableStream({ pull(controller) { controller.enqueue(new Uint8Array(65536)); } });
    return (await new Response(zeros).arrayBuffer()).byteLength;
  },
  async () => {
    const packed = new Blob([new Uint8Array(4e6)]).stream().pipeThrough(new CompressionStream("gzip"));
    const bomb = new Blob(Array(50).fill(await new Response(packed).blob()));
    return (await new Response(bomb.stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer()).byteLength;
  },
  async () => { const [a, b] = new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(65536)); } }).tee(); void b; for await (const _ of a); },
  async () => { const writer = new TransformStream({}, { highWaterMark: 1e9 }).writable.getWriter(); for (;;) writer.write(new Uint8Array(65536)); },
];
