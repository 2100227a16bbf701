//! The constants of the host's crates, read from their source: most are private, and need not be anything else for the
//! documents' sake.

use crate::repository;
use std::{collections::BTreeMap, fs, path::Path};

/// Crates that are not of the server's side: the client trusts its server, and the command its user.
const OTHERS: [&str; 3] = ["cli", "client", "fuzz"];
/// What is in the sandbox: its bounds are in the tables where somebody meets them, and it has many more.
const GUEST: &str = "guest::";

/// A constant's name with its modules, such as `transport::frame::SEGMENTS_MAX`, and what it is made of.
pub(crate) struct Constants(BTreeMap<String, String>);

impl Constants {
    pub(crate) fn read() -> Self {
        let mut constants = BTreeMap::new();
        for entry in fs::read_dir(repository().join("crates")).unwrap() {
            let folder = entry.unwrap().path();
            let name = folder.file_name().unwrap().to_str().unwrap();
            let sources = ["src", "js"].map(|sources| folder.join(sources));
            for sources in sources.iter().filter(|sources| sources.is_dir()) {
                if !OTHERS.contains(&name) {
                    read_folder(sources, name, &mut constants);
                }
            }
        }
        assert!(constants.len() > 200, "{} constants", constants.len());
        Self(constants)
    }

    /// Those of the host that bound something, by their names.
    pub(crate) fn bounds(&self) -> impl Iterator<Item = &str> {
        let endings = [
            "_MAX",
            "_MIN",
            "_CEILING",
            "_DEADLINE",
            "_TIMEOUT",
            "_AFTER",
            "_DELAY",
            "_REST",
        ];
        let name = |constant: &str| constant.rsplit_once("::").unwrap().1.to_owned();
        self.0
            .keys()
            .map(String::as_str)
            .filter(|constant| !constant.starts_with(GUEST))
            .filter(move |constant| endings.iter().any(|end| name(constant).ends_with(end)))
    }

    /// Its number; of a time, milliseconds.
    pub(crate) fn value(&self, constant: &str) -> u64 {
        let text = self.0.get(constant);
        let text = text.unwrap_or_else(|| panic!("there is no constant {constant}"));
        self.number(constant, text)
    }

    /// What an expression of numbers, `<<`, `+`, `-`, `*`, `/` and other constants comes to.
    fn number(&self, constant: &str, text: &str) -> u64 {
        // By what binds least, from the right, as the operators are grouped from the left.
        for operator in [" << ", " + ", " - ", " * ", " / "] {
            let Some((left, right)) = split_outside(text, operator) else {
                continue;
            };
            let (left, right) = (self.number(constant, left), self.number(constant, right));
            return match operator {
                " << " => left << right,
                " + " => left + right,
                " - " => left - right,
                " * " => left * right,
                _ => left / right,
            };
        }
        let text = text.trim();
        if let Some(inner) = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'))
        {
            return self.number(constant, inner);
        }
        for (unit, ms) in [("secs", 1_000), ("millis", 1)] {
            let argument = text.strip_prefix(&format!("Duration::from_{unit}("));
            if let Some(argument) = argument.and_then(|text| text.strip_suffix(')')) {
                return self.number(constant, argument) * ms;
            }
        }
        let plain = text.split(" as ").next().unwrap_or_default();
        let digits = plain.strip_suffix(".0").unwrap_or(plain).replace('_', "");
        digits.parse().unwrap_or_else(|_| {
            let name = plain.rsplit("::").next().unwrap_or_default();
            self.value(&self.named(constant, name))
        })
    }

    /// The constant that a name means in the module of another: its own, or the only one that the host has.
    fn named(&self, constant: &str, name: &str) -> String {
        let beside = format!("{}::{name}", constant.rsplit_once("::").unwrap().0);
        let ending = format!("::{name}");
        let of_host = self.0.keys().filter(|other| !other.starts_with(GUEST));
        let mut others = of_host.filter(|other| other.ends_with(&ending));
        match (self.0.contains_key(&beside), others.next(), others.next()) {
            (true, ..) => beside,
            (false, Some(only), None) => only.clone(),
            _ => panic!("{constant}: which constant is {name}?"),
        }
    }
}

/// Splits at the last place of an operator that is in no parentheses.
fn split_outside<'a>(text: &'a str, operator: &str) -> Option<(&'a str, &'a str)> {
    let is_outside = |at: usize| text[..at].matches('(').count() == text[..at].matches(')').count();
    let (at, _) = text
        .rmatch_indices(operator)
        .find(|(at, _)| is_outside(*at))?;
    Some((&text[..at], &text[at + operator.len()..]))
}

fn read_folder(folder: &Path, module: &str, constants: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap();
        let inner = match stem {
            "lib" | "mod" => module.to_owned(),
            _ => format!("{module}::{stem}"),
        };
        if path.is_dir() {
            read_folder(&path, &inner, constants);
        } else if path
            .extension()
            .is_some_and(|end| end == "rs" || end == "js")
            && stem != "tests"
        {
            read_file(&fs::read_to_string(&path).unwrap(), &inner, constants);
        }
    }
}

/// Takes note of the constants that a file has before its tests.
fn read_file(source: &str, module: &str, constants: &mut BTreeMap<String, String>) {
    let source = source
        .split("\n#[cfg(test)]\nmod tests {")
        .next()
        .unwrap_or_default();
    for statement in source.split("const ").skip(1) {
        let Some((head, rest)) = statement.split_once(" =") else {
            continue;
        };
        // JavaScript says no type.
        let name = head.split(": ").next().unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
        if !name.is_empty() && name.bytes().all(is_name) {
            let value = rest.split(';').next().unwrap_or_default().trim();
            constants.insert(format!("{module}::{name}"), value.to_owned());
        }
    }
}

/// The arithmetic is Rust's.
#[test]
fn expressions_come_to_what_rust_makes_of_them() {
    let entry = |name: &str, value: &str| (format!("a::b::{name}"), value.to_owned());
    let constants = Constants(BTreeMap::from([
        entry("ONE", "1_000"),
        entry("TWO", "2 * ONE as u32 + 3"),
        entry("SHIFTED", "1 << 4 + 2"),
        entry("GROUPED", "(1 << 5) - 1"),
        entry("LESS", "10 - 3 - 2"),
        entry("TIME", "Duration::from_secs(30)"),
        entry("FLOAT", "2_147.0"),
    ]));
    for (name, value) in [
        ("TWO", 2_003),
        ("SHIFTED", 64),
        ("GROUPED", 31),
        ("LESS", 5),
        ("TIME", 30_000),
        ("FLOAT", 2_147),
    ] {
        assert_eq!(constants.value(&format!("a::b::{name}")), value, "{name}");
    }
}
