"""The marketplace of openapi.json: made-up data in memory, the same each time, and a bearer token that it wants to see.

    api.py [PORT]

The first line that it writes says where it is. The token is in the file that MARKETPLACE_TOKEN_FILE names. Only for trying things
out.
"""

import datetime
import itertools
import json
import os
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from urllib.parse import parse_qsl, urlsplit

TODAY = datetime.date(2026, 6, 1)
BODY_BYTES_MAX = 1 << 20
WORDS = ["Oak", "Linen", "Copper", "Slate", "Willow", "Amber", "Cobalt", "Ivory", "Juniper", "Saffron"]
THINGS = ["lamp", "kettle", "chair", "basket", "mirror", "blanket", "clock", "vase", "stool", "tray", "bench", "rug"]
CATEGORIES = ["lighting", "kitchen", "furniture", "textiles", "decoration", "garden"]
COUNTRIES = ["DE", "FR", "GB", "US", "NL", "ES", "IT"]
CURRENCIES = ["EUR", "EUR", "USD", "GBP"]
REASONS = ["damaged", "wrong_item", "changed_mind", "late"]
RATES = {"EUR": 1.0, "USD": 1.1, "GBP": 0.85}
PRAISE = ["Broke after two weeks.", "Not what the picture shows.", "It does what it should.", "Well made, came quickly.", "I would buy it again."]


