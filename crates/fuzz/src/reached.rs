//! What an input led to.

use std::collections::BTreeMap;

/// How often something of a name happened. It shows that a generator gets anywhere: an oracle that is never asked says yes.
#[derive(Clone, Debug, Default)]
pub struct Reached(BTreeMap<String, u64>);

impl Reached {
    /// It happened once more.
    pub fn note(&mut self, name: impl Into<String>) {
        *self.0.entry(name.into()).or_default() += 1;
    }

    /// How often anything happened in whose name this is.
    #[must_use]
    pub fn count(&self, part: &str) -> u64 {
        let named = self.0.iter().filter(|(name, _)| name.contains(part));
        named.map(|(_, count)| count).sum()
    }

    /// Takes in what another input led to.
    pub fn add(&mut self, other: Self) {
        for (name, count) in other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }
}
