//! Modules: their number, names, bodies and size, and the main one.

use super::*;

/// Case R12.
#[test]
fn code_without_modules_is_refused_in_workerds_words() {
    assert_problem(
        &WorkerCode {
            modules: Vec::new(),
            ..good()
        },
        "/modules",
        ProblemCode::ModulesMissing,
        "Dynamic Worker code must contain at least one module.",
    );
}

/// Case R12.
#[test]
fn a_main_module_that_is_missing_is_named_with_those_that_are_there() {
    let code = WorkerCode {
        main_module: "nope.js".to_owned(),
        ..good()
    };
    assert_problem(
        &code,
        "/mainModule",
        ProblemCode::MainModuleMissing,
        "No such module: nope.js",
    );
    assert_eq!(problem(&code).fix, "name one of the modules: main.js");
    let unnamed = WorkerCode {
        main_module: String::new(),
        ..good()
    };
    assert_problem(
        &unnamed,
        "/mainModule",
        ProblemCode::MainModuleMissing,
        "No such module: ",
    );
}

#[test]
fn a_main_module_must_be_an_es_module() {
    for body in [
        ModuleBody::Text(String::new()),
        ModuleBody::CommonJs(String::new()),
        ModuleBody::Data(Vec::new()),
    ] {
        let code = WorkerCode {
            modules: vec![with_body("main.js", body)],
            ..good()
        };
        let message = "Main module must be an ES module.";
        assert_problem(
            &code,
            "/mainModule",
            ProblemCode::MainModuleNotEsModule,
            message,
        );
    }
}

/// Case R12.
#[test]
fn a_name_that_is_used_twice_is_refused() {
    assert_problem(
        &with_module(es("main.js")),
        "/modules/main.js",
        ProblemCode::ModuleNameRepeated,
        "Module name \"main.js\" is used more than once.",
    );
}

/// Case R12.
#[test]
fn names_of_the_runtimes_own_modules_are_refused() {
    for name in ["cloudflare:workers", "node:fs", "coracle:internal"] {
        let problem = problem(&with_module(es(name)));
        assert_eq!(problem.code, ProblemCode::ModuleNameReserved, "{name}");
        assert!(
            problem
                .message
                .starts_with(&format!("Module name \"{name}\" is reserved")),
            "{problem}"
        );
    }
    assert_eq!(problems(&with_module(es("nodes/node.js"))), []);
}

#[test]
fn names_that_no_import_could_spell_are_refused_and_shown_in_one_line() {
    let long = "n".repeat(MODULE_NAME_BYTES_MAX + 1);
    for (name, fault) in [
        ("", "is empty"),
        ("a\0b", "contains a NUL character"),
        ("a\nb", "contains a control character"),
        ("a\u{85}b", "contains a control character"),
        (&long, "has 1025 bytes, which exceeds the maximum of 1024"),
    ] {
        let problem = problem(&with_module(es(name)));
        assert_eq!(problem.code, ProblemCode::ModuleNameInvalid, "{name:?}");
        assert!(problem.message.ends_with(&format!("{fault}.")), "{problem}");
        assert_eq!(problem.to_string().lines().count(), 1, "{problem}");
        assert!(problem.to_string().len() < 500, "{problem}");
    }
    assert_eq!(
        problems(&with_module(es(&"n".repeat(MODULE_NAME_BYTES_MAX)))),
        []
    );
}

#[test]
fn a_path_is_a_json_pointer() {
    let code = with_module(with_body("lib/a~b.json", ModuleBody::Json("?".to_owned())));
    assert_eq!(problem(&code).path, "/modules/lib~1a~0b.json");
}

#[test]
fn typescript_is_taken_like_any_module() {
    for name in ["a.ts", "lib/b.tsx", "c.jsx", "d.mts"] {
        assert_eq!(problems(&with_module(es(name))), []);
    }
}

#[test]
fn webassembly_and_forgotten_bodies_are_refused_by_name() {
    assert_problem(
        &with_module(with_body("w.wasm", ModuleBody::Wasm(Vec::new()))),
        "/modules/w.wasm",
        ProblemCode::ModuleWasm,
        "Module \"w.wasm\" is WebAssembly, which is not available yet.",
    );
    assert_problem(
        &with_module(with_body("x", ModuleBody::Unset)),
        "/modules/x",
        ProblemCode::ModuleBodyMissing,
        "Module \"x\" has no body.",
    );
}

#[test]
fn a_json_module_must_parse() {
    assert_problem(
        &with_module(with_body("j", ModuleBody::Json("{\"a\":}".to_owned()))),
        "/modules/j",
        ProblemCode::ModuleJsonInvalid,
        "Module \"j\" is not valid JSON: expected value at line 1 column 6",
    );
}

#[test]
fn json_is_nested_as_deeply_as_values_are_and_no_stack_is_used_to_find_out() {
    let nested = |depth: usize| {
        with_module(with_body(
            "j",
            ModuleBody::Json(format!(
                "{}\"[[\\\"[\"{}",
                "[".repeat(depth),
                "]".repeat(depth)
            )),
        ))
    };
    assert_eq!(problems(&nested(512)), []);
    let message =
        "Module \"j\" is not valid JSON: it is nested 513 levels deep, the maximum is 512";
    assert_problem(
        &nested(513),
        "/modules/j",
        ProblemCode::ModuleJsonInvalid,
        message,
    );
    assert_eq!(
        problem(&nested(1_000_000)).code,
        ProblemCode::ModuleJsonInvalid
    );
}

/// Case R12.
#[test]
fn code_may_be_as_large_as_the_limit_and_not_a_byte_larger() {
    let limits = Limits {
        code_bytes_max: 64 << 20,
        ..Limits::default()
    };
    let sized = |bytes: usize| {
        let main = es("main.js");
        let rest = bytes - main.body.bytes() as usize;
        WorkerCode {
            modules: vec![main, with_body("d", ModuleBody::Data(vec![0; rest]))],
            ..good()
        }
    };
    assert_eq!(check(&sized(64 << 20), &limits), Ok(()));
    let problems = check(&sized((64 << 20) + 1), &limits).unwrap_err();
    assert_eq!(
        problems.listed()[0].message,
        "Dynamic Worker code size (67108865 bytes) exceeds the maximum allowed size of 67108864 bytes."
    );
}

#[test]
fn what_is_too_large_is_not_parsed() {
    let limits = Limits {
        code_bytes_max: 3,
        ..Limits::default()
    };
    let code = WorkerCode {
        modules: vec![
            es("main.js"),
            with_body("j", ModuleBody::Json("{".to_owned())),
        ],
        ..good()
    };
    let problems = check(&code, &limits).unwrap_err();
    assert_eq!(
        problems
            .listed()
            .iter()
            .map(|problem| problem.code)
            .collect::<Vec<_>>(),
        [ProblemCode::CodeTooLarge]
    );
}

#[test]
fn there_is_a_maximum_of_modules() {
    let count = |count: usize| WorkerCode {
        modules: (1..count)
            .map(|index| es(&format!("{index}")))
            .chain([es("main.js")])
            .collect(),
        ..good()
    };
    assert_eq!(problems(&count(MODULES_MAX)), []);
    let problem = problem(&count(MODULES_MAX + 1));
    assert_eq!(problem.code, ProblemCode::ModulesTooMany);
}
