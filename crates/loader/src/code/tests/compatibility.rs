//! Compatibility date and flags.

use super::*;

#[test]
fn a_date_that_is_none_is_refused_in_workerds_words() {
    for date in [
        "yesterday",
        "2026",
        "2026-13-01",
        "2026-02-29",
        "2026-04-31",
        "2026-00-10",
        "2026-01-00",
        "26-01-01",
        "2026-1-1",
        "2026-01-01 ",
        "2026/01/01",
        "1999-12-31",
        "20260101",
        "2026-01-0x",
    ] {
        let code = WorkerCode {
            compatibility_date: date.to_owned(),
            ..good()
        };
        let message = format!("Invalid compatibility date: {date}");
        assert_problem(
            &code,
            "/compatibilityDate",
            ProblemCode::CompatibilityDateInvalid,
            &message,
        );
    }
    for date in [
        "",
        "2021-05-01",
        "2024-02-29",
        "2000-02-29",
        COMPATIBILITY_DATE_NEWEST,
    ] {
        assert_eq!(
            problems(&WorkerCode {
                compatibility_date: date.to_owned(),
                ..good()
            }),
            [],
            "{date}"
        );
    }
}

#[test]
fn a_date_that_is_newer_than_the_server_is_refused_in_workerds_words() {
    let code = |date: &str| WorkerCode {
        compatibility_date: date.to_owned(),
        ..good()
    };
    assert_problem(
        &code("2030-01-01"),
        "/compatibilityDate",
        ProblemCode::CompatibilityDateTooNew,
        "This Worker requires compatibility date \"2030-01-01\", but the newest date supported by this server binary \
         is \"2026-11-24\".",
    );
    assert_eq!(
        problem(&code("2026-11-25")).code,
        ProblemCode::CompatibilityDateTooNew
    );
}

#[test]
fn an_unknown_flag_is_refused_in_workerds_words_and_so_is_one_given_twice() {
    let code = |flags: &[&str]| WorkerCode {
        compatibility_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
        ..good()
    };
    assert_problem(
        &code(&["nodejs_compat", "no_such_flag"]),
        "/compatibilityFlags/1",
        ProblemCode::CompatibilityFlagUnknown,
        "No such compatibility flag: no_such_flag",
    );
    assert_problem(
        &code(&["nodejs_compat", "nodejs_compat"]),
        "/compatibilityFlags/1",
        ProblemCode::CompatibilityFlagRepeated,
        "Compatibility flag specified multiple times: nodejs_compat",
    );
    assert_eq!(problems(&code(&COMPATIBILITY_FLAGS)), []);
    assert!(COMPATIBILITY_FLAGS.is_sorted());
}
