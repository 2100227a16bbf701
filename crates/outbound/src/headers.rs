//! Headers between workers and the network. How a message is framed is ours to say, and what a worker says of it is left
//! out: two ways of reading where a request ends are how one is smuggled inside another.

use crate::Error;
use http::{HeaderMap, HeaderName, HeaderValue, header};

/// Headers of one message, and bytes of them.
const HEADERS_MAX: usize = 256;
const HEADER_BYTES_MAX: usize = 64 << 10;

/// What a worker does not set: of the connection, and of the body's length and packing.
const OURS: [HeaderName; 15] = [
    header::ACCEPT_ENCODING,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::HOST,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_EXTENSIONS,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
const OURS_BY_NAME: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];

/// What does not go along when a redirect leads to another origin.
const OF_ONE_ORIGIN: [HeaderName; 3] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::PROXY_AUTHORIZATION,
];
/// What is of a body, and goes with it.
const OF_BODY: [HeaderName; 4] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];

/// A request's headers as they are sent, and whether it asks for a WebSocket.
pub(crate) fn of_request(pairs: &[(String, String)]) -> Result<(HeaderMap, bool), Error> {
    if pairs.len() > HEADERS_MAX {
        return Err(wrong("", "a request has at most 256"));
    }
    // With room for those that are added.
    let mut headers = HeaderMap::with_capacity(pairs.len() + 4);
    let (mut bytes, mut is_web_socket) = (0, false);
    for (name, value) in pairs {
        bytes += name.len() + value.len();
        if bytes > HEADER_BYTES_MAX {
            return Err(wrong(name, "all of them have more than 64 KiB"));
        }
        let parsed = HeaderName::from_bytes(name.as_bytes());
        let parsed = parsed.map_err(|_| wrong(name, "its name is no token"))?;
        let value =
            value_of(value).ok_or_else(|| wrong(name, "its value has what no value has"))?;
        is_web_socket |=
            parsed == header::UPGRADE && value.as_bytes().eq_ignore_ascii_case(b"websocket");
        if !OURS.contains(&parsed) && !OURS_BY_NAME.contains(&parsed.as_str()) {
            headers.append(parsed, value);
        }
    }
    Ok((headers, is_web_socket))
}

fn wrong(name: &str, problem: &'static str) -> Error {
    let name: String = name.chars().take(100).collect();
    Error::Header {
        name: name.escape_debug().to_string(),
        problem,
    }
}

/// A value is bytes, which in JavaScript are the characters of the same numbers.
fn value_of(text: &str) -> Option<HeaderValue> {
    if text.is_ascii() {
        return HeaderValue::from_str(text).ok();
    }
    let bytes: Option<Vec<u8>> = text
        .chars()
        .map(|char| u8::try_from(u32::from(char)).ok())
        .collect();
    HeaderValue::from_bytes(&bytes?).ok()
}

/// A response's headers for a worker.
pub(crate) fn of_response(headers: &HeaderMap) -> Vec<(String, String)> {
    let text = |value: &HeaderValue| match value.to_str() {
        Ok(text) => text.to_owned(),
        Err(_) => value
            .as_bytes()
            .iter()
            .map(|byte| char::from(*byte))
            .collect(),
    };
    let mut pairs = Vec::with_capacity(headers.len());
    let kept = headers.iter().filter(|(name, _)| !is_of_connection(name));
    pairs.extend(kept.map(|(name, value)| (name.as_str().into(), text(value))));
    pairs
}

fn is_of_connection(name: &HeaderName) -> bool {
    let of_connection = [
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::TE,
        header::TRAILER,
        header::UPGRADE,
        header::PROXY_AUTHENTICATE,
    ];
    of_connection.contains(name) || OURS_BY_NAME.contains(&name.as_str())
}

/// What does not go along to another origin.
pub(crate) fn leave_origin(headers: &mut HeaderMap) {
    for name in OF_ONE_ORIGIN {
        headers.remove(name);
    }
}

/// What goes with a body that is not sent again.
pub(crate) fn leave_body(headers: &mut HeaderMap) {
    for name in OF_BODY {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    /// N12: what could end a header, or begin another message, is not sent at all.
    #[test]
    fn what_would_break_a_message_is_refused() {
        for (name, value) in [
            ("x", "a\r\nY: y"),
            ("x", "a\nb"),
            ("x", "a\0b"),
            ("x y", "a"),
            ("x:", "a"),
            ("", "a"),
            ("x\r\n", "a"),
            ("x", "ā"),
            ("Host", "a\r\nb"),
            ("é", "a"),
        ] {
            let refused = of_request(&pairs(&[(name, value)]));
            assert!(
                matches!(refused, Err(Error::Header { .. })),
                "{name:?} {value:?}"
            );
        }
        let many: Vec<_> = (0..257)
            .map(|index| (format!("x{index}"), String::new()))
            .collect();
        assert!(of_request(&many).is_err());
        assert!(of_request(&[("x".into(), "a".repeat(HEADER_BYTES_MAX))]).is_err());
    }

    #[test]
    fn how_a_message_is_framed_is_not_the_workers_to_say() {
        let given = pairs(&[
            ("Host", "other.example"),
            ("Content-Length", "7"),
            ("Transfer-Encoding", "chunked"),
            ("Connection", "x"),
            ("Keep-Alive", "1"),
            ("Proxy-Authorization", "x"),
            ("Upgrade", "WebSocket"),
            ("TE", "trailers"),
            ("Expect", "100-continue"),
            ("Accept-Encoding", "br"),
            ("X-Own", "caf\u{e9}"),
            ("x-own", "two"),
        ]);
        let (headers, is_web_socket) = of_request(&given).expect("they are left out");
        let sent: Vec<_> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_bytes()))
            .collect();
        assert_eq!(sent, [("x-own", &b"caf\xe9"[..]), ("x-own", b"two")]);
        assert!(is_web_socket);
        assert_eq!(
            of_response(&headers),
            pairs(&[("x-own", "caf\u{e9}"), ("x-own", "two")])
        );
    }
}
