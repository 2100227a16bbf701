// An agent's glue: a tool answered with JSON in a string; keep what the model needs and answer with a string again.
function shorten(text, length_max) {
  return text.length <= length_max ? text : text.slice(0, length_max - 1) + "…";
}

export default {
  async run(reply) {
    let page;
    try {
      page = JSON.parse(reply.body);
    } catch (error) {
      return { ok: false, reason: error.name };
    }
    const items = page.items.map(({ id, title, author, tags = [], ...rest }) => ({
      id,
      title: shorten(title, 24),
      by: author?.login ?? "unknown",
      tags: tags.length,
      others: Object.keys(rest).length,
    }));
    const text = JSON.stringify({ items, more: page.next !== null }, null, 1);
    return { ok: true, text, length: text.length, same: JSON.parse(text).items.length === items.length };
  },
};
