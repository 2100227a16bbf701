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

const shipments = await all(market.listShipments, { status: "in_transit", promised_before: "2026-06-01" });
const days = await Promise.all(
  shipments.map(async ({ order, promised }) => {
    const { customer } = await market.getOrder({ order_id: order });
    const { name } = await market.getCustomer({ customer_id: customer });
    const late = (Date.parse("2026-06-01") - Date.parse(promised)) / 86_400_000;
    const text = `Dear ${name}, your order ${order} is ${late} days late. We are sorry.`;
    await market.sendMessage({ customer_id: customer, body: { subject: `Your order ${order}`, text } });
    return late;
  }),
);
return { told: days.length, worst_days: Math.max(...days) };
