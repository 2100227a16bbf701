//! Placeholder.
pub struct Redactor;
impl Redactor {
    pub fn new<'a>(_: impl Iterator<Item = &'a [u8]>) -> Self {
        Self
    }
    pub fn redact_text(&self, t: &[u8]) -> (Vec<u8>, u64) {
        (t.to_vec(), 0)
    }
    pub fn push(&mut self, b: bytes::Bytes) -> bytes::Bytes {
        b
    }
    pub fn finish(&mut self) -> bytes::Bytes {
        bytes::Bytes::new()
    }
    pub fn count(&self) -> u64 {
        0
    }
}
