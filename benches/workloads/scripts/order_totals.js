// Totals of the paid orders, by currency.
export default {
  async run(orders) {
    return orders
      .filter((order) => order.status === "paid")
      .map((order) => ({ currency: order.currency, cents: order.units * order.cents }))
      .reduce((totals, { currency, cents }) => ({ ...totals, [currency]: (totals[currency] ?? 0) + cents }), {});
  },
};
