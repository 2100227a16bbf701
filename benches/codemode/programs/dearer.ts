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

const products = await all(market.listProducts, { seller: "s-2", state: "active" });
const prices = products.map(({ price }) => ({ ...price, cents: Math.round((price.cents * 105) / 1000) * 10 }));
await Promise.all(products.map(({ id }, n) => market.updateProduct({ product_id: id, body: { price: prices[n] } })));
return { changed: products.length, dearest_cents: Math.max(...prices.map(({ cents }) => cents)) };
