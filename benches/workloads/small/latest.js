export default {
  async run(versions) {
    const key = (version) => version.split(".").reduce((sum, part) => sum * 1000 + Number(part), 0);
    return versions.sort((a, b) => key(b) - key(a))[0];
  },
};
