//! Why bytes were refused.
//!
//! Owns the texts; `schema/value.md` lists them beside the bytes that cause them. `at` is the offset of the first
//! byte of the item that is at fault.

/// Why bytes are not a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The input is longer than [`Bounds::bytes_max`](crate::Bounds::bytes_max).
    #[error("{bytes} bytes are more than the {bytes_max} allowed")]
    SizeExceeded {
        /// Length of the input.
        bytes: usize,
        /// The bound.
        bytes_max: usize,
    },
    /// More arrays and maps are open at once than [`Bounds::depth_max`](crate::Bounds::depth_max).
    #[error("nesting at byte {at} is deeper than the {depth_max} levels allowed")]
    DepthExceeded {
        /// The bound.
        depth_max: usize,
        /// Where the array or map begins.
        at: usize,
    },
    /// The input ends before the value does, or an item claims more than is left.
    #[error("input ends at byte {at} before the value does")]
    UnexpectedEnd {
        /// Length of the input.
        at: usize,
    },
    /// Bytes follow the value.
    #[error("more bytes follow the value at byte {at}")]
    TrailingBytes {
        /// Where they begin.
        at: usize,
    },
    /// Not CBOR: a reserved or forbidden first byte, or a chunk of the wrong kind.
    #[error("malformed item 0x{byte:02x} at byte {at}")]
    ItemMalformed {
        /// The first byte.
        byte: u8,
        /// Where it stands.
        at: usize,
    },
    /// A break code where an item is due.
    #[error("unexpected break at byte {at}")]
    UnexpectedBreak {
        /// Where it stands.
        at: usize,
    },
    /// A simple value that has no meaning here.
    #[error("unknown simple value {simple} at byte {at}")]
    UnknownSimple {
        /// The simple value.
        simple: u8,
        /// Where it stands.
        at: usize,
    },
    /// A tag that has no meaning here.
    #[error("unknown tag {tag} at byte {at}")]
    UnknownTag {
        /// The tag.
        tag: u64,
        /// Where it stands.
        at: usize,
    },
    /// What a tag is around is not what it must be around.
    #[error("content of tag {tag} at byte {at} is not {expected}")]
    TagContentInvalid {
        /// The tag.
        tag: u64,
        /// What the content must be.
        expected: &'static str,
        /// Where the content begins.
        at: usize,
    },
    /// A text string that is not UTF-8, or the content of tag 273 that is not WTF-8.
    #[error("invalid text at byte {at}")]
    TextInvalid {
        /// Where the string begins.
        at: usize,
    },
    /// A key of an object, or of an error's fields, that is not a string.
    #[error("key at byte {at} is not a string")]
    KeyInvalid {
        /// Where the key begins.
        at: usize,
    },
    /// A hole that is not directly in an array.
    #[error("hole at byte {at} is not in an array")]
    HoleMisplaced {
        /// Where its tag stands.
        at: usize,
    },
    /// The bytes of a typed array are not whole elements.
    #[error("{bytes} bytes at byte {at} are not whole elements of a {array}")]
    ElementsIncomplete {
        /// Length of the content.
        bytes: usize,
        /// The JavaScript class.
        array: &'static str,
        /// Where the byte string begins.
        at: usize,
    },
    /// A field of an error that is unknown, repeated or out of order.
    #[error("field of an error at byte {at} is unknown, repeated or out of order")]
    ErrorFieldUnexpected {
        /// Where its key begins.
        at: usize,
    },
    /// An error without its name or message.
    #[error("error at byte {at} has no {field}")]
    ErrorFieldMissing {
        /// The field.
        field: &'static str,
        /// Where the error's map ends.
        at: usize,
    },
    /// A field of an error that is of the wrong kind.
    #[error("{field} of an error at byte {at} is not {expected}")]
    ErrorFieldInvalid {
        /// The field.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
        /// Where its value begins.
        at: usize,
    },
    /// A reference to an object that has not begun by then.
    #[error("reference to shared object {index} at byte {at}, of which {shared} have begun")]
    ReferenceUnknown {
        /// The number that it names.
        index: u64,
        /// Shared objects so far.
        shared: u32,
        /// Where its tag stands.
        at: usize,
    },
    /// An index beyond the table of externals.
    #[error("external {index} at byte {at} is not in the table of {externals}")]
    ExternalOutOfRange {
        /// The index.
        index: u64,
        /// Entries in the table.
        externals: u32,
        /// Where its tag stands.
        at: usize,
    },
}
