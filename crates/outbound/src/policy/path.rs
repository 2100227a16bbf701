//! Which paths a rule means, and the one way in which a path can be read.
//!
//! Servers read paths differently: some decode `%2f` before they look for `/`, some decode twice, some cut parameters
//! off at `;`. A path that two of them would read as two paths is unclear ([`segments_of`] reads none), and what a rule
//! makes of it is the rule's to say. All else is compared decoded, so that no spelling of a path changes what is decided.

use std::{borrow::Cow, fmt, iter};

/// The longest pattern of paths, in bytes.
pub(super) const PATH_PATTERN_BYTES_MAX: usize = 2 << 10;
/// The most segments of a path that are looked at: comparing takes time, and a path may be 32 KiB of `/a`.
const SEGMENTS_MAX: usize = 128;
const UNCLEAR: &str = "it can be read in more than one way, as can every path that it could match";

/// `/segments/of/a/path`, where `*` is a segment, or any part of one, and `**` is any number of segments, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PathPattern {
    text: String,
    segments: Vec<Segment>,
}

/// How a rule compares paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    /// For what is allowed.
    Exact,
    /// For what is denied: neither upper and lower case nor slashes at the end are told apart, for many servers don't.
    Loose,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    /// `**`
    Any,
    /// `*`, which is not nothing.
    One,
    Exact(String),
    /// One with a `*` in it, which may be nothing.
    Around {
        before: String,
        after: String,
    },
}

impl PathPattern {
    /// # Errors
    /// What is wrong with the text.
    pub(super) fn read(text: &str, comparison: Comparison) -> Result<Self, &'static str> {
        if text.len() > PATH_PATTERN_BYTES_MAX {
            return Err("it is longer than 2048 bytes");
        }
        if !text.starts_with('/') {
            return Err("a path starts with /");
        }
        if text.contains(['?', '#']) {
            return Err("a path has neither ? nor #: queries are not compared");
        }
        // A wildcard stands for a segment or a part of one, as a letter would.
        let example = text.replace('*', "x");
        let is_dots = |segment: &str| matches!(segment, "." | "..");
        if segments_of(&example).is_none() || text.split('/').any(is_dots) {
            return Err(UNCLEAR);
        }
        let literal = |text: &str| match (decode(text), comparison) {
            (Some(text), Comparison::Exact) => Ok(text.into_owned()),
            (Some(text), Comparison::Loose) => Ok(fold(&text)),
            (None, _) => Err(UNCLEAR),
        };
        let segment = |segment: &str| match segment.split_once('*') {
            _ if segment == "**" => Ok(Segment::Any),
            _ if segment == "*" => Ok(Segment::One),
            None => literal(segment).map(Segment::Exact),
            Some((_, after)) if after.contains('*') => {
                Err("a segment has one * at most; ** is a segment of its own")
            }
            Some((before, after)) => Ok(Segment::Around {
                before: literal(before)?,
                after: literal(after)?,
            }),
        };
        let mut segments: Vec<Segment> = text
            .split('/')
            .skip(1)
            .map(segment)
            .collect::<Result<_, _>>()?;
        if comparison == Comparison::Loose
            && segments.last() == Some(&Segment::Exact(String::new()))
        {
            segments.pop();
        }
        Ok(Self {
            text: text.into(),
            segments,
        })
    }

    /// How many segments it compares at most, whatever the path is.
    pub(super) fn steps_max(&self) -> usize {
        let steps = self.segments.len() + 1;
        match self.segments.contains(&Segment::Any) {
            // Each segment of the pattern may be compared with each of the path.
            true => steps * SEGMENTS_MAX,
            false => steps,
        }
    }

    /// Whether a path is meant; `path` is of [`segments_of`], and [`loose`] if the pattern is.
    pub(super) fn matches(&self, path: &[Cow<'_, str>]) -> bool {
        self.matches_noted(path, || {})
    }

    /// The same, with a note of each step.
    fn matches_noted(&self, path: &[Cow<'_, str>], mut step: impl FnMut()) -> bool {
        let (mut wanted, mut found) = (0, 0);
        // The last `**`, and how far what it stands for reaches: only the last need ever stand for more.
        let mut back: Option<(usize, usize)> = None;
        while let Some(segment) = path.get(found) {
            step();
            match self.segments.get(wanted) {
                Some(Segment::Any) => {
                    back = Some((wanted, found));
                    wanted += 1;
                }
                Some(pattern) if pattern.matches(segment) => {
                    wanted += 1;
                    found += 1;
                }
                _ => {
                    let Some((any, reach)) = &mut back else {
                        return false;
                    };
                    *reach += 1;
                    (wanted, found) = (*any + 1, *reach);
                }
            }
        }
        self.segments[wanted..]
            .iter()
            .all(|segment| *segment == Segment::Any)
    }
}

/// As it was written.
impl fmt::Display for PathPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Segment {
    fn matches(&self, segment: &str) -> bool {
        match self {
            Self::Any => true,
            Self::One => !segment.is_empty(),
            Self::Exact(exact) => exact == segment,
            Self::Around { before, after } => segment
                .strip_prefix(before.as_str())
                .is_some_and(|rest| rest.ends_with(after.as_str())),
        }
    }
}

/// The segments of a URL's path, decoded; none if it is unclear.
pub(super) fn segments_of(path: &str) -> Option<Vec<Cow<'_, str>>> {
    let segments = path.strip_prefix('/')?.split('/');
    let has_gap = path.as_bytes().windows(2).any(|pair| pair == b"//");
    if has_gap || segments.clone().count() > SEGMENTS_MAX {
        return None;
    }
    segments.map(decode).collect()
}

