// degrees of another scale
const zero = 32;
export default {
  name: 'celsius',
  version: '1.0.0',
  async run(a) {
    const degrees = (a - zero) * 5 / 9;
    return degrees;
  },
  describe() { return 'converts'; }
};
