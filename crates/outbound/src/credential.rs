//! credential stub
pub(crate) fn visible(text: &[u8]) -> Option<http::HeaderValue> {
    let is_visible = |byte: &u8| matches!(byte, 0x20..=0x7e);
    let edges = [text.first(), text.last()];
    let is_sendable = text.iter().all(is_visible) && !edges.contains(&Some(&b' '));
    http::HeaderValue::from_bytes(text)
        .ok()
        .filter(|_| is_sendable)
}
