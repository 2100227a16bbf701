//! The report: the table of budgets with what was measured, and the conditions.

use crate::{peer::Peers, phases::Figures};
use anyhow::Context;
use serde_json::Value;
use std::{fmt::Write, fs, path::Path};

struct Row {
    what: &'static str,
    unit: &'static str,
    peer: Option<f64>,
    ours: Option<f64>,
    budget: Option<Budget>,
}

/// What we may take.
#[derive(Clone, Copy)]
struct Budget {
    /// On the machine that the budgets were made on.
    most: f64,
    /// What workerd took there: on other machines the ratio counts. None where the peer is not what was measured then.
    peer: Option<f64>,
}

impl Budget {
    /// What the ratio to the peer comes to here.
    fn most_here(self, peer_here: Option<f64>) -> f64 {
        match (self.peer, peer_here) {
            (Some(there), Some(here)) => self.most.max(self.most / there * here),
            _ => self.most,
        }
    }

    fn text(self, unit: &str) -> String {
        let most = figure(Some(self.most), unit);
        match self.peer {
            Some(peer) => format!("{most}, or {}", compared(peer, self.most)),
            None => most,
        }
    }
}

/// Fails where a figure of Criterion's is missing, unless it is `quick`: a report without it would look like one in which
/// nothing was missed.
pub(crate) fn write(
    ours: &Figures,
    peers: Option<&Peers>,
    criterion: &Path,
    quick: bool,
) -> anyhow::Result<String> {
    let peer = peers.map(|peers| &peers.workerd);
    let node = peers.map(|peers| &peers.node);
    let peer_figure = |pointer: &str| {
        peer.and_then(|peer| peer.pointer(pointer))
            .and_then(Value::as_f64)
    };
    let engine = |name: &str| match criterion_median_ms(&criterion.join(name)) {
        Err(_) if quick => Ok(None),
        figure => figure.map(Some),
    };
    let ratios = node.map_or_else(Vec::new, |node| v8_ratios(ours, node));
    let ratio_of = |name: &str| Some(ratios.iter().find(|(known, _)| known == name)?.1);
    let rows = [
        Row {
            what: "cold: load + getEntrypoint + call, ten small workers, engine",
            unit: "ms",
            peer: peer_figure("/cold_engine_ms/p50"),
            ours: engine("cold_small")?,
            budget: Some(Budget {
                most: 0.08,
                peer: Some(4.4),
            }),
        },
        Row {
            what: "the same over TCP, one pipelined round trip, p50",
            unit: "ms",
            peer: peer_figure("/cold_http_ms/p50"),
            ours: Some(ours.cold_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 0.3,
                peer: Some(4.6),
            }),
        },
        Row {
            what: "server CPU per small cold sandbox over RPC, pipelined, sixteen at a time",
            unit: "µs",
            peer: peer_figure("/cpu_ms_per_cold_sandbox").map(|ms| ms * 1000.0),
            ours: Some(ours.cold_busy_cpu_us),
            budget: Some(Budget {
                most: 150.0,
                peer: Some(4_400.0),
            }),
        },
        Row {
            what: "cold: ten scripts of 0.2 to 1.7 kB with work to do, engine",
            unit: "ms",
            peer: peer_figure("/cold_scripts_engine_ms/p50"),
            ours: engine("cold_scripts")?,
            budget: None,
        },
        Row {
            what: "the same over TCP, one pipelined round trip, p50",
            unit: "ms",
            peer: peer_figure("/cold_scripts_http_ms/p50"),
            ours: Some(ours.cold_scripts_ms.quantile(0.5)),
            budget: None,
        },
        Row {
            what: "cold, 20 kB module never seen, over TCP, p50",
            unit: "ms",
            peer: peer_figure("/cold_20k_ms/p50"),
            ours: Some(ours.cold_large_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 3.0,
                peer: Some(5.0),
            }),
        },
        Row {
            what: "Code Mode's shape: cold class entrypoint, ten calls of the caller's function in turn, over TCP, p50",
            unit: "ms",
            peer: peer_figure("/tools_sequential_http_ms/p50"),
            ours: Some(ours.tools_sequential_ms.quantile(0.5)),
            budget: None,
        },
        Row {
            what: "the same with a thousand calls at once, over TCP, p50",
            unit: "ms",
            peer: peer_figure("/tools_concurrent_http_ms/p50"),
            ours: Some(ours.tools_concurrent_ms.quantile(0.5)),
            budget: None,
        },
        Row {
            what: "warm call over TCP, p50",
            unit: "ms",
            peer: peer_figure("/warm_http_ms/p50"),
            ours: Some(ours.warm_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 0.1,
                peer: None,
            }),
        },
        Row {
            what: "a request to a gateway of the client's, added to a warm call, p50",
            unit: "ms",
            peer: None,
            ours: Some(ours.gateway_ms.quantile(0.5) - ours.warm_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 0.3,
                peer: None,
            }),
        },
        Row {
            what: "a cordon is killed under load: until the next answer, p50",
            unit: "ms",
            peer: None,
            ours: (ours.refill_ms.count() > 0).then(|| ours.refill_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 50.0,
                peer: None,
            }),
        },
        Row {
            what: "memory of a live isolate, loaded and called once (PSS)",
            unit: "MiB",
            peer: peer_figure("/memory_per_live_isolate_bytes").map(mib),
            ours: Some(mib(ours.memory_per_isolate_bytes)),
            budget: Some(Budget {
                most: 0.25,
                peer: Some(1.53),
            }),
        },
        Row {
            what: "process start to first answer",
            unit: "ms",
            peer: peer_figure("/start_to_first_answer_ms/p50"),
            ours: Some(ours.start_to_first_answer_ms.quantile(0.5)),
            budget: Some(Budget {
                most: 60.0,
                peer: Some(36.0),
            }),
        },
        Row {
            what: "interpreted code, geometric mean of twelve programs and JSON against warm V8",
            unit: "×",
            peer: Some(1.0),
            ours: geometric_mean(&ratios),
            budget: Some(Budget {
                most: 11.0,
                peer: None,
            }),
        },
        Row {
            what: "JSON.parse over 1 kB, against warm V8",
            unit: "×",
            peer: Some(1.0),
            ours: ratio_of("parse"),
            budget: None,
        },
        Row {
            what: "JSON.stringify over 1 kB, against warm V8",
            unit: "×",
            peer: Some(1.0),
            ours: ratio_of("stringify"),
            budget: None,
        },
    ];
    let mut text = String::from(
        "# Performance\n\nWritten by `make bench`. Both sides were measured in the same run on the same machine; read the ratios, not the\n\
         absolute figures of another machine. A budget that has a ratio is met by either. workerd is the npm binary with its worker loader, driven over HTTP where it says so.\n\n\
         | | workerd | Coracle | ratio | budget |\n|---|---:|---:|---:|---:|\n",
    );
    for row in &rows {
        let ratio = match row.peer.zip(row.ours) {
            Some((peer, ours)) if row.unit != "×" => compared(peer, ours),
            _ => "–".into(),
        };
        let met = row
            .ours
            .zip(row.budget)
            .map_or(String::new(), |(ours, budget)| {
                format!(
                    "{}{}",
                    budget.text(row.unit),
                    match ours <= budget.most_here(row.peer) {
                        true => "",
                        false => " **missed**",
                    }
                )
            });
        let _ = writeln!(
            text,
            "| {} | {} | {} | {ratio} | {met} |",
            row.what,
            figure(row.peer, row.unit),
            figure(row.ours, row.unit)
        );
    }
    details(&mut text, ours, &ratios);
    conditions(&mut text, peer, node, quick);
    Ok(text)
}

