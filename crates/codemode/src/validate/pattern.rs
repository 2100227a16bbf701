//! Regular expressions of schemas, by an engine that takes linear time.
//!
//! Schemas have those of JavaScript, which the engine's own syntax resembles. What means the same is spelled anew; what the
//! engine has not (looking around, references back) or what would mean something else makes a pattern unsupported, and then
//! it is not checked.

use crate::Limits;
use regex::{Regex, RegexBuilder};

/// How deep a pattern may be nested.
const NESTING: u32 = 64;

/// A pattern that can be matched, or why not.
pub(super) fn compile(pattern: &str, limits: &Limits) -> Result<Regex, &'static str> {
    if pattern.len() > limits.pattern_bytes_max {
        return Err("it is longer than pattern_bytes_max");
    }
    let spelled = spell(pattern)?;
    RegexBuilder::new(&spelled)
        .size_limit(limits.pattern_compiled_bytes_max)
        .dfa_size_limit(limits.pattern_compiled_bytes_max)
        .nest_limit(NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "it is larger than pattern_compiled_bytes_max",
            _ => "an engine of linear time does not have all of it",
        })
}

/// White space as JavaScript has it, for use within a class.
const SPACES: &str = r"\t\n\x0B\x0C\r \u{A0}\u{1680}\u{2000}-\u{200A}\u{2028}\u{2029}\u{202F}\u{205F}\u{3000}\u{FEFF}";

/// Spells a pattern of JavaScript (with the flag `u`, as JSON Schema recommends, but not as strictly) for the engine.
fn spell(pattern: &str) -> Result<String, &'static str> {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars().peekable();
    let mut is_in_class = false;
    while let Some(character) = rest.next() {
        match character {
            '\\' => spell_escape(&mut rest, is_in_class, &mut out)?,
            '[' if !is_in_class => {
                out.push('[');
                is_in_class = true;
                if rest.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                if rest.peek() == Some(&']') {
                    return Err("an empty class has no counterpart");
                }
            }
            ']' if is_in_class => {
                out.push(']');
                is_in_class = false;
            }
            // These combine classes in the engine's syntax and stand for themselves in JavaScript's.
            '[' | '&' | '~' if is_in_class => {
                out.push('\\');
                out.push(character);
            }
            '-' if is_in_class && rest.peek() == Some(&'-') => out.push_str("\\-"),
            ']' => out.push_str("\\]"),
            '.' if !is_in_class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '(' if !is_in_class => {
                out.push('(');
                if rest.next_if_eq(&'?').is_some() {
                    out.push('?');
                    let next = rest.peek().copied();
                    // The engine would take flags from others.
                    if !matches!(next, Some(':' | '<')) {
                        return Err("it looks ahead, or has flags");
                    }
                    let mut after = rest.clone().skip(1);
                    if next == Some('<') && matches!(after.next(), Some('=' | '!')) {
                        return Err("it looks behind");
                    }
                }
            }
            '}' if !is_in_class => out.push_str(if is_after_count(&out) { "}" } else { "\\}" }),
            '{' if !is_in_class && !begins_count(rest.clone()) => out.push_str("\\{"),
            other => out.push(other),
        }
    }
    Ok(out)
}

/// Whether what follows `{` makes it a count: `{2}`, `{2,}` or `{2,3}`.
fn begins_count(rest: impl Iterator<Item = char>) -> bool {
    let inner: String = rest
        .take(24)
        .take_while(|character| *character != '}')
        .collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match inner.split_once(',') {
        None => is_number(&inner),
        Some((least, most)) => is_number(least) && (most.is_empty() || is_number(most)),
    }
}

/// Whether a `}` closes a count that was written as one.
fn is_after_count(out: &str) -> bool {
    let Some(begin) = out.rfind('{') else {
        return false;
    };
    !out[..begin].ends_with('\\')
        && out[begin + 1..]
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b',')
}

