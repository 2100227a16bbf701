//! To and from JSON text, for clients that have only JSON.
//!
//! Owns the errors of both directions; [`parse`] follows `JSON.parse`, [`write`] follows `JSON.stringify`. Where the
//! two functions leave a choice (a top-level `undefined`, bounds), the choice is stated on the function.

mod keys;
mod parse;
mod write;

pub use parse::from_json;
pub use write::{to_json, to_json_bounded};

/// Why JSON text is not a value, or a value has no JSON text.
///
/// `at` is a byte offset in the text; `path` leads from the root of the value, as in `$.rows[3].id`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JsonError {
    /// The text, read or written, is longer than [`Bounds::bytes_max`](crate::Bounds::bytes_max).
    #[error("json text is longer than the {bytes_max} bytes allowed")]
    SizeExceeded {
        /// The bound.
        bytes_max: usize,
    },
    /// More arrays and objects are open at once than [`Bounds::depth_max`](crate::Bounds::depth_max).
    #[error("json is nested deeper than the {depth_max} levels allowed")]
    DepthExceeded {
        /// The bound.
        depth_max: usize,
    },
    /// The text ends before the value does.
    #[error("json text ends at byte {at} before the value does")]
    UnexpectedEnd {
        /// Length of the text.
        at: usize,
    },
    /// A character that can't stand there.
    #[error("unexpected character {character:?} at byte {at} of json text")]
    UnexpectedCharacter {
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
    /// JSON has no bigints.
    #[error("bigint at {path} can't be json")]
    BigIntFound {
        /// Where it is.
        path: String,
    },
    /// JSON has no capabilities.
    #[error("external {index} at {path} can't be json")]
    ExternalFound {
        /// Its index in the table.
        index: u32,
        /// Where it is.
        path: String,
    },
    /// An object that contains itself.
    #[error("cycle at {path} can't be json")]
    CycleFound {
        /// Where the object is met again.
        path: String,
    },
    /// A reference in a tree built by hand that means nothing.
    #[error("reference to unknown shared object {index} at {path}")]
    ReferenceUnknown {
        /// The number that it names.
        index: u32,
        /// Where it is.
        path: String,
    },
}
