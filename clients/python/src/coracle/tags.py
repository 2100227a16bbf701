"""The CBOR tags of schema/value.md."""

from typing import Final

DATE: Final = 1
BIGINT_POSITIVE: Final = 2
BIGINT_NEGATIVE: Final = 3
SHARED: Final = 28
REFERENCE: Final = 29
SET: Final = 258
MAP: Final = 259
WTF8: Final = 273
REGEXP: Final = 21066
EXTERNAL: Final = 40000
ERROR: Final = 40001
HOLE: Final = 40002
BOXED: Final = 40003
DATA_VIEW: Final = 40004
HEADERS: Final = 40005
REQUEST: Final = 40006
RESPONSE: Final = 40007
BLOB: Final = 40008

TYPED_ARRAYS: Final = {
    "Uint8Array": 64,
    "Uint8ClampedArray": 68,
    "Uint16Array": 69,
    "Uint32Array": 70,
    "BigUint64Array": 71,
    "Int8Array": 72,
    "Int16Array": 77,
    "Int32Array": 78,
    "BigInt64Array": 79,
    "Float16Array": 84,
    "Float32Array": 85,
    "Float64Array": 86,
}
"""Little-endian: these are written."""

TYPED_ARRAYS_BIG_ENDIAN: Final = {
    "Uint16Array": 65,
    "Uint32Array": 66,
    "BigUint64Array": 67,
    "Int16Array": 73,
    "Int32Array": 74,
    "BigInt64Array": 75,
    "Float16Array": 80,
    "Float32Array": 81,
    "Float64Array": 82,
}
"""These are read only."""
