//! Types generated from `schema/coracle.capnp`, and nothing else.
//!
//! The schema itself documents every method and field. Front ends and clients use these types; nothing below the
//! front ends does.

#![allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    reason = "generated code"
)]
#![allow(clippy::all, reason = "generated code")]

capnp::generated_code!(pub mod coracle_capnp);
pub use coracle_capnp::*;