class Refused(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def number(seed: int, below: int) -> int:
    """A number that looks random, and is the same each time."""
    return (seed * 2654435761 + 97) % 4294967296 * below >> 32


def day(before_today: int) -> str:
    return (TODAY - datetime.timedelta(days=before_today)).isoformat()


def identified(items: list[dict]) -> dict[str, dict]:
    return {item["id"]: item for item in items}


class Marketplace:
    """What there is, and what can be done with it."""

    def __init__(self) -> None:
        self.numbers = itertools.count(1)
        self.categories = [{"id": name, "name": name.title()} for name in CATEGORIES]
        self.sellers = identified([self.seller(n) for n in range(1, 9)])
        self.products = identified([self.product(n) for n in range(1, 73)])
        self.stock = {name: self.stock_of(n, name) for n, name in enumerate(self.products, 1)}
        self.customers = identified([self.customer(n) for n in range(1, 41)])
        self.orders = identified([self.order(n) for n in range(1, 141)])
        self.shipments = identified([self.shipment(n, order) for n, order in enumerate(self.orders.values(), 1)
                                     if order["status"] in ("shipped", "delivered")])  # fmt: skip
        returned = [order for order in self.orders.values() if order["status"] == "delivered"][::2]
        self.returns = identified([self.wanted_back(n, order) for n, order in enumerate(returned, 1)])
        self.reviews = identified([self.review(n) for n in range(1, 181)])
        self.payouts = identified([self.payout(n) for n in range(1, 33)])
        self.coupons = {f"SPRING{n}": {"code": f"SPRING{n}", "percent": 5 * n, "expires": day(40 - 12 * n), "enabled": True}
                        for n in range(1, 7)}  # fmt: skip
        self.messages: dict[str, dict] = {}
        self.refunds: dict[str, dict] = {}

    def seller(self, n: int) -> dict:
        name = f"{WORDS[n % 10]} & {WORDS[(n * 3 + 1) % 10]}"
        country = COUNTRIES[number(n, 7)]
        return {"id": f"s-{n}", "name": name, "email": f"hello@seller{n}.example", "country": country,
                "fee_percent": 8 + number(n, 5), "since": day(900 - 50 * n)}  # fmt: skip

    def product(self, n: int) -> dict:
        word, thing = WORDS[number(n, 10)], THINGS[n % 12]
        return {"id": f"p-{n}", "title": f"{word} {thing}", "description": f"A {thing} made of {word.lower()}, by hand.",
                "category": CATEGORIES[number(n + 500, 6)], "seller": f"s-{1 + number(n + 100, 8)}",
                "price": {"cents": 900 + 100 * number(n + 200, 180), "currency": CURRENCIES[number(n + 300, 4)]},
                "tags": [thing, word.lower()], "weight_grams": 200 + 50 * number(n, 90), "state": "active",
                "created": day(400 - n)}  # fmt: skip

    def stock_of(self, n: int, name: str) -> dict:
        amounts = [0 if number(n, 4) == 0 else number(n * 7 + k, 30) for k in range(3)]
        warehouses = zip(["hamburg", "lyon", "leeds"], amounts)
        return {"product": name, "warehouses": [{"warehouse": w, "available": a, "reserved": a // 5} for w, a in warehouses]}

    def customer(self, n: int) -> dict:
        country = COUNTRIES[number(n + 40, 7)]
        address = {"street": f"{n} {WORDS[n % 10]} Street", "city": f"{WORDS[(n + 4) % 10]}ton", "postcode": str(10_000 + 37 * n),
                   "country": country}  # fmt: skip
        return {"id": f"c-{n}", "name": f"{WORDS[(n + 2) % 10]} {THINGS[n % 12].title()}", "email": f"customer{n}@mail.example",
                "country": country, "address": address, "newsletter": n % 3 == 0, "since": day(700 - 11 * n)}  # fmt: skip

    def line(self, product: str, quantity: int) -> dict:
        return {"product": product, "quantity": quantity, "price": self.one("products", product)["price"]}

    def order(self, n: int) -> dict:
        customer = self.customers[f"c-{1 + number(n + 7, 40)}"]
        names = dict.fromkeys(f"p-{1 + number(n * 5 + k, 72)}" for k in range(1 + number(n, 3)))
        lines = [self.line(name, 1 + number(n + k, 3)) for k, name in enumerate(names)]
        age = 120 - number(n, 10) - (n * 5) // 7
        status = "delivered" if age > 45 else ["pending", "paid", "shipped", "delivered"][number(n + 60, 4)]
        if n % 19 == 0:
            status = "cancelled"
        return {"id": f"o-{n}", "customer": customer["id"], "status": status, "placed": day(age), "lines": lines,
                "total": self.total(lines, 0), "ship_to": customer["address"], "notes": []}  # fmt: skip

    def shipment(self, n: int, order: dict) -> dict:
        placed = (TODAY - datetime.date.fromisoformat(order["placed"])).days
        return {"id": f"h-{n}", "order": order["id"], "carrier": ["northpost", "parcelo", "veloce"][number(n, 3)],
                "tracking": f"TR{100_000 + 7919 * n}", "status": "delivered" if order["status"] == "delivered" else "in_transit",
                "sent": day(placed - 1), "promised": day(placed - 6 - number(n, 20))}  # fmt: skip

    def wanted_back(self, n: int, order: dict) -> dict:
        return {"id": f"r-{n}", "order": order["id"], "reason": REASONS[number(n, 4)], "amount": order["total"],
                "status": ["requested", "requested", "approved"][n % 3], "comment": PRAISE[n % 2],
                "requested": day(30 - n % 30)}  # fmt: skip

    def review(self, n: int) -> dict:
        stars = 1 + number(n + 11, 5)
        review = {"id": f"v-{n}", "product": f"p-{1 + number(n + 3, 72)}", "customer": f"c-{1 + number(n, 40)}", "stars": stars,
                  "text": PRAISE[stars - 1], "written": day(200 - n)}  # fmt: skip
        return {**review, "reply": "Thank you!"} if number(n, 3) == 0 else review

    def payout(self, n: int) -> dict:
        return {"id": f"y-{n}", "seller": f"s-{1 + n % 8}", "amount": {"cents": 5_000 + 100 * number(n, 400), "currency": "EUR"},
                "paid": day(120 - 30 * ((n - 1) // 8))}  # fmt: skip

    @staticmethod
    def total(lines: list[dict], percent: int) -> dict:
        """In euros, whatever the lines are in."""
        cents = sum(line["quantity"] * line["price"]["cents"] / RATES[line["price"]["currency"]] for line in lines)
        return {"cents": round(cents * (100 - percent) / 100), "currency": "EUR"}

    def one(self, kind: str, name: str) -> dict:
        found = getattr(self, kind).get(name)
        if found is None:
            raise Refused(404, f"there is no {name} among the {kind}")
        return found

    def new(self, letter: str) -> str:
        return f"{letter}-new-{next(self.numbers)}"

    # The operations, by the ids of the document. Each takes the path's parts, the query and the body.

    def listCategories(self, query: dict, body: dict) -> list:
        return self.categories

    def listProducts(self, query: dict, body: dict) -> dict:
        word, most = query.pop("query", "").lower(), int(query.pop("price_max", 1 << 40))
        return page(query, [product for product in self.products.values()
                            if word in product["title"].lower() and product["price"]["cents"] <= most])  # fmt: skip

    def createProduct(self, query: dict, body: dict) -> dict:
        product = {"id": self.new("p"), **body, "state": "active", "created": day(0)}
        self.stock[product["id"]] = {"product": product["id"], "warehouses": []}
        return self.products.setdefault(product["id"], product)

    def getProduct(self, name: str, query: dict, body: dict) -> dict:
        return self.one("products", name)

    def updateProduct(self, name: str, query: dict, body: dict) -> dict:
        product = {**self.one("products", name), **body}
        self.products[name] = product
        return product

    def archiveProduct(self, name: str, query: dict, body: dict) -> dict:
        return self.updateProduct(name, query, {"state": "archived"})

    def getStock(self, name: str, query: dict, body: dict) -> dict:
        return self.one("stock", name)

    def setStock(self, name: str, query: dict, body: dict) -> dict:
        stock = self.one("stock", name)
        others = [each for each in stock["warehouses"] if each["warehouse"] != body["warehouse"]]
        stock["warehouses"] = [*others, {**body, "reserved": 0}]
        return stock

    def listReviews(self, name: str, query: dict, body: dict) -> dict:
        most = int(query.pop("stars_max", 5))
        written = [review for review in self.reviews.values() if review["product"] == name and review["stars"] <= most]
        return page(query, sorted(written, key=lambda review: review["written"], reverse=True))

    def replyToReview(self, name: str, query: dict, body: dict) -> dict:
        self.one("reviews", name)["reply"] = body["text"]
        return self.one("reviews", name)

    def listSellers(self, query: dict, body: dict) -> dict:
        return page(query, self.sellers.values())

    def getSeller(self, name: str, query: dict, body: dict) -> dict:
        return self.one("sellers", name)

    def listPayouts(self, name: str, query: dict, body: dict) -> dict:
        after = query.pop("paid_after", "")
        return page(query, [each for each in self.payouts.values() if each["seller"] == name and each["paid"] >= after])

    def listCustomers(self, query: dict, body: dict) -> dict:
        return page(query, self.customers.values())

    def getCustomer(self, name: str, query: dict, body: dict) -> dict:
        return self.one("customers", name)

    def updateCustomer(self, name: str, query: dict, body: dict) -> dict:
        self.one("customers", name).update(body)
        return self.one("customers", name)

    def sendMessage(self, name: str, query: dict, body: dict) -> dict:
        message = {"id": self.new("m"), "customer": self.one("customers", name)["id"], **body}
        return self.messages.setdefault(message["id"], message)

    def listOrders(self, query: dict, body: dict) -> dict:
        after, before = query.pop("placed_after", ""), query.pop("placed_before", "9999")
        product, seller = query.pop("product", None), query.pop("seller", None)

        def is_meant(order: dict) -> bool:
            names = [line["product"] for line in order["lines"]]
            sellers = [self.products[name]["seller"] for name in names]
            fits = (product is None or product in names) and (seller is None or seller in sellers)
            return fits and after <= order["placed"] < before

        return page(query, [order for order in self.orders.values() if is_meant(order)])

    def createOrder(self, query: dict, body: dict) -> dict:
        customer = self.one("customers", body["customer"])
        lines = [self.line(line["product"], line["quantity"]) for line in body["lines"]]
        coupon = self.one("coupons", body["coupon"]) if "coupon" in body else {"percent": 0}
        order = {"id": self.new("o"), **body, "status": "pending", "placed": day(0), "lines": lines,
                 "total": self.total(lines, coupon["percent"]), "ship_to": customer.get("address"), "notes": []}  # fmt: skip
        return self.orders.setdefault(order["id"], order)

    def getOrder(self, name: str, query: dict, body: dict) -> dict:
        return self.one("orders", name)

    def cancelOrder(self, name: str, query: dict, body: dict) -> dict:
        order = self.one("orders", name)
        if order["status"] not in ("pending", "paid"):
            raise Refused(409, f"{name} is {order['status']}, and can't be cancelled")
        order["status"] = "cancelled"
        return order

    def addOrderNote(self, name: str, query: dict, body: dict) -> dict:
        self.one("orders", name)["notes"].append(body["text"])
        return self.one("orders", name)

    def createShipment(self, name: str, query: dict, body: dict) -> dict:
        order = self.one("orders", name)
        if order["status"] != "paid":
            raise Refused(409, f"{name} is {order['status']}, and can't be shipped")
        order["status"] = "shipped"
        shipment = {"id": self.new("h"), "order": name, **body, "tracking": "", "status": "label", "sent": day(0), "promised": day(-5)}
        return self.shipments.setdefault(shipment["id"], shipment)

    def createRefund(self, name: str, query: dict, body: dict) -> dict:
        if body["amount"]["cents"] > self.one("orders", name)["total"]["cents"]:
            raise Refused(409, f"{name} has cost less than that")
        refund = {"id": self.new("f"), "order": name, **body}
        return self.refunds.setdefault(refund["id"], refund)

    def listShipments(self, query: dict, body: dict) -> dict:
        before = query.pop("promised_before", "9999")
        return page(query, [each for each in self.shipments.values() if each["promised"] < before])

    def getShipment(self, name: str, query: dict, body: dict) -> dict:
        return self.one("shipments", name)

    def listReturns(self, query: dict, body: dict) -> dict:
        return page(query, self.returns.values())

    def approveReturn(self, name: str, query: dict, body: dict) -> dict:
        self.one("returns", name)["status"] = "approved"
        return self.one("returns", name)

    def listCoupons(self, query: dict, body: dict) -> dict:
        if "enabled" in query:
            query["enabled"] = query["enabled"] == "true"
        return page(query, self.coupons.values())

    def createCoupon(self, query: dict, body: dict) -> dict:
        coupon = {"code": self.new("x").upper(), **body, "enabled": True}
        return self.coupons.setdefault(coupon["code"], coupon)

    def disableCoupon(self, name: str, query: dict, body: dict) -> dict:
        self.one("coupons", name)["enabled"] = False
        return self.one("coupons", name)

    def getRates(self, query: dict, body: dict) -> dict:
        return RATES


def page(query: dict, items) -> dict:
    """The page that the query asks for, of the items that have what the rest of the query says."""
    limit, begin = int(query.pop("limit", 20)), int(query.pop("cursor", 0))
    if not 1 <= limit <= 50:
        raise Refused(400, "limit is 1 to 50")
    found = [item for item in items if all(item.get(key) == value for key, value in query.items())]
    end = begin + limit
    more = {"next": str(end)} if end < len(found) else {}
    return {"items": found[begin:end], **more, "total": len(found)}


class Operations:
    """Finds what a request asks for, by the document."""

    def __init__(self, document: dict) -> None:
        self.found = [
            (method.upper(), re.compile(re.sub(r"\{\w+\}", "([^/]+)", path)), operation["operationId"], int(next(iter(operation["responses"]))))
            for path, methods in document["paths"].items()
            for method, operation in methods.items()
        ]  # fmt: skip

    def find(self, method: str, path: str) -> tuple[str, int, tuple[str, ...]]:
        for wanted, pattern, name, status in self.found:
            match = pattern.fullmatch(path)
            if match and method == wanted:
                return name, status, match.groups()
        raise Refused(404, f"there is no {method} {path}")


class Handler(BaseHTTPRequestHandler):
    """One request at a time of each connection."""

    protocol_version = "HTTP/1.1"
    # An answer leaves as a whole, or the other side acknowledges its head 40 ms later.
    wbufsize = -1
    disable_nagle_algorithm = True
    marketplace: Marketplace
    operations: Operations
    lock: Lock
    token: str

    def answer(self) -> None:
        try:
            length = int(self.headers.get("content-length") or 0)
            if length > BODY_BYTES_MAX:
                self.close_connection = True
                raise Refused(413, f"a body has at most {BODY_BYTES_MAX} bytes")
            body = self.rfile.read(length)
            status, told = self.asked(body)
        except Refused as refusal:
            status, told = refusal.status, {"error": str(refusal)}
        except (KeyError, TypeError, ValueError) as error:
            status, told = 400, {"error": f"the request is wrong: {error!r}"}
        text = json.dumps(told, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

    def asked(self, body: bytes) -> tuple[int, object]:
        if self.headers.get("authorization") != f"Bearer {self.token}":
            raise Refused(401, "the token is missing or wrong")
        url = urlsplit(self.path)
        if url.path == "/headers":  # In no document: says back what it was asked with, as careless servers do.
            return 200, dict(self.headers)
        name, status, parts = self.operations.find(self.command, url.path)
        with self.lock:
            return status, getattr(self.marketplace, name)(*parts, dict(parse_qsl(url.query)), json.loads(body or b"{}"))

    def log_message(self, format: str, *values: object) -> None:
        pass


def main() -> None:
    port = sys.argv[1] if len(sys.argv) > 1 else "8787"
    document = json.loads(Path(__file__).with_name("openapi.json").read_text())
    Handler.marketplace, Handler.operations, Handler.lock = Marketplace(), Operations(document), Lock()
    Handler.token = Path(os.environ["MARKETPLACE_TOKEN_FILE"]).read_text().strip()
    server = ThreadingHTTPServer(("127.0.0.1", int(port)), Handler)
    print(f"the marketplace is at http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
