//! The CBOR tags that a value may contain, by number.
//!
//! Owns the numbers and nothing else: the host's codec, the guest's codec and `schema/value.md` all take them from
//! here. A tag that is not in this module is refused by [`decode`](crate::decode) and [`validate`](crate::validate).

/// A `Date`: seconds since the epoch, an integer where whole, else a float; NaN is the invalid date.
pub const DATE: u64 = 1;
/// A bigint that is not negative: its magnitude as a big-endian byte string.
pub const BIGINT_POSITIVE: u64 = 2;
/// A negative bigint: `-1 - n`, with `n` as a big-endian byte string.
pub const BIGINT_NEGATIVE: u64 = 3;
/// Marks an object that is referred to again; marked objects are numbered from 0 in order of appearance.
pub const SHARED: u64 = 28;
/// Stands for the marked object with this number.
pub const REFERENCE: u64 = 29;
/// `Uint8Array`.
pub const UINT8_ARRAY: u64 = 64;
/// `Uint16Array`, big-endian elements: read, never written.
pub const UINT16_ARRAY_BE: u64 = 65;
/// `Uint32Array`, big-endian elements: read, never written.
pub const UINT32_ARRAY_BE: u64 = 66;
/// `BigUint64Array`, big-endian elements: read, never written.
pub const BIG_UINT64_ARRAY_BE: u64 = 67;
/// `Uint8ClampedArray`.
pub const UINT8_CLAMPED_ARRAY: u64 = 68;
/// `Uint16Array`.
pub const UINT16_ARRAY: u64 = 69;
/// `Uint32Array`.
pub const UINT32_ARRAY: u64 = 70;
/// `BigUint64Array`.
pub const BIG_UINT64_ARRAY: u64 = 71;
/// `Int8Array`.
pub const INT8_ARRAY: u64 = 72;
/// `Int16Array`, big-endian elements: read, never written.
pub const INT16_ARRAY_BE: u64 = 73;
/// `Int32Array`, big-endian elements: read, never written.
pub const INT32_ARRAY_BE: u64 = 74;
/// `BigInt64Array`, big-endian elements: read, never written.
pub const BIG_INT64_ARRAY_BE: u64 = 75;
/// `Int16Array`.
pub const INT16_ARRAY: u64 = 77;
/// `Int32Array`.
pub const INT32_ARRAY: u64 = 78;
/// `BigInt64Array`.
pub const BIG_INT64_ARRAY: u64 = 79;
/// `Float16Array`, big-endian elements: read, never written.
pub const FLOAT16_ARRAY_BE: u64 = 80;
/// `Float32Array`, big-endian elements: read, never written.
pub const FLOAT32_ARRAY_BE: u64 = 81;
/// `Float64Array`, big-endian elements: read, never written.
pub const FLOAT64_ARRAY_BE: u64 = 82;
/// `Float16Array`.
pub const FLOAT16_ARRAY: u64 = 84;
/// `Float32Array`.
pub const FLOAT32_ARRAY: u64 = 85;
/// `Float64Array`.
pub const FLOAT64_ARRAY: u64 = 86;
/// A `Set`: an array of its members.
pub const SET: u64 = 258;
/// A `Map`: a CBOR map whose keys may be anything.
pub const MAP: u64 = 259;
/// A string with lone surrogates: a byte string of WTF-8.
pub const WTF8: u64 = 273;
/// A `RegExp`: an array of its source and its flags.
pub const REGEXP: u64 = 21066;
/// Something that can't be copied: its index in the table of externals that travels beside the bytes.
pub const EXTERNAL: u64 = 40000;
/// An `Error`: a map of its fields.
pub const ERROR: u64 = 40001;
/// A hole in a sparse array: null.
pub const HOLE: u64 = 40002;
/// A boxed primitive such as `new String("x")`: the primitive.
pub const BOXED: u64 = 40003;
/// A `DataView`: the bytes in its window.
pub const DATA_VIEW: u64 = 40004;
/// A `Headers` object: an array of `[name, value]`.
pub const HEADERS: u64 = 40005;
/// A `Request`: a map of its fields.
pub const REQUEST: u64 = 40006;
/// A `Response`: a map of its fields.
pub const RESPONSE: u64 = 40007;
/// A `Blob` or `File`: a map of its fields.
pub const BLOB: u64 = 40008;
