//! Makes programs of a grammar.

use crate::Source;
use std::{collections::HashMap, sync::LazyLock};

/// Expansions of a program at most, roughly: then everything comes to its end.
const EXPANSIONS: [usize; 3] = [12, 60, 250];
/// How deep they go.
const DEPTH_MAX: usize = 14;

static GRAMMAR: LazyLock<Grammar> = LazyLock::new(|| Grammar::of(include_str!("grammar.txt")));

type Rules = HashMap<&'static str, Vec<Vec<Part>>>;

struct Grammar(Rules);

enum Part {
    Text(&'static str),
    Rule(&'static str),
}

impl Grammar {
    fn of(text: &'static str) -> Self {
        let mut rules = Rules::new();
        let mut name = "";
        for line in text.lines() {
            match line.strip_prefix("    ") {
                Some(alternative) => rules.entry(name).or_default().push(parts(alternative)),
                None if line.starts_with('#') || line.is_empty() => {}
                None => name = line.trim_end_matches(':'),
            }
        }
        Self(rules)
    }
}

/// Splits at every `@name`.
fn parts(text: &'static str) -> Vec<Part> {
    let mut pieces = text.split('@');
    let mut parts = vec![Part::Text(pieces.next().unwrap_or_default())];
    for piece in pieces {
        let end = piece
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(piece.len());
        let (rule, rest) = piece.split_at(end);
        parts.extend([Part::Rule(rule), Part::Text(rest)]);
    }
    parts
}

/// The source of a program.
pub(super) fn program(source: &mut Source<'_>) -> String {
    let mut writing = Writing {
        left: source.pick(&EXPANSIONS),
        text: String::new(),
        source,
    };
    writing.rule("program", 0);
    let Writing {
        mut text, source, ..
    } = writing;
    if source.once_in(16) {
        damage(source, &mut text);
    }
    text
}

struct Writing<'s, 'b> {
    source: &'s mut Source<'b>,
    left: usize,
    text: String,
}

impl Writing<'_, '_> {
    fn rule(&mut self, name: &str, depth: usize) {
        let alternatives = &GRAMMAR.0[name];
        let is_over = self.left == 0 || depth > DEPTH_MAX;
        self.left = self.left.saturating_sub(1);
        let choice = match is_over {
            true => 0,
            false => self.source.below(alternatives.len()),
        };
        for part in &alternatives[choice] {
            match part {
                Part::Text(text) => self.text.push_str(text),
                Part::Rule(name) => self.rule(name, depth + 1),
            }
        }
    }
}

/// Takes something out of a program or doubles it, so that it may not be one any more.
fn damage(source: &mut Source<'_>, text: &mut String) {
    let at = source.below(text.len());
    let end = text.len().min(at + 1 + source.below(20));
    if !text.is_char_boundary(at) || !text.is_char_boundary(end) {
        return;
    }
    match source.below(3) {
        0 => text.replace_range(at..end, ""),
        1 => text.insert_str(at, &text[at..end].to_owned().repeat(1 + source.below(300))),
        _ => text.insert(
            at,
            source.pick(&['{', '}', '(', '`', '\\', '\0', '\u{2028}', '#']),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name without a rule would end the process that looks for faults.
    #[test]
    fn every_name_has_a_rule_and_every_rule_leads_to_an_end() {
        for (name, alternatives) in &GRAMMAR.0 {
            for part in alternatives.iter().flatten() {
                if let Part::Rule(rule) = part {
                    assert!(GRAMMAR.0.contains_key(rule), "{name} has @{rule}");
                }
            }
            let mut text = Writing {
                source: &mut Source::new(b"any"),
                left: 0,
                text: String::new(),
            };
            text.rule(name, 0);
            assert!(!text.text.is_empty(), "{name}");
        }
    }
}
