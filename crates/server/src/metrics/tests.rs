use super::{labels::*, *};
use crate::service::refusal_name;
use coracle_isolate::{Bytes, Log, LogLevel, Outcome, Thrown, Usage, Verdict, VerdictKind};
use coracle_loader::{EndCause, Quota, Refusal};
use coracle_transport::Full;
use std::collections::BTreeSet;

const METRICS_MD: &str = include_str!("../../../../docs/metrics.md");

fn metrics() -> Arc<Metrics> {
    Metrics::new(BuildInfo {
        version: "0.1.0".into(),
        guest: "abc".into(),
        wasmtime: "48".into(),
        quickjs: "0.10".into(),
        cpu_baseline: "x86-64-v3".into(),
    })
}

fn report(outcome: Outcome) -> Report {
    Report {
        outcome,
        usage: Usage::default(),
        logs: Vec::new(),
        log_bytes_dropped: 0,
    }
}

/// The value of a series in what a scrape gives.
#[track_caller]
fn value(metrics: &Metrics, series: &str) -> f64 {
    let text = metrics.render(|_| {});
    let (_, value) = text
        .lines()
        .filter_map(|line| line.rsplit_once(' '))
        .find(|(name, _)| *name == series)
        .unwrap_or_else(|| panic!("{series} should be exported:\n{text}"));
    value.parse().expect("a value is a number")
}

fn series_names(metrics: &Metrics) -> BTreeSet<String> {
    let text = metrics.render(|_| {});
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, _)| name.to_owned())
        .collect()
}

