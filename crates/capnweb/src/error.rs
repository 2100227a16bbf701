//! What goes wrong: violations of the protocol, which end the connection, and values that can't be converted, which fail
//! one call.

use coracle_value::{DecodeError, JsonError, Value};

/// What a client did that ends the connection. Its text is sent with `abort`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A message is too long.
    #[error("a message has {bytes} bytes, {bytes_max} are allowed (message_bytes_max)")]
    MessageTooLong {
        /// Its length.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// A message has too many members.
    #[error("a message has {members} members, {members_max} are allowed (members_max)")]
    MembersExceeded {
        /// How many.
        members: usize,
        /// The bound.
        members_max: usize,
    },
    /// A message is no JSON, or too deep.
    #[error("a message is not JSON: {0}")]
    MessageNotJson(#[from] JsonError),
    /// A message of an unknown kind, or with parts that are not what they must be.
    #[error("bad RPC message: {0}")]
    MessageInvalid(&'static str),
    /// An expression that means nothing.
    #[error("bad expression at {at}: {reason}")]
    ExpressionInvalid {
        /// What is wrong.
        reason: &'static str,
        /// Where, from the root of the expression, as in `$.rows[3].id`.
        at: String,
    },
    /// A value goes beyond a bound.
    #[error(transparent)]
    Value(#[from] ConvertError),
    /// A path of properties is too long.
    #[error(
        "a path has {length} names with {bytes} bytes, {length_max} and {bytes_max} are allowed"
    )]
    PathTooLong {
        /// Names in it.
        length: usize,
        /// Bytes of them.
        bytes: usize,
        /// The bound of names.
        length_max: usize,
        /// The bound of bytes.
        bytes_max: usize,
    },
    /// An id that is not in the table of exports: it never was, or it was released.
    #[error("no such entry on exports table: {id}")]
    ExportUnknown {
        /// The id.
        id: i64,
    },
    /// A resolution for what was never asked for.
    #[error("no such entry on imports table: {id}")]
    ImportUnknown {
        /// The id.
        id: i64,
    },
    /// A resolution for what has been resolved.
    #[error("import {id} is resolved twice")]
    ResolvedTwice {
        /// The id.
        id: i64,
    },
    /// A resolution for what is no promise.
    #[error("import {id} is not a promise")]
    NotAPromise {
        /// The id.
        id: i64,
    },
    /// More is released than is held: each id is given out once.
    #[error("refcount would go negative: 1 < {released} of export {id}")]
    ReleasedTooOften {
        /// The id.
        id: i64,
        /// How often it is released.
        released: u64,
    },
    /// An id that the client may not choose.
    #[error("{id} is not an id for an export of the sender's: those are negative")]
    IdInvalid {
        /// The id.
        id: i64,
    },
    /// A promise under an id that is taken.
    #[error("promise {id} reuses the id of an export")]
    PromiseIdUsed {
        /// The id.
        id: i64,
    },
    /// The readable end of what is no pipe, or of one whose readable end has been used.
    #[error("export {id} is not a pipe or its readable end was already consumed")]
    PipeUnknown {
        /// The id.
        id: i64,
    },
    /// A table is full.
    #[error("{table} has {entries_max} entries, no more are allowed ({limit})")]
    TableFull {
        /// Which.
        table: &'static str,
        /// The bound.
        entries_max: usize,
        /// Its name.
        limit: &'static str,
    },
    /// Too much is held.
    #[error("{bytes} bytes are held for this client, {bytes_max} are allowed (held_bytes_max)")]
    HeldExceeded {
        /// How much.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// The functions of `map()` evaluate too much.
    #[error("map() evaluates more than {steps_max} expressions (remap_steps_max)")]
    StepsExceeded {
        /// The bound.
        steps_max: usize,
    },
}

impl Violation {
    /// As the value that is sent.
    pub(crate) fn to_value(&self) -> Value {
        let name = match self {
            Self::MessageTooLong { .. }
            | Self::MembersExceeded { .. }
            | Self::TableFull { .. }
            | Self::HeldExceeded { .. }
            | Self::PathTooLong { .. }
            | Self::StepsExceeded { .. } => "RangeError",
            Self::Value(error) => error.name(),
            _ => "TypeError",
        };
        Value::error(name, self.to_string())
    }
}

/// Why a value has no expression, or may not have one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// The protocol has nothing like it.
    #[error("{what} at {at} can't be sent over Cap'n Web")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// Where, as in `$.rows[3].id`.
        at: String,
    },
    /// An object that contains itself.
    #[error("the object at {at} contains itself and can't be sent over Cap'n Web")]
    CycleFound {
        /// Where it is met again.
        at: String,
    },
    /// It is nested too deep.
    #[error("the value is nested deeper than {depth_max} levels (depth_max)")]
    DepthExceeded {
        /// The bound.
        depth_max: usize,
    },
    /// It has too many members.
    #[error("the value has more than {members_max} members (members_max)")]
    MembersExceeded {
        /// The bound.
        members_max: usize,
    },
    /// It is put together of what takes too much.
    #[error("the value takes more than {bytes_max} bytes (held_bytes_max)")]
    HeldExceeded {
        /// The bound.
        bytes_max: usize,
    },
    /// It is too long as a message.
    #[error("the value takes more than {bytes_max} bytes (message_bytes_max): use a stream")]
    BytesExceeded {
        /// The bound.
        bytes_max: usize,
    },
    /// A bigint is too long.
    #[error("the bigint at {at} has more than {digits_max} digits (bigint_digits_max)")]
    DigitsExceeded {
        /// The bound.
        digits_max: usize,
        /// Where it is.
        at: String,
    },
    /// The driver's bytes are no value.
    #[error("not a value: {0}")]
    NotAValue(#[from] DecodeError),
}

impl ConvertError {
    fn name(&self) -> &'static str {
        match self {
            Self::Unsupported { .. } | Self::CycleFound { .. } | Self::NotAValue(_) => "TypeError",
            _ => "RangeError",
        }
    }

    /// As the value that a call is rejected with.
    pub(crate) fn to_value(&self) -> Value {
        Value::error(self.name(), self.to_string())
    }
}
