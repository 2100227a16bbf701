export default {
  async run({ players, count }) {
    return [...players]
      .sort((a, b) => b.score - a.score || (a.name < b.name ? -1 : 1))
      .slice(0, count)
      .map(({ name }) => name);
  },
};
