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

const orders = await all(market.listOrders, { status: "pending", placed_before: "2026-05-18" });
for (const { id } of orders) {
  await market.cancelOrder({ order_id: id });
  await market.addOrderNote({ order_id: id, body: { text: "Cancelled: not paid within 14 days." } });
}
return orders.map(({ id }) => id);
