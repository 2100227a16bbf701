// no more than a limit
const limit = 100;
export default {
  name: 'clamp',
  version: '1.0.0',
  async run(a) {
    const kept = a > limit ? limit : a;
    return kept;
  },
  describe() { return 'clamps'; }
};
