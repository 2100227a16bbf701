// greets by name
const greeting = 'hello';
export default {
  name: 'greet',
  version: '1.0.0',
  async run(a) {
    const text = greeting + ' ' + a;
    return text;
  },
  describe() { return 'greets'; }
};
