// Renders mails from a template with {{fields}}, {{#lists}} and escaping.
const ESCAPES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const escape = (value) => String(value).replace(/[&<>"']/g, (character) => ESCAPES[character]);

function html(strings, ...values) {
  return strings.reduce((text, part, i) => text + (i === 0 ? "" : escape(values[i - 1])) + part, "");
}

function render(template, fields) {
  return template
    .replace(/\{\{#(\w+)\}\}([^]*?)\{\{\/\1\}\}/g, (_, list, body) =>
      (fields[list] ?? []).map((item) => render(body, { ...fields, ...item })).join(""),
    )
    .replace(/\{\{(\w+)(?:\|(\w+))?\}\}/g, (_, name, filter) => {
      const value = fields[name] ?? "";
      return escape(filter === "upper" ? String(value).toUpperCase() : value);
    });
}

export default {
  async run({ template, recipients }) {
    return recipients.map((recipient) => {
      const { name, email } = recipient;
      const body = render(template, recipient);
      return { to: html`${name} <${email}>`, body, words: body.split(/\s+/).filter(Boolean).length };
    });
  },
};
