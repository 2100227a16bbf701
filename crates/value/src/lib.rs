//! The value codec: JavaScript values as CBOR, by the structured-clone rules.
//!
//! What crosses the RPC is bytes and a table of externals. This crate turns bytes into a tree ([`decode`]) and back
//! ([`encode`]), checks bytes that are only passed on ([`validate`]), and cuts one item out of them ([`select`]).
//! `schema/value.md` specifies the encoding for those who write clients; the [`tag`] module has its numbers.
//!
//! Input is hostile. Whatever the bytes are, nothing panics, nothing recurses by their nesting, and memory is a
//! constant times their length. A decoded value is well formed; whether it is what the caller wanted is the caller's
//! to check. There is no I/O here, no clock and no unsafe code, and nothing is known of RPC or of an engine.
//!
//! ```
//! use coracle_value::{Bounds, Value, decode, encode, validate};
//!
//! let value = Value::object([("when", Value::Date(0.0)), ("tags", Value::array(["a", "b"]))]);
//! let bytes = encode(&value);
//! assert_eq!(validate(&bytes, &Bounds::default())?.depth, 2);
//! assert_eq!(decode(&bytes, &Bounds::default())?, value);
//! # Ok::<(), coracle_value::DecodeError>(())
//! ```

#![forbid(unsafe_code)]

mod bigint;
mod bounds;
mod date;
mod decode;
mod encode;
mod error;
mod float;
mod interface;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "json")]
mod number;
mod read;
mod select;
pub mod sink;
pub mod tag;
mod text;
mod typed_array;
mod validate;
mod value;
mod walk;
mod wtf8;

pub use bigint::BigInt;
pub use bounds::{Bounds, DEPTH_CEILING, Summary};
pub use decode::decode;
pub use encode::{encode, encode_into};
pub use error::DecodeError;
pub use interface::Interface;
#[cfg(feature = "json")]
pub use json::{JsonError, from_json, to_json, to_json_bounded};
#[cfg(feature = "json")]
pub use number::number_to_string;
pub use select::{Selected, extract, select};
pub use text::{Text, Wtf8Invalid};
pub use typed_array::TypedArrayKind;
pub use validate::validate;
pub use value::{ErrorValue, SAFE_INTEGER_MAX, Value};
pub use walk::walk;
