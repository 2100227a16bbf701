//! What of a secret can stand where.

use super::error::Problem;
use crate::Secret;
use http::HeaderValue;
use zeroize::Zeroizing;

/// A header's value of a text that has only visible characters, and blanks between them: what all servers read alike.
pub(crate) fn visible(text: &[u8]) -> Option<HeaderValue> {
    let is_visible = |byte: &u8| matches!(byte, 0x20..=0x7e);
    let has_blank_edge = text.first() == Some(&b' ') || text.last() == Some(&b' ');
    match text.iter().all(is_visible) && !has_blank_edge {
        true => HeaderValue::from_bytes(text).ok(),
        false => None,
    }
}

/// A user and a password as basic authentication joins them (RFC 7617), and the password alone. Without a user the
/// secret is both.
pub(super) fn pair(user: Option<&str>, secret: &Secret) -> Result<(Secret, Secret), Problem> {
    let pair = match user {
        Some(user) => Secret::derived([user.as_bytes(), b":", secret.bytes()].concat()),
        None => secret.clone(),
    };
    let colon = pair.bytes().iter().position(|byte| *byte == b':');
    let colon = colon.ok_or(Problem::NoUser)?;
    if pair.bytes().iter().any(u8::is_ascii_control) {
        return Err(Problem::NotSendable);
    }
    let password = Secret::derived(pair.bytes()[colon + 1..].to_vec());
    Ok((pair, password))
}

/// Text in a form or a query: everything escaped but what never needs it.
pub(super) fn escaped(text: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(percent_encoding::percent_encode(text, ESCAPED).to_string())
}

/// All but letters, digits and `-._~` (RFC 3986, section 2.3).
pub(super) const ESCAPED: &percent_encoding::AsciiSet = &percent_encoding::NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
