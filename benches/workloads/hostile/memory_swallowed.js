export default {
  run() {
    const kept = [];
    for (;;) {
      try {
        kept.push(new Uint8Array(1 << 20));
      } catch {}
    }
  },
};
