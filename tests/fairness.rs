//! Tenants beside each other: nobody's loops hold others up, bursts wait, and who has to come again is told when.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{ConnectOptions, Coracle, Entrypoint, Error, Value, args};
use std::{
    io::Write,
    process::{Command, Stdio},
};
use support::{PATIENCE, Server, answer, eventually, get, load, value, verdict, within};
use tempfile::NamedTempFile;

const TOKEN_OF_ACME: &str = "a token of Acme's, long enough";
const TOKEN_OF_OTHERS: &str = "a token of the others, long enough";

const WORKER: &str =
    "rest(ms) { return new Promise(done => setTimeout(() => done('rested'), ms)); }
    spin() { for (;;); }
    count() { return this.constructor.n = (this.constructor.n ?? 0) + 1; }";

/// A server for two tenants, of which `acme` may have what is said.
struct House {
    server: Server,
    _files: [NamedTempFile; 2],
}

impl House {
    fn open(acme: &str, settings: &[(&str, &str)]) -> Self {
        let tokens = file(&format!("acme:{TOKEN_OF_ACME}\nothers:{TOKEN_OF_OTHERS}\n"));
        let tenants = file(&format!(
            "{{\"tenants\": {{\"acme\": {acme}, \"others\": {{}}}}}}"
        ));
        let mut all = vec![
            ("token-file", tokens.path().to_str().unwrap()),
            ("tenants-file", tenants.path().to_str().unwrap()),
        ];
        all.extend_from_slice(settings);
        Self {
            server: Server::start_with(&all),
            _files: [tokens, tenants],
        }
    }

    async fn log_in(&self, token: &str) -> Coracle {
        let options = ConnectOptions {
            token: Some(token.to_owned()),
        };
        let login = Coracle::connect(self.server.address(), options);
        within(PATIENCE, "a login", login).await.unwrap()
    }

    async fn refused_for(&self, quota: &str) -> f64 {
        let series = format!("coracle_quota_refused_total{{quota=\"{quota}\"}}");
        self.server.metric(&series).await
    }
}

fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// Calls `count` of so many new workers at the same time.
async fn burst(coracle: &Coracle, size: usize) -> Vec<Result<(), String>> {
    let workers: Vec<Entrypoint> = (0..size).map(|_| load(coracle, WORKER)).collect();
    let calls = workers.iter().map(|worker| async {
        match worker.call("count", args![]).await {
            Ok(counted) => {
                assert_eq!(value(counted), Value::from(1));
                Ok(())
            }
            Err(Error::Overloaded(text)) => Err(text),
            Err(other) => panic!("{other:?}"),
        }
    });
    let calls: Vec<_> = calls.collect();
    within(PATIENCE * 3, "a burst", futures::future::join_all(calls)).await
}

/// The milliseconds after which a refusal says to come again.
fn retry_ms(refusal: &str) -> u64 {
    let (_, rest) = refusal.split_once("retry in ").expect(refusal);
    let ms = rest.strip_suffix(" ms").expect(refusal);
    ms.parse().expect(refusal)
}

/// One tenant's hundred endless loops leave others their calls, and the operator health and metrics.
#[tokio::test]
async fn a_hundred_endless_loops_of_one_tenant_hold_nobody_else_up() {
    let house = House::open(
        "{}",
        &[
            ("isolates-max", "200"),
            ("limit", "wall_ms_max=600_000,cpu_ms_max=600_000"),
            ("limit", "fuel_max=10_000_000_000_000"),
        ],
    );
    let looping = house.log_in(TOKEN_OF_ACME).await;
    let loops: Vec<_> = (0..100)
        .map(|_| {
            let worker = load(&looping, WORKER);
            tokio::spawn(async move { worker.call("spin", args![]).await.map(drop) })
        })
        .collect();
    let server = &house.server;
    eventually("all loops run", async || {
        match server.metric("coracle_isolates_running").await {
            running if running >= 100.0 => Ok(()),
            running => Err(format!("{running} run")),
        }
    })
    .await;
    let other = house.log_in(TOKEN_OF_OTHERS).await;
    let warm = load(&other, WORKER);
    for call in 1..=20 {
        let counted = within(PATIENCE, "a warm call", warm.call("count", args![])).await;
        assert_eq!(value(counted.unwrap()), Value::from(call));
        let cold = load(&other, WORKER);
        let counted = within(PATIENCE, "a cold call", cold.call("count", args![])).await;
        assert_eq!(value(counted.unwrap()), Value::from(1));
    }
    assert_eq!(get(server.admin(), "/livez").await.0, 200);
    assert_eq!(get(server.admin(), "/readyz").await.0, 200);
    assert!(server.metric("coracle_isolates_running").await >= 100.0);
    assert!(loops.iter().all(|one| !one.is_finished()));
    for one in loops {
        one.abort();
    }
    drop(looping);
}

/// What is beyond a tenant's quotas waits, and its own idle isolates go for it before anything is refused.
#[tokio::test]
async fn a_burst_beyond_the_quotas_waits_and_every_call_is_answered() {
    let acme = r#"{"isolates_max": 2, "loads_per_second_max": 20}"#;
    let house = House::open(acme, &[("queue-wait-ms-max", "60000")]);
    let coracle = house.log_in(TOKEN_OF_ACME).await;
    let answered = burst(&coracle, 40).await;
    assert!(answered.iter().all(Result::is_ok), "{answered:?}");
    let evicted = "coracle_isolates_ended_total{cause=\"evicted\"}";
    assert!(house.server.metric(evicted).await >= 38.0);
    assert!(house.server.gauges().await.isolates <= 2);
    let waited = house
        .server
        .metric("coracle_queue_wait_seconds_count")
        .await;
    assert!(waited >= 20.0, "{waited} waited");
    assert_eq!(house.refused_for("isolates_max").await, 0.0);
    assert_eq!(house.refused_for("loads_per_second_max").await, 0.0);
}

