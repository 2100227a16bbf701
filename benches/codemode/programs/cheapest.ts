const rates = await market.getRates();
const { items } = await market.listProducts({ query: "vase", state: "active", limit: 50 });
const euros = ({ price }) => price.cents / rates[price.currency];
for (const vase of items.sort((a, b) => euros(a) - euros(b))) {
  const { warehouses } = await market.getStock({ product_id: vase.id });
  if (!warehouses.some((place) => place.available >= 2)) continue;
  const coupons = (await market.listCoupons({ enabled: true, limit: 50 })).items.filter(({ expires }) => expires >= "2026-06-01");
  const coupon = coupons.reduce((a, b) => (b.percent > a.percent ? b : a)).code;
  const order = await market.createOrder({ body: { customer: "c-5", lines: [{ product: vase.id, quantity: 2 }], coupon } });
  return { title: vase.title, coupon, cents: order.total.cents };
}
