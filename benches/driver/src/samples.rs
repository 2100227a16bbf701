//! Samples of a quantity, and what is said of them.

/// Samples in the order in which they were taken.
#[derive(Clone, Debug, Default)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    pub(crate) fn push(&mut self, sample: f64) {
        self.0.push(sample);
    }

    pub(crate) fn add(&mut self, others: &Self) {
        self.0.extend_from_slice(&others.0);
    }

    pub(crate) fn max(&self) -> f64 {
        self.quantile(1.0)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The value below which that share of the samples lies; NaN without samples.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let index = ((sorted.len().saturating_sub(1)) as f64 * share).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    pub(crate) fn min(&self) -> f64 {
        self.quantile(0.0)
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "p50": self.quantile(0.5),
            "p90": self.quantile(0.9),
            "p99": self.quantile(0.99),
            "min": self.min(),
            "n": self.count(),
        })
    }
}
