//! The list of all metrics, read off a fresh registry: what is in it is what is exported.

use super::{BuildInfo, Metrics};
use prometheus::proto::{MetricFamily, MetricType};
use std::fmt::Write;

/// A metric as documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricInfo {
    /// The full name.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// What it says of itself.
    pub help: String,
    /// Its labels, `le` of histograms aside.
    pub labels: Vec<LabelInfo>,
}

/// A label as documentation shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelInfo {
    /// The name.
    pub name: String,
    /// Every value that it takes, sorted; empty where the build decides.
    pub values: Vec<String>,
}

impl Metrics {
    /// Every metric that is exported, by name.
    #[must_use]
    pub fn inventory() -> Vec<MetricInfo> {
        // An empty build gives empty label values, which are left out: they depend on the build.
        Self::new(BuildInfo::default())
            .registry
            .gather()
            .iter()
            .map(MetricInfo::of)
            .collect()
    }

    /// The inventory as the table in `docs/metrics.md`.
    #[must_use]
    pub fn inventory_markdown() -> String {
        let mut table =
            String::from("| metric | type | labels | what it says |\n|---|---|---|---|\n");
        for metric in Self::inventory() {
            let labels: Vec<String> = metric.labels.iter().map(LabelInfo::markdown).collect();
            let _ = writeln!(
                table,
                "| `{}` | {} | {} | {} |",
                metric.name,
                metric.kind,
                labels.join("; "),
                metric.help
            );
        }
        table
    }
}

impl MetricInfo {
    fn of(family: &MetricFamily) -> Self {
        let mut labels: Vec<LabelInfo> = Vec::new();
        for pair in family.get_metric().iter().flat_map(|one| one.get_label()) {
            let index = labels.iter().position(|label| label.name == pair.name());
            let index = index.unwrap_or_else(|| {
                labels.push(LabelInfo {
                    name: pair.name().to_owned(),
                    values: Vec::new(),
                });
                labels.len() - 1
            });
            if !pair.value().is_empty() {
                labels[index].values.push(pair.value().to_owned());
            }
        }
        for label in &mut labels {
            label.values.sort();
        }
        Self {
            name: family.name().to_owned(),
            kind: match family.get_field_type() {
                MetricType::COUNTER => "counter",
                MetricType::GAUGE => "gauge",
                MetricType::HISTOGRAM => "histogram",
                MetricType::SUMMARY => "summary",
                MetricType::UNTYPED => "untyped",
            },
            help: family.help().to_owned(),
            labels,
        }
    }
}

impl LabelInfo {
    fn markdown(&self) -> String {
        let name = format!("`{}`", self.name);
        if self.values.is_empty() {
            return name;
        }
        let values: Vec<String> = self
            .values
            .iter()
            .map(|value| format!("`{value}`"))
            .collect();
        format!("{name}: {}", values.join(", "))
    }
}
