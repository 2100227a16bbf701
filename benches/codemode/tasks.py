"""Twelve jobs on the marketplace of examples/marketplace: what is asked, what is called one by one to do it, and which searches
precede the program in programs/ that does it in Code Mode.

The sequences of calls are those of a model that makes no mistake: it asks for full pages, filters where the API can, and makes
calls that do not depend on each other in one turn.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

TODAY = "2026-06-01"


class Plain:
    """Calls tools one by one."""

    def __init__(self, turn: Callable[[list[tuple[str, dict]]], list]) -> None:
        self.turn = turn

    def one(self, name: str, **arguments):
        return self.turn([(name, arguments)])[0]

    def each(self, name: str, all_arguments: list[dict]) -> list:
        """Calls that do not depend on each other, in one turn."""
        return self.turn([(name, arguments) for arguments in all_arguments]) if all_arguments else []

    def pages(self, name: str, **arguments) -> list:
        items, cursor = [], {}
        while True:
            page = self.one(name, **arguments, limit=50, **cursor)
            items += page["items"]
            if "next" not in page:
                return items
            cursor = {"cursor": page["next"]}


@dataclass(frozen=True)
class Task:
    name: str
    question: str
    searches: list[dict]
    plain: Callable[[Plain], object]


def revenue(plain: Plain):
    sums = defaultdict(int)
    for order in plain.pages("listOrders", placed_after="2026-03-01", placed_before="2026-05-01"):
        if order["status"] not in ("pending", "cancelled", "refunded"):
            sums[order["ship_to"]["country"]] += order["total"]["cents"]
    return dict(sorted(sums.items()))


def sold_out(plain: Plain):
    products = plain.pages("listProducts", seller="s-7", state="active")
    stocks = plain.each("getStock", [{"product_id": product["id"]} for product in products])
    empty = [stock["product"] for stock in stocks if not any(place["available"] for place in stock["warehouses"])]
    orders = plain.each("listOrders", [{"product": name, "placed_after": "2026-03-01", "limit": 50} for name in empty])
    return [{"product": name, "orders": found["total"]} for name, found in zip(empty, orders) if found["total"]]


def late(plain: Plain):
    shipments = plain.pages("listShipments", status="in_transit", promised_before=TODAY)
    orders = plain.each("getOrder", [{"order_id": shipment["order"]} for shipment in shipments])
    customers = plain.each("getCustomer", [{"customer_id": order["customer"]} for order in orders])
    days = [(date.fromisoformat(TODAY) - date.fromisoformat(shipment["promised"])).days for shipment in shipments]
    plain.each("sendMessage", [
        {"customer_id": customer["id"], "subject": f"Your order {order['id']}",
         "text": f"Dear {customer['name']}, your order {order['id']} is {late} days late. We are sorry."}
        for order, customer, late in zip(orders, customers, days)
    ])  # fmt: skip
    return {"told": len(shipments), "worst_days": max(days)}


def damaged(plain: Plain):
    wanted = plain.pages("listReturns", status="requested", reason="damaged")
    small = [each for each in wanted if each["amount"]["cents"] <= 30_000]
    plain.each("approveReturn", [{"return_id": each["id"]} for each in small])
    plain.each("createRefund", [{"order_id": each["order"], "amount": each["amount"], "reason": "damaged"} for each in small])
    return {"refunded_cents": sum(each["amount"]["cents"] for each in small), "left": [each["id"] for each in wanted if each not in small]}


def worst_rated(plain: Plain):
    products = plain.pages("listProducts", category="decoration", state="active")
    reviews = plain.each("listReviews", [{"product_id": product["id"], "limit": 50} for product in products])
    rated = []
    for product, found in zip(products, reviews):
        stars = [review["stars"] for review in found["items"]]
        if len(stars) >= 2:
            rated.append({"title": product["title"], "stars": int(sum(stars) / len(stars) * 100 + 0.5) / 100})
    return sorted(rated, key=lambda each: (each["stars"], each["title"]))[:3]


def again(plain: Plain):
    customer = plain.one("listCustomers", email="customer9@mail.example")["items"][0]
    orders = plain.pages("listOrders", customer=customer["id"], status="delivered")
    last = max(orders, key=lambda order: order["placed"])
    lines = [{"product": line["product"], "quantity": line["quantity"]} for line in last["lines"]]
    placed = plain.one("createOrder", customer=customer["id"], lines=lines)
    return {"again": last["id"], "cents": placed["total"]["cents"]}


def unpaid(plain: Plain):
    orders = plain.pages("listOrders", status="pending", placed_before="2026-05-18")
    plain.each("cancelOrder", [{"order_id": order["id"]} for order in orders])
    plain.each("addOrderNote", [{"order_id": order["id"], "text": "Cancelled: not paid within 14 days."} for order in orders])
    return [order["id"] for order in orders]


def dearer(plain: Plain):
    products = plain.pages("listProducts", seller="s-2", state="active")
    prices = [{**product["price"], "cents": int(product["price"]["cents"] * 105 / 1000 + 0.5) * 10} for product in products]
    plain.each("updateProduct", [{"product_id": product["id"], "price": price} for product, price in zip(products, prices)])
    return {"changed": len(products), "dearest_cents": max(price["cents"] for price in prices)}


def reconciled(plain: Plain):
    seller = plain.one("getSeller", seller_id="s-4")
    rates = plain.one("getRates")
    own = {product["id"] for product in plain.pages("listProducts", seller="s-4")}
    orders = plain.pages("listOrders", seller="s-4", status="delivered")
    payouts = plain.pages("listPayouts", seller_id="s-4")
    lines = [line for order in orders for line in order["lines"] if line["product"] in own]
    sold = sum(line["quantity"] * line["price"]["cents"] / rates[line["price"]["currency"]] for line in lines)
    owed, paid = int(sold * (100 - seller["fee_percent"]) / 100 + 0.5), sum(payout["amount"]["cents"] for payout in payouts)
    return {"owed_cents": owed, "paid_cents": paid, "open_cents": owed - paid}


def tracked(plain: Plain):
    shipment = plain.one("listShipments", order="o-98")["items"][0]
    return {key: shipment[key] for key in ("carrier", "tracking", "status", "promised")}


def unanswered(plain: Plain):
    products = plain.pages("listProducts", seller="s-3", state="active")
    found = plain.each("listReviews", [{"product_id": product["id"], "stars_max": 2, "limit": 50} for product in products])
    reviews = [review for page in found for review in page["items"] if "reply" not in review]
    text = "We are sorry to hear that. Please write to us, and we will make it right."
    plain.each("replyToReview", [{"review_id": review["id"], "text": text} for review in reviews])
    return [review["id"] for review in reviews]


def cheapest(plain: Plain):
    rates = plain.one("getRates")
    vases = plain.pages("listProducts", query="vase", state="active")
    stocks = plain.each("getStock", [{"product_id": product["id"]} for product in vases])
    there = [vase for vase, stock in zip(vases, stocks) if any(place["available"] >= 2 for place in stock["warehouses"])]
    vase = min(there, key=lambda each: each["price"]["cents"] / rates[each["price"]["currency"]])
    coupons = plain.one("listCoupons", enabled=True)["items"]
    best = max((each for each in coupons if each["expires"] >= TODAY), key=lambda each: each["percent"])
    order = plain.one("createOrder", customer="c-5", lines=[{"product": vase["id"], "quantity": 2}], coupon=best["code"])
    return {"title": vase["title"], "coupon": best["code"], "cents": order["total"]["cents"]}


def found(query: str, *names: str) -> list[dict]:
    return [{"query": query}, {"describe": [f"market.{name}" for name in names]}]


TASKS = [
    Task("revenue", "What did we earn in March and April, by the country that orders went to? Leave out what was not paid or was cancelled.",
         found("list orders", "listOrders"), revenue),
    Task("sold-out", "Which products of seller s-7 are sold out in all warehouses, although they were ordered since March, and how often?",
         found("products stock orders", "listProducts", "getStock", "listOrders"), sold_out),
    Task("late", "Write to each customer whose shipment is still on its way after the promised day: say how many days it is late.",
         found("shipments customer message", "listShipments", "getOrder", "getCustomer", "sendMessage"), late),
    Task("damaged", "Approve the requested returns of damaged goods up to 300 euros and refund them. Which are left?",
         found("approve return refund", "listReturns", "approveReturn", "createRefund"), damaged),
    Task("worst-rated", "Which three products in decoration have the worst average rating, of those with two reviews or more?",
         found("products reviews", "listProducts", "listReviews"), worst_rated),
    Task("again", "customer9@mail.example wants the last delivered order once more.",
         found("customer orders create", "listCustomers", "listOrders", "createOrder"), again),
    Task("unpaid", "Cancel all orders that have been pending for more than 14 days, and note why.",
         found("cancel order note", "listOrders", "cancelOrder", "addOrderNote"), unpaid),
    Task("dearer", "Raise the prices of seller s-2 by 5 %, rounded to ten cents.",
         found("update product price", "listProducts", "updateProduct"), dearer),
    Task("reconciled", "What do we still owe seller s-4 for delivered orders, after our fee and what was paid out, in euros?",
         found("seller payouts orders rates", "getSeller", "listProducts", "listOrders", "listPayouts", "getRates"), reconciled),
    Task("tracked", "Where is order o-98?", found("shipment of an order", "listShipments"), tracked),
    Task("unanswered", "Answer all reviews of seller s-3 with one or two stars that have no reply.",
         found("reviews reply", "listProducts", "listReviews", "replyToReview"), unanswered),
    Task("cheapest", "Order two of the cheapest vase in stock for c-5, with the best coupon that is still valid.",
         found("products stock coupons order", "listProducts", "getStock", "getRates", "listCoupons", "createOrder"), cheapest),
]  # fmt: skip
