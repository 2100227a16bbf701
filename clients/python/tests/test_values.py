"""Values: the bytes of schema/value.md, and what arrives in a worker and comes back."""

from __future__ import annotations

import array
import datetime
import math
import re
from decimal import Decimal
from typing import Any

import pytest
from conftest import Load
from vectors import vectors

import coracle
from coracle import HOLE, UNDEFINED, BigInt
from coracle.decode import decode
from coracle.encode import encode

UTC = datetime.timezone.utc


class External:
    def __init__(self, index: int) -> None:
        self.index = index


EXTERNALS = [External(0), External(1)]


def export(value: object) -> int | None:
    return value.index if isinstance(value, External) else None


def to_bytes(value: object) -> bytes:
    return encode(value, export)


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


# A datetime can't change, so two places never hold one that matters; it is written twice.
NOT_SHARED = {"d = new Date(0), [d, d]": unhex("82 c1 00 c1 00")}


@pytest.mark.parametrize(("javascript", "data"), vectors("written"))
def test_what_is_read_is_written_with_the_same_bytes(javascript: str, data: str) -> None:
    expected = NOT_SHARED.get(javascript, unhex(data))
    assert to_bytes(decode(unhex(data), EXTERNALS)) == expected


READ = {
    "1": 1,
    "-1": -1,
    "100000.5": 100000.5,
    "-0": -0.0,
    "NaN": math.nan,
    "Infinity": math.inf,
    "18446744073709552000": 18446744073709552000.0,
    "-18446744073709552000": -18446744073709552000.0,
    "1n": BigInt(1),
    "-1n": BigInt(-1),
    '"ab"': "ab",
    '""': "",
    '"a\\ud800"': "a\ud800",
    "[1]": [1],
    "[]": [],
    "({ a: 1 })": {"a": 1},
    "({ a: 1, a: 2 })": {"a": 2},
    "new Uint8Array([1, 2]).buffer": coracle.ArrayBuffer(b"\1\2"),
    "new Uint8Array([1, 2])": b"\1\2",
    "new Uint16Array([1, 2])": coracle.TypedArray.of("Uint16Array", [1, 2]),
    "new Int16Array([-2])": coracle.TypedArray.of("Int16Array", [-2]),
    "new Uint32Array([1])": coracle.TypedArray.of("Uint32Array", [1]),
    "new Int32Array([-2])": coracle.TypedArray.of("Int32Array", [-2]),
    "new BigUint64Array([1n])": coracle.TypedArray.of("BigUint64Array", [1]),
    "new BigInt64Array([-2n])": coracle.TypedArray.of("BigInt64Array", [-2]),
    "new Float16Array([1.5])": coracle.TypedArray.of("Float16Array", [1.5]),
    "new Float32Array([1.5])": coracle.TypedArray.of("Float32Array", [1.5]),
    "new Float64Array([1.5])": coracle.TypedArray.of("Float64Array", [1.5]),
    "new Date(1500)": datetime.datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC),
    "new Date(NaN)": coracle.Date(math.nan),
    "/a/": coracle.RegExp("a"),
    'new Set([1, "a"])': coracle.Set([1, "a"]),
    "the external 1": EXTERNALS[1],
}


@pytest.mark.parametrize(("data", "javascript"), vectors("read besides"))
def test_other_forms_are_read_too(data: str, javascript: str) -> None:
    value, expected = decode(unhex(data), EXTERNALS), READ[javascript]
    assert type(value) is type(expected)
    # repr tells 0.0 from -0.0 and knows that NaN is NaN.
    assert value == expected or repr(value) == repr(expected)
    if isinstance(value, float) and isinstance(expected, float):
        assert math.copysign(1, value) == math.copysign(1, expected)


@pytest.mark.parametrize(("data", "message"), vectors("refused"))
def test_what_is_no_value_is_refused_in_the_documents_words(data: str, message: str) -> None:
    with pytest.raises(coracle.DecodeError) as refused:
        decode(unhex(data), EXTERNALS)
    assert str(refused.value) == message


def test_every_prefix_and_every_flipped_bit_is_a_value_or_a_typed_error() -> None:
    for _, data in vectors("written"):
        good = unhex(data)
        broken = [good[:length] for length in range(len(good))]
        broken += [
            good[:at] + bytes([good[at] ^ 1 << bit]) + good[at + 1 :] for at in range(len(good)) for bit in range(8)
        ]
        for candidate in broken:
            try:
                to_bytes(decode(candidate, EXTERNALS))
            except coracle.DecodeError:
                pass


def test_depth_is_a_number_and_not_a_crash() -> None:
    for opening, closing in ((b"\x81", b"\x80"), (b"\xa1\x61a", b"\xa0"), (b"\xd9\x01\x03\xa1\x01", b"\xa0")):
        assert decode(opening * 511 + closing) is not None
        with pytest.raises(coracle.DecodeError, match="deeper than the 512 levels allowed"):
            decode(opening * 100_000 + closing)
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(coracle.EncodeError, match="deeper than the 512 levels allowed"):
        to_bytes(value)
    while value:
        value = value.pop()


