//! The usage ledger: what calls have cost is written down, exactly, and summed by a command.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, class, eventually, load, module, within};
use coracle_client::{ConnectOptions, Coracle, Limits, Outcome, args};
use serde_json::{Value as Json, json};
use std::{fs, path::Path, process::Command, time::Duration};
use tempfile::TempDir;

fn summed(file: &Path, arguments: &[&str]) -> Json {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    let output = command
        .arg("usage")
        .arg(file)
        .args(arguments)
        .arg("--json")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

async fn tenant(server: &Server, token: &str) -> Coracle {
    let options = ConnectOptions {
        token: Some(token.into()),
    };
    let connected = Coracle::connect(server.address(), options);
    within(Duration::from_secs(20), "a login", connected)
        .await
        .unwrap()
}

#[tokio::test]
async fn usage_is_written_down_as_it_was_answered() {
    let folder = TempDir::new().unwrap();
    let (tokens, usage) = (folder.path().join("tokens"), folder.path().join("usage"));
    let (acme, other) = ("a token of acme's, long", "a token of others, long");
    fs::write(&tokens, format!("acme:{acme}\nother:{other}\n")).unwrap();
    let server = Server::start_with(&[
        ("token-file", tokens.to_str().unwrap()),
        ("usage-file", usage.to_str().unwrap()),
    ]);
    let clients = [tenant(&server, acme).await, tenant(&server, other).await];
    let mut fuel = [0, 0];
    let methods =
        "add(a, b) { return a + b } fail() { throw new Error('no') } loop() { for (;;); }";
    for (client, fuel) in clients.iter().zip(&mut fuel) {
        let worker = module(&class(methods)).limits(Limits {
            fuel_max: 50_000_000,
            ..Limits::default()
        });
        let entrypoint = client.load(worker).entrypoint("default");
        for _ in 0..5 {
            let answered = answer(&entrypoint, "add", args![1, 2]).await;
            *fuel += answered.usage.fuel_run + answered.usage.fuel_load;
        }
        let threw = answer(&entrypoint, "fail", args![]).await;
        assert!(matches!(threw.outcome, Outcome::Threw(_)));
        *fuel += threw.usage.fuel_run;
    }
    let looped = answer(&load(&clients[0], methods), "loop", args![]).await;
    fuel[0] += looped.usage.fuel_run + looped.usage.fuel_load;
    eventually("all of it is written", async || {
        let sums = summed(&usage, &[]);
        let told: Vec<_> = sums
            .as_array()
            .unwrap()
            .iter()
            .map(|row| {
                let fuel = row["fuel_run"].as_u64().unwrap() + row["fuel_load"].as_u64().unwrap();
                (row["tenant"].clone(), row["calls"].clone(), fuel)
            })
            .collect();
        let expected = vec![
            (json!("acme"), json!(7), fuel[0]),
            (json!("other"), json!(6), fuel[1]),
        ];
        match told == expected {
            true => Ok(()),
            false => Err(format!("{told:?} and not {expected:?}")),
        }
    })
    .await;
    let by_outcome = summed(
        &usage,
        &["--by", "outcome", "--tenant", "acme", "--since", "1h"],
    );
    let outcomes: Vec<_> = by_outcome
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["outcome"].clone(), row["calls"].clone()))
        .collect();
    let kind = match looped.outcome {
        Outcome::Verdict(verdict) => verdict.kind,
        other => panic!("{other:?}"),
    };
    let mut expected = vec![("exception".to_owned(), 1), (kind, 1), ("ok".to_owned(), 5)];
    expected.sort();
    assert_eq!(
        outcomes,
        expected
            .into_iter()
            .map(|(outcome, calls)| (json!(outcome), json!(calls)))
            .collect::<Vec<_>>()
    );
    // A file that somebody has moved away is begun anew.
    fs::rename(&usage, folder.path().join("old")).unwrap();
    drop(answer(&load(&clients[1], methods), "add", args![1, 2]).await);
    eventually("the next file is begun", async || match usage.exists() {
        true => Ok(()),
        false => Err("it is not there".into()),
    })
    .await;
    assert_eq!(summed(&usage, &[])[0]["calls"], 1);
    assert_eq!(
        std::os::unix::fs::MetadataExt::mode(&fs::metadata(&usage).unwrap()) & 0o777,
        0o600
    );
}

#[test]
fn a_line_that_is_none_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("usage");
    fs::write(&file, "{}\n").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_coracle"))
        .arg("usage")
        .arg(&file)
        .output()
        .unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        output.status.code() == Some(2) && told.contains("line 1: missing field"),
        "{told}"
    );
}