/// Ours against the peer's, of what is better the less there is.
fn compared(peer: f64, ours: f64) -> String {
    if ours > peer {
        format!("{:.1} × more", ours / peer)
    } else {
        format!("{:.1} × less", peer / ours)
    }
}

fn details(text: &mut String, ours: &Figures, ratios: &[(String, f64)]) {
    let q = |samples: &crate::samples::Samples, share| samples.quantile(share);
    let _ = write!(
        text,
        "\n## More of Coracle\n\n\
         - The floor: an echo of 300 bytes over TCP between two threads, p50 {:.3} ms, p90 {:.3}: a few microseconds where\n  \
         the kernel puts both on one core, and where it does not, what waking an idle processor takes. Coracle's rows have it twice.\n\
         - Small, cold over TCP, one after the other: p50 {:.3} ms, p90 {:.3}, p99 {:.3}, least {:.3} (n = {}), {:.0} µs of\n  \
         server CPU each, with a processor that wakes for each.\n\
         - Scripts, cold over TCP: p50 {:.3} ms, p99 {:.3}, {:.0} µs of server CPU each; {:.2} MiB of memory each.\n\
         - Small, cold, sixteen at a time: {:.0} sandboxes a second, {:.0} µs of server CPU each.\n\
         - Warm over TCP: p50 {:.3} ms, p99 {:.3}, {:.0} µs of server CPU a call; 64 at a time: {:.0} calls a second.\n\
         - Beside {} endless loops of another client: p50 {:.2} ms, p99 {:.2} ms; alone p99 {:.2} ms.\n\
         - Resident memory before and after {} cold loads: {:.1} and {:.1} MiB.\n\
         - Memory per isolate is over {} live ones.\n",
        q(&ours.echo_ms, 0.5),
        q(&ours.echo_ms, 0.9),
        q(&ours.cold_ms, 0.5),
        q(&ours.cold_ms, 0.9),
        q(&ours.cold_ms, 0.99),
        ours.cold_ms.min(),
        ours.cold_ms.count(),
        ours.cold_cpu_us,
        q(&ours.cold_scripts_ms, 0.5),
        q(&ours.cold_scripts_ms, 0.99),
        ours.cold_scripts_cpu_us,
        mib(ours.memory_per_script_bytes),
        ours.cold_per_second,
        ours.cold_busy_cpu_us,
        q(&ours.warm_ms, 0.5),
        q(&ours.warm_ms, 0.99),
        ours.warm_cpu_us,
        ours.warm_per_second,
        ours.loops,
        q(&ours.beside_loops_ms, 0.5),
        q(&ours.beside_loops_ms, 0.99),
        ours.alone_p99_ms,
        ours.loads_flat,
        mib(ours.rss_before_loads_bytes),
        mib(ours.rss_after_loads_bytes),
        ours.live_isolates,
    );
    text.push_str(
        "\nPrograms, best of twenty-five, in ms of CPU time, and as a multiple of warm V8's:\n\n| program | ms | × |\n|---|---:|---:|\n",
    );
    let programs = ours.programs_ms.iter();
    for (name, ms) in programs.chain(&ours.json_ms) {
        let ratio = ratios.iter().find(|(known, _)| known == name);
        let ratio = ratio.map_or(String::new(), |(_, ratio)| format!("{ratio:.1}"));
        let _ = writeln!(text, "| {name} | {ms:.1} | {ratio} |");
    }
}