/// A tenant's isolates share its memory, and idle ones make room.
#[tokio::test]
async fn idle_isolates_of_a_tenant_go_where_its_memory_is_used_up() {
    let house = House::open(r#"{"memory_bytes_max": 20000000}"#, &[]);
    let coracle = house.log_in(TOKEN_OF_ACME).await;
    let workers: Vec<Entrypoint> = (0..40).map(|_| load(&coracle, WORKER)).collect();
    for worker in &workers {
        let counted = answer(worker, "count", args![]).await;
        assert_eq!(value(counted), Value::from(1));
    }
    assert!(house.server.metric("coracle_guest_memory_bytes").await <= 20_000_000.0);
    assert!(house.server.gauges().await.isolates < 40);
    assert_eq!(house.refused_for("memory_bytes_max").await, 0.0);
}

/// CPU time that was used beyond the quota is waited off. Who can't wait for that long is told so, and others go on.
#[tokio::test]
async fn a_tenant_without_cpu_time_is_told_its_quota_and_when_to_come_again() {
    let acme = r#"{"cpu_seconds_per_minute_max": 1}"#;
    let house = House::open(
        acme,
        &[("limit", "cpu_ms_max=3000,fuel_max=10_000_000_000_000")],
    );
    let coracle = house.log_in(TOKEN_OF_ACME).await;
    let spun = answer(&load(&coracle, WORKER), "spin", args![]).await;
    assert_eq!(verdict(&spun), ("cpu", "cpu_ms_max"));
    let refused = burst(&coracle, 1)
        .await
        .remove(0)
        .expect_err("no CPU time is left");
    assert!(
        refused.starts_with("overloaded: the tenant's cpu_seconds_per_minute_max is 1, and "),
        "{refused}"
    );
    // Three seconds are a minute's and two minutes' more; some of it may have passed.
    assert!(
        (10_001..=125_000).contains(&retry_ms(&refused)),
        "{refused}"
    );
    assert_eq!(house.refused_for("cpu_seconds_per_minute_max").await, 1.0);
    let others = house.log_in(TOKEN_OF_OTHERS).await;
    assert_eq!(burst(&others, 3).await, [const { Ok(()) }; 3]);
}

/// Whose wait is known to be too long is refused at once, and served when it comes again as told.
#[tokio::test]
async fn who_comes_again_when_told_is_served() {
    let acme = r#"{"loads_per_second_max": 1}"#;
    let house = House::open(acme, &[("queue-wait-ms-max", "100")]);
    let coracle = house.log_in(TOKEN_OF_ACME).await;
    let outcomes = burst(&coracle, 3).await;
    let refused: Vec<&String> = outcomes
        .iter()
        .filter_map(|one| one.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 2, "{outcomes:?}");
    for text in &refused {
        assert!(text.contains("loads_per_second_max is 1"), "{text}");
    }
    let ms = retry_ms(refused[0]);
    assert!((101..=1_000).contains(&ms), "{ms}");
    tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
    assert_eq!(burst(&coracle, 1).await, [Ok(())]);
}

/// A call waits for a busy server for as long as it may, and is told what it waited for.
#[tokio::test]
async fn a_wait_for_an_isolate_has_an_end() {
    let settings = [("isolates-max", "1"), ("queue-wait-ms-max", "200")];
    let house = House::open("{}", &settings);
    let coracle = house.log_in(TOKEN_OF_ACME).await;
    let busy = load(&coracle, WORKER);
    let resting = tokio::spawn(async move { busy.call("rest", args![8_000]).await });
    let server = &house.server;
    eventually("it runs", async || match server.gauges().await {
        gauges if gauges.isolates == 1 => Ok(()),
        gauges => Err(format!("{gauges:?}")),
    })
    .await;
    let refused = burst(&coracle, 1)
        .await
        .remove(0)
        .expect_err("there is no isolate");
    assert!(
        refused.contains("isolates_max is 1") && refused.contains("queue_wait_ms_max"),
        "{refused}"
    );
    assert!(retry_ms(&refused) >= 200, "{refused}");
    let series = "coracle_requests_refused_total{reason=\"queue_wait\"}";
    assert_eq!(server.metric(series).await, 1.0);
    let rested = within(PATIENCE, "the first", resting).await.unwrap();
    assert_eq!(value(rested.unwrap()), Value::from("rested"));
}

/// What can't be held, or is not understood, is said before anything listens.
#[test]
fn a_configuration_that_does_not_fit_is_refused_at_the_start() {
    let mistaken = file("{\"tenants\": {\"acme\": {\n\"isolates\": 1}}}");
    let tiny = file("{\"tenants\": {\"acme\": {\"memory_bytes_max\": 1}}}");
    for (settings, code, told) in [
        (
            ["--pool-memory-bytes-max", "1000000000000000"],
            4,
            vec!["pool_memory_bytes_max", "this process may use"],
        ),
        (
            ["--isolates-max", "20000"],
            4,
            vec!["20000 isolates (isolates_max)"],
        ),
        (
            ["--tenants-file", mistaken.path().to_str().unwrap()],
            2,
            vec!["unknown field `isolates`", "line 2"],
        ),
        (
            ["--tenants-file", tiny.path().to_str().unwrap()],
            4,
            vec!["memory_bytes_max of tenant acme is 1"],
        ),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_coracle"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(settings)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{settings:?}: {said}");
        for word in told {
            assert!(said.contains(word), "{settings:?}: {said}");
        }
    }
}
