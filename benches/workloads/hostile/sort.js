export default {
  run() {
    const numbers = Array.from({ length: 3e6 }, (_, i) => (i * 7919) % 1000003);
    return numbers.sort((a, b) => a - b)[0];
  },
};
