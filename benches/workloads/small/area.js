// the perimeter of a square
const sides = 4;
export default {
  name: 'area',
  version: '1.0.0',
  async run(a) {
    const all = a * sides;
    return all;
  },
  describe() { return 'measures'; }
};
