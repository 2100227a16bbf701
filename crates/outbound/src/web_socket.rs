//! The handshake of WebSockets (RFC 6455, section 4). What is said on the connection afterwards is the worker's.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::{HeaderMap, HeaderValue, header};
use hyper::{body::Incoming, upgrade::Upgraded};
use hyper_util::rt::TokioIo;
use sha1::{Digest as _, Sha1};

const ACCEPT_SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Asks for a WebSocket; answers the key that the server has to prove it has read.
pub(crate) fn ask(headers: &mut HeaderMap) -> String {
    let mut nonce = [0; 16];
    // A key that could be guessed harms nobody: it only shows that the server speaks the protocol.
    let _ = rustls::crypto::ring::default_provider()
        .secure_random
        .fill(&mut nonce);
    let key = STANDARD.encode(nonce);
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(
        header::SEC_WEBSOCKET_VERSION,
        HeaderValue::from_static("13"),
    );
    if let Ok(value) = HeaderValue::from_str(&key) {
        headers.insert(header::SEC_WEBSOCKET_KEY, value);
    }
    key
}

/// The connection of a response that accepts.
///
/// # Errors
/// It does not: why, in words.
pub(crate) async fn take(
    response: &mut http::Response<Incoming>,
    key: &str,
) -> Result<TokioIo<Upgraded>, String> {
    let headers = response.headers();
    let accept = headers.get(header::SEC_WEBSOCKET_ACCEPT);
    if accept.map(HeaderValue::as_bytes) != Some(accept_of(key).as_bytes()) {
        return Err("it did not accept the WebSocket".into());
    }
    if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return Err("it uses an extension that was not asked for".into());
    }
    let upgraded = hyper::upgrade::on(response).await;
    upgraded
        .map(TokioIo::new)
        .map_err(|error| error.to_string())
}

fn accept_of(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(ACCEPT_SUFFIX);
    STANDARD.encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    /// The example of RFC 6455, section 1.3.
    #[test]
    fn the_accept_is_that_of_the_specification() {
        let accept = super::accept_of("dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(accept, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
