async function all<T>(list: (input: any) => Promise<{ items: T[]; next?: string }>, input: object): Promise<T[]> {
  const items: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await list({ ...input, limit: 50, ...(cursor && { cursor }) });
    items.push(...page.items);
    cursor = page.next;
  } while (cursor);
  return items;
}

const orders = await all(market.listOrders, { placed_after: "2026-03-01", placed_before: "2026-05-01" });
const sums: Record<string, number> = {};
for (const { status, ship_to, total } of orders) {
  if (!["pending", "cancelled", "refunded"].includes(status)) sums[ship_to.country] = (sums[ship_to.country] ?? 0) + total.cents;
}
return sums;