#[test]
fn an_invocation_counts_all_that_it_cost() {
    let metrics = metrics();
    metrics.invocation(&Report {
        outcome: Outcome::Value(Bytes::UNDEFINED),
        usage: Usage {
            fuel_load: 7,
            fuel_run: 11,
            cpu_us: 40,
            wall_us: 2_000,
            memory_peak_bytes: 1 << 20,
            memory_denied: 2,
            subrequests: 3,
            bytes_in: 13,
            bytes_out: 17,
            isolate_reused: false,
        },
        logs: ["warning", "!"]
            .map(|message| Log {
                level: LogLevel::Warn,
                message: message.into(),
                arguments: Vec::new(),
                timestamp_ms: 0.0,
            })
            .into(),
        log_bytes_dropped: 5,
    });
    for (series, expected) in [
        (r#"coracle_invocations_total{outcome="ok"}"#, 1.0),
        (r#"coracle_fuel_total{phase="load"}"#, 7.0),
        (r#"coracle_fuel_total{phase="run"}"#, 11.0),
        (
            r#"coracle_invocation_duration_seconds_bucket{le="0.001"}"#,
            0.0,
        ),
        (
            r#"coracle_invocation_duration_seconds_bucket{le="0.0025"}"#,
            1.0,
        ),
        ("coracle_invocation_duration_seconds_sum", 0.002),
        (
            r#"coracle_invocation_cpu_seconds_bucket{le="0.00005"}"#,
            1.0,
        ),
        ("coracle_guest_memory_denied_total", 2.0),
        ("coracle_subrequests_total", 3.0),
        (r#"coracle_bytes_total{direction="in"}"#, 13.0),
        (r#"coracle_bytes_total{direction="out"}"#, 17.0),
        ("coracle_log_bytes_total", 8.0),
        ("coracle_log_bytes_dropped_total", 5.0),
    ] {
        assert_eq!(value(&metrics, series), expected, "{series}");
    }
}

#[test]
fn every_outcome_counts_under_its_own_name() {
    let metrics = metrics();
    metrics.invocation(&report(Outcome::Threw(Box::<Thrown>::default())));
    metrics.refused("draining");
    for kind in VerdictKind::ALL {
        metrics.invocation(&report(Outcome::Verdict(Verdict::without_limit(
            kind, true,
        ))));
    }
    let names: BTreeSet<&str> = outcomes().into();
    assert_eq!(names.len(), OUTCOME_COUNT, "names are distinct");
    for outcome in outcomes() {
        let expected = if outcome == "ok" { 0.0 } else { 1.0 };
        let series = format!("coracle_invocations_total{{outcome=\"{outcome}\"}}");
        assert_eq!(value(&metrics, &series), expected, "{series}");
    }
}

#[test]
fn a_call_that_never_reached_an_isolate_has_no_duration() {
    let metrics = metrics();
    let lost = Verdict::without_limit(VerdictKind::IsolateLost, false);
    metrics.invocation(&report(Outcome::Verdict(lost)));
    assert_eq!(
        value(
            &metrics,
            r#"coracle_invocations_total{outcome="isolate_lost"}"#
        ),
        1.0
    );
    assert_eq!(
        value(&metrics, "coracle_invocation_duration_seconds_count"),
        0.0
    );
    assert_eq!(value(&metrics, "coracle_invocation_cpu_seconds_count"), 0.0);
}

#[test]
fn every_refusal_has_its_reason() {
    let metrics = metrics();
    for refusal in [
        Refusal::Draining,
        Refusal::SessionClosed,
        Refusal::CallsInFlight { limit: 1 },
        Refusal::SessionCalls { limit: 1 },
        Refusal::Workers { limit: 1 },
        Refusal::Isolates {
            limit: 1,
            retry_after_ms: 1,
        },
        Refusal::QueueWait {
            limit: 1,
            waited_ms: 1,
            retry_after_ms: 1,
        },
        Refusal::Quota {
            quota: Quota::Isolates,
            limit: 1,
            used: 1,
            retry_after_ms: 1,
        },
    ] {
        metrics.refused(refusal_name(refusal));
    }
    for full in [Full::Connection { limit: 1 }, Full::Everyone { limit: 1 }] {
        metrics.refused(full.as_str());
    }
    for reason in REFUSALS.into_iter().filter(|reason| *reason != OTHER) {
        let series = format!("coracle_requests_refused_total{{reason=\"{reason}\"}}");
        assert_eq!(value(&metrics, &series), 1.0, "{series}");
    }
    assert_eq!(
        value(&metrics, r#"coracle_invocations_total{outcome="refused"}"#),
        10.0
    );
}

#[test]
fn every_quota_has_its_series() {
    let metrics = metrics();
    for quota in Quota::ALL {
        metrics.quota_refused(quota);
        let series = format!("coracle_quota_refused_total{{quota=\"{quota}\"}}");
        assert_eq!(value(&metrics, &series), 1.0, "{series}");
    }
}

#[test]
fn every_cause_of_an_end_is_listed() {
    // A new cause does not compile here until it stands in `END_CAUSES` too.
    let position = |cause: EndCause| match cause {
        EndCause::Evicted => 0,
        EndCause::NotReusable => 1,
        EndCause::CallsDropped => 2,
        EndCause::WorkerReleased => 3,
        EndCause::SessionClosed => 4,
        EndCause::DrainDeadline => 5,
    };
    let metrics = metrics();
    for (index, cause) in END_CAUSES.into_iter().enumerate() {
        assert_eq!(position(cause), index);
        metrics.isolate_ended(cause.as_str());
        let series = format!(
            "coracle_isolates_ended_total{{cause=\"{}\"}}",
            cause.as_str()
        );
        assert_eq!(value(&metrics, &series), 1.0, "{series}");
    }
}

#[test]
fn words_that_are_not_listed_add_no_series() {
    let metrics = metrics();
    let before = series_names(&metrics);
    metrics.refused("tenant 4711");
    metrics.isolate_ended("worker 42");
    metrics.connection_refused("10.0.0.1");
    assert_eq!(series_names(&metrics), before);
    assert_eq!(
        value(
            &metrics,
            r#"coracle_requests_refused_total{reason="other"}"#
        ),
        1.0
    );
    assert_eq!(
        value(&metrics, r#"coracle_isolates_ended_total{cause="other"}"#),
        1.0
    );
    assert_eq!(
        value(
            &metrics,
            r#"coracle_connections_refused_total{reason="other"}"#
        ),
        1.0
    );
}

#[test]
fn use_adds_no_series() {
    let metrics = metrics();
    let before = series_names(&metrics);
    for _ in 0..10_000 {
        metrics.connection_opened();
        metrics.login(true);
        metrics.session_opened();
        metrics.load(true);
        metrics.worker_loaded();
        metrics.isolate_started();
        metrics.call_started();
        metrics.invocation(&report(Outcome::Value(Bytes::UNDEFINED)));
    }
    assert_eq!(series_names(&metrics), before);
}

#[test]
fn what_comes_and_goes_is_a_gauge() {
    let metrics = metrics();
    metrics.connection_opened();
    metrics.connection_opened();
    metrics.connection_closed();
    metrics.connection_refused("connections_max");
    metrics.session_opened();
    metrics.worker_loaded();
    metrics.worker_loaded();
    metrics.worker_released();
    metrics.call_started();
    metrics.login(false);
    metrics.load(false);
    metrics.set_draining(true);
    for (series, expected) in [
        ("coracle_connections", 1.0),
        ("coracle_connections_total", 2.0),
        (
            r#"coracle_connections_refused_total{reason="connections_max"}"#,
            1.0,
        ),
        ("coracle_sessions_live", 1.0),
        ("coracle_workers_live", 1.0),
        ("coracle_calls_in_flight", 1.0),
        (r#"coracle_logins_total{result="refused"}"#, 1.0),
        (r#"coracle_loads_total{result="refused"}"#, 1.0),
        (r#"coracle_loads_total{result="ok"}"#, 0.0),
        ("coracle_draining", 1.0),
    ] {
        assert_eq!(value(&metrics, series), expected, "{series}");
    }
    metrics.session_closed();
    metrics.call_ended();
    metrics.set_draining(false);
    for series in [
        "coracle_sessions_live",
        "coracle_calls_in_flight",
        "coracle_draining",
    ] {
        assert_eq!(value(&metrics, series), 0.0, "{series}");
    }
}

#[test]
fn a_scrape_asks_the_scheduler() {
    let metrics = metrics();
    let stats = Stats {
        isolates: 5,
        queued: 2,
        running: 1,
        memory_bytes: 6 << 20,
        panics: 3,
        ..Stats::default()
    };
    let health = Health {
        threads: 2,
        threads_lost: 1,
    };
    let text = metrics.render(|metrics| metrics.observe_scheduler(&stats, &health, 64));
    for line in [
        "coracle_isolates_live 5",
        "coracle_isolates_queued 2",
        "coracle_isolates_running 1",
        "coracle_isolates_max 64",
        "coracle_guest_memory_bytes 6291456",
        "coracle_threads_lost 1",
        "coracle_panics_total 3",
    ] {
        assert!(text.lines().any(|have| have == line), "{line}");
    }
    // The scheduler's total is not added again, and what panics elsewhere is not lost in it.
    metrics.panicked();
    let more = Stats { panics: 5, ..stats };
    metrics.observe_scheduler(&more, &health, 64);
    metrics.observe_scheduler(&more, &health, 64);
    assert_eq!(value(&metrics, "coracle_panics_total"), 6.0);
}

/// The log gives a total; it is not added again.
#[test]
fn lines_of_the_log_that_were_given_up_are_counted_once() {
    let metrics = metrics();
    metrics.observe_log(|| 7);
    for _ in 0..2 {
        assert_eq!(value(&metrics, "coracle_log_lines_dropped_total"), 7.0);
    }
}

#[test]
fn the_build_is_a_series() {
    let series = r#"coracle_build_info{cpu_baseline="x86-64-v3",guest="abc",quickjs="0.10",version="0.1.0",wasmtime="48"}"#;
    assert_eq!(value(&metrics(), series), 1.0);
}

#[test]
fn the_document_has_the_inventory() {
    let table = Metrics::inventory_markdown();
    assert!(
        METRICS_MD.contains(&table),
        "docs/metrics.md should contain this table:\n\n{table}"
    );
}

#[test]
fn the_document_mentions_no_metric_that_does_not_exist() {
    let names: BTreeSet<String> = Metrics::inventory()
        .into_iter()
        .flat_map(|metric| match metric.kind {
            "histogram" => ["_bucket", "_sum", "_count", ""]
                .map(|suffix| format!("{}{suffix}", metric.name))
                .into(),
            _ => vec![metric.name],
        })
        .collect();
    for mentioned in METRICS_MD
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with("coracle_") || word.starts_with("process_"))
    {
        assert!(names.contains(mentioned), "{mentioned}");
    }
}
