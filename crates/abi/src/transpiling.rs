//! The messages between the host and the transpiler, which is a Wasm module of its own: it has one export besides
//! `memory` and `allocate`, and imports nothing.

use crate::ModuleKind;
use minicbor::{Decode, Encode};

/// `(pointer, length) -> u64`: takes a [`Transpile`], answers with where the [`Transpiled`] is: the pointer in the upper
/// 32 bits, the length in the lower. It stays there until the next call.
pub const TRANSPILE: &str = "transpile";

/// How the name of a module ends that is a program.
pub const PROGRAM_SUFFIX: &str = ".program.ts";

/// What a module is written in, by the ending of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
#[cbor(index_only)]
pub enum Language {
    /// `.ts`, `.mts`, `.cts`: TypeScript.
    #[n(0)]
    TypeScript,
    /// `.tsx`: TypeScript with JSX.
    #[n(1)]
    TypeScriptJsx,
    /// `.jsx`: JavaScript with JSX.
    #[n(2)]
    Jsx,
    /// `.program.ts`, ES modules only: a program as models write it, in TypeScript or JavaScript, perhaps with a fence
    /// around it. What comes of it is a module whose default export is a function that runs it and returns its result.
    #[n(3)]
    Program,
}

impl Language {
    /// The language that a module has to be transpiled from; none where the engine reads it as it is. Only ES modules and
    /// CommonJS modules have one.
    #[must_use]
    pub fn of(name: &str, kind: ModuleKind) -> Option<Self> {
        if !matches!(kind, ModuleKind::EsModule | ModuleKind::CommonJs) {
            return None;
        }
        match name.rsplit_once('.')?.1 {
            "ts" if name.ends_with(PROGRAM_SUFFIX) && kind == ModuleKind::EsModule => {
                Some(Self::Program)
            }
            "ts" | "mts" | "cts" => Some(Self::TypeScript),
            "tsx" => Some(Self::TypeScriptJsx),
            "jsx" => Some(Self::Jsx),
            _ => None,
        }
    }
}

/// One module, to be made JavaScript of.
#[derive(Clone, Debug, Encode, Decode)]
#[cbor(array)]
pub struct Transpile<'a> {
    /// What it is written in.
    #[n(0)]
    pub language: Language,
    /// Whether it is a CommonJS module, where `await` is a name and `return` may stand outside of functions.
    #[n(1)]
    pub is_common_js: bool,
    /// The text.
    #[b(2)]
    pub source: &'a str,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Encode, Decode)]
pub enum Transpiled<'a> {
    /// JavaScript.
    #[n(0)]
    Code {
        /// The text.
        #[b(0)]
        text: &'a str,
        /// Where its pieces come from: the `mappings` of a source map whose one source is the module. Empty where everything
        /// stands where it stood.
        #[b(1)]
        mappings: &'a str,
    },
    /// It can't be.
    #[n(1)]
    Fault {
        /// Why.
        #[b(0)]
        message: &'a str,
        /// From 1.
        #[n(1)]
        line: u32,
        /// In UTF-16 code units, from 1.
        #[n(2)]
        column: u32,
    },
}
