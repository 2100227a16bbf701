export default {
  async run(title) {
    return title.toLowerCase().split(/[^a-z0-9]+/).filter(Boolean).join("-");
  },
};
