// whether it is open
const wanted = 'open';
export default {
  name: 'flag',
  version: '1.0.0',
  async run(a) {
    const open = a.state === wanted;
    return open;
  },
  describe() { return 'looks'; }
};
