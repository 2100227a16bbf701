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

const products = await all(market.listProducts, { category: "decoration", state: "active" });
const rated = await Promise.all(
  products.map(async ({ id, title }) => {
    const stars = (await all(market.listReviews, { product_id: id })).map((review) => review.stars);
    return { title, count: stars.length, stars: Math.round((stars.reduce((a, b) => a + b, 0) / stars.length) * 100) / 100 };
  }),
);
return rated
  .filter(({ count }) => count >= 2)
  .sort((a, b) => a.stars - b.stars || (a.title < b.title ? -1 : 1))
  .slice(0, 3)
  .map(({ title, stars }) => ({ title, stars }));
