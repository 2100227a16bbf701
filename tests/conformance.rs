//! The same questions as were asked of workerd, asked through a loader of ours, and its answers beside ours.
//!
//! `questions.js` is a worker that has a loader in its `env`, here and in workerd. `workerd.json` has workerd's answers: one
//! test asks workerd itself, beside us, whether they still are. `judgements.json` says of each answer of ours that differs
//! whether it is the same in other words, better, or something that we don't have, why, and what it is. An answer that is
//! neither the same nor the judged one fails.
//!
//! `CORACLE_CONFORMANCE_ONLY=a,b` asks only the questions whose names contain one of these, and tells what differs.
//! `CORACLE_CONFORMANCE_REWRITE=1` takes today's answers into the judgements that there are, and writes
//! `docs/conformance.md`; without it the document is compared.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;
#[path = "conformance/workerd.rs"]
mod workerd;

use coracle_client::{
    Coracle, Entrypoint, Limits, Outbound, Outcome, Payload, Response, Value, WorkerCode,
};
use serde_json::{Map, Value as Json, json};
use std::{fmt::Write, fs, path::PathBuf};
use support::{PATIENCE, Server, client, within};
use workerd::Workerd;

/// Answers that have to be the same as workerd's, or better.
const GOOD_MIN: usize = 230;

/// workerd's own tests of its loader, and what guards the same here.
const LOADER_TESTS: &str = include_str!("conformance/loader-tests.md");

/// What is said of the language; `tests/test262/run --rewrite` writes the numbers.
const TEST262: &str = include_str!("test262/conformance.md");

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

fn read(name: &str) -> Map<String, Json> {
    let text = fs::read_to_string(folder().join(name)).unwrap();
    match serde_json::from_str(&text).unwrap() {
        Json::Object(map) => map,
        _ => panic!("{name} is no object"),
    }
}

async fn asker(coracle: &Coracle) -> Entrypoint {
    let source = fs::read_to_string(folder().join("questions.js")).unwrap();
    let internet = coracle.gateway(|_| async { Ok(Response::new(200, "")) });
    let mut env = Payload::default();
    let loader = env.external(&coracle.loader());
    let clock = env.external(&internet);
    env.value = Value::object([("LOADER", loader), ("CLOCK", clock)]);
    let mut limits = Limits::default();
    for (name, limit) in [
        ("wall_ms_max", 60_000),
        ("cpu_ms_max", 60_000),
        ("fuel_max", 300_000_000_000),
        ("memory_bytes_max", 512 << 20),
        ("subrequests_max", 10_000),
        ("result_bytes_max", 64 << 20),
    ] {
        limits.set(name, limit).unwrap();
    }
    let code = WorkerCode {
        outbound: Outbound::Gateway(internet),
        limits,
        ..WorkerCode::new("questions.js")
            .es_module("questions.js", &source)
            .env(env)
    };
    coracle.load(code).entrypoint("default")
}

async fn ask(asker: &Entrypoint, question: &str) -> Json {
    let answer = asker.call("ask", vec![Value::from(question)]).await;
    match answer.map(|answer| answer.outcome) {
        Ok(Outcome::Value(value)) => serde_json::from_str(value.as_str().unwrap()).unwrap(),
        Ok(Outcome::Threw(thrown)) => json!({ "threw": thrown.message }),
        Ok(Outcome::Verdict(verdict)) => json!({ "verdict": verdict.kind }),
        Err(error) => json!({ "failed": error.to_string() }),
    }
}

/// The answer without what is different each time: times, random numbers and references, and where a stack began.
fn settled(answer: &Json) -> Json {
    match answer {
        Json::Object(fields) => {
            let settle = |(key, value): (&String, &Json)| match &key[..] {
                "stack0" => None,
                "stack" => Some((key.clone(), json!("…"))),
                "wallTime" | "cpuTime" => Some((key.clone(), json!(0))),
                _ => Some((key.clone(), settled(value))),
            };
            Json::Object(fields.iter().filter_map(settle).collect())
        }
        Json::Array(elements) => Json::Array(elements.iter().map(settled).collect()),
        // Times since the epoch.
        Json::Number(number) if number.as_f64().is_some_and(|number| number > 1.6e12) => {
            json!("a time")
        }
        Json::String(text) => json!(without_references(text)),
        other => other.clone(),
    }
}