def test_a_claimed_length_is_not_believed() -> None:
    for claim in (b"\x9b\x7f" + b"\xff" * 7, b"\x5b\x7f" + b"\xff" * 7, b"\xbb\xff" + b"\xff" * 7, b"\x9a\xff\xff\xff\xff" * 8):
        with pytest.raises(coracle.DecodeError, match="before the value does"):
            decode(claim)


def test_bigints_that_one_hash_would_hold_do_not_collide() -> None:
    # hash(n) is n modulo 2**61 - 1, so all of these have the hash 0.
    keys = [BigInt(n * (2**61 - 1)) for n in range(1, 20_000)]
    assert len({hash(key) for key in keys}) == 1
    entries = coracle.Map((key, None) for key in keys)
    assert len({hash(key) for key in entries._entries}) > 19_000


def test_identity_is_kept_both_ways() -> None:
    inner: dict[str, Any] = {"n": 1}
    outer: list[Any] = [inner, inner, [inner]]
    outer.append(outer)
    back = decode(to_bytes(outer))
    assert back[0] is back[1] is back[2][0]
    assert back[3] is back
    back[0]["n"] = 2
    assert back[1] == {"n": 2}


def test_equal_immutables_are_not_made_one_object() -> None:
    data = b"x"
    assert to_bytes([data, data, (), ()]) == unhex("84 d840 41 78 d840 41 78 80 80")


def test_integers_are_numbers_while_exact_and_bigints_beyond() -> None:
    assert to_bytes(2**53 - 1)[0] == 0x1B
    assert to_bytes(2**53)[0] == 0xC2
    assert to_bytes(-(2**53))[0] == 0xC3
    assert to_bytes(BigInt(1)) == unhex("c2 41 01")
    assert to_bytes(True) == b"\xf5"
    assert to_bytes(1.0) == b"\x01"


def test_maps_and_sets_go_by_javascripts_equality() -> None:
    a: list[Any] = []
    b: list[Any] = []
    entries = coracle.Map([(1, "number"), (True, "bool"), ("1", "string"), (BigInt(1), "bigint"), (a, "a"), (b, "b")])
    entries[1.0] = "the same"
    assert (len(entries), entries[1], entries[True], entries[BigInt(1)], entries[a]) == (6, "the same", "bool", "bigint", "a")
    assert [repr(member) for member in coracle.Set([math.nan, float("nan"), 0, -0.0, None, UNDEFINED])] == [
        *("nan", "0", "None", "UNDEFINED")
    ]
    del entries[a]
    assert a not in entries and b in entries


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({1: 2}, "use coracle.Map"),
        (HOLE, "HOLE stands for an element"),
        ({HOLE}, "HOLE stands for an element"),
        (datetime.datetime(2026, 1, 1), "without a time zone"),
        (datetime.date(2026, 1, 1), "use an aware datetime"),
        (re.compile("a"), "use coracle.RegExp"),
        (Decimal(1), "make it a float or a str"),
        (object(), "subclass of coracle.RpcTarget"),
        (int, "classes are not passed"),
        (1j, "complex can't be sent"),
        (coracle.Boxed([]), "Boxed is around"),  # type: ignore[arg-type]
        (array.array("u", "a"), "no typed array"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_cant_be_sent_says_what_to_do(value: object, message: str) -> None:
    with pytest.raises(coracle.EncodeError, match=re.escape(message)):
        to_bytes(value)


DESCRIBE = """
    describe(value) {
        const name = value?.constructor?.name;
        const show = (v) => Object.is(v, -0) ? '-0' : typeof v === 'bigint' ? `${v}n` : String(v);
        switch (name) {
            case 'Map': return ['Map', [...value].map(([k, v]) => `${show(k)}:${show(v)}`).join()];
            case 'Set': return ['Set', [...value].map(show).join()];
            case 'Date': return ['Date', Number.isNaN(+value) ? 'NaN' : value.toISOString()];
            case 'ArrayBuffer': return ['ArrayBuffer', [...new Uint8Array(value)].join()];
            case 'DataView': return ['DataView', String(value.getUint8(0))];
            case 'Object': case 'Array': return [name, JSON.stringify(value)];
        }
        if (typeof value === 'object' && value !== null && !ArrayBuffer.isView(value)) return [name, `${typeof value.valueOf()} ${value}`];
        return [name ?? typeof value, show(value)];
    }
    echo(value) { return value; }
"""

ARRIVES: list[tuple[Any, str, str]] = [
    (UNDEFINED, "undefined", "undefined"),
    (None, "object", "null"),
    (True, "Boolean", "true"),
    (41, "Number", "41"),
    (-0.0, "Number", "-0"),
    (math.inf, "Number", "Infinity"),
    (2**64, "BigInt", "18446744073709551616n"),
    (BigInt(-3), "BigInt", "-3n"),
    ("ahoy ☃\U0001f600", "String", "ahoy ☃\U0001f600"),
    ("\ud83d\ude00", "String", "\U0001f600"),
    ([1, [2]], "Array", "[1,[2]]"),
    ({"b": 1, "a": {"c": None}}, "Object", '{"b":1,"a":{"c":null}}'),
    (coracle.Map([(1, "a"), (BigInt(1), "b")]), "Map", "1:a,1n:b"),
    (coracle.Set([1, "a"]), "Set", "1,a"),
    (datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000, UTC), "Date", "2024-02-29T12:34:56.789Z"),
    (coracle.Date(8.64e15), "Date", "+275760-09-13T00:00:00.000Z"),
    (coracle.Date(math.nan), "Date", "NaN"),
    (coracle.RegExp("a+b", "gi"), "RegExp", "object /a+b/gi"),
    (b"\1\2", "Uint8Array", "1,2"),
    (coracle.ArrayBuffer(b"\1\2"), "ArrayBuffer", "1,2"),
    (coracle.DataView(b"\7"), "DataView", "7"),
    (coracle.TypedArray.of("Int16Array", [-2, 3]), "Int16Array", "-2,3"),
    (coracle.TypedArray.of("BigUint64Array", [2**64 - 1]), "BigUint64Array", str(2**64 - 1)),
    (coracle.TypedArray.of("Float16Array", [1.5]), "Float16Array", "1.5"),
    (coracle.Boxed("a"), "String", "string a"),
]


