//! One rule, and whether a request is of it.

use super::{
    Effect,
    path::{self, PathPattern},
};
use crate::{Budget, Destination, Pattern, pattern::Difference};
use std::{borrow::Cow, cell::OnceCell, fmt};

/// One rule, as it was read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rule {
    pub(super) name: Option<String>,
    pub(super) effect: Effect,
    pub(super) patterns: Vec<Pattern>,
    /// None is any.
    pub(super) methods: Option<Vec<String>>,
    /// None is any.
    pub(super) paths: Option<Vec<PathPattern>>,
    pub(super) is_private: bool,
    pub(super) credential: Option<String>,
    pub(super) budget: Option<Budget>,
}

/// In what a request differs from what a rule means. What comes later is nearer to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Miss {
    /// No pattern of the rule is of its host.
    Host,
    /// None of those is of its scheme.
    Scheme,
    /// None of those is of its port.
    Port,
    /// The rule is of the destination, for other methods.
    Method,
    /// And for other paths.
    Path,
    /// The path can be read in more than one way, so that no rule that looks at paths allows it.
    PathUnclear,
}

/// A request that is asked about. Its path is read when the first rule looks at it.
pub(super) struct Asked<'a> {
    pub(super) destination: &'a Destination,
    pub(super) method: Option<&'a str>,
    segments: OnceCell<Option<Vec<Cow<'a, str>>>>,
    loose: OnceCell<Vec<Cow<'a, str>>>,
}

impl<'a> Asked<'a> {
    pub(super) fn new(destination: &'a Destination, method: Option<&'a str>) -> Self {
        Self {
            destination,
            method,
            segments: OnceCell::new(),
            loose: OnceCell::new(),
        }
    }

    fn segments(&self, path: &'a str) -> Option<&[Cow<'a, str>]> {
        let segments = self.segments.get_or_init(|| path::segments_of(path));
        segments.as_deref()
    }
}

/// What people call a rule.
pub(super) struct Label<'a> {
    index: usize,
    name: Option<&'a str>,
}

impl fmt::Display for Label<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "rule {}", self.index + 1)?;
        match self.name {
            Some(name) => write!(formatter, " \"{name}\""),
            None => Ok(()),
        }
    }
}

impl Rule {
    /// What people call it; rules are counted from 1 by people.
    pub(super) fn label(&self, index: usize) -> Label<'_> {
        let name = self.name.as_deref();
        Label { index, name }
    }

    /// A miss of this rule, with what it is for instead.
    pub(super) fn missed(&self, miss: Miss) -> String {
        let wanted = match miss {
            Miss::Host | Miss::Scheme | Miss::Port => listed(&self.patterns),
            Miss::Method => listed(self.methods.iter().flatten()),
            Miss::Path => listed(self.paths.iter().flatten()),
            Miss::PathUnclear => return miss.to_string(),
        };
        format!("{miss}, it is for {wanted}")
    }

    /// How many comparisons it takes at most to say whether a request is of it.
    pub(super) fn steps_max(&self) -> usize {
        let paths = self.paths.iter().flatten();
        let of_paths: usize = paths.map(PathPattern::steps_max).sum();
        let methods = self.methods.as_ref().map_or(0, Vec::len);
        self.patterns.len() + methods + of_paths
    }

    pub(super) fn matches(&self, asked: &Asked<'_>) -> bool {
        self.is_of(asked.destination) && self.miss_within(asked).is_none()
    }

    /// Why the request is not of this rule.
    pub(super) fn miss(&self, asked: &Asked<'_>) -> Option<Miss> {
        match self.is_of(asked.destination) {
            true => self.miss_within(asked),
            false => {
                let differences = self.patterns.iter();
                let misses =
                    differences.filter_map(|pattern| pattern.difference(asked.destination));
                Some(misses.map(Miss::from).max().unwrap_or(Miss::Host))
            }
        }
    }

    /// Whether it is of the destination, whatever the method and the path.
    pub(super) fn is_of(&self, destination: &Destination) -> bool {
        let mut patterns = self.patterns.iter();
        patterns.any(|pattern| pattern.matches(destination))
    }

    fn miss_within(&self, asked: &Asked<'_>) -> Option<Miss> {
        let is_method = match (&self.methods, asked.destination.path()) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(methods), Some(_)) => self.is_method(methods, asked.method),
        };
        if !is_method {
            return Some(Miss::Method);
        }
        let Some(patterns) = &self.paths else {
            return None;
        };
        let Some(path) = asked.destination.path() else {
            return Some(Miss::Path);
        };
        match (asked.segments(path), self.effect) {
            (None, Effect::Deny) => None,
            (None, _) => Some(Miss::PathUnclear),
            (Some(segments), effect) => {
                let segments = match effect {
                    Effect::Deny => asked.loose.get_or_init(|| path::loose(segments)),
                    _ => segments,
                };
                let is_path = patterns.iter().any(|pattern| pattern.matches(segments));
                (!is_path).then_some(Miss::Path)
            }
        }
    }

    /// A method is what it is, in upper and lower case; but what is denied is not let through by writing it otherwise, or
    /// by not saying it.
    fn is_method(&self, methods: &[String], asked: Option<&str>) -> bool {
        match (self.effect, asked) {
            (Effect::Deny, None) => true,
            (Effect::Deny, Some(asked)) => methods.iter().any(|of| of.eq_ignore_ascii_case(asked)),
            (_, None) => false,
            (_, Some(asked)) => methods.iter().any(|of| of == asked),
        }
    }
}

/// The first of them, and how many more there are.
fn listed<T: fmt::Display>(items: impl IntoIterator<Item = T>) -> String {
    let mut items = items.into_iter();
    let first: Vec<String> = items
        .by_ref()
        .take(3)
        .map(|item| item.to_string())
        .collect();
    match (first.is_empty(), items.count()) {
        (true, _) => "none".into(),
        (false, 0) => first.join(", "),
        (false, more) => format!("{} and {more} more", first.join(", ")),
    }
}

impl From<Difference> for Miss {
    fn from(difference: Difference) -> Self {
        match difference {
            Difference::Host => Self::Host,
            Difference::Scheme => Self::Scheme,
            Difference::Port => Self::Port,
        }
    }
}

impl fmt::Display for Miss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Host => "another host",
            Self::Scheme => "another scheme",
            Self::Port => "another port",
            Self::Method => "another method",
            Self::Path => "another path",
            Self::PathUnclear => "a path that servers may read in more than one way",
        })
    }
}
