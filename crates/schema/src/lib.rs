//! Types generated from `schema/coracle.capnp`, and the spelling of addresses.
//!
//! The schema itself documents every method and field. Front ends and clients use these types; nothing below the
//! front ends does.

mod address;

pub use address::{Address, AddressError};
pub use coracle_capnp::*;

/// The generated code. It names itself by its path from the crate's root.
#[allow(
    missing_docs,
    unreachable_pub,
    unused_qualifications,
    unsafe_code,
    reason = "generated code"
)]
#[allow(
    clippy::all,
    clippy::allow_attributes_without_reason,
    clippy::unwrap_used,
    clippy::unimplemented,
    reason = "generated code"
)]
pub mod coracle_capnp {
    include!(concat!(env!("OUT_DIR"), "/coracle_capnp.rs"));
}
