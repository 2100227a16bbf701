"""A client in Python: what the schema and schema/value.md say is all that it knows.

Run by tests/python/run, against a server that nobody else uses at the time.
"""

import argparse
import asyncio
import json
import sys
import time
import unittest
import urllib.request
from pathlib import Path

import capnp
import cbor2

SCHEMA = capnp.load(str(Path(__file__).resolve().parents[2] / "schema" / "coracle.capnp"))

WORKER = """
import { WorkerEntrypoint } from 'cloudflare:workers';
let calls = 0;
export default class extends WorkerEntrypoint {
    add(a, b) { console.log('adding', a, b); return a + b; }
    echo(value) { return value; }
    count() { return ++calls; }
    where() { return { place: this.env.PLACE, who: this.ctx.props.who }; }
    fail() { const error = new RangeError('too far'); error.code = 7; throw error; }
    nap(ms) { return new Promise(done => setTimeout(done, ms)); }
    spin() { for (;;); }
    hang() { return new Promise(() => {}); }
}
"""

OPTIONS: argparse.Namespace


def in_flight() -> int:
    """The calls that the server has at this moment."""
    with urllib.request.urlopen(f"http://{OPTIONS.admin}/metrics", timeout=10) as response:
        lines = response.read().decode().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("coracle_calls_in_flight ")))


def code(source: str = WORKER, **limits: int) -> dict:
    return {
        "mainModule": "main.js",
        "modules": [{"name": "main.js", "body": {"esModule": source}}],
        "env": {"json": json.dumps({"PLACE": "here"})},
        "limits": limits,
    }


def arguments(*values: object, form: str = "json") -> dict:
    return {"json": json.dumps(values)} if form == "json" else {"cbor": cbor2.dumps(list(values))}


def value_of(results: object) -> object:
    """The value that a call has to have come back with."""
    outcome = results.outcome
    assert outcome.which() == "value", outcome
    match outcome.value.which():
        case "json":
            return json.loads(outcome.value.json)
        case "cbor":
            return cbor2.loads(outcome.value.cbor)
    return None


class ClientTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        await self.enterAsyncContext(capnp.kj_loop())
        host, _, port = OPTIONS.address.rpartition(":")
        self.stream = await capnp.AsyncIoStream.create_connection(host=host, port=int(port))
        self.client = capnp.TwoPartyClient(self.stream)
        self.gate = self.client.bootstrap().cast_as(SCHEMA.Gate)

    async def asyncTearDown(self) -> None:
        self.client.close()
        self.stream.close()

    def loader(self) -> object:
        return self.gate.login(credentials={"none": None}).loader

    def entrypoint(self, **limits: int) -> object:
        worker = self.loader().load(code=code(**limits)).worker
        return worker.getEntrypoint("default", {"json": '{"who":"ada"}'}, {}).entrypoint

    async def call(self, target: object, method: str, *values: object, form: str = "json") -> object:
        promise = target.call(path=[method], args=arguments(*values, form=form), resultForm=form)
        return await asyncio.wait_for(promise, 20)

    async def test_the_whole_way_is_one_line(self) -> None:
        # Nothing of what is promised on the way is kept, the session least of all. (The entrypoint's name goes by its
        # position: pycapnp has a parameter of its own that is called `name`.)
        results = await self.gate.login(credentials={"none": None}).loader.load(code=code()).worker.getEntrypoint(
            "default", {}, {}).entrypoint.call(path=["add"], args=arguments(20, 22), resultForm="json")
        self.assertEqual(value_of(results), 42)
        self.assertEqual([line.message for line in results.logs], ["adding 20 22"])

    async def test_a_stub_outlives_the_way_to_it(self) -> None:
        target = self.entrypoint()
        counts = [value_of(await self.call(target, "count")) for _ in range(3)]
        self.assertEqual(counts, [1, 2, 3])
        self.assertTrue((await self.call(target, "count")).usage.isolateReused)

    async def test_a_worker_calls_functions_of_the_client_and_gives_some_back(self) -> None:
        class Add(SCHEMA.Target.Server):
            async def call(self, path, args, resultForm, _context, **_kwargs):
                assert list(path) == [] and args.which() == "cbor"
                left, right = cbor2.loads(args.cbor)
                _context.results.outcome.init("value").cbor = cbor2.dumps(left + right)

        source = """export default { async run(add) {
            const sum = await add(await add(1, 2), 3);
            return { sum, twice: (n) => n * 2 };
        } }"""
        worker = self.loader().load(code=code(source)).worker
        target = worker.getEntrypoint("default", {}, {}).entrypoint
        # Tag 40000 is an index into the table of externals.
        args = {"cbor": cbor2.dumps([cbor2.CBORTag(40000, 0)]), "externals": [{"target": Add()}]}
        results = await asyncio.wait_for(target.call(path=["run"], args=args, resultForm="cbor"), 20)
        value = results.outcome.value
        self.assertEqual(cbor2.loads(value.cbor), {"sum": 6, "twice": cbor2.CBORTag(40000, 0)})
        twice = value.externals[0].target
        doubled = await asyncio.wait_for(
            twice.call(path=[], args=arguments(21, form="cbor"), resultForm="cbor"), 20)
        self.assertEqual(value_of(doubled), 42)

    async def test_env_and_props_arrive(self) -> None:
        results = await self.call(self.entrypoint(), "where")
        self.assertEqual(value_of(results), {"place": "here", "who": "ada"})

    async def test_json_values_come_back_as_they_went(self) -> None:
        target = self.entrypoint()
        for value in [None, True, -1.5, "ahoy ☃", [], {}, [[1], {"deep": [None, {"er": "!"}]}], "x" * 100_000]:
            self.assertEqual(value_of(await self.call(target, "echo", value)), value)

    async def test_cbor_values_come_back_as_they_went(self) -> None:
        target = self.entrypoint()
        values = [None, 7, 1.5, "ahoy ☃", b"\x00\x01\xff", 2**80, -(2**80), [1, [2]], {"a": {"b": [b"c"]}}]
        for value in values:
            back = value_of(await self.call(target, "echo", value, form="cbor"))
            # Bytes come back as what JavaScript calls them, a typed array.
            self.assertEqual(plain(back), value)

    async def test_many_calls_at_once_are_all_answered(self) -> None:
        target = self.entrypoint()
        all_results = await asyncio.gather(*[self.call(target, "add", n, 1) for n in range(300)])
        self.assertEqual([value_of(results) for results in all_results], [n + 1 for n in range(300)])

    async def test_what_the_worker_throws_is_a_result(self) -> None:
        results = await self.call(self.entrypoint(), "fail")
        self.assertEqual(results.outcome.which(), "threw")
        thrown = results.outcome.threw
        self.assertEqual((thrown.name, thrown.message), ("RangeError", "too far"))
        self.assertEqual((thrown.module, thrown.line, thrown.duringLoad), ("main.js", 9, False))
        self.assertGreater(thrown.column, 0)
        self.assertIn("main.js:9:", thrown.stack)
        self.assertEqual(thrown.value.which(), "cbor")

    async def test_a_module_that_throws_is_a_result_of_ready(self) -> None:
        worker = self.loader().load(code=code("throw new TypeError('not today')")).worker
        results = await asyncio.wait_for(worker.ready(), 20)
        self.assertEqual(results.outcome.threw.message, "not today")
        self.assertTrue(results.outcome.threw.duringLoad)

    async def test_a_limit_is_a_result_with_its_figures(self) -> None:
        fuel_max = 60_000_000
        results = await self.call(self.entrypoint(fuelMax=fuel_max), "spin")
        self.assertEqual(results.outcome.which(), "verdict")
        verdict = results.outcome.verdict
        self.assertEqual((verdict.kind, verdict.limitName, verdict.limit), ("fuel", "fuel_max", fuel_max))
        self.assertGreaterEqual(verdict.used, fuel_max)
        self.assertTrue(verdict.started)
        self.assertTrue(verdict.message)
        self.assertGreaterEqual(results.usage.fuelRun, fuel_max)
        self.assertGreater(results.usage.cpuMicros, 0)

    async def test_what_can_never_end_is_found_out(self) -> None:
        results = await self.call(self.entrypoint(), "hang")
        self.assertEqual(results.outcome.verdict.kind, "hung")

    async def test_after_an_exception_everything_pipelined_ends_with_it(self) -> None:
        promise = self.entrypoint().call(path=["fail"], args={}, resultForm="json")
        results = await asyncio.wait_for(promise.pipeline.call(path=["next"], args={}, resultForm="json"), 20)
        self.assertEqual(results.outcome.threw.message, "too far")

    async def test_exceptions_of_the_protocol_say_what_to_do(self) -> None:
        with self.assertRaises(capnp.KjException) as refused:
            await self.gate.login(credentials={"bearerToken": "nobody has this token"})
        self.assertEqual(refused.exception.type, "FAILED")
        self.assertIn("unauthenticated", refused.exception.description)

        with self.assertRaises(capnp.KjException) as malformed:
            await self.loader().load(code={"mainModule": "gone.js", "modules": []})
        self.assertEqual(malformed.exception.type, "FAILED")
        self.assertIn("at least one module", malformed.exception.description)

        with self.assertRaises(capnp.KjException) as unknown:
            await self.gate.cast_as(SCHEMA.Session).tenant()
        self.assertEqual(unknown.exception.type, "UNIMPLEMENTED")

    async def test_a_timeout_cancels_on_the_server(self) -> None:
        target = self.entrypoint()
        await self.call(target, "add", 1, 2)
        promise = target.call(path=["nap"], args=arguments(25_000), resultForm="json")
        with self.assertRaises(asyncio.TimeoutError):
            await asyncio.wait_for(promise, 0.3)
        await self.no_calls_are_left()

    async def test_a_dropped_promise_cancels_on_the_server(self) -> None:
        target = self.entrypoint()
        await self.call(target, "add", 1, 2)
        promise = target.call(path=["nap"], args=arguments(25_000), resultForm="json")
        await self.calls_are(1)
        promise.cancel()
        await self.no_calls_are_left()

    async def test_a_closed_session_revokes_its_stubs(self) -> None:
        login = await self.gate.login(credentials={"none": None})
        self.assertEqual((await login.session.tenant()).name, "default")
        target = login.loader.load(code=code()).worker.getEntrypoint("default", {}, {}).entrypoint
        self.assertEqual(value_of(await self.call(target, "add", 1, 2)), 3)
        await login.session.close()
        with self.assertRaises(capnp.KjException) as revoked:
            await self.call(target, "add", 1, 2)
        self.assertIn("session is closed", revoked.exception.description)

    async def no_calls_are_left(self) -> None:
        await self.calls_are(0)

    async def calls_are(self, count: int) -> None:
        deadline = time.monotonic() + 20
        # Asked in a thread: this one has to go on sending and receiving.
        while (found := await asyncio.to_thread(in_flight)) != count:
            self.assertLess(time.monotonic(), deadline, f"there are {found} calls and not {count}")
            await asyncio.sleep(0.02)


def plain(value: object) -> object:
    """The value without the tags that say which kind of JavaScript object it was."""
    match value:
        case cbor2.CBORTag():
            return plain(value.value)
        case list() | tuple():
            return [plain(item) for item in value]
        case dict():
            return {key: plain(item) for key, item in value.items()}
    return value


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", required=True, help="where the server listens, HOST:PORT")
    parser.add_argument("--admin", required=True, help="its admin endpoint, HOST:PORT")
    OPTIONS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