/// The segments as a loose pattern compares them.
pub(super) fn loose<'a>(segments: &[Cow<'a, str>]) -> Vec<Cow<'a, str>> {
    let kept = match segments.split_last() {
        Some((last, before)) if last.is_empty() => before,
        _ => segments,
    };
    kept.iter().map(|segment| fold(segment).into()).collect()
}

fn fold(text: &str) -> String {
    text.to_lowercase()
}

/// A segment, decoded; none if servers would differ about it.
fn decode(segment: &str) -> Option<Cow<'_, str>> {
    // The usual case: nothing that is encoded, and nothing that is special.
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if segment.bytes().all(is_plain) {
        return Some(segment.into());
    }
    let mut rest = segment.bytes();
    let bytes: Option<Vec<u8>> = iter::from_fn(|| {
        let byte = rest.next()?;
        Some(match byte {
            b'%' => escaped(rest.next(), rest.next()).filter(|byte| !b"./".contains(byte)),
            byte => Some(byte),
        })
    })
    .collect();
    let text = String::from_utf8(bytes?).ok()?;
    let is_clear = !text.contains(is_special) && !is_encoded(&text);
    is_clear.then_some(text.into())
}

fn escaped(high: Option<u8>, low: Option<u8>) -> Option<u8> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// Whether a server could take the character for one that ends a segment or a path: a backslash, the `;` of parameters,
/// control characters, and those of Unicode that are folded to `.`, `/` and `\`.
fn is_special(character: char) -> bool {
    let is_folded = matches!(
        character,
        '\u{2024}'
            | '\u{2025}'
            | '\u{2044}'
            | '\u{2215}'
            | '\u{fe52}'
            | '\u{fe68}'
            | '\u{ff0e}'
            | '\u{ff0f}'
            | '\u{ff3c}'
    );
    is_folded || matches!(character, '\\' | ';') || character.is_control()
}

