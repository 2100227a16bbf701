export default {
  async run({ total, size }) {
    const count = Math.ceil(total / size);
    return Array.from({ length: count }, (_, page) => page * size);
  },
};
