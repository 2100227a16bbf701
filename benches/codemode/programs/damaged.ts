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

const wanted = await all(market.listReturns, { status: "requested", reason: "damaged" });
const small = wanted.filter((each) => each.amount.cents <= 30_000);
for (const { id, order, amount } of small) {
  await market.approveReturn({ return_id: id });
  await market.createRefund({ order_id: order, body: { amount, reason: "damaged" } });
}
return {
  refunded_cents: small.reduce((sum, each) => sum + each.amount.cents, 0),
  left: wanted.filter((each) => !small.includes(each)).map(({ id }) => id),
};