/// Whether a decoded text could be decoded again.
fn is_encoded(text: &str) -> bool {
    let mut escapes = text.split('%').skip(1).map(str::as_bytes);
    escapes.any(|after| escaped(after.first().copied(), after.get(1).copied()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, path: &str, comparison: Comparison) -> Option<bool> {
        let pattern = PathPattern::read(pattern, comparison).expect("a pattern");
        let path = segments_of(path)?;
        Some(match comparison {
            Comparison::Exact => pattern.matches(&path),
            Comparison::Loose => pattern.matches(&loose(&path)),
        })
    }

    #[test]
    fn a_wildcard_is_a_segment_or_a_part_of_one() {
        let is = |pattern, path| matches(pattern, path, Comparison::Exact) == Some(true);
        assert!(is("/", "/") && !is("/", "/a") && !is("/a", "/"));
        assert!(
            is("/a/*", "/a/b") && !is("/a/*", "/a/b/c") && !is("/a/*", "/a") && !is("/a/*", "/a/")
        );
        assert!(is("/v*/x", "/v1/x") && is("/v*/x", "/v/x") && !is("/v*/x", "/w/x"));
        assert!(is("/a*a", "/aa") && !is("/a*a", "/a") && is("/*.json", "/b.json"));
        assert!(!is("/a", "/A") && !is("/a", "/a/"));
        // A star that is encoded is one to compare.
        assert!(is("/%2A", "/*") && !is("/%2A", "/b"));
    }

    proptest! {
        /// What deciding by a policy of a client's may take is counted before it is let in, so it must not take more.
        #[test]
        fn a_path_takes_no_more_steps_than_are_said(
            pattern in prop::collection::vec(prop::sample::select(&["**", "*", "a", "b", "a*"][..]), 1..20),
            path in prop::collection::vec(prop::sample::select(&["a", "b", "aa"][..]), 1..=SEGMENTS_MAX),
        ) {
            let text = format!("/{}", pattern.join("/"));
            let pattern = PathPattern::read(&text, Comparison::Exact).expect("a pattern");
            let path: Vec<Cow<'_, str>> = path.into_iter().map(Into::into).collect();
            let mut steps = 0;
            pattern.matches_noted(&path, || steps += 1);
            prop_assert!(steps <= pattern.steps_max(), "{text}: {steps} of {}", pattern.steps_max());
        }
    }

    /// The slowest there is: what is looked for is nearly there at each place.
    #[test]
    fn the_slowest_pattern_is_within_its_steps() {
        let near = "/a".repeat(60);
        let pattern = PathPattern::read(&format!("/**{near}/b/**"), Comparison::Exact);
        let pattern = pattern.expect("a pattern");
        let path = vec![Cow::Borrowed("a"); SEGMENTS_MAX];
        let mut steps = 0;
        assert!(!pattern.matches_noted(&path, || steps += 1));
        assert!(
            steps > pattern.steps_max() / 4 && steps <= pattern.steps_max(),
            "{steps}"
        );
    }

    #[test]
    fn two_stars_are_any_number_of_segments() {
        let is = |pattern, path| matches(pattern, path, Comparison::Exact) == Some(true);
        for path in ["/a", "/a/", "/a/b", "/a/b/c/"] {
            assert!(is("/a/**", path) && is("/**", path), "{path}");
        }
        assert!(!is("/a/**", "/ab") && !is("/a/**", "/b/a"));
        assert!(is("/**/x/**", "/x") && is("/**/x/**", "/a/x/b") && !is("/**/x/**", "/a/b"));
        assert!(is("/a/**/z", "/a/z") && is("/a/**/z", "/a/b/z/z") && !is("/a/**/z", "/a/z/b"));
        assert!(is("/**/a/b/**/c", "/a/a/b/d/b/c") && !is("/**/a/b/**/c", "/a/a/c/b"));
    }

    /// No spelling of a path is another path.
    #[test]
    fn paths_are_compared_decoded() {
        for (pattern, path) in [
            ("/admin", "/%61dmin"),
            ("/%61", "/a"),
            ("/ü", "/%C3%BC"),
            ("/a b", "/a%20b"),
        ] {
            assert_eq!(
                matches(pattern, path, Comparison::Exact),
                Some(true),
                "{pattern} {path}"
            );
        }
        assert_eq!(matches("/100%25", "/100%25", Comparison::Exact), Some(true));
    }

    #[test]
    fn what_is_denied_is_compared_loosely() {
        for path in [
            "/admin/users",
            "/ADMIN/Users",
            "/admin/users/",
            "/%41dmin/users",
        ] {
            assert_eq!(
                matches("/Admin/users", path, Comparison::Loose),
                Some(true),
                "{path}"
            );
        }
        assert_eq!(matches("/admin/", "/admin", Comparison::Loose), Some(true));
        assert_eq!(matches("/", "/", Comparison::Loose), Some(true));
        assert_eq!(matches("/**", "/", Comparison::Loose), Some(true));
        assert_eq!(
            matches("/admin", "/administration", Comparison::Loose),
            Some(false)
        );
    }

    #[test]
    fn what_servers_read_differently_is_unclear() {
        for path in [
            "/a%2fb",
            "/a%2Fb",
            "/a%5cb",
            "/a%00",
            "/%2e%2e%2fb",
            "/a%2eb",
            "/a%252fb",
            "/a%252eb",
            "/a%25%32%66",
            "/a\\b",
            "//a",
            "/a//b",
            "/a//",
            "/a;b",
            "/..;/b",
            "/a%3bb",
            "/a%0d%0ab",
            "/a%7f",
            "/%c0%af",
            "/%ff",
            "/%",
            "/%u002f",
            "/%%32%66",
            "/%2",
            "/%EF%BC%8F",
            "/a／b",
            "/%2561",
        ] {
            assert_eq!(segments_of(path), None, "{path}");
        }
        assert_eq!(
            segments_of(&"/a".repeat(SEGMENTS_MAX)).map(|path| path.len()),
            Some(SEGMENTS_MAX)
        );
        assert_eq!(segments_of(&"/a".repeat(SEGMENTS_MAX + 1)), None);
        for path in [
            "/",
            "/a.b",
            "/a%20b",
            "/a:b@c,d=e&f+g$h!i'(j)*",
            "/100%25",
            "/.well-known/x",
            "/~a/",
        ] {
            assert!(segments_of(path).is_some(), "{path}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "", "a", "*", "/a?b", "/a#b", "/a//b", "/a/../b", "/.", "/a%2fb", "/a\\b", "/a**",
            "/***", "/*a*", "/%zz", "/a;b", "/%2e",
        ] {
            assert!(
                PathPattern::read(text, Comparison::Exact).is_err(),
                "{text}"
            );
        }
        let long = "/a".repeat(PATH_PATTERN_BYTES_MAX);
        assert!(PathPattern::read(&long, Comparison::Exact).is_err());
    }

    /// What `**` means, written as it is said: slow, and plainly right.
    fn is_meant(pattern: &[Segment], path: &[Cow<'_, str>]) -> bool {
        match (pattern.split_first(), path.split_first()) {
            (None, None) => true,
            (Some((Segment::Any, rest)), _) => {
                (0..=path.len()).any(|skipped| is_meant(rest, &path[skipped..]))
            }
            (Some((segment, patterns)), Some((found, rest))) => {
                segment.matches(found) && is_meant(patterns, rest)
            }
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn matching_is_what_the_stars_mean(
            pattern in "(/(\\*\\*|\\*|a|b|a\\*)){1,6}",
            path in "(/(a|b|ab)){1,8}/?",
        ) {
            let pattern = PathPattern::read(&pattern, Comparison::Exact).expect("a pattern");
            let path = segments_of(&path).expect("a clear path");
            prop_assert_eq!(pattern.matches(&path), is_meant(&pattern.segments, &path));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}", path in "/[%a-f0-9./;\\\\]{0,40}") {
            let _ = PathPattern::read(&text, Comparison::Loose);
            let _ = segments_of(&path);
        }
    }
}
