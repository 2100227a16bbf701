//! What the guest's build leans on, checked in the guest itself: its imports and exports, how its interpreter
//! dispatches, and that its stacks fit together.

mod support;
#[path = "support/lab.rs"]
mod lab;

use coracle_abi::{IMPORT_MODULE, IMPORTS, export};
use coracle_value::Value;
use lab::Lab;
use std::collections::BTreeSet;
use support::{guest, value};
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
    // Nothing else that could be called; the linker's own globals are no harm.
    let others = exports
        .iter()
        .filter(|(name, kind)| *kind == "function" && !functions.contains(&&name[..]));
    assert_eq!(others.count(), 0, "{exports:?}");
}

/// The largest jump table of each function, with the number of instructions that jump through one.
fn jump_tables(wasm: &[u8]) -> Vec<(u32, usize)> {
    let mut found = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload.unwrap() else {
            continue;
        };
        let (mut largest, mut count) = (0, 0);
        for operator in body.get_operators_reader().unwrap() {
            if let Operator::BrTable { targets } = operator.unwrap() {
                largest = largest.max(targets.len());
                count += usize::from(targets.len() > 200);
            }
        }
        found.push((largest, count));
    }
    found
}

/// docs/decisions/0002-guest-engine.md: flags that undo a definition of rquickjs-sys' make the interpreter dispatch by
/// computed goto. They lean on private conditions in QuickJS, so this looks at what came out.
#[test]
fn the_interpreter_dispatches_by_computed_goto() {
    let tables = jump_tables(guest().wasm());
    let interpreters: Vec<_> = tables.iter().filter(|(largest, _)| *largest > 200).collect();
    println!("{interpreters:?}");
    let depth = recursion_depth();
    println!("{depth}");
}

/// How deep a function that calls itself gets.
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
