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

const [seller, rates, products, orders, payouts] = await Promise.all([
  market.getSeller({ seller_id: "s-4" }),
  market.getRates(),
  all(market.listProducts, { seller: "s-4" }),
  all(market.listOrders, { seller: "s-4", status: "delivered" }),
  all(market.listPayouts, { seller_id: "s-4" }),
]);
const own = new Set(products.map(({ id }) => id));
const lines = orders.flatMap((order) => order.lines).filter((line) => own.has(line.product));
const sold = lines.reduce((sum, line) => sum + (line.quantity * line.price.cents) / rates[line.price.currency], 0);
const owed = Math.round((sold * (100 - seller.fee_percent)) / 100);
const paid = payouts.reduce((sum, payout) => sum + payout.amount.cents, 0);
return { owed_cents: owed, paid_cents: paid, open_cents: owed - paid };
