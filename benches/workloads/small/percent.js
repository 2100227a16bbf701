// a share in percent
const whole = 100;
export default {
  name: 'percent',
  version: '1.0.0',
  async run(a) {
    const share = a.part * whole / a.of;
    return share;
  },
  describe() { return 'divides'; }
};
