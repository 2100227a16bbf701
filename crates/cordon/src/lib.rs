//! Cordons: processes that hold isolates of tenants of one trust, without network, files or secrets.
//!
//! A guest is assumed to be broken by the code that it runs, and Wasm holds it. A cordon is what holds whoever gets out of
//! Wasm all the same: the process has no file open but two pipes to the server, can open none, start nothing and talk to
//! nobody, and was never told a secret. Ending it ends its own isolates and nobody else's.
//!
//! - [`Cordons`] is the [`Scheduler`](coracle_isolate::Scheduler) that has isolates in such processes. It starts them,
//!   puts tenants into them by their trust, watches them, and answers for those that are lost;
//! - [`inside`] is what such a process does from its first line on;
//! - between them go frames: the messages and events of [`coracle_isolate`] in CBOR, over a pair of pipes.
//!
//! What comes out of a cordon is taken as hostile, as what comes out of a guest is: a ledger of what was sent in says what
//! may come back, and a cordon that says anything else is ended.

mod confine;
mod cordon;
mod cordons;
mod frame;
mod hand_over;
mod inside;
mod ledger;
mod process;
mod protocol;

pub use confine::can_confine;
pub use cordons::{Cordons, CordonsConfig, CordonsError, Heard, Voice};
pub use inside::{InsideError, inside, standard_descriptors};
