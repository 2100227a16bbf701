//! The forms in which a secret is echoed: what is looked for.
//!
//! A form is a text that one usual way of writing makes of the secret: as it is, in base64, in hexadecimal digits, with
//! the escapes of URLs, with those of JSON. Two ways after each other, such as base64 of JSON that has a quote to escape,
//! are not among them.

use crate::SENT_BYTES_MAX;
use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};
use std::{collections::BTreeSet, fmt::Write};

/// All forms of all secrets, each once. Of a secret that is longer than what is sent, the beginning is looked for.
pub(super) fn all<'a>(secrets: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut forms = BTreeSet::new();
    for secret in secrets {
        let secret = &secret[..secret.len().min(SENT_BYTES_MAX)];
        forms.insert(secret.to_vec());
        forms.insert(hex::encode(secret).into_bytes());
        forms.insert(hex::encode_upper(secret).into_bytes());
        base64(secret, &mut forms);
        url_escaped(secret, &mut forms);
        if let Ok(text) = std::str::from_utf8(secret) {
            json_escaped(text, &mut forms);
        }
    }
    forms.into_iter().collect()
}

/// The characters that the secret alone decides, after each number of bytes before it: they are the same whatever stands
/// around it in a longer text, and with or without `=` at the end.
fn base64(secret: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    for before in 0..3 {
        let text = [&[0; 3][..before], secret].concat();
        let decided = (8 * before).div_ceil(6)..8 * text.len() / 6;
        for engine in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
            forms.insert(engine.encode(&text).as_bytes()[decided.clone()].to_vec());
        }
    }
}

/// What is left as it is, beside letters and digits, by those who escape for URLs: all that may be (RFC 3986),
/// `encodeURIComponent`, forms, `encodeURI`.
const LEFT_IN_URLS: [&[u8]; 4] = [b"-._~", b"-._~!'()*", b"*-._", b"-._~!'()*;/?:@&=+$,#"];

fn url_escaped(secret: &[u8], forms: &mut BTreeSet<Vec<u8>>) {
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    let escapes: [&dyn Fn(u8) -> String; 2] = [&upper, &lower];
    for escape in escapes {
        forms.insert(
            secret
                .iter()
                .flat_map(|byte| escape(*byte).into_bytes())
                .collect(),
        );
        for (left, blank) in LEFT_IN_URLS
            .iter()
            .flat_map(|left| [(left, "%20"), (left, "+")])
        {
            let mut form = Vec::new();
            for byte in secret {
                match byte {
                    b' ' => form.extend(blank.bytes()),
                    _ if byte.is_ascii_alphanumeric() || left.contains(byte) => form.push(*byte),
                    _ => form.extend(escape(*byte).bytes()),
                }
            }
            forms.insert(form);
        }
    }
}

/// What is written as `\u00XX` beside what must be, by those who write JSON: nothing, what could be HTML, that and what
/// could end a script's text.
const ESCAPED_IN_JSON: [&str; 4] = ["", "<>&", "<>&'=", "<>&'\""];

fn json_escaped(secret: &str, forms: &mut BTreeSet<Vec<u8>>) {
    let choices = [false, true];
    for is_upper in choices {
        let mut all = String::new();
        secret
            .chars()
            .for_each(|letter| escape(letter, is_upper, &mut all));
        forms.insert(all.into_bytes());
        for escaped in ESCAPED_IN_JSON {
            for (has_slash, has_short, is_ascii) in choices.into_iter().flat_map(|a| {
                choices
                    .into_iter()
                    .flat_map(move |b| choices.map(|c| (a, b, c)))
            }) {
                let mut form = String::new();
                for letter in secret.chars() {
                    let short = match letter {
                        '\\' => Some("\\\\"),
                        '"' if !escaped.contains('"') => Some("\\\""),
                        '/' if has_slash => Some("\\/"),
                        '\n' if has_short => Some("\\n"),
                        '\r' if has_short => Some("\\r"),
                        '\t' if has_short => Some("\\t"),
                        '\u{8}' if has_short => Some("\\b"),
                        '\u{c}' if has_short => Some("\\f"),
                        _ => None,
                    };
                    match short {
                        Some(short) => form.push_str(short),
                        None if letter < ' '
                            || escaped.contains(letter)
                            || (is_ascii && letter > '~') =>
                        {
                            escape(letter, is_upper, &mut form);
                        }
                        None => form.push(letter),
                    }
                }
                forms.insert(form.into_bytes());
            }
        }
    }
}

fn escape(letter: char, is_upper: bool, form: &mut String) {
    for unit in letter.encode_utf16(&mut [0; 2]) {
        // Writing into a string can't fail.
        let _ = match is_upper {
            true => write!(form, "\\u{unit:04X}"),
            false => write!(form, "\\u{unit:04x}"),
        };
    }
}
