// source: quickjs-ng issue 1297
// rule: a buffer that changes its size while it is sorted or searched is read within its bounds
// expected: [1,128,64,64,64,64,"none",63,63,2,0,3,0]
const name = (attempt) => { try { return attempt(); } catch (error) { return error.name; } };

const made = (length = 64) => {
  const buffer = new ArrayBuffer(length, { maxByteLength: 128 });
  return [buffer, new Uint8Array(buffer).map((_, i) => length - i) && new Uint8Array(buffer)];
};
export default {
  run(_) {
    return [
      name(() => { const [buffer, bytes] = made(); bytes.sort((a, b) => { buffer.resize(1); return a - b; }); return bytes.length; }),
      name(() => { const [buffer, bytes] = made(); bytes.sort((a, b) => { buffer.resize(128); return a - b; }); return bytes.length; }),
      name(() => { const [buffer, bytes] = made(); return bytes.toSorted((a, b) => { buffer.resize(0); return a - b; }).length; }),
      name(() => { const [buffer, bytes] = made(); return bytes.map((_) => { buffer.resize(0); return 1; }).length; }),
      name(() => { const [buffer, bytes] = made(); return bytes.filter((_) => { buffer.resize(0); return true; }).length; }),
      name(() => { const [buffer, bytes] = made(); let n = 0; bytes.forEach(() => { buffer.resize(1); n++; }); return n; }),
      name(() => { const [buffer, bytes] = made(); return bytes.findLast((x) => { buffer.resize(1); return x === undefined; }) ?? "none"; }),
      name(() => { const [buffer, bytes] = made(); return bytes.reduce((sum, x) => { buffer.resize(1); return sum + (x === undefined); }, 0); }),
      name(() => { const [buffer, bytes] = made(); return bytes.join({ toString() { buffer.resize(0); return "-"; } }).length; }),
      name(() => { const [buffer, bytes] = made(); let n = 0; for (const _ of bytes) { buffer.resize(2); n++; } return n; }),
      name(() => { const [buffer, bytes] = made(); bytes.sort(() => { buffer.transfer(); return 0; }); return bytes.length; }),
      name(() => { const [buffer, bytes] = made(); return Array.from(bytes, () => { buffer.resize(3); return 1; }).length; }),
      name(() => { const [buffer, bytes] = made(); bytes.set({ length: 2, get 0() { buffer.resize(0); return 1; }, 1: 1 }); return bytes.length; }),
    ];
  },
};
