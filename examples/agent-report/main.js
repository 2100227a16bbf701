// A sales report: joins orders with customers and sums up a period.
//
// Everything it needs comes in as modules; it has no network, no files and no clock that moves.

import customers from "./customers.json";
import orders from "./orders.json";
import { joinBy } from "./lib/join.js";
import { countDistinct, totalsBy, topBy } from "./lib/summary.js";

export default {
  /**
   * @param request  {from, to, country, segment}, all optional; dates as YYYY-MM-DD, both inclusive
   * @param env      {currency, top}, both optional
   */
  report(request, env) {
    const { from = "2025-01-01", to = "2025-12-31", country, segment } = request ?? {};
    if (from > to) {
      throw new RangeError(`the period ends before it begins: ${from} to ${to}`);
    }

    const inPeriod = orders.filter((order) => order.date >= from && order.date <= to);
    const { joined, unmatched } = joinBy(inPeriod, "customer", customers, "id");
    if (unmatched.length > 0) {
      console.warn(`${unmatched.length} orders name a customer that is not there; they are left out`);
    }

    const wanted = joined.filter(
      ({ right: customer }) =>
        (country === undefined || customer.country === country) &&
        (segment === undefined || customer.segment === segment),
    );
    const sales = wanted.filter(({ left: order }) => order.status === "paid");
    const refunds = wanted.filter(({ left: order }) => order.status === "refunded");
    const cents = (rows) => rows.reduce((sum, { left: order }) => sum + order.cents, 0);
    const revenueCents = cents(sales);

    return {
      period: { from, to },
      currency: env?.currency ?? "EUR",
      records: { customers: customers.length, orders: orders.length, unmatched: unmatched.length },
      sales: sales.length,
      customers: countDistinct(sales, ({ right: customer }) => customer.id),
      revenueCents,
      refundedCents: cents(refunds),
      averageCents: sales.length === 0 ? 0 : Math.round(revenueCents / sales.length),
      bySegment: totalsBy(sales, ({ right: customer }) => customer.segment),
      byCountry: totalsBy(sales, ({ right: customer }) => customer.country),
      byMonth: totalsBy(sales, ({ left: order }) => order.date.slice(0, 7)).sort((a, b) => (a.key < b.key ? -1 : 1)),
      topCustomers: topBy(sales, env?.top ?? 5),
    };
  },
};
