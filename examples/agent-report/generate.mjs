// Writes customers.json and orders.json. Deterministic: the same bytes on every run and machine.
//
//   node examples/agent-report/generate.mjs
//
// Not part of the worker. The data is as untidy as real data is: some customers never ordered, some orders were
// cancelled or refunded, and a few name a customer that is gone.

import { writeFileSync } from "node:fs";

const CUSTOMERS = 800;
const ORDERS = 3_200;
const CUSTOMERS_GONE = 8;

const GIVEN = "Ada Bilal Chidi Dagny Elif Farid Greta Hana Ivo Jun Kwame Lena Mateo Noor Olu Priya Quinn Rosa Sami Tove".split(" ");
const FAMILY = "Abe Berg Costa Diallo Eklund Fischer Garcia Haddad Ito Jensen Kaya Lopez Moreau Nowak Okafor Patel Rossi Silva Tanaka Weber".split(" ");
const COUNTRIES = "DE DE DE DE FR FR FR GB GB GB ES ES IT IT NL PL SE DK".split(" ");
const SEGMENTS = ["startup", "startup", "startup", "business", "business", "enterprise"];
const ORDER_CENTS = { startup: 4_000, business: 18_000, enterprise: 95_000 };
const STATUSES = [..."paid ".repeat(17).trim().split(" "), "refunded", "cancelled", "open"];

/** A generator of 32-bit integers (mulberry32); integers only, so that no platform rounds otherwise. */
function generator(seed) {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

const next = generator(20_250_101);
const below = (bound) => next() % bound;
const pick = (list) => list[below(list.length)];
const day = (year, days) => new Date(Date.UTC(year, 0, 1 + days)).toISOString().slice(0, 10);

const customers = Array.from({ length: CUSTOMERS }, (_, index) => ({
  id: index + 1,
  name: `${pick(GIVEN)} ${pick(FAMILY)}`,
  country: pick(COUNTRIES),
  segment: pick(SEGMENTS),
  since: day(2021, below(365 * 4)),
}));

const orders = Array.from({ length: ORDERS }, (_, index) => {
  // The lower of two draws: a few customers order often, many hardly ever.
  const customer = 1 + Math.min(below(CUSTOMERS + CUSTOMERS_GONE), below(CUSTOMERS + CUSTOMERS_GONE));
  const usual = ORDER_CENTS[customers[customer - 1]?.segment ?? "startup"];
  return {
    id: index + 1,
    customer: below(100) === 0 ? CUSTOMERS + 1 + below(CUSTOMERS_GONE) : customer,
    date: day(2025, below(365)),
    cents: usual / 4 + below(usual * 2),
    status: pick(STATUSES),
  };
});

/** A record a line: compact, and a change shows as one line. */
function write(name, records) {
  const lines = records.map((record) => JSON.stringify(record)).join(",\n");
  writeFileSync(new URL(name, import.meta.url), `[\n${lines}\n]\n`);
}

write("customers.json", customers);
write("orders.json", orders);
