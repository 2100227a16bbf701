//! What runs inside every isolate: QuickJS-ng, a Rust core and the JavaScript prelude in `js/`.
//!
//! It is compiled to Wasm, set up once ([`export::initialize`]) and snapshotted; an isolate is a copy of that snapshot.
//! The host drives it through the exports in [`export`]; it reaches the host through the four imports in [`host`] and
//! has no other way out: no WASI, no files, no sockets, no threads.
//!
//! The guest trusts the host. The host trusts nothing that comes out of here, because QuickJS is memory-unsafe C and
//! is assumed to be broken by the code that it runs.

#![warn(missing_docs, clippy::undocumented_unsafe_blocks)]

mod common_js;
mod decode;
mod encode;
mod engine;
mod export;
mod externals;
mod finish;
mod heap;
mod host;
mod interfaces;
mod json;
mod lines;
mod loader;
mod modules;
mod native;
mod prelude;
mod raw;
mod rejections;
mod source_map;
mod stack;
mod state;
mod thrown;
mod web;
