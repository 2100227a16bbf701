//! What a connection is willing to take of its client.
//!
//! Owns the bounds and their defaults. Each is a local decision: the protocol has no way to tell the other side.

/// The bounds of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message, in either direction. Default 16 MiB: what is larger belongs in a stream.
    pub message_bytes_max: usize,
    /// Members of all arrays and objects of one message, or of one value, together. Default 250,000: each takes some 50 bytes
    /// of a tree, and of a message there are two trees for a moment.
    pub members_max: usize,
    /// Arrays, objects and errors of a value that are open at once. Default 250, because the package `capnweb` ends the
    /// session at 256. Never more than 480, so that the expression of such a value can be parsed.
    pub depth_max: usize,
    /// Decimal digits of a bigint, in either direction. Default 4,096; the time that reading takes is their square.
    pub bigint_digits_max: usize,
    /// Names in a path of properties. Default 64.
    pub path_length_max: usize,
    /// Bytes of the names in a path together. Default 4,096.
    pub path_bytes_max: usize,
    /// Entries in the table of exports: what the client has pushed and not released, and the objects that it was given.
    /// Default 10,000.
    pub exports_max: usize,
    /// Entries in the table of imports: the client's objects and promises, and calls of them. Default 10,000.
    pub imports_max: usize,
    /// Promises that are held at once: results, and expressions that wait for others. Default 20,000.
    pub promises_max: usize,
    /// Calls of the server's objects that are in flight at once. Default 1,000; the next is refused.
    pub calls_max: usize,
    /// Expressions that the functions of `map()` in one message, and those inside of them, may evaluate. Default 50,000.
    pub remap_steps_max: usize,
    /// Bytes that are held at once: values of promises, arguments that wait, what is buffered of streams. Default 64 MiB.
    pub held_bytes_max: usize,
    /// Bytes of one stream of the client's that wait to be read. Default 4 MiB; the stream fails beyond it.
    pub pipe_bytes_max: usize,
    /// Bytes of one stream to the client that are on their way and not acknowledged. Default 256 KiB.
    pub window_bytes_max: usize,
}

/// Of a stream's source no more is asked for at once.
pub(crate) const PULL_BYTES: usize = 64 << 10;

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes_max: 16 << 20,
            members_max: 250_000,
            depth_max: 250,
            bigint_digits_max: 4_096,
            path_length_max: 64,
            path_bytes_max: 4_096,
            exports_max: 10_000,
            imports_max: 10_000,
            promises_max: 20_000,
            calls_max: 1_000,
            remap_steps_max: 50_000,
            held_bytes_max: 64 << 20,
            pipe_bytes_max: 4 << 20,
            window_bytes_max: 256 << 10,
        }
    }
}

impl Limits {
    pub(crate) fn value_depth(&self) -> usize {
        self.depth_max.min(480)
    }

    /// Levels of JSON: an array takes two in an expression, and a message a few around it.
    pub(crate) fn json_depth(&self) -> usize {
        2 * self.value_depth() + 16
    }
}
