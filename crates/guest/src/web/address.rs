//! URLs as the standard has them, where the `url` crate does otherwise.
//!
//! The crate takes away the slashes that the path of a `file:` URL begins with, but for one. And it can't read a host behind more
//! than two slashes, where the scheme is the base's.

use std::borrow::Cow;
use url::{Position, Url, quirks};

/// A URL as the standard has it.
pub(super) struct Address {
    pub(super) url: Url,
    /// Slashes that are missing at the beginning of its path.
    pub(super) slashes: usize,
}

impl Address {
    /// Parses `text`; none where it is no URL.
    pub(super) fn parse(text: &str, base: Option<&Self>) -> Option<Self> {
        let options = Url::options().base_url(base.map(|base| &base.url));
        let url = options.parse(&with_scheme(text, base)).ok()?;
        let slashes = match url.scheme() {
            "file" => slashes_of(&url, text, base).unwrap_or(0),
            _ => 0,
        };
        Some(Self { url, slashes })
    }

    pub(super) fn href(&self) -> String {
        let (before, from_path) = (
            &self.url[..Position::BeforePath],
            &self.url[Position::BeforePath..],
        );
        format!("{before}{}{from_path}", "/".repeat(self.slashes))
    }

    /// The setter of `pathname`.
    pub(super) fn set_path(&mut self, text: &str) {
        quirks::set_pathname(&mut self.url, text);
        if self.url.scheme() == "file" {
            self.slashes = stand_in("").map_or(0, |mut stand_in| {
                quirks::set_pathname(&mut stand_in, text);
                missing(&self.url, &stand_in)
            });
        }
    }

    /// The setter of `protocol`.
    pub(super) fn set_protocol(&mut self, text: &str) -> Result<(), ()> {
        quirks::set_protocol(&mut self.url, text)?;
        if self.url.scheme() != "file" && self.slashes > 0 {
            let path = format!("{}{}", "/".repeat(self.slashes), self.url.path());
            self.url.set_path(&path);
            self.slashes = 0;
        }
        Ok(())
    }
}

/// The text, and the base's scheme before it where it begins with more than two slashes.
fn with_scheme<'t>(text: &'t str, base: Option<&Address>) -> Cow<'t, str> {
    const SPECIAL: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];
    let base = base.filter(|base| SPECIAL.contains(&base.url.scheme()));
    let trimmed = text.trim_start_matches(|character| character <= ' ');
    match base {
        Some(base) if has_three_slashes(trimmed) => {
            Cow::Owned(format!("{}:{trimmed}", base.url.scheme()))
        }
        _ => Cow::Borrowed(text),
    }
}

fn is_slash(character: char) -> bool {
    matches!(character, '/' | '\\')
}

/// Tabs and ends of lines are nothing anywhere in a URL.
fn has_three_slashes(text: &str) -> bool {
    let mut characters = text.chars().filter(|one| !is_nothing(*one));
    characters
        .by_ref()
        .take(3)
        .filter(|one| is_slash(*one))
        .count()
        == 3
}

fn is_nothing(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r')
}

/// How many slashes are missing in what `text` was parsed to. Its path is parsed once more in a URL of a scheme whose paths are
/// the same but for drive letters, and is left alone where these make a difference.
fn slashes_of(url: &Url, text: &str, base: Option<&Address>) -> Option<usize> {
    let text = text.trim_matches(|character| character <= ' ');
    let text: String = text
        .chars()
        .filter(|character| !is_nothing(*character))
        .collect();
    let text = match text.get(..5) {
        Some(scheme) if scheme.eq_ignore_ascii_case("file:") => &text[5..],
        _ => &text[..],
    };
    let text = text.split(['?', '#']).next().unwrap_or_default();
    let after_slash = |text| str::strip_prefix(text, is_slash);
    let base = base.filter(|base| base.url.scheme() == "file");
    let stand_in = match (after_slash(text), base) {
        (None, Some(base)) if text.is_empty() => return Some(base.slashes),
        (None, Some(base)) => {
            let of_base = format!("{}{}", "/".repeat(base.slashes), base.url.path());
            // Else its beginning might be taken for a scheme.
            stand_in(&of_base)?.join(&format!("./{text}")).ok()?
        }
        (None, None) => stand_in(&format!("/{text}"))?,
        (Some(rest), _) => match after_slash(rest) {
            None => stand_in(text)?,
            Some(rest) => stand_in(&rest[rest.find(is_slash).unwrap_or(rest.len())..])?,
        },
    };
    Some(missing(url, &stand_in))
}

/// A URL with that path.
fn stand_in(path: &str) -> Option<Url> {
    Url::parse(&format!("ws://host{path}")).ok()
}

/// How many slashes the path has less than the other one, which is the same otherwise.
fn missing(url: &Url, stand_in: &Url) -> usize {
    let ends = stand_in.path().ends_with(url.path());
    let more = stand_in.path().len().saturating_sub(url.path().len());
    let are_slashes = stand_in.path().bytes().take(more).all(|byte| byte == b'/');
    if ends && are_slashes { more } else { 0 }
}
