//! The log of cases: public failures of others, each as a worker with the right answer.
//!
//! `cases/<area>/<id>.js` begins with where the case is from, the rule, and what its `run` has to answer, as JSON. Each is
//! run twice, in workers of their own, which must not see each other. `cases/README.md` lists them, and those that other
//! tests guard.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{Coracle, Outcome, WorkerCode, args};
use serde_json::Value as Json;
use std::{
    fs,
    path::{Path, PathBuf},
};
use support::{Server, client};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn cases() -> Vec<PathBuf> {
    let mut cases: Vec<PathBuf> = fs::read_dir(repository().join("tests/cases"))
        .unwrap()
        .filter(|area| area.as_ref().unwrap().path().is_dir())
        .flat_map(|area| fs::read_dir(area.unwrap().path()).unwrap())
        .map(|case| case.unwrap().path())
        .collect();
    cases.sort();
    cases
}

/// What a case says of itself in its first lines.
fn header(source: &str, field: &str) -> String {
    let prefix = format!("// {field}: ");
    let line = source.lines().find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no {field}: {source}"))
        .to_owned()
}

async fn run(coracle: &Coracle, source: &str) -> Result<Json, String> {
    let wrapped = "import worker from './case.js';\n\
                   export default { async run(_) { return JSON.stringify(await worker.run(_)); } };";
    let code = WorkerCode::new("main.js")
        .es_module("main.js", wrapped)
        .es_module("case.js", source);
    let entrypoint = coracle.load(code).entrypoint("default");
    match entrypoint.call("run", args![0]).await.unwrap().outcome {
        Outcome::Value(value) => Ok(serde_json::from_str(value.as_str().unwrap()).unwrap()),
        other => Err(format!("{other:?}")),
    }
}

#[tokio::test]
async fn every_case_has_its_right_answer() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let cases = cases();
    assert!(cases.len() >= 10, "{}", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let source = fs::read_to_string(&case).unwrap();
        let expected: Json = serde_json::from_str(&header(&source, "expected")).unwrap();
        for _ in 0..2 {
            let answer = run(&coracle, &source).await;
            if answer.as_ref() != Ok(&expected) {
                let (rule, case) = (header(&source, "rule"), case.display());
                wrong.push(format!("{case}: {rule}\n    {answer:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_list_names_every_case_and_tests_that_there_are() {
    let list = fs::read_to_string(repository().join("tests/cases/README.md")).unwrap();
    for case in cases() {
        let area = case.parent().unwrap().file_name().unwrap();
        let name = format!(
            "`{}/{}`",
            area.display(),
            case.file_name().unwrap().display()
        );
        assert!(list.contains(&name), "{name} is not on the list");
    }
    let rows: Vec<&str> = list
        .lines()
        .filter(|line| line.starts_with("| X") || line.starts_with("| R"))
        .collect();
    assert!(rows.len() >= 23, "{} rows", rows.len());
    for row in rows {
        let guards = row.split(" | ").nth(2).unwrap();
        for part in guards.split("; ") {
            let quoted: Vec<&str> = part.split('`').skip(1).step_by(2).collect();
            match &quoted[..] {
                [case] => assert!(
                    repository().join("tests/cases").join(case).is_file(),
                    "{row}"
                ),
                [tests @ .., file] => {
                    let source = fs::read_to_string(repository().join(file)).unwrap();
                    for test in tests {
                        assert!(
                            source.contains(&format!("fn {test}()")),
                            "{test} is not in {file}"
                        );
                    }
                }
                [] => panic!("nothing guards {row}"),
            }
        }
    }
}
