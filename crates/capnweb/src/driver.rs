//! What a connection and its driver say to each other.

use crate::{Peer, Violation};
use coracle_value::{Value, encode};

/// Something of the server's that can be called: the driver's own kind of address.
///
/// Clones are the same thing. Each time that the client is given one, a clone is kept until the client has released that; a
/// stream is let go of in the same way.
pub trait Target: Clone {}

impl<T: Clone> Target for T {}

/// What a reference is used as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A function, an object, a stub.
    Target,
    /// A stream of bytes to be read: it is called as `pull(bytesMax)` and `cancel(reason)`.
    Source,
    /// A stream of bytes to be written: it is called as `write(bytes)`, `close()` and `abort(reason)`.
    Sink,
}

/// What a value refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capability<T> {
    /// Something of the server's.
    Host {
        /// Which.
        target: T,
        /// What it is used as.
        kind: Kind,
    },
    /// Something of this client's.
    Peer {
        /// Which.
        peer: Peer,
        /// What it is used as.
        kind: Kind,
    },
}

impl<T> Capability<T> {
    /// What it is used as.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Host { kind, .. } | Self::Peer { kind, .. } => *kind,
        }
    }
}

/// A value and what it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload<T> {
    /// CBOR as `schema/value.md` has it; empty for `undefined`. Arguments are an array, or undefined for none.
    pub bytes: Vec<u8>,
    /// What the bytes refer to by index.
    pub externals: Vec<Capability<T>>,
}

impl<T> Payload<T> {
    /// The value `undefined`.
    pub const UNDEFINED: Self = Self {
        bytes: Vec::new(),
        externals: Vec::new(),
    };

    /// A value that refers to nothing.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        Self {
            bytes: encode(value),
            externals: Vec::new(),
        }
    }
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome<T> {
    /// With a value.
    Value(Payload<T>),
    /// With what was thrown. A verdict is an `Error` with the verdict among its properties.
    Threw(Payload<T>),
}

impl<T> Outcome<T> {
    /// With an `Error`.
    #[must_use]
    pub fn error(name: &str, message: &str) -> Self {
        Self::Threw(Payload::of(&Value::error(name, message)))
    }
}

/// What is done at the end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It is called.
    Call,
    /// It is read.
    Get,
}

/// What the driver is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<T> {
    /// Sends a message to the client.
    Send(String),
    /// Calls something of the server's; [`answer`](crate::Connection::answer) takes the outcome. Calls are to begin in this
    /// order.
    Call {
        /// The number of the call.
        call: u64,
        /// What is called.
        target: T,
        /// Whether it is called or read.
        access: Access,
        /// The properties that lead to it.
        path: Vec<String>,
        /// The arguments; undefined where it is read.
        args: Payload<T>,
    },
    /// Nobody waits for this call any more. Its answer would be ignored.
    Cancel {
        /// The number of the call.
        call: u64,
    },
    /// The answer to a call of the client's object that the driver has made.
    Answer {
        /// The driver's number.
        ask: u64,
        /// How it ended.
        outcome: Outcome<T>,
    },
    /// The connection has ended; this comes last, once. The transport is to be closed when all was sent.
    Close(Closed),
}

/// Why a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closed {
    /// The client has broken the protocol or gone beyond a limit, and was told.
    Violation(Violation),
    /// The client has ended it; what it said.
    ByClient(String),
    /// The driver has ended it; what the client was told.
    Aborted(String),
    /// The transport is gone.
    Disconnected,
}
