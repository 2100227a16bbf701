export default {
  run() {
    const deeper = () => 1 + deeper();
    return deeper();
  },
};
