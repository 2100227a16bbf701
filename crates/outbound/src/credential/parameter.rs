//! A secret as a parameter of a query.

use super::{error::Problem, value};
use crate::{Destination, URL_BYTES_MAX};
use percent_encoding::percent_decode;

/// The destination with the secret as that parameter, and without the guest's own of that name.
pub(super) fn replaced(
    destination: &Destination,
    name: &str,
    secret: &[u8],
) -> Result<Destination, Problem> {
    let query = destination.url().and_then(url::Url::query);
    let mut query = query.map(|query| without(query, name)).unwrap_or_default();
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(&value::escaped(name.as_bytes()));
    query.push('=');
    query.push_str(&value::escaped(secret));
    let replaced = destination.clone().with_query(&query);
    let length = replaced.url().map_or(0, |url| url.as_str().len());
    match length <= URL_BYTES_MAX {
        true => Ok(replaced),
        false => Err(Problem::TooLong),
    }
}

/// A query without the parameters that some server may take for that one. The rest stays as it was written.
fn without(query: &str, name: &str) -> String {
    let kept = query.split('&').filter_map(|part| {
        // Some servers end a parameter at a semicolon, too.
        let kept: Vec<&str> = part
            .split(';')
            .filter(|part| !is_named(part, name))
            .collect();
        (!kept.is_empty()).then(|| kept.join(";"))
    });
    kept.collect::<Vec<String>>().join("&")
}

/// Whether some server may take a parameter for the one of that name: escapes are read, also the `%u0041` of old, and
/// letters' case, blanks around it and an index in brackets after it do not count.
fn is_named(parameter: &str, name: &str) -> bool {
    let written = parameter.split('=').next().unwrap_or_default();
    let written = unescape_utf16(&written.replace('+', " "));
    let read = percent_decode(written.as_bytes()).decode_utf8_lossy();
    let end = read.find(['[', '\0']).unwrap_or(read.len());
    read[..end].trim().eq_ignore_ascii_case(name.trim())
}

/// Turns `%u0041` into `%41`, as far as it is ASCII.
fn unescape_utf16(text: &str) -> String {
    let mut parts = text.split("%u");
    let mut read = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.strip_prefix("00") {
            Some(rest) => read.extend(["%", rest]),
            None => read.extend(["%u", part]),
        }
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(url: &str) -> String {
        let destination = Destination::of_url(url).expect("a URL");
        let replaced = replaced(&destination, "key", b"s3cr&t =").expect("a query");
        let query = replaced.url().and_then(url::Url::query);
        query.expect("a query").to_owned()
    }

    #[test]
    fn the_secret_is_one_parameter_more() {
        let secret = "key=s3cr%26t%20%3D";
        assert_eq!(query("https://a.com/"), secret);
        assert_eq!(query("https://a.com/?"), secret);
        assert_eq!(
            query("https://a.com/?a=%20+b&c"),
            format!("a=%20+b&c&{secret}")
        );
        assert_eq!(query("https://a.com/?a=1;b=2"), format!("a=1;b=2&{secret}"));
        assert_eq!(
            query("https://a.com/?keys=1&a=key"),
            format!("keys=1&a=key&{secret}")
        );
    }

    /// The guest's own parameter is gone in each spelling, so that there is none to be read in place of ours.
    #[test]
    fn the_guests_own_parameter_is_gone() {
        for own in [
            "key=mine",
            "key",
            "KEY=mine",
            "%6bey=mine",
            "%6B%65%79=mine",
            "k%65y=mine",
            "%u006bey=mine",
            "+key=mine",
            "key%20=mine",
            "key%00x=mine",
            "key[]=mine",
            "key%5B0%5D=mine",
            "key=mine&key=other",
        ] {
            let replaced = query(&format!("https://a.com/?a=1&{own}&b=2"));
            assert_eq!(replaced, "a=1&b=2&key=s3cr%26t%20%3D", "{own}");
        }
        let replaced = query("https://a.com/?a=1;key=mine;b=2&c=3;%6bey=mine");
        assert_eq!(replaced, "a=1;b=2&c=3&key=s3cr%26t%20%3D");
    }

    #[test]
    fn a_url_stays_within_its_limit() {
        let long = format!("https://a.com/{}", "a".repeat(URL_BYTES_MAX - 20));
        let destination = Destination::of_url(&long).expect("a URL");
        let refused = replaced(&destination, "key", b"12345678");
        assert!(matches!(refused, Err(Problem::TooLong)));
    }
}
