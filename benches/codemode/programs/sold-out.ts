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

const products = await all(market.listProducts, { seller: "s-7", state: "active" });
const stocks = await Promise.all(products.map(({ id }) => market.getStock({ product_id: id })));
const empty = stocks.filter((stock) => stock.warehouses.every((place) => place.available === 0));
const counts = await Promise.all(
  empty.map(async ({ product }) => ({
    product,
    orders: (await market.listOrders({ product, placed_after: "2026-03-01", limit: 1 })).total,
  })),
);
return counts.filter(({ orders }) => orders > 0);
