// the same, louder
const mark = '!';
export default {
  name: 'shout',
  version: '1.0.0',
  async run(a) {
    const text = a.toUpperCase() + mark;
    return text;
  },
  describe() { return 'shouts'; }
};