fn spell_escape(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    is_in_class: bool,
    out: &mut String,
) -> Result<(), &'static str> {
    let Some(escaped) = rest.next() else {
        return Err("it ends in a backslash");
    };
    let class = |inner: &str, out: &mut String| {
        if is_in_class {
            out.push_str(inner);
        } else {
            out.push_str(&format!("[{inner}]"));
        }
    };
    match escaped {
        'd' => class("0-9", out),
        'w' => class("0-9A-Za-z_", out),
        's' => class(SPACES, out),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str(&format!("[^{SPACES}]")),
        'b' if is_in_class => out.push_str("\\x08"),
        'b' => out.push_str("(?-u:\\b)"),
        'B' => return Err("\\B has no counterpart"),
        'n' | 'r' | 't' | 'f' | 'v' => {
            out.push('\\');
            out.push(escaped);
        }
        '0' if !rest.peek().is_some_and(char::is_ascii_digit) => out.push_str("\\x00"),
        '0'..='9' | 'k' => return Err("it refers back"),
        'p' | 'P' => {
            out.push('\\');
            out.push(escaped);
            rest.next_if_eq(&'{').ok_or("\\p is without its class")?;
            out.push('{');
            while let Some(of_name) =
                rest.next_if(|next| next.is_ascii_alphanumeric() || "_=".contains(*next))
            {
                out.push(of_name);
            }
            rest.next_if_eq(&'}').ok_or("\\p{ is not closed")?;
            out.push('}');
        }
        'c' => {
            let letter = rest.next().filter(char::is_ascii_alphabetic);
            let letter = letter.ok_or("\\c is without its letter")?;
            out.push_str(&format!("\\x{:02x}", letter as u32 % 32));
        }
        'x' => push_character(digits(rest, 2)?, out)?,
        'u' if rest.peek() == Some(&'{') => {
            rest.next();
            let mut hexadecimal = String::new();
            while let Some(digit) = rest.next_if(char::is_ascii_hexdigit) {
                hexadecimal.push(digit);
            }
            rest.next_if_eq(&'}').ok_or("\\u{ is not closed")?;
            let number = u32::from_str_radix(&hexadecimal, 16);
            push_character(number.map_err(|_| "\\u{} has no number")?, out)?;
        }
        'u' => {
            let first = digits(rest, 4)?;
            let mut after = rest.clone();
            let is_high = (0xd800..0xdc00).contains(&first);
            if is_high && after.next() == Some('\\') && after.next() == Some('u') {
                *rest = after;
                let second = digits(rest, 4)?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err("half a character has no counterpart");
                }
                push_character(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00), out)?;
            } else {
                push_character(first, out)?;
            }
        }
        letter if letter.is_ascii_alphabetic() => return Err("it has an unknown escape"),
        '<' | '>' => out.push(escaped),
        other if other.is_ascii_punctuation() => {
            out.push('\\');
            out.push(other);
        }
        other => push_character(u32::from(other), out)?,
    }
    Ok(())
}

fn digits(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    count: usize,
) -> Result<u32, &'static str> {
    let mut number = 0;
    for _ in 0..count {
        let digit = rest.next().and_then(|digit| digit.to_digit(16));
        number = number * 16 + digit.ok_or("an escape has too few digits")?;
    }
    Ok(number)
}

fn push_character(number: u32, out: &mut String) -> Result<(), &'static str> {
    if char::from_u32(number).is_none() {
        return Err("half a character has no counterpart");
    }
    out.push_str(&format!("\\x{{{number:x}}}"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        compile(pattern, &Limits::default()).unwrap().is_match(text)
    }

    /// Patterns mean what they mean in JavaScript, where the engine's syntax differs.
    #[test]
    fn patterns_are_those_of_javascript() {
        for (pattern, yes, no) in [
            ("^\\d+$", "123", "١٢٣"),
            ("^\\w+$", "ab_1", "é"),
            ("^\\s$", "\u{feff}", "\u{85}"),
            ("^[[a]$", "[", "]"),
            ("^[a&&b]+$", "a&b", "c"),
            ("^[a--]+$", "a-", "b"),
            ("^[~~]$", "~", "a"),
            ("^.$", "😀", "\u{2028}"),
            ("^\\u0041$", "A", "a"),
            ("^\\uD83D\\uDE00$", "😀", "x"),
            ("^\\u{1F600}$", "😀", "x"),
            ("^\\x41\\cA$", "A\u{1}", "A"),
            ("^a\\/b$", "a/b", "a\\b"),
            ("^\\-[\\w\\-.]+$", "-a-.b", "a"),
            ("^a{2}$", "aa", "a{2}"),
            ("^a{2,}$", "aaa", "a"),
            ("^{x}$", "{x}", "x"),
            ("^(?<year>[0-9]{4})$", "2024", "x"),
            ("^(?:a|b)$", "a", "c"),
            ("^[\\d\\s]+$", "1 2", "a"),
            ("^[^\\D]$", "1", "a"),
            ("^\\p{Lu}$", "É", "é"),
            ("^[\\p{Script=Greek}x]+$", "αx", "a"),
            ("a$", "ba", "a\n"),
            ("^]$", "]", "["),
            ("\\bfoo\\b", "a foo b", "foob"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes:?}");
            assert!(!matches(pattern, no), "{pattern} {no:?}");
        }
    }

    /// What can't be had in linear time is said to be so, and never half understood.
    #[test]
    fn what_is_unsupported_is_not_guessed_at() {
        for pattern in [
            "(?=a)b", "(?!a)b", "(?<=a)b", "(?<!a)b", "(a)\\1", "\\k<a>", "(?i)a", "(?i:a)", "[]",
            "[^]", "a\\", "\\u12", "\\cé", "(", "[z-a]", "\\uD83D", "\\q",
        ] {
            assert!(compile(pattern, &Limits::default()).is_err(), "{pattern}");
        }
    }

    /// No pattern takes much memory or time, to be compiled or to be matched.
    #[test]
    fn patterns_are_bounded() {
        let limits = Limits::default();
        for pattern in [
            "((((a{100}){100}){100}){100}){100}".to_owned(),
            "(".repeat(1_000) + &")".repeat(1_000),
            "a".repeat(5_000),
            "\\p{L}{1000}{1000}".to_owned(),
        ] {
            assert!(compile(&pattern, &limits).is_err());
        }
        assert!(!matches("^(a+)+$", &format!("{}b", "a".repeat(100_000))));
    }
}
