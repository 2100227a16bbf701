//! What makes JavaScript of TypeScript and JSX: oxc, compiled to Wasm, with no way out at all.
//!
//! The parser recurses with its input and would overflow a native stack, so it runs where that is a trap, within the fuel
//! and the memory of whoever's module it is. The host trusts nothing that comes out of here.
//!
//! Where the types can be taken away and nothing has to be put in their place, they are replaced by blanks ([`erase`]),
//! so that every line and column stays the author's. What needs code (enums, namespaces, parameter properties, JSX) is
//! rewritten and printed anew, with mappings back ([`rewrite`]). What is a program rather than a module is made one first
//! ([`program`]).

#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

mod blanks;
mod erase;
mod export;
mod mappings;
mod place;
mod program;
mod rewrite;
mod transpile;
