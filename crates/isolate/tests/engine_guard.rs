//! What the guest's build leans on, checked in the guest itself: its imports and exports, how its interpreter
//! dispatches, and that its stacks fit together.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::lab::Lab;
use crate::support::{guest, value};
use coracle_abi::{IMPORT_MODULE, IMPORTS, export};
use coracle_value::Value;
use std::collections::BTreeSet;
use wasmparser::{ExternalKind, Operator, Parser, Payload, TypeRef};

/// Cases X14 and X15: the engine reaches the host through these and nothing else. No WASI, no files, no sockets.
#[test]
fn the_guest_imports_what_the_abi_says_and_nothing_else() {
    let guest = guest();
    let mut imports = BTreeSet::new();
    for payload in Parser::new(0).parse_all(guest.wasm()) {
        let Payload::ImportSection(section) = payload.unwrap() else {
            continue;
        };
        for import in section.into_imports() {
            let import = import.unwrap();
            assert!(matches!(import.ty, TypeRef::Func(_)), "{import:?}");
            assert_eq!(import.module, IMPORT_MODULE);
            imports.insert(import.name.to_owned());
        }
    }
    assert_eq!(imports, IMPORTS.map(str::to_owned).into());
}

#[test]
fn the_guest_exports_what_the_host_calls_its_memory_and_its_table() {
    let guest = guest();
    let mut exports = BTreeSet::new();
    let mut tables = 0;
    for payload in Parser::new(0).parse_all(guest.wasm()) {
        match payload.unwrap() {
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export.unwrap();
                    let kind = match export.kind {
                        ExternalKind::Func | ExternalKind::FuncExact => "function",
                        ExternalKind::Memory => "memory",
                        ExternalKind::Table => "table",
                        ExternalKind::Global => "global",
                        ExternalKind::Tag => "tag",
                    };
                    exports.insert((export.name.to_owned(), kind));
                }
            }
            Payload::TableSection(section) => {
                for table in section {
                    // It can grow, for code that is compiled later.
                    let table = table.unwrap();
                    assert!(table.ty.maximum.is_none_or(|most| most > table.ty.initial));
                    tables += 1;
                }
            }
            _ => {}
        }
    }
    let functions = [
        export::ALLOCATE,
        export::LOAD,
        export::INVOKE,
        export::SETTLE,
        export::RELEASE,
        export::COLLECT,
        export::RESEED,
        export::INITIALIZE,
    ];
    for name in functions {
        assert!(exports.contains(&(name.to_owned(), "function")), "{name}");
    }
    assert!(exports.contains(&("memory".to_owned(), "memory")));
    assert!(exports.contains(&("__indirect_function_table".to_owned(), "table")));
    assert_eq!(tables, 1);
    // Nothing else that could be called, but what QuickJS asks for the time.
    let others = exports
        .iter()
        .filter(|(name, kind)| *kind == "function" && !functions.contains(&&name[..]))
        .map(|(name, _)| &name[..]);
    assert_eq!(others.collect::<Vec<_>>(), ["__rquickjs_host_now_us"]);
}

/// docs/decisions/0002-guest-engine.md: flags that undo a definition of rquickjs-sys' make the interpreter dispatch by
/// computed goto. They lean on private conditions in QuickJS, so this looks at what came out: the interpreter's one large
/// function has a larger frame then, so that a stack holds fewer of them. Without it a function that calls itself gets
/// 1,021 calls deep.
/// A snapshot of a loaded worker is its memory (docs/decisions/0019): there is no other place for what a load changes. The
/// one global that can be set is the stack pointer, which is back where it was when an entry has returned.
#[test]
fn the_guest_keeps_what_it_changes_in_its_memory() {
    let guest = guest();
    let mut mutable = 0;
    for payload in Parser::new(0).parse_all(guest.wasm()) {
        match payload.unwrap() {
            Payload::GlobalSection(section) => {
                mutable += section
                    .into_iter()
                    .filter(|global| global.as_ref().unwrap().ty.mutable)
                    .count();
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader().unwrap() {
                    let operator = operator.unwrap();
                    let changes_something_else = matches!(
                        operator,
                        Operator::TableSet { .. }
                            | Operator::TableGrow { .. }
                            | Operator::TableFill { .. }
                            | Operator::TableCopy { .. }
                            | Operator::TableInit { .. }
                            | Operator::ElemDrop { .. }
                            | Operator::MemoryInit { .. }
                            | Operator::DataDrop { .. }
                    );
                    assert!(!changes_something_else, "{operator:?}");
                }
            }
            _ => {}
        }
    }
    assert_eq!(mutable, 1);
}

#[test]
fn the_interpreter_dispatches_by_computed_goto() {
    let depth = recursion_depth();
    assert!((700.0..900.0).contains(&depth), "{depth}");
    // And it does jump through a table of opcodes.
    let guest = guest();
    let large = jump_table_sizes(guest.wasm()).filter(|size| *size > 200);
    assert!(large.count() >= 1);
}

/// The sizes of all jump tables in a module.
fn jump_table_sizes(wasm: &[u8]) -> impl Iterator<Item = u32> {
    Parser::new(0)
        .parse_all(wasm)
        .filter_map(|payload| match payload.unwrap() {
            Payload::CodeSectionEntry(body) => Some(body.get_operators_reader().unwrap()),
            _ => None,
        })
        .flat_map(|operators| operators.into_iter())
        .filter_map(|operator| match operator.unwrap() {
            Operator::BrTable { targets } => Some(targets.len()),
            _ => None,
        })
}

/// How deep a function that calls itself gets before the engine's own check of its stack, which is what keeps a trap
/// from coming first.
fn recursion_depth() -> f64 {
    let lab = Lab::new();
    let isolate = lab.source(
        "export default { run(_) { let depth = 0; function f() { depth++; f() } try { f() } catch (e) { if (e.name !== 'RangeError') throw e } return depth } }",
    );
    let report = lab.call(isolate, "run", Value::Null);
    let Value::Number(depth) = value(&report) else {
        panic!("{report:?}")
    };
    depth
}
