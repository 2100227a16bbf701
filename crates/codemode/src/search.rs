//! Finding tools, and describing them.
//!
//! An [`Index`] holds what is known of tools when they are listed: names, descriptions, and parameters where those came
//! along. Schemas are read when somebody wants to see them, through [`SchemaSource`], so that connecting to a server with
//! 100,000 tools reads none.
//!
//! What is found is ordered by BM25, in which a word of a name counts more than one of a description, and a rare word more
//! than a common one. Words that begin like a word that is searched for count as well, for less.

mod words;

use crate::{
    Declarations, Limits, NamespaceSignature, Schema, ToolSignature, declare, json::shortened,
};
use std::collections::{BTreeMap, BTreeSet};
use words::words;

/// How much more often a word seems to stand in a field than it does.
const NAME_WEIGHT: f32 = 4.0;
const NAMESPACE_WEIGHT: f32 = 2.0;
const DESCRIPTION_WEIGHT: f32 = 1.0;
const PARAMETER_WEIGHT: f32 = 1.0;
/// BM25's own: how soon more of the same word counts no more, and how much long texts lose.
const SATURATION: f32 = 1.2;
const LENGTH_SHARE: f32 = 0.5;
/// What a word counts that only begins like the one that is searched for.
const PREFIX_SHARE: f32 = 0.4;
const PREFIX_CHARS: usize = 3;
const PREFIX_WORDS: usize = 64;
/// What finding one more of the words adds: tools that have all of them go before those that have one often.
const COVERAGE: f32 = 2.0;

/// A tool, as its provider lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolEntry {
    /// The namespace, as programs call it.
    pub namespace: String,
    /// The tool, as programs call it.
    pub identifier: String,
    /// What it does.
    pub description: String,
    /// The names of its parameters, where they are known.
    pub parameters: Vec<String>,
}

impl ToolEntry {
    /// What programs write: `github.list_issues`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.namespace, self.identifier)
    }
}

/// Tools that can be searched.
#[derive(Clone, Debug, Default)]
pub struct Index {
    tools: Vec<ToolEntry>,
    by_path: BTreeMap<String, u32>,
    /// For each word the tools that have it, with how often, weighted.
    postings: BTreeMap<String, Vec<(u32, f32)>>,
    lengths: Vec<f32>,
    length_sum: f32,
}

/// A page of what was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Found<'a> {
    /// The tools, the best first.
    pub tools: Vec<&'a ToolEntry>,
    /// How many there are on all pages.
    pub total: usize,
    /// Where the next page begins, if there is one.
    pub next: Option<usize>,
    /// Where nothing was found: the paths that are most alike.
    pub suggestions: Vec<String>,
}

/// Who has the schemas of tools.
pub trait SchemaSource {
    /// What a tool takes and what comes back, as far as it says.
    ///
    /// # Errors
    ///
    /// In words, what was wrong; the tool is described without them.
    fn schemas(&self, tool: &ToolEntry) -> Result<ToolSchemas, String>;
}

/// What a tool takes and what comes back.
#[derive(Clone, Debug, Default)]
pub struct ToolSchemas {
    /// Of its arguments.
    pub input: Option<Schema>,
    /// Of its result.
    pub output: Option<Schema>,
    /// Whether it should not be used any more.
    pub is_deprecated: bool,
}

/// Tools described.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Their types.
    pub declarations: Declarations,
    /// What was asked for and is not there, each with what is most alike.
    pub missing: Vec<(String, Vec<String>)>,
    /// Tools whose schemas could not be read, with why.
    pub untyped: Vec<(String, String)>,
}

impl Index {
    /// An index of tools. Of those with the same path, the last counts.
    #[must_use]
    pub fn new(tools: impl IntoIterator<Item = ToolEntry>) -> Self {
        let mut by_path = BTreeMap::new();
        for tool in tools {
            by_path.insert(tool.path(), tool);
        }
        let mut index = Self::default();
        for (path, tool) in by_path {
            let number = u32::try_from(index.tools.len()).unwrap_or(u32::MAX);
            index.by_path.insert(path, number);
            let mut weights: BTreeMap<String, f32> = BTreeMap::new();
            let mut length = 0.0;
            let parameters = tool.parameters.join(" ");
            for (text, weight) in [
                (&tool.namespace, NAMESPACE_WEIGHT),
                (&tool.identifier, NAME_WEIGHT),
                (&tool.description, DESCRIPTION_WEIGHT),
                (&parameters, PARAMETER_WEIGHT),
            ] {
                for word in words(text) {
                    *weights.entry(word).or_default() += weight;
                    length += 1.0;
                }
            }
            for (word, weight) in weights {
                index
                    .postings
                    .entry(word)
                    .or_default()
                    .push((number, weight));
            }
            index.lengths.push(length);
            index.length_sum += length;
            index.tools.push(tool);
        }
        index
    }

