"""A client in Python: loads a worker into a running server and calls it, in one round trip.

    coracle serve --listen 127.0.0.1:7070
    python3 examples/python/hello.py 127.0.0.1:7070     (needs pycapnp: python3 -m pip install pycapnp)
"""

import asyncio
import json
import sys
from pathlib import Path

import capnp

SCHEMA = capnp.load(str(Path(__file__).resolve().parents[2] / "schema" / "coracle.capnp"))
SOURCE = "export default { greet(name, env) { return `hello ${name} from ${env.place}`; } };"


async def main(address: str) -> None:
    host, _, port = address.rpartition(":")
    stream = await capnp.AsyncIoStream.create_connection(host=host, port=int(port))
    gate = capnp.TwoPartyClient(stream).bootstrap().cast_as(SCHEMA.Gate)
    loader = gate.login(credentials={"none": None}).loader  # or {"bearerToken": "…"}
    modules = [{"name": "main.js", "body": {"esModule": SOURCE}}]
    env = {"json": json.dumps({"place": "a sandbox"})}
    worker = loader.load(code={"mainModule": "main.js", "modules": modules, "env": env}).worker
    entrypoint = worker.getEntrypoint("default", {}, {}).entrypoint  # its name, props and limits
    answer = await entrypoint.call(path=["greet"], args={"json": json.dumps(["ada"])}, resultForm="json")
    if answer.outcome.which() == "value":
        print(json.loads(answer.outcome.value.json))
    else:
        sys.exit(str(answer.outcome))  # what it threw, or the verdict
    print(f"{answer.usage.cpuMicros} µs of CPU")


asyncio.run(capnp.run(main(sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:7070")))
