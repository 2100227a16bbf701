export default {
  async run(numbers) {
    const sorted = numbers.sort((a, b) => a - b);
    return sorted[sorted.length >> 1];
  },
};
