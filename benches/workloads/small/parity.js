// even or odd
const names = ['even', 'odd'];
export default {
  name: 'parity',
  version: '1.0.0',
  async run(a) {
    const name = names[a % 2];
    return name;
  },
  describe() { return 'sorts'; }
};
