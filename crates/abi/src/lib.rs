//! The messages between an isolate's host and its guest: one definition, compiled into both.
//!
//! Everything that crosses the border is bytes in the guest's memory plus small integers. The host writes a message
//! into a buffer that the guest allocated and calls an export; the guest calls an import with a pointer and a length.
//! The host trusts nothing that it reads here: a broken engine may send any bytes in any order. Only this crate knows
//! the layout; it holds no behaviour.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod bounded;
mod loading;
mod transpiling;

pub use loading::{
    COMPATIBILITY_DATE_NEWEST, COMPATIBILITY_FLAGS, Child, ChildEntrypoint, ChildLimits,
    ChildOutbound, FLAGS_MAX, Get, IMPORTS_MADE_MIN, NAME_BYTES_MAX, NotProvided, PROPS_BYTES_MAX,
    TAILS_MAX, import_of,
};
pub use transpiling::{Language, PROGRAM_SUFFIX, TRANSPILE, Transpile, Transpiled};

use minicbor::{Decode, Encode, bytes::ByteSlice};

/// Module name of the guest's imports.
pub const IMPORT_MODULE: &str = "coracle";

/// The guest's imports, all of them. A test compares this list with the compiled guest.
pub const IMPORTS: [&str; 4] = ["start", "finish", "log", "random"];

/// The exports that the host calls, besides `memory`.
pub mod export {
    /// `(length: u32) -> u32`: a buffer for the next message; 0 when there is no memory for it.
    pub const ALLOCATE: &str = "allocate";
    /// `(pointer, length, now_ms: f64)`: takes a [`Load`](super::Load), declares and evaluates the modules.
    pub const LOAD: &str = "load";
    /// `(pointer, length, now_ms: f64)`: takes an [`Invoke`](super::Invoke), starts a call and runs what is ready.
    pub const INVOKE: &str = "invoke";
    /// `(operation: u64, pointer, length, now_ms: f64)`: settles a host operation and runs what is ready.
    pub const SETTLE: &str = "settle";
    /// `(pointer, length, now_ms: f64)`: takes a [`Release`](super::Release), drops what nobody outside holds any more
    /// and runs what is ready.
    pub const RELEASE: &str = "release";
    /// `()`: collects garbage.
    pub const COLLECT: &str = "collect";
    /// `(seed: u64)`: reseeds `Math.random`.
    pub const RESEED: &str = "reseed";
    /// `()`: sets up runtime and prelude; called once, before the snapshot.
    pub const INITIALIZE: &str = "wizer-initialize";
}

/// What [`IMPORTS`]' `start` may ask for. The import answers with an id that is never reused in the isolate.
pub mod operation {
    /// Argument: milliseconds as little-endian f64. Settled, with no bytes, when they have passed.
    pub const TIMER: u32 = 1;
    /// Argument: an operation id as little-endian u64. That operation will not be settled; answers 0 at once.
    pub const CANCEL: u32 = 2;
    /// A call of a source or a sink, which is no subrequest. Argument: a [`Call`](super::Call). Settled with an
    /// [`Answer`](super::Answer).
    pub const STREAM: u32 = 3;
    /// A subrequest: a call of something outside. Argument: a [`Call`](super::Call). Settled with an
    /// [`Answer`](super::Answer).
    pub const CALL: u32 = 4;
    /// Argument: the id of an import as little-endian u64. The guest lets go of it; answers 0 at once.
    pub const RELEASE: u32 = 5;
    /// Argument: an invocation as little-endian u64. It stays open when it has finished, until the guest cancels this or
    /// its wall time is over. Where it is not open any more, another one is held in its place. Never settled.
    pub const HOLD: u32 = 6;
    /// Argument: a [`Thrown`](super::Thrown). The isolate ends here, and every call in it with this. Does not return.
    pub const ABORT: u32 = 7;
    /// A subrequest. Argument: a [`Child`](super::Child), which becomes the import [`import_of`](super::import_of) the
    /// operation. Never settled: what is wrong with it, its calls are answered with.
    pub const LOAD: u32 = 8;
    /// Argument: a [`ChildEntrypoint`](super::ChildEntrypoint), which becomes the import
    /// [`import_of`](super::import_of) the operation. Never settled.
    pub const ENTRYPOINT: u32 = 9;
    /// A subrequest. Argument: a [`Get`](super::Get). Settled with an [`Answer`](super::Answer).
    pub const GET: u32 = 10;
    /// Argument: a [`NotProvided`](super::NotProvided); answers 0 at once.
    pub const NOT_PROVIDED: u32 = 11;
}

/// The import that a worker's `fetch()` and `connect()` go to. It is there from the start, and has no stub.
pub const OUTBOUND: u64 = 0;

/// Entries that one table of externals may have.
pub const EXTERNALS_MAX: usize = 10_000;

/// The import that stands for what an isolate was to be given when it held too much already. It is let go of any number of
/// times.
pub const IMPORT_REFUSED: u64 = IMPORTS_MADE_MIN - 1;

/// Names that the path of one call may have.
pub const PATH_LENGTH_MAX: usize = 64;

