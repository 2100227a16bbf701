//! The engine's configuration, by what it takes and what it refuses, and by what is in the lock file.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use coracle_isolate::{Guest, Image, Machine, Sandbox, SandboxConfig, SandboxError};

/// A guest with everything that a guest has, and something more.
fn guest(memory: &str, more: &str) -> Guest {
    guest_without("", memory, more)
}

/// The same without one export.
fn guest_without(missing: &str, memory: &str, more: &str) -> Guest {
    let exports = [
        ("memory", format!("(memory (export \"memory\") {memory})")),
        (
            "allocate",
            "(func (export \"allocate\") (param i32) (result i32) i32.const 1024)".into(),
        ),
        (
            "load",
            "(func (export \"load\") (param i32 i32 f64))".into(),
        ),
        (
            "invoke",
            "(func (export \"invoke\") (param i32 i32 f64))".into(),
        ),
        (
            "settle",
            "(func (export \"settle\") (param i64 i32 i32 f64))".into(),
        ),
        (
            "release",
            "(func (export \"release\") (param i32 i32 f64))".into(),
        ),
        ("collect", "(func (export \"collect\"))".into()),
        ("reseed", "(func (export \"reseed\") (param i64))".into()),
        (
            "wizer-initialize",
            "(func (export \"wizer-initialize\"))".into(),
        ),
    ];
    let exports: String = exports
        .iter()
        .filter(|(name, _)| *name != missing)
        .map(|(_, text)| format!("{text}\n"))
        .collect();
    module(&format!("(module {more} {exports})"))
}

