"""A worker with a tool written in Python, on a server of its own.

    python3 -m pip install dist/coracle-*.whl     (make wheel builds it)
    python3 examples/python/hello.py
"""

import asyncio

import coracle

SOURCE = """
import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  async total(order) {
    let sum = 0;
    for (const [item, count] of Object.entries(order)) sum += count * await this.env.price(item);
    return sum;
  }
}
"""

PRICES = {"apple": 0.5, "pear": 0.75}


async def price(item: str) -> float:
    if item not in PRICES:
        raise coracle.JsError(f"there is no {item}", name="RangeError")
    return PRICES[item]


async def main() -> None:
    async with coracle.serve() as session:
        worker = await session.load({"main.js": SOURCE}, env={"price": price})
        outcome = await worker.entrypoint().invoke("total", {"apple": 4, "pear": 2})
        print(f"{outcome.value}, {outcome.usage.cpu_micros} µs of CPU, {outcome.usage.subrequests} calls of price()")
        try:
            await worker.entrypoint().total({"anchor": 1})
        except coracle.JsError as error:
            print(error)


asyncio.run(main())
