// Builds a Markdown table, piece by piece.
const COLUMNS = [
  { key: "name", title: "Service", align: "left" },
  { key: "region", title: "Region", align: "left" },
  { key: "p99", title: "p99 ms", align: "right" },
  { key: "share", title: "Share", align: "right" },
];

function cell(text, width, align) {
  return align === "right" ? text.padStart(width) : text.padEnd(width);
}

function format(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : String(value);
}

export default {
  async run(rows) {
    const widths = COLUMNS.map(({ key, title }) =>
      Math.max(title.length, ...rows.map((row) => format(row[key]).length)),
    );
    let table = "";
    const line = (texts) => {
      table += "|";
      for (let i = 0; i < COLUMNS.length; i++) table += " " + cell(texts[i], widths[i], COLUMNS[i].align) + " |";
      table += "\n";
    };
    line(COLUMNS.map(({ title }) => title));
    line(widths.map((width, i) => "-".repeat(width - 1) + (COLUMNS[i].align === "right" ? ":" : "-")));
    for (const row of rows) line(COLUMNS.map(({ key }) => format(row[key])));
    return table;
  },
};