@pytest.mark.parametrize(("value", "kind", "text"), ARRIVES, ids=lambda part: repr(part)[:30])
async def test_values_arrive_as_what_they_are_and_come_back(load: Load, value: Any, kind: str, text: str) -> None:
    entry = await load(DESCRIBE)
    assert await entry.describe(value) == [kind, text]
    back = await entry.echo(value)
    assert type(back) is type(value) or isinstance(value, (int, str))
    assert back == value or repr(back) == repr(value) or text == "\U0001f600"


async def test_arrays_bytearrays_and_tuples_arrive_as_their_javascript_kin(load: Load) -> None:
    entry = await load(DESCRIBE)
    assert await entry.describe(array.array("d", [0.5])) == ["Float64Array", "0.5"]
    assert await entry.describe(array.array("B", [5])) == ["Uint8Array", "5"]
    assert await entry.describe(bytearray(b"\3")) == ["Uint8Array", "3"]
    assert await entry.describe(memoryview(b"\3\4")[1:]) == ["Uint8Array", "4"]
    assert await entry.describe((1, 2)) == ["Array", "[1,2]"]
    assert await entry.describe(frozenset([1])) == ["Set", "1"]


async def test_holes_lone_surrogates_and_cycles_survive_a_worker(load: Load) -> None:
    entry = await load(
        "holes() { return [1, , 3]; } lone() { return ['a\\ud800', { '\\udc00': 1 }]; }"
        "cycle() { const o = { m: new Map() }; o.m.set(o, o); return o; }"
        "same(a, b) { return a === b.x && b.x === b.y; } indexes() { return { b: 1, 2: 'two', 1: 'one' }; }"
    )
    assert await entry.holes() == [1, HOLE, 3]
    assert await entry.lone() == ["a\ud800", {"\udc00": 1}]
    cycle = await entry.cycle()
    assert list(cycle["m"].items())[0][0] is cycle and cycle["m"][cycle] is cycle
    shared: list[Any] = []
    assert await entry.same(shared, {"x": shared, "y": shared}) is True
    assert list(await entry.indexes()) == ["1", "2", "b"]


async def test_errors_are_values_too(load: Load) -> None:
    entry = await load(
        "make() { return Object.assign(new TypeError('no', { cause: 1 }), { code: 7 }); }"
        "all() { return new AggregateError([new Error('a')], 'all'); }"
        "read(e) { return [e.constructor.name, e.name, e.message, e.code, e.cause?.message]; }"
    )
    made = await entry.make()
    assert isinstance(made, coracle.JsError)
    assert (made.name, made.message, made.props, made.cause, made.remote) == ("TypeError", "no", {"code": 7}, 1, False)
    collected = (await entry.all()).errors
    assert [error.message for error in collected] == ["a"]
    cause = coracle.JsError("why")
    error = coracle.JsError("no", name="RangeError", code=8)
    error.cause = cause
    assert await entry.read(error) == ["RangeError", "RangeError", "no", 8, "why"]
    assert await entry.read(ValueError("bad")) == ["Error", "ValueError", "bad", UNDEFINED, UNDEFINED]