/// Whether an answer is the one that was written down, in which "…" stands for any number or text, or any part of a text:
/// for what depends on the machine.
fn fits(judged: &Json, ours: &Json) -> bool {
    match (judged, ours) {
        (Json::String(text), _) if text == "…" => ours.is_number() || ours.is_string(),
        (Json::String(pattern), Json::String(text)) => fits_text(pattern, text),
        (Json::Array(judged), Json::Array(ours)) => {
            judged.len() == ours.len()
                && judged.iter().zip(ours).all(|(one, other)| fits(one, other))
        }
        (Json::Object(judged), Json::Object(ours)) => {
            judged.len() == ours.len()
                && judged
                    .iter()
                    .all(|(key, one)| ours.get(key).is_some_and(|other| fits(one, other)))
        }
        _ => judged == ours,
    }
}

fn fits_text(pattern: &str, text: &str) -> bool {
    let Some((start, mut pattern)) = pattern.split_once('…') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(start) else {
        return false;
    };
    while let Some((part, rest)) = pattern.split_once('…') {
        let Some(at) = text.find(part) else {
            return false;
        };
        (text, pattern) = (&text[at + part.len()..], rest);
    }
    text.ends_with(pattern)
}

fn without_references(text: &str) -> String {
    match text.split_once("reference = ") {
        Some((before, after)) => {
            let rest = after.trim_start_matches(|letter: char| letter.is_ascii_alphanumeric());
            format!("{before}reference = …{rest}")
        }
        None => text.to_owned(),
    }
}

struct Count {
    same: usize,
    better: usize,
    absent: usize,
}

#[tokio::test]
async fn answers_are_those_of_workerd_or_better_ones() {
    let rewrite = std::env::var_os("CORACLE_CONFORMANCE_REWRITE").is_some();
    let only = std::env::var("CORACLE_CONFORMANCE_ONLY").unwrap_or_default();
    let server = Server::start_with(&[
        ("limit", "memory_bytes_max=536_870_912"),
        ("limit", "code_bytes_max=67_108_864"),
        ("limit", "cpu_ms_max=60_000"),
        ("limit", "fuel_max=1_000_000_000_000"),
    ]);
    let coracle = client(server.address()).await;
    let asker = asker(&coracle).await;
    let workerd = read("workerd.json");
    let mut judgements = read("judgements.json");
    let mut wrong = Vec::new();
    let mut rows = String::new();
    let mut count = Count {
        same: 0,
        better: 0,
        absent: 0,
    };
    for (question, theirs) in &workerd {
        if !only.is_empty() && !only.split(',').any(|wanted| question.contains(wanted)) {
            continue;
        }
        let ours = settled(&ask(&asker, question).await);
        let theirs = settled(theirs);
        let is_same = fits(&theirs, &ours);
        match judgements.get_mut(question) {
            None if is_same => {
                count.same += 1;
                let _ = writeln!(rows, "| `{question}` | same | |");
            }
            None => wrong.push(format!("{question}: {ours}\n    workerd: {theirs}")),
            Some(_) if is_same => wrong.push(format!("{question} is the same as workerd's now")),
            Some(judgement) => {
                if fits(&judgement["ours"], &ours) {
                    // As it was judged.
                } else if rewrite {
                    judgement["ours"] = ours.clone();
                } else {
                    wrong.push(format!(
                        "{question}: {ours}\n    judged: {}",
                        judgement["ours"]
                    ));
                }
                let verdict = judgement["verdict"].as_str().unwrap();
                match verdict {
                    "same" => count.same += 1,
                    "better" => count.better += 1,
                    "absent" => count.absent += 1,
                    other => panic!("{question}: {other:?} is no verdict"),
                }
                let why = judgement["why"].as_str().unwrap();
                let _ = writeln!(rows, "| `{question}` | {verdict} | {why} |");
            }
        }
    }
    if !only.is_empty() {
        panic!("{}", wrong.join("\n"));
    }
    if rewrite {
        let text = serde_json::to_string_pretty(&judgements).unwrap() + "\n";
        fs::write(folder().join("judgements.json"), text).unwrap();
    }
    assert!(
        wrong.is_empty(),
        "{} answers:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(
        count.same + count.better >= GOOD_MIN,
        "{} same, {} better",
        count.same,
        count.better
    );
    let document = document(&count, &rows);
    let path = folder().join("../../docs/conformance.md");
    let page = fs::read_to_string(&path).unwrap();
    let at = page.find(SUITES).unwrap();
    let (ours, suites) = page.split_at(at);
    if rewrite {
        fs::write(path, document + suites).unwrap();
    } else {
        assert_eq!(ours, document, "run it with CORACLE_CONFORMANCE_REWRITE=1");
    }
}

