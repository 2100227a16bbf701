// a small worker that doubles
const factor = 2;
export default {
  name: 'double',
  version: '1.0.0',
  async run(a) {
    const x = a * factor;
    return x;
  },
  describe() { return 'doubles'; }
};
