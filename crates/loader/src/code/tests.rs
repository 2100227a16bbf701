mod compatibility;
mod env;
mod modules;
mod specifier;

use super::*;
use crate::limits::Limits;
use proptest::prelude::*;

fn es(name: &str) -> Module {
    Module {
        name: name.to_owned(),
        body: ModuleBody::EsModule("export default {}".to_owned()),
    }
}

fn with_body(name: &str, body: ModuleBody) -> Module {
    Module {
        name: name.to_owned(),
        body,
    }
}

/// A worker in which nothing is wrong.
fn good() -> WorkerCode {
    WorkerCode {
        main_module: "main.js".to_owned(),
        modules: vec![es("main.js")],
        ..WorkerCode::default()
    }
}

fn with_module(module: Module) -> WorkerCode {
    let mut code = good();
    code.modules.push(module);
    code
}

fn with_env(form: Form, bytes: &[u8]) -> WorkerCode {
    WorkerCode {
        env: Encoded {
            externals: 0,
            form,
            bytes: bytes.to_vec(),
        },
        ..good()
    }
}

fn problems(code: &WorkerCode) -> Vec<Problem> {
    check(code, &Limits::default())
        .err()
        .map_or_else(Vec::new, |problems| problems.listed().to_vec())
}

/// The only problem of `code`.
fn problem(code: &WorkerCode) -> Problem {
    match &problems(code)[..] {
        [problem] => problem.clone(),
        other => panic!("{other:#?}"),
    }
}

fn assert_problem(code: &WorkerCode, path: &str, kind: ProblemCode, message: &str) {
    let problem = problem(code);
    assert_eq!(
        (&problem.path[..], problem.code, &problem.message[..]),
        (path, kind, message)
    );
}

#[test]
fn good_code_has_no_problems() {
    let code = WorkerCode {
        compatibility_date: "2025-06-01".to_owned(),
        compatibility_flags: vec!["nodejs_compat".to_owned()],
        main_module: "main".to_owned(),
        modules: vec![
            es("main"),
            with_body("lib/c.cjs", ModuleBody::CommonJs(String::new())),
            with_body("t.txt", ModuleBody::Text(String::new())),
            with_body(
                "j.json",
                ModuleBody::Json(" {\"a\": [1e400, \"\\ud800\"]}\n".to_owned()),
            ),
            with_body("d.bin", ModuleBody::Data(vec![0xff])),
            with_body(
                "types.ts",
                ModuleBody::Text("only its source is wanted".to_owned()),
            ),
        ],
        env: Encoded {
            externals: 0,
            form: Form::Json,
            bytes: b" {\"KEY\": 1}".to_vec(),
        },
        outbound: Outbound::None,
        limits: LimitsRequest {
            cpu_ms_max: Some(10),
            ..LimitsRequest::default()
        },
    };
    assert_eq!(problems(&code), []);
}

#[test]
fn all_problems_are_reported_at_once_one_a_line() {
    let code = WorkerCode {
        compatibility_date: "yesterday".to_owned(),
        compatibility_flags: vec!["x".to_owned()],
        main_module: "main.ts".to_owned(),
        modules: vec![with_body("a\nb", ModuleBody::Json("?".to_owned()))],
        env: Encoded {
            externals: 0,
            form: Form::Json,
            bytes: b"1".to_vec(),
        },
        ..WorkerCode::default()
    };
    let problems = check(&code, &Limits::default()).unwrap_err();
    let text = "\
/compatibilityDate: Invalid compatibility date: yesterday (write YYYY-MM-DD, or leave it empty for the newest)
/compatibilityFlags/0: No such compatibility flag: x
/modules/a\\u{a}b: Module name \"a\\u{a}b\" contains a control character. (rename the module)
/modules/a\\u{a}b: Module \"a\\u{a}b\" is not valid JSON: expected value at line 1 column 1 (pass what \
JSON.stringify() makes, or pass it as text)
/mainModule: No such module: main.ts (name one of the modules: a\\u{a}b)
/env: Incorrect type for the 'env' field on 'WorkerCode': the provided value is not of type 'Object'. (pass an \
object whose properties are the bindings, or undefined)";
    assert_eq!(problems.to_string(), text);
}

#[test]
fn a_flood_of_problems_is_counted_and_not_repeated() {
    let code = WorkerCode {
        compatibility_flags: vec!["x".repeat(1 << 10); 100_000],
        ..good()
    };
    let problems = check(&code, &Limits::default()).unwrap_err();
    assert_eq!(
        (problems.listed().len(), problems.unlisted()),
        (PROBLEMS_MAX, 100_000 - PROBLEMS_MAX)
    );
    assert!(problems.to_string().len() < 64 << 10);
    assert!(problems.to_string().ends_with("\nand 99900 more"));
}

proptest! {
    /// What is let through as JSON here must be what the codec and the guest take for JSON.
    #[test]
    fn json_is_judged_as_the_codec_judges_it(text in "[\\[\\]{}\":,0-9.eE+tfn\\\\u \n-]{0,16}|(true|null|[\\[\\]{},:]|\"a\"|-?1){0,8}") {
        let limits = Limits { value_depth_max: 3, ..Limits::default() };
        let bounds = coracle_value::Bounds { depth_max: 3, ..coracle_value::Bounds::default() };
        let accepted = encoded::json_fault(&text, &limits).is_none();
        prop_assert_eq!(accepted, coracle_value::from_json(&text, &bounds).is_ok(), "{}", text);
    }

    #[test]
    fn nothing_a_stranger_sends_panics(
        name in any::<String>(), date in "[0-9-]{9,11}|\\PC{0,12}", flag in any::<String>(), json in any::<String>(),
        env in any::<Vec<u8>>(), form in 0..3,
    ) {
        let form = [Form::Undefined, Form::Cbor, Form::Json][form as usize];
        let code = WorkerCode {
            compatibility_date: date,
            compatibility_flags: vec![flag],
            main_module: name.clone(),
            modules: vec![with_body(&name, ModuleBody::Json(json)), es(&name)],
            env: Encoded { form, bytes: env, externals: 0 },
            ..WorkerCode::default()
        };
        if let Err(problems) = check(&code, &Limits::default()) {
            prop_assert_eq!(problems.to_string().lines().count(), problems.listed().len());
        }
    }
}
