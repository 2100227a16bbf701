export default {
  async run({ from, fields }) {
    const entries = fields.map((field) => [field, from[field]]);
    return Object.fromEntries(entries);
  },
};
