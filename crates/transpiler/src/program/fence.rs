//! Code in a text that is Markdown.

use oxc::span::Span;

/// Names of the language behind a fence.
const LANGUAGES: [&str; 9] = [
    "js",
    "javascript",
    "ts",
    "typescript",
    "mjs",
    "mts",
    "jsx",
    "tsx",
    "node",
];

/// The first block of code in JavaScript or TypeScript; where none says so, the first that says nothing; or else the first.
/// A fence that is not closed goes to the end.
pub(crate) fn find(source: &str) -> Option<Span> {
    let mut found: Option<(u8, Span)> = None;
    let mut open: Option<(u8, u32)> = None;
    let mut at = 0;
    for line in source.split_inclusive('\n') {
        let (start, text) = (at as u32, line.trim());
        at += line.len();
        let Some(info) = text.strip_prefix("```") else {
            continue;
        };
        let info = info.trim_start_matches('`');
        match open {
            Some((rank, from)) if info.is_empty() => {
                found = better(found, (rank, Span::new(from, start)));
                open = None;
            }
            None if !info.contains('`') => {
                let language = info.split_whitespace().next().unwrap_or("").to_lowercase();
                let rank = match &language[..] {
                    known if LANGUAGES.contains(&known) => 0,
                    "" => 1,
                    _ => 2,
                };
                open = Some((rank, at as u32));
            }
            _ => {}
        }
    }
    if let Some((rank, from)) = open {
        found = better(found, (rank, Span::new(from, source.len() as u32)));
    }
    found.map(|(_, span)| span)
}

fn better(found: Option<(u8, Span)>, new: (u8, Span)) -> Option<(u8, Span)> {
    match found {
        Some(old) if old.0 <= new.0 => Some(old),
        _ => Some(new),
    }
}