/// Bytes that the names of one path may have together.
pub const PATH_BYTES_MAX: usize = 64 << 10;

/// Modules that one worker may have.
pub const MODULES_MAX: usize = 10_000;

/// How something is used that is passed by reference. All that can be done with any of them is to call it;
/// `schema/value.md` says what can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Kind {
    /// A function, an object with methods, an entrypoint.
    #[n(0)]
    Target,
    /// A byte stream to be read.
    #[n(1)]
    Source,
    /// A byte stream to be written.
    #[n(2)]
    Sink,
    /// What loads workers.
    #[n(3)]
    Loader,
    /// An entrypoint of a worker, which takes requests and connections. To the guest only.
    #[n(4)]
    Entrypoint,
}

/// An entry of a table of externals: something that is passed by reference.
///
/// Every entry is a reference of its own: an id is given out once, and let go of once, by whoever it was given to.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub enum External {
    /// The guest's own object. From the guest: an id that it gives out with this. To the guest: one that comes home.
    #[n(0)]
    Export(#[n(0)] u64, #[n(1)] Kind),
    /// Something outside. To the guest: an id that it is given with this. From the guest: one that it holds, whose kind the
    /// host knows better.
    #[n(1)]
    Import(#[n(0)] u64, #[n(1)] Kind),
    /// From the guest only: an entrypoint of its own worker.
    #[n(2)]
    Loopback {
        /// The export of the main module.
        #[n(0)]
        entrypoint: String,
        /// Its props in CBOR, without externals; empty for none.
        #[cbor(n(1), with = "minicbor::bytes")]
        props: Vec<u8>,
    },
}

/// Timers that one isolate may have pending.
pub const TIMERS_MAX: usize = 10_000;

/// Holds that one isolate may have. The guest sees to it; one that has more is broken.
pub const HOLDS_MAX: usize = 10_000;

/// What the bytes of an encoded value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Form {
    /// No bytes: the value `undefined`.
    #[n(0)]
    Undefined,
    /// `schema/value.md`.
    #[n(1)]
    Cbor,
    /// JSON text.
    #[n(2)]
    Json,
}

/// An encoded value that borrows its bytes.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Encoded<'a> {
    /// What the bytes are.
    #[n(0)]
    pub form: Form,
    /// The bytes; empty for `undefined`.
    #[b(1)]
    pub bytes: &'a ByteSlice,
    /// What the bytes refer to by index; at most [`EXTERNALS_MAX`].
    #[cbor(n(2), decode_with = "bounded::externals")]
    pub externals: Vec<External>,
}

/// What a module's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum ModuleKind {
    /// An ES module.
    #[n(0)]
    EsModule,
    /// A CommonJS module.
    #[n(1)]
    CommonJs,
    /// Default export: the text.
    #[n(2)]
    Text,
    /// Default export: the parsed JSON.
    #[n(3)]
    Json,
    /// Default export: an `ArrayBuffer`.
    #[n(4)]
    Data,
}

/// One module of a worker.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Module<'a> {
    /// The name that specifiers resolve to.
    #[b(0)]
    pub name: &'a str,
    /// What `body` is.
    #[n(1)]
    pub kind: ModuleKind,
    /// Source text in UTF-8, or the data.
    #[b(2)]
    pub body: &'a ByteSlice,
    /// Where the pieces of the body come from that the client has sent under this name: the `mappings` of a source map. Empty
    /// where it is what the client has sent, or everything stands where it stood.
    #[b(3)]
    pub mappings: &'a str,
}

/// The worker that an isolate runs. The first message to it.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Load<'a> {
    /// The module whose exports are the entrypoints.
    #[b(0)]
    pub main_module: &'a str,
    /// All modules, the main one among them.
    #[b(1)]
    pub modules: Vec<Module<'a>>,
    /// An object, or undefined.
    #[b(2)]
    pub env: Encoded<'a>,
    /// Nesting that values may have.
    #[n(3)]
    pub value_depth_max: u32,
    /// Bytes that the modules may have of a worker that it loads.
    #[n(4)]
    pub code_bytes_max: u64,
    /// Bytes that the `env` may have of a worker that it loads.
    #[n(5)]
    pub env_bytes_max: u64,
    /// Whether what is written to the console is wanted as values, too; see [`LOG_ARGUMENTS`].
    #[n(6)]
    pub log_arguments: bool,
}

/// The `level` with which the guest gives the values of the console line that comes next: a CBOR array of byte strings, each a
/// value by itself, without externals.
pub const LOG_ARGUMENTS: u32 = 16;

/// Values that one console line may have.
pub const LOG_ARGUMENTS_MAX: usize = 100;

/// What an invocation does with the value at its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Access {
    /// Call it.
    #[n(0)]
    Call,
    /// Read it.
    #[n(1)]
    Get,
}

