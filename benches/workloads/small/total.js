export default {
  async run(items) {
    const sum = items.reduce((sum, { price, count }) => sum + price * count, 0);
    return { sum, items: items.length };
  },
};
