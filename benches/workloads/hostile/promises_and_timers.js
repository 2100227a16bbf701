export default {
  async run() {
    const promises = [];
    for (let i = 0; i < 1e6; i++) promises.push(new Promise((done) => setTimeout(done, 1)));
    await Promise.all(promises);
    return promises.length;
  },
};
