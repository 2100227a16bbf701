export default {
  async run(text) {
    const counts = {};
    for (const word of text.split(" ")) counts[word] = (counts[word] ?? 0) + 1;
    return counts;
  },
};