/// A call into an entrypoint.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Invoke<'a> {
    /// Comes back in `finish`.
    #[n(0)]
    pub invocation: u64,
    /// The export of the main module: "default" or a name.
    #[b(1)]
    pub entrypoint: &'a str,
    /// Property names from the entrypoint to the callee.
    #[b(2)]
    pub path: Vec<&'a str>,
    /// Call or get.
    #[n(3)]
    pub access: Access,
    /// An array, or undefined for no arguments.
    #[b(4)]
    pub args: Encoded<'a>,
    /// `ctx.props`: an object, or undefined.
    #[b(5)]
    pub props: Encoded<'a>,
    /// How the result is to be encoded.
    #[n(6)]
    pub result_form: Form,
    /// Encoded bytes that the result may have.
    #[n(7)]
    pub result_bytes_max: u32,
    /// Nesting that values may have.
    #[n(8)]
    pub value_depth_max: u32,
    /// Operations that will not be settled, because the invocation that they were started in is over: the guest keeps
    /// what waits for them no longer. Each is named once, in any later call.
    #[n(9)]
    pub forgotten: Vec<u64>,
    /// An object that the guest has given out, to be called in the entrypoint's place.
    #[n(10)]
    pub export: Option<u64>,
}

/// A call of something outside.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Call<'a> {
    /// What is called: an import that the guest holds, or [`OUTBOUND`].
    #[n(0)]
    pub import: u64,
    /// Property names from there to the callee; at most [`PATH_LENGTH_MAX`].
    #[cbor(b(1), decode_with = "bounded::path")]
    pub path: Vec<&'a str>,
    /// Call or get.
    #[n(2)]
    pub access: Access,
    /// An array, or undefined for no arguments.
    #[b(3)]
    pub args: Encoded<'a>,
}

/// What a [`Call`] came to.
#[derive(Clone, Debug, Encode, Decode)]
pub enum Answer<'a> {
    /// It returned.
    #[n(0)]
    Value(#[b(0)] Encoded<'a>),
    /// It threw.
    #[n(1)]
    Threw(#[n(0)] Thrown),
    /// It was stopped. What a child's verdict is for its parent: an error with these.
    #[n(2)]
    Verdict {
        /// The verdict's kind, as docs/limits.md spells it.
        #[b(0)]
        kind: &'a str,
        /// The limit's name, or empty.
        #[b(1)]
        limit_name: &'a str,
        /// In the unit of the limit's name.
        #[n(2)]
        used: u64,
        /// In the unit of the limit's name.
        #[n(3)]
        limit: u64,
        /// A sentence.
        #[b(4)]
        message: &'a str,
    },
    /// It could not be made, or nobody answers any more.
    #[n(3)]
    Failed(#[b(0)] &'a str),
    /// Of a [`Get`]: the import of the worker.
    #[n(4)]
    Worker(#[n(0)] u64),
    /// Of a [`Get`]: there is none yet. The guest is to load it, or to say why it can't be.
    #[n(5)]
    Provide,
}

/// What nobody outside waits for or holds any more.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Release {
    /// Objects that the guest has given out, by the ids that they were given out with.
    #[n(0)]
    pub exports: Vec<u64>,
    /// An invocation whose caller has given it up, while others are in the isolate.
    #[n(1)]
    pub cancelled: Option<u64>,
}

/// How a load or an invocation ended: the `kind` argument of the `finish` import. Loads finish invocation 0.
///
/// The guest reports when everything has run that was ready as the invocation ended; what that logs comes first.
pub mod finish {
    /// The result is `undefined`; no bytes.
    pub const UNDEFINED: u32 = 0;
    /// The bytes are CBOR.
    pub const CBOR: u32 = 1;
    /// The bytes are JSON text.
    pub const JSON: u32 = 2;
    /// The bytes are a [`Thrown`](super::Thrown).
    pub const THREW: u32 = 3;
    /// The encoded result was larger than allowed; the bytes are its size so far as little-endian u64.
    pub const RESULT_TOO_LARGE: u32 = 4;
    /// A value was nested deeper than allowed. No bytes: one that was passed in, and no code ran; one byte: the result.
    pub const VALUE_TOO_DEEP: u32 = 5;
    /// The bytes are an [`Encoded`](super::Encoded) with externals.
    pub const WITH_EXTERNALS: u32 = 6;
    /// Of a load, in place of [`UNDEFINED`]: it went well, and read the clock or asked for chance: another one could come to something else.
    pub const LOADED_NOW: u32 = 7;
}

/// What the JavaScript threw.
#[derive(Clone, Debug, Default, PartialEq, Encode, Decode)]
#[cbor(array)]
pub struct Thrown {
    /// The error's name; "Error" for primitives.
    #[n(0)]
    pub name: String,
    /// Its message.
    #[n(1)]
    pub message: String,
    /// Frames of the worker's own modules, one a line.
    #[n(2)]
    pub stack: String,
    /// Where it was thrown: a module of the worker, or empty.
    #[n(3)]
    pub module: String,
    /// From 1; 0 where unknown.
    #[n(4)]
    pub line: u32,
    /// From 1; 0 where unknown.
    #[n(5)]
    pub column: u32,
    /// The thrown value in CBOR; empty where it can't be cloned.
    #[cbor(n(6), with = "minicbor::bytes")]
    pub value: Vec<u8>,
    /// Whether it happened while the modules were evaluated.
    #[n(7)]
    pub during_load: bool,
}