fn module(text: &str) -> Guest {
    Guest::from_wasm(wat::parse_str(text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn sandbox(image: &Image) -> Result<Sandbox, SandboxError> {
    let config = SandboxConfig {
        isolates_max: 4,
        running_max: 4,
        pagemap_scan: Machine::read().pagemap_scan,
        snapshots_bytes_max: 0,
    };
    Sandbox::new(config, image)
}

#[test]
fn what_the_guest_is_made_of_is_on() {
    for more in [
        "",
        "(func (drop (i32x4.splat (i32.const 1))))",
        "(func (memory.copy (i32.const 0) (i32.const 8) (i32.const 8)))",
        "(table 1 10 funcref) (func (drop (table.grow (ref.null func) (i32.const 1))))",
        "(func (result i32 i32) (i32.const 1) (i32.const 2))",
        "(func (drop (i32.extend8_s (i32.const 1))))",
        "(func (drop (i32.trunc_sat_f32_s (f32.const 1))))",
        "(global (export \"global\") (mut i32) (i32.const 1))",
    ] {
        let image = Image::compile_as_it_is(&guest("1", more))
            .unwrap_or_else(|error| panic!("{more}: {error}"));
        sandbox(&image).unwrap_or_else(|error| panic!("{more}: {error}"));
    }
}

#[test]
fn what_it_is_not_made_of_is_off() {
    for (proposal, memory, more) in [
        ("threads", "1 1 shared", ""),
        (
            "threads",
            "1",
            "(func (drop (i32.atomic.load (i32.const 0))))",
        ),
        ("tail calls", "1", "(func $f (return_call $f))"),
        ("memory64", "i64 1", ""),
        ("multi-memory", "1", "(memory 1)"),
        ("garbage collection", "1", "(type (struct (field i32)))"),
        (
            "function references",
            "1",
            "(type $f (func)) (func (param (ref $f)))",
        ),
        ("exceptions", "1", "(tag)"),
        (
            "relaxed SIMD",
            "1",
            "(func (drop (i32x4.relaxed_trunc_f32x4_s (v128.const i32x4 0 0 0 0))))",
        ),
        (
            "extended constants",
            "1",
            "(global i32 (i32.add (i32.const 1) (i32.const 2)))",
        ),
        (
            "stack switching",
            "1",
            "(type $f (func)) (type $c (cont $f))",
        ),
        (
            "wide arithmetic",
            "1",
            "(func (result i64 i64) (i64.mul_wide_u (i64.const 1) (i64.const 2)))",
        ),
        ("custom page sizes", "1 (pagesize 1)", ""),
    ] {
        assert!(
            Image::compile_as_it_is(&guest(memory, more)).is_err(),
            "{proposal} are on"
        );
    }
    let component = Guest::from_wasm(wat::parse_str("(component)").unwrap());
    assert!(Image::compile_as_it_is(&component).is_err());
}

#[test]
fn a_guest_that_lacks_an_export_or_has_it_with_another_type_is_refused_by_name() {
    for missing in [
        "memory", "allocate", "load", "invoke", "settle", "release", "collect", "reseed",
    ] {
        let inner = if missing == "memory" {
            "(memory 1)"
        } else {
            ""
        };
        let image = Image::compile(&guest_without(missing, "1", inner)).unwrap();
        let Err(SandboxError::Image { cause }) = sandbox(&image) else {
            panic!("a guest without {missing} is taken")
        };
        assert!(cause.contains(&format!("{missing:?}")), "{cause}");
    }
    for (name, wrong) in [
        ("allocate", "(func (export \"allocate\"))"),
        (
            "allocate",
            "(func (export \"allocate\") (param i64) (result i32) i32.const 0)",
        ),
        (
            "allocate",
            "(global (export \"allocate\") i32 (i32.const 1))",
        ),
        ("allocate", "(table (export \"allocate\") 1 funcref)"),
        ("load", "(func (export \"load\") (param i32 i32))"),
        (
            "invoke",
            "(func (export \"invoke\") (param i32 i32 f64) (result i32) i32.const 0)",
        ),
        (
            "settle",
            "(func (export \"settle\") (param i32 i32 i32 f64))",
        ),
        ("collect", "(func (export \"collect\") (param i32))"),
        ("reseed", "(func (export \"reseed\") (param f64))"),
    ] {
        let image = Image::compile(&guest_without(name, "1", wrong)).unwrap();
        let Err(SandboxError::Image { cause }) = sandbox(&image) else {
            panic!("{wrong} is taken")
        };
        assert!(cause.contains(&format!("{name:?}")), "{cause}");
    }
    let memory = guest_without("memory", "1", "(memory 1) (func (export \"memory\"))");
    let image = Image::compile(&memory).unwrap();
    assert!(matches!(sandbox(&image), Err(SandboxError::Image { .. })));
    let initialize = guest_without("wizer-initialize", "1", "");
    assert!(Image::compile(&initialize).is_err());
}

/// The engine has no import but ours, so a guest that wants more does not even start.
#[test]
fn a_guest_that_imports_anything_else_is_refused() {
    for import in [
        "(import \"wasi_snapshot_preview1\" \"fd_write\" (func (param i32 i32 i32 i32) (result i32)))",
        "(import \"coracle\" \"system\" (func))",
        "(import \"coracle\" \"start\" (func (param i32) (result i64)))",
        "(import \"env\" \"memory2\" (global i32))",
    ] {
        let image = Image::compile(&guest("1", import));
        assert!(
            image.is_err() || sandbox(&image.unwrap()).is_err(),
            "{import}"
        );
    }
}

#[test]
fn a_pool_that_can_t_be_had_is_an_error() {
    let image = Image::compile(&guest("1", "")).unwrap();
    let config = SandboxConfig {
        isolates_max: 1_000_000,
        running_max: 1,
        pagemap_scan: false,
        snapshots_bytes_max: 0,
    };
    assert!(matches!(
        Sandbox::new(config, &image),
        Err(SandboxError::Pool { .. })
    ));
}

/// Cases W01 and W02: a line of Wasmtime that gets security fixes, patched, and nothing of it that is not needed.
#[test]
fn the_lock_file_has_a_patched_wasmtime_and_only_what_is_needed_of_it() {
    let lock = include_str!("../../../Cargo.lock");
    let packages: Vec<(&str, &str)> = lock
        .split("[[package]]")
        .filter_map(|package| {
            let field = |name: &str| {
                let rest = package.split_once(&format!("\n{name} = \""))?.1;
                Some(rest.split_once('"')?.0)
            };
            Some((field("name")?, field("version")?))
        })
        .collect();
    let versions = |name: &str| -> Vec<&str> {
        let found = packages.iter().filter(|package| package.0 == name);
        found.map(|package| package.1).collect()
    };
    // One engine, of the line with long support, at or after the last round of fixes.
    let wasmtime = versions("wasmtime");
    assert_eq!(wasmtime.len(), 1);
    let parts: Vec<u32> = wasmtime[0]
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert_eq!(parts[..2], [48, 0]);
    assert!(parts[2] >= 8, "{wasmtime:?}");
    assert_eq!(versions("wasmtime-wizer"), wasmtime);
    // Rows of the advisories that do not concern who has none of it.
    for absent in [
        "wasmtime-wasi",
        "wasmtime-internal-winch",
        "winch-codegen",
        "wasi-common",
        "wiggle",
        "cap-std",
    ] {
        assert!(versions(absent).is_empty(), "{absent} is in the lock file");
    }
}
