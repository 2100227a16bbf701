const [{ carrier, tracking, status, promised }] = (await market.listShipments({ order: "o-98" })).items;
return { carrier, tracking, status, promised };