    /// How many tools there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// A tool by its path.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<&ToolEntry> {
        let number = *self.by_path.get(path)?;
        self.tools.get(number as usize)
    }

    /// The tools of a namespace, by name.
    pub fn of_namespace(&self, namespace: &str) -> impl Iterator<Item = &ToolEntry> {
        let begin = format!("{namespace}.");
        self.by_path
            .range(begin.clone()..)
            .take_while(move |(path, _)| path.starts_with(&begin))
            .filter_map(|(_, number)| self.tools.get(*number as usize))
    }

    /// Searches. `is_visible` says which tools there are for whoever asks; of the others nothing is told, not even by a
    /// suggestion. Without a word to search for, all tools are found, by path.
    #[must_use]
    pub fn search(
        &self,
        query: &str,
        offset: usize,
        limits: &Limits,
        is_visible: &dyn Fn(&ToolEntry) -> bool,
    ) -> Found<'_> {
        let query = shortened(query.trim(), limits.query_chars_max);
        let mut ranked = self.ranked(&query, limits);
        ranked.retain(|number| is_visible(&self.tools[*number as usize]));
        let total = ranked.len();
        let page_max = limits.search_results_max.max(1);
        let page = ranked.iter().skip(offset).take(page_max);
        let tools: Vec<_> = page.map(|number| &self.tools[*number as usize]).collect();
        let end = offset.saturating_add(tools.len());
        let suggestions = if total == 0 {
            self.suggest(&query, limits, is_visible)
        } else {
            Vec::new()
        };
        Found {
            next: (end < total && !tools.is_empty()).then_some(end),
            tools,
            total,
            suggestions,
        }
    }

    /// All tools that have anything of the query, the best first.
    fn ranked(&self, query: &str, limits: &Limits) -> Vec<u32> {
        let mut wanted: Vec<String> = Vec::new();
        for word in words(query) {
            if wanted.len() < limits.query_words_max && !wanted.contains(&word) {
                wanted.push(word);
            }
        }
        if wanted.is_empty() {
            return self.by_path.values().copied().collect();
        }
        let mut scores: BTreeMap<u32, f32> = BTreeMap::new();
        for word in &wanted {
            for (number, score) in self.scores_of(word) {
                *scores.entry(number).or_default() += score + COVERAGE;
            }
        }
        // A tool that is called just that is what is meant.
        for (number, score) in &mut scores {
            let tool = &self.tools[*number as usize];
            if tool.path() == query {
                *score += 1e6;
            } else if tool.identifier == query || tool.namespace == query {
                *score += 1e3;
            }
        }
        let mut ranked: Vec<_> = scores.into_iter().collect();
        // Numbers are in the order of paths, which decides where scores do not.
        ranked.sort_by(|(a, score_a), (b, score_b)| score_b.total_cmp(score_a).then(a.cmp(b)));
        ranked.into_iter().map(|(number, _)| number).collect()
    }

    /// What a word counts for each tool that has it, or one that begins like it.
    fn scores_of(&self, word: &str) -> BTreeMap<u32, f32> {
        let mut scores: BTreeMap<u32, f32> = BTreeMap::new();
        let is_long = word.chars().count() >= PREFIX_CHARS;
        let alike = self
            .postings
            .range(word.to_owned()..)
            .take_while(|(other, _)| other.starts_with(word))
            .take(if is_long { PREFIX_WORDS } else { 1 })
            .filter(|(other, _)| is_long || *other == word);
        #[allow(
            clippy::cast_precision_loss,
            reason = "of counts that are far below what a float has exactly, or need not be exact"
        )]
        let (count, length_mean) = {
            let count = self.tools.len() as f32;
            (count, self.length_sum / count.max(1.0))
        };
        for (other, tools) in alike {
            let share = if other == word { 1.0 } else { PREFIX_SHARE };
            #[allow(clippy::cast_precision_loss, reason = "as above")]
            let having = tools.len() as f32;
            let rarity = ((count - having + 0.5) / (having + 0.5)).ln_1p();
            for (number, weight) in tools {
                let length = self.lengths[*number as usize] / length_mean.max(1.0);
                let norm = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * length);
                let score = share * rarity * weight * (SATURATION + 1.0) / (weight + norm);
                let best = scores.entry(*number).or_default();
                *best = best.max(score);
            }
        }
        scores
    }

    /// The paths that are most like a text.
    #[must_use]
    pub fn suggest(
        &self,
        text: &str,
        limits: &Limits,
        is_visible: &dyn Fn(&ToolEntry) -> bool,
    ) -> Vec<String> {
        let text = shortened(&text.to_lowercase(), 64);
        let chars = text.chars().count();
        // What differs in more than a third is something else.
        let distance_max = (chars / 3).max(1);
        let mut nearest: BTreeSet<(usize, u32)> = BTreeSet::new();
        for (number, tool) in (0_u32..).zip(&self.tools) {
            let path = tool.path().to_lowercase();
            // Without the namespace, where the text has none either.
            let other = match text.contains('.') {
                true => path.as_str(),
                false => path.split_once('.').map_or(path.as_str(), |(_, name)| name),
            };
            if other.len().abs_diff(text.len()) > distance_max * 4 || !is_visible(tool) {
                continue;
            }
            // Most are told apart by the letters that they have, without comparing them.
            if letters_differing(other, &text) > 2 * distance_max {
                continue;
            }
            let distance = strsim::osa_distance(other, &text);
            if distance <= distance_max {
                nearest.insert((distance, number));
                if nearest.len() > limits.suggestions_max {
                    nearest.pop_last();
                }
            }
        }
        let paths = nearest
            .into_iter()
            .map(|(_, number)| self.tools[number as usize].path());
        paths.collect()
    }

    /// Describes tools, given by their paths, or all of a namespace, given by its name, within `types_tokens_max`.
    #[must_use]
    pub fn describe(
        &self,
        targets: &[&str],
        source: &dyn SchemaSource,
        limits: &Limits,
        is_visible: &dyn Fn(&ToolEntry) -> bool,
    ) -> Description {
        let mut tools: Vec<&ToolEntry> = Vec::new();
        let mut seen = BTreeSet::new();
        let mut missing = Vec::new();
        for target in targets.iter().take(limits.search_results_max) {
            let found: Vec<_> = match self.get(target) {
                Some(tool) => vec![tool],
                None => self.of_namespace(target).collect(),
            };
            let mut is_there = false;
            for tool in found.into_iter().filter(|tool| is_visible(tool)) {
                is_there = true;
                if seen.insert((&tool.namespace, &tool.identifier)) {
                    tools.push(tool);
                }
            }
            if !is_there {
                let suggestions = self.suggest(target, limits, is_visible);
                missing.push(((*target).to_owned(), suggestions));
            }
        }
        let mut untyped = Vec::new();
        let mut schemas = Vec::new();
        // No more is read than can be shown.
        let readable = limits.types_tokens_max / 8 + 1;
        for (index, tool) in tools.iter().enumerate() {
            let read = if index < readable {
                source.schemas(tool)
            } else {
                Ok(ToolSchemas::default())
            };
            schemas.push(read.unwrap_or_else(|problem| {
                untyped.push((tool.path(), problem));
                ToolSchemas::default()
            }));
        }
        let mut namespaces: Vec<NamespaceSignature<'_>> = Vec::new();
        for (tool, schemas) in tools.iter().zip(&schemas) {
            let signature = ToolSignature {
                identifier: &tool.identifier,
                description: &tool.description,
                is_deprecated: schemas.is_deprecated,
                input: schemas.input.as_ref(),
                output: schemas.output.as_ref(),
            };
            match namespaces.iter_mut().find(|one| one.name == tool.namespace) {
                Some(namespace) => namespace.tools.push(signature),
                None => namespaces.push(NamespaceSignature {
                    name: &tool.namespace,
                    description: "",
                    tools: vec![signature],
                }),
            }
        }
        Description {
            declarations: declare(&namespaces, limits),
            missing,
            untyped,
        }
    }
}

/// In how many letters two texts differ, at least: a bound from below on twice their distance.
fn letters_differing(one: &str, other: &str) -> usize {
    let mut counts = [0_i32; 32];
    let slot = |byte: u8| usize::from(byte) % 32;
    for byte in one.bytes().filter(u8::is_ascii) {
        counts[slot(byte)] += 1;
    }
    for byte in other.bytes().filter(u8::is_ascii) {
        counts[slot(byte)] -= 1;
    }
    counts
        .iter()
        .map(|count| count.unsigned_abs() as usize)
        .sum()
}

#[cfg(test)]
mod tests;
