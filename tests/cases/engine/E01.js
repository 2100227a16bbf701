// source: quickjs-ng issues 1301 and 1302; bellard/quickjs issue 508
// rule: a buffer that shrinks while it is written to is an exception or a write of nothing, as the language says
// expected: ["refused","refused","refused","refused",0,"refused","refused",-1,[],"refused",0,"absent"]
const names = { RangeError: "refused", TypeError: "refused", ReferenceError: "absent" };
const name = (attempt) => { try { return attempt(); } catch (error) { return names[error.name] ?? String(error); } };
const shrinking = (length = 16) => {
  const buffer = new ArrayBuffer(length, { maxByteLength: 32 });
  return [buffer, { valueOf() { buffer.resize(0); return 1; } }];
};
export default {
  run(_) {
    return [
      name(() => { const [buffer, one] = shrinking(); new DataView(buffer).setInt32(12, one); return "set"; }),
      name(() => { const [buffer, one] = shrinking(); new DataView(buffer, 8, 8).setInt32(0, one); return "set"; }),
      name(() => { const [buffer, one] = shrinking(); return new DataView(buffer).getInt32(one); }),
      name(() => { const [buffer, one] = shrinking(); return new DataView(buffer, 8, 8).getInt8(one); }),
      name(() => { const [buffer, one] = shrinking(); return new Int32Array(buffer).fill(one).length; }),
      name(() => { const [buffer, one] = shrinking(); return new Int32Array(buffer, 0, 4).fill(one).length; }),
      name(() => { const [buffer, one] = shrinking(); return new Int32Array(buffer, 0, 4).slice(one).length; }),
      name(() => { const [buffer, one] = shrinking(); return new Int32Array(buffer, 0, 4).indexOf(0, one); }),
      name(() => { const [buffer, one] = shrinking(); const ints = new Int32Array(buffer); ints[0] = one; return [...ints]; }),
      name(() => { const [buffer, one] = shrinking(); return new Int32Array(buffer).with(3, one).length; }),
      name(() => { const [buffer, one] = shrinking(); const ints = new Int32Array(buffer); ints.set([one, one, one]); return ints.length; }),
      name(() => Atomics.store(new Int32Array(shrinking()[0]), 0, shrinking()[1])),
    ];
  },
};