pub(crate) fn conditions(
    text: &mut String,
    peer: Option<&Value>,
    node: Option<&Value>,
    quick: bool,
) {
    let read = |path: &str| {
        fs::read_to_string(path)
            .unwrap_or_default()
            .trim()
            .to_owned()
    };
    let cpu = read("/proc/cpuinfo");
    let model = cpu
        .lines()
        .find_map(|line| line.strip_prefix("model name\t: "))
        .unwrap_or("unknown");
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let _ = write!(
        text,
        "\n## Conditions\n\n\
         - {model}, {cores} cores; Linux {}; load average at the end {}.\n\
         - The client shares the cores with the server.\n\
         - {} samples; the workloads are in `benches/workloads`, and every answer was checked.\n",
        read("/proc/sys/kernel/osrelease"),
        read("/proc/loadavg"),
        if quick { "Few" } else { "Full" },
    );
    if let Some(version) = peer
        .and_then(|peer| peer.pointer("/conditions/workerd"))
        .and_then(Value::as_str)
    {
        let _ = writeln!(text, "- workerd {version}.");
    }
    if let Some(node) = node {
        let (version, v8) = (&node["version"], &node["v8"]);
        let of = |value: &Value| value.as_str().unwrap_or("?").to_owned();
        let _ = writeln!(text, "- Node {}, V8 {}.", of(version), of(v8));
        text.push_str(
            "- V8's figures are Node's, in process and warm, the best of many; ours are the best of twenty-five, in CPU time. `parse` and\n  \
             `stringify` are 1,000 operations. The cold engine row of workerd is its HTTP time less that of an empty request.\n",
        );
    }
}

pub(crate) fn mib(bytes: f64) -> f64 {
    bytes / f64::from(1 << 20)
}

fn figure(value: Option<f64>, unit: &str) -> String {
    match value {
        None => "–".into(),
        Some(value) if value >= 100.0 => format!("{value:.0} {unit}"),
        Some(value) if value >= 10.0 => format!("{value:.1} {unit}"),
        Some(value) => format!("{value:.3} {unit}"),
    }
}

/// Our time over warm V8's, program by program.
fn v8_ratios(ours: &Figures, node: &Value) -> Vec<(String, f64)> {
    let ratio = |(name, ms): &(String, f64)| {
        let theirs = node["program_ms"][name].as_f64()?;
        Some((name.clone(), ms / theirs))
    };
    let programs = ours.programs_ms.iter().chain(&ours.json_ms);
    programs.filter_map(ratio).collect()
}

fn geometric_mean(ratios: &[(String, f64)]) -> Option<f64> {
    let logs: f64 = ratios.iter().map(|(_, ratio)| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (logs / ratios.len() as f64).exp())
}

/// Criterion's median of a benchmark in milliseconds. Its folder has `_` where the benchmark's name has `/`.
fn criterion_median_ms(folder: &Path) -> anyhow::Result<f64> {
    let path = folder.join("new/estimates.json");
    let name = || path.display().to_string();
    let text = fs::read_to_string(&path).with_context(name)?;
    let estimates: Value = serde_json::from_str(&text).with_context(name)?;
    let ns = estimates
        .pointer("/median/point_estimate")
        .and_then(Value::as_f64)
        .with_context(|| format!("{} has no median", name()))?;
    Ok(ns / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_says_who_takes_less() {
        assert_eq!(compared(3.0, 1.0), "3.0 × less");
        assert_eq!(compared(20.0, 22.0), "1.1 × more");
        assert_eq!(compared(1.0, 1.0), "1.0 × less");
    }

    #[test]
    fn a_figure_that_is_missing_is_an_error_and_names_the_file() {
        let error = criterion_median_ms(Path::new("there/is/none")).expect_err("no such folder");
        assert_eq!(error.to_string(), "there/is/none/new/estimates.json");
    }
}
