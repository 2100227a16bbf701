// a price with tax
const rate = 1.25;
export default {
  name: 'price',
  version: '1.0.0',
  async run(a) {
    const cents = a.cents * rate;
    return { cents };
  },
  describe() { return 'adds tax'; }
};
