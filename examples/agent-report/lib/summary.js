/** How many different keys the rows have. */
export function countDistinct(rows, keyOf) {
  return new Set(rows.map(keyOf)).size;
}

/** Number and revenue of the rows by key, the largest revenue first. */
export function totalsBy(rows, keyOf) {
  const totals = new Map();
  for (const row of rows) {
    const key = keyOf(row);
    const total = totals.get(key) ?? { key, sales: 0, revenueCents: 0 };
    total.sales += 1;
    total.revenueCents += row.left.cents;
    totals.set(key, total);
  }
  return [...totals.values()].sort(byRevenue);
}

/** The customers with the largest revenue. */
export function topBy(rows, count) {
  const customers = new Map(rows.map(({ right: customer }) => [customer.id, customer]));
  return totalsBy(rows, ({ right: customer }) => customer.id)
    .slice(0, count)
    .map(({ key, sales, revenueCents }) => {
      const { name, country, segment } = customers.get(key);
      return { id: key, name, country, segment, sales, revenueCents };
    });
}

/** Ties are broken by key, so that the same data gives the same report. */
function byRevenue(a, b) {
  return b.revenueCents - a.revenueCents || (a.key < b.key ? -1 : 1);
}
