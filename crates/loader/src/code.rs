//! What a client loads, and everything that can be found wrong with it before any of it runs.
//!
//! [`check`] is called by the server for each `load`, on text and bytes of a stranger. What shows
//! only when the modules are evaluated (syntax, a missing import, what the top level throws) is not
//! looked for here: that runs in the sandbox.

mod check;
mod compatibility;
mod encoded;
mod modules;
mod problem;
mod specifier;

pub use check::check;
pub use compatibility::{COMPATIBILITY_DATE_NEWEST, COMPATIBILITY_FLAGS};
pub use modules::{MODULE_NAME_BYTES_MAX, MODULES_MAX};
pub use problem::{PROBLEMS_MAX, Problem, ProblemCode, Problems};
pub use specifier::resolve_specifier;

use crate::limits::LimitsRequest;

/// What a worker is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerCode {
    /// `YYYY-MM-DD`, or empty for the newest date that this server knows.
    pub compatibility_date: String,
    /// Names out of [`COMPATIBILITY_FLAGS`].
    pub compatibility_flags: Vec<String>,
    /// The name of the module whose exports are the entrypoints.
    pub main_module: String,
    /// The modules; imports resolve to these and to nothing else.
    pub modules: Vec<Module>,
    /// An object whose properties are the worker's bindings, or undefined for none.
    pub env: Encoded,
    /// Where `fetch()` and `connect()` go.
    pub outbound: Outbound,
    /// What the worker asks for; it can only lower the server's limits.
    pub limits: LimitsRequest,
}

/// One module of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Module {
    /// Unique among the worker's modules.
    pub name: String,
    /// What it is made of.
    pub body: ModuleBody,
}

/// The content of a module, and by that its type. A name's ending says only in which language a module of JavaScript is
/// written: `coracle_abi::Language` has those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModuleBody {
    /// The client sent no body; refused, so that a forgotten body is not an empty module.
    Unset,
    /// JavaScript with imports and exports.
    EsModule(String),
    /// JavaScript with `require`, `module` and `exports`.
    CommonJs(String),
    /// Default export: the string.
    Text(String),
    /// Default export: the parsed value.
    Json(String),
    /// Default export: an `ArrayBuffer`.
    Data(Vec<u8>),
    /// Not available yet; refused.
    Wasm(Vec<u8>),
}

impl ModuleBody {
    /// The body's size as `code_bytes_max` counts it.
    pub fn bytes(&self) -> u64 {
        let length = match self {
            Self::Unset => 0,
            Self::EsModule(text) | Self::CommonJs(text) | Self::Text(text) | Self::Json(text) => {
                text.len()
            }
            Self::Data(bytes) | Self::Wasm(bytes) => bytes.len(),
        };
        length as u64
    }

    /// The type's name in an error text.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Unset => "unset",
            Self::EsModule(_) => "an ES module",
            Self::CommonJs(_) => "a CommonJS module",
            Self::Text(_) => "text",
            Self::Json(_) => "JSON",
            Self::Data(_) => "data",
            Self::Wasm(_) => "WebAssembly",
        }
    }
}

/// A value of the guest's, as bytes that the host passes on untouched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Encoded {
    /// How the bytes are to be read.
    pub form: Form,
    /// The encoded value; empty where it is undefined.
    pub bytes: Vec<u8>,
    /// Entries of the table that the bytes refer to.
    pub externals: u32,
}

/// How a value is encoded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Not at all: the value is `undefined`.
    #[default]
    Undefined,
    /// CBOR by the rules of `schema/value.md`.
    Cbor,
    /// JSON text in UTF-8.
    Json,
}

/// Where a worker's `fetch()` and `connect()` go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outbound {
    /// Wherever a policy allows.
    Policy(PolicyAsked),
    /// Nowhere.
    None,
    /// To a capability that the worker is given for it.
    Gateway,
}

impl Default for Outbound {
    fn default() -> Self {
        Self::Policy(PolicyAsked::Session)
    }
}

/// Which policy a worker is to have. None is wider than that of the session, which allows nothing by default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum PolicyAsked {
    /// That of the session.
    #[default]
    Session,
    /// Besides that of the session, the one of this name in the server's configuration.
    Named(String),
    /// Besides that of the session, these rules, in JSON.
    Given(String),
}

#[cfg(test)]
mod tests;
