const isOpen = ({ state }) => state === "open";

export default {
  async run(issues) {
    return issues.filter(isOpen).map(({ id, title }) => `#${id} ${title}`);
  },
};
