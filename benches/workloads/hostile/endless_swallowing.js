export default {
  run() {
    for (;;) {
      try {
        for (;;);
      } catch {}
    }
  },
};