#[tokio::test]
async fn workerd_beside_us_answers_what_was_written_down_of_it() {
    let workerd = Workerd::start(&folder()).await;
    let mut wrong = Vec::new();
    for (question, written) in &read("workerd.json") {
        let answer = settled(&within(PATIENCE, question, workerd.ask(question)).await);
        if !fits(&settled(written), &answer) {
            wrong.push(format!("{question}: {answer}\n    written: {written}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} answers:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// Where the part of the page begins that others write, such as `make wpt`.
const SUITES: &str = "\n## Suites of the standards\n";

fn document(count: &Count, rows: &str) -> String {
    format!(
        "# Conformance\n\n\
         {all} questions about loading and calling workers, asked from inside of a worker that has a loader, with workerd's \
         answers beside ours (workerd 1.20261117.1, compatibility date 2026-06-01). **{same} are the same, {better} are \
         better on purpose, {absent} ask for what Coracle does not have.** Times, random numbers and stacks are not \
         compared.\n\n\
         The questions are in `tests/conformance/questions.js`, the answers in `workerd.json` and `judgements.json` beside \
         it; `cargo test --test conformance` asks them and compares this page.\n\n\
         | question | verdict | why |\n|---|---|---|\n{rows}\n{LOADER_TESTS}\n{TEST262}",
        all = count.same + count.better + count.absent,
        same = count.same,
        better = count.better,
        absent = count.absent,
    )
}

#[test]
fn every_counterpart_of_workerds_tests_is_there() {
    let questions = read("workerd.json");
    let rows = LOADER_TESTS.lines().filter(|line| line.contains("| `"));
    let mut count = 0;
    for row in rows {
        count += 1;
        let counterparts = row.split(" | ").nth(1).unwrap();
        let names: Vec<&str> = counterparts.split('`').skip(1).step_by(2).collect();
        for (index, name) in names.iter().enumerate() {
            let file = names[index..]
                .iter()
                .find(|name| name.starts_with("tests/"));
            let is_there = match file {
                _ if questions.contains_key(*name)
                    || name.starts_with("tests/")
                    || *name == "wasm" =>
                {
                    true
                }
                Some(file) => fs::read_to_string(folder().join("../..").join(file))
                    .unwrap()
                    .contains(&format!("fn {name}()")),
                None => false,
            };
            assert!(is_there, "{name}: {row}");
        }
    }
    assert!(count >= 20, "{count} rows");
}

#[test]
fn a_judged_answer_fits_itself_and_what_it_leaves_open() {
    let judged = json!({ "used": "…", "text": "used … of 5: raise …", "list": [1, "a"] });
    assert!(fits(
        &judged,
        &json!({ "used": 7, "text": "used 12 of 5: raise it", "list": [1, "a"] })
    ));
    for other in [
        json!({ "used": [7], "text": "used 12 of 5: raise it", "list": [1, "a"] }),
        json!({ "used": 7, "text": "used 12 of 6: raise it", "list": [1, "a"] }),
        json!({ "used": 7, "text": "used 12 of 5: raise it", "list": [1] }),
        json!({ "used": 7, "text": "used 12 of 5: raise it" }),
    ] {
        assert!(!fits(&judged, &other), "{other}");
    }
    assert!(fits_text("whole", "whole") && !fits_text("whole", "wholes"));
}
