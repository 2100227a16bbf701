//! Making metrics: the prefix, the buckets, and every child of a label up front.

use super::BuildInfo;
use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    core::Collector,
};

const PREFIX: &str = "coracle";

/// Upper bounds in seconds. A small call takes some 50 µs, and `wall_ms_max` is 30 s unless configured. Three to a
/// decade keep a quantile's error below what decisions hang on.
const DURATION_BUCKETS: [f64; 19] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0,
];

/// A counter with one label, whose values are all known.
pub(super) struct Labelled<const N: usize> {
    values: [&'static str; N],
    children: [IntCounter; N],
}

impl<const N: usize> Labelled<N> {
    /// The child of the value at `index`.
    pub(super) fn at(&self, index: usize) -> &IntCounter {
        &self.children[index]
    }

    /// All children, in the order of the values.
    pub(super) fn all(&self) -> &[IntCounter; N] {
        &self.children
    }

    /// The child of a value, or the last one: only for sets that end in [`OTHER`](super::labels::OTHER).
    pub(super) fn named(&self, value: &str) -> &IntCounter {
        let index = self.values.iter().position(|known| *known == value);
        &self.children[index.unwrap_or(N - 1)]
    }
}

/// Makes metrics in a registry. The names stand in the code and are distinct, so making one does not fail.
pub(super) struct Register<'a>(pub(super) &'a Registry);

impl Register<'_> {
    pub(super) fn counter(&self, name: &str, help: &str) -> IntCounter {
        self.keep(IntCounter::with_opts(options(name, help)))
    }

    pub(super) fn gauge(&self, name: &str, help: &str) -> IntGauge {
        self.keep(IntGauge::with_opts(options(name, help)))
    }

    pub(super) fn histogram(&self, name: &str, help: &str) -> Histogram {
        let options = HistogramOpts::from(options(name, help)).buckets(DURATION_BUCKETS.to_vec());
        self.keep(Histogram::with_opts(options))
    }

    pub(super) fn labelled<const N: usize>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: [&'static str; N],
    ) -> Labelled<N> {
        let family = self.keep(IntCounterVec::new(options(name, help), &[label]));
        Labelled {
            values,
            children: values.map(|value| family.with_label_values(&[value])),
        }
    }

    /// A gauge with one label, whose values are all known: a child for each of them.
    pub(super) fn gauges<const N: usize>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: [&'static str; N],
    ) -> [IntGauge; N] {
        let family = self.keep(IntGaugeVec::new(options(name, help), &[label]));
        values.map(|value| family.with_label_values(&[value]))
    }

    pub(super) fn build_info(&self, build: &BuildInfo) {
        let BuildInfo {
            version,
            guest,
            wasmtime,
            quickjs,
            cpu_baseline,
        } = build;
        let labels = ["version", "guest", "wasmtime", "quickjs", "cpu_baseline"];
        let help = "What runs, in its labels; the value is always 1.";
        self.keep(IntGaugeVec::new(options("build_info", help), &labels))
            .with_label_values(&[version, guest, wasmtime, quickjs, cpu_baseline])
            .set(1);
    }

    /// CPU time, memory, descriptors and threads of the process, by their usual names.
    pub(super) fn process(&self) {
        #[cfg(target_os = "linux")]
        self.0
            .register(Box::new(
                prometheus::process_collector::ProcessCollector::for_self(),
            ))
            .expect("the names are used once");
    }

    fn keep<M: Collector + Clone + 'static>(&self, metric: prometheus::Result<M>) -> M {
        let metric = metric.expect("the name and the labels are valid");
        self.0
            .register(Box::new(metric.clone()))
            .expect("the name is used once");
        metric
    }
}

fn options(name: &str, help: &str) -> Opts {
    Opts::new(name, help).namespace(PREFIX)
}
