export default {
  run() {
    const kept = [];
    for (let i = 0; i < 20; i++) kept.push(new Uint8Array(100 << 20).fill(1));
    return kept.length;
  },
};
