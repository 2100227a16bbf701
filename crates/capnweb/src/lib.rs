//! The server's side of Cap'n Web: text messages come in, text messages and effects go out.
//!
//! Cap'n Web is the protocol of the npm package `capnweb`: JSON, with functions and objects by reference, calls on results
//! that are not there yet, and streams. A [`Connection`] speaks it for one client. It does no I/O, has no clock and knows
//! nothing of sessions: whoever drives it feeds it messages and answers, takes [`Effect`]s from it, and does them. What can
//! be called is whatever the driver says, a [`Target`].
//!
//! Values cross this border as they cross every other of the server: CBOR and a table of what it refers to
//! (`schema/value.md`). `docs/capnweb.md` says how they relate to the protocol's, and what differs from the package.
//!
//! A client is not trusted. Whatever it sends, nothing panics, nothing recurses by its nesting, and what is held for it
//! stays within the [`Limits`]; what breaks the protocol ends the connection with the reason. The driver bounds what waits to
//! be sent: it should take no more messages from a client that does not read.
//!
//! ```
//! use coracle_capnweb::{Access, Connection, Effect, Limits, Outcome, Payload};
//!
//! let mut connection = Connection::new("main", Limits::default());
//! connection.receive(r#"["push",["pipeline",0,["greet"],["World"]]]"#);
//! connection.receive(r#"["pull",1]"#);
//! let Some(Effect::Call { call, target, access, path, args }) = connection.next_effect() else {
//!     panic!("a call is to be made");
//! };
//! assert_eq!((target, access, path), ("main", Access::Call, vec!["greet".to_owned()]));
//! assert_eq!(args.bytes, b"\x81\x65World");
//! connection.answer(call, Outcome::Value(Payload::of(&"Hello, World!".into())));
//! let Some(Effect::Send(message)) = connection.next_effect() else {
//!     panic!("there is an answer");
//! };
//! assert_eq!(message, r#"["resolve",1,"Hello, World!"]"#);
//! ```

#![forbid(unsafe_code)]

mod connection;
mod decimal;
mod driver;
mod error;
mod expression;
mod handle;
mod limits;
mod measure;
mod parcel;
mod pipes;
mod promises;
mod pumps;
mod read;
mod remap;
mod session;
mod sinks;
mod tables;
mod text;
mod unshare;
mod write;

pub use connection::Connection;
pub use driver::{Access, Capability, Closed, Effect, Kind, Outcome, Payload, Target};
pub use error::{ConvertError, Violation};
pub use expression::{from_expression, to_expression};
pub use handle::Peer;
pub use limits::Limits;
