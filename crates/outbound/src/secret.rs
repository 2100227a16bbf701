//! Secrets: where they are read from, and how they are kept.
//!
//! A [`Secret`] is bytes that nothing prints. A [`SecretSource`] says where one is read, in the server's configuration; a
//! [`SecretStore`] reads it, keeps it, and reads it again from time to time. No error in here has a byte of a secret in
//! it, nor anything that a program or another server wrote: either could quote one.

mod command;
mod error;
mod file;
mod http;
mod kept;
mod source;
mod store;
mod vault;

#[cfg(test)]
pub(crate) use self::http::script;
pub use self::{
    error::SecretError,
    http::{ANSWER_BYTES_MAX, Http, HttpError},
    source::SecretSource,
    store::{STALE_SECONDS_MAX, SecretStore},
};
pub(crate) use self::{
    http::{exchange, is_plain},
    kept::{Kept, Renewed},
    store::KeptSecret,
};

use std::{fmt, sync::Arc};
use zeroize::Zeroizing;

/// The longest secret, in bytes.
pub const SECRET_BYTES_MAX: usize = 64 << 10;

/// Bytes that nothing prints, that are written nowhere, and that are overwritten when the last clone is dropped.
///
/// What was on the way to or from elsewhere (the buffers of HTTP, of files and of pipes) is not overwritten.
#[derive(Clone)]
pub struct Secret(Arc<Zeroizing<Vec<u8>>>);

impl Secret {
    /// A secret of 1 to [`SECRET_BYTES_MAX`] bytes.
    ///
    /// # Errors
    /// [`SecretError::Empty`] and [`SecretError::TooLong`].
    pub fn new(bytes: Vec<u8>) -> Result<Self, SecretError> {
        let secret = Self::derived(bytes);
        match secret.bytes().len() {
            0 => Err(SecretError::Empty),
            1..=SECRET_BYTES_MAX => Ok(secret),
            _ => Err(SecretError::TooLong),
        }
    }

    /// What was made of a secret, and may be longer than one.
    pub(crate) fn derived(bytes: Vec<u8>) -> Self {
        Self(Arc::new(Zeroizing::new(bytes)))
    }

    /// A secret as a file or a program gives it: with a newline after it, which is left out, or without.
    fn of_text(text: &[u8]) -> Result<Self, SecretError> {
        let text = text.strip_suffix(b"\n").map_or(text, |line| {
            // The newline of other systems.
            line.strip_suffix(b"\r").unwrap_or(line)
        });
        Self::new(text.to_vec())
    }

    /// The bytes. Whoever takes them sees to it that they are shown to nobody.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether both were read at one time, and not only happen to be equal.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One newline is the file's, a second is the secret's.
    #[test]
    fn one_newline_is_left_out() {
        for (text, secret) in [
            ("a", "a"),
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a\n\n", "a\n"),
            ("a\r", "a\r"),
            (" a \n", " a "),
        ] {
            let read = Secret::of_text(text.as_bytes()).expect("a secret");
            assert_eq!(read.bytes(), secret.as_bytes(), "{text:?}");
        }
        assert_eq!(Secret::of_text(b"\n").err(), Some(SecretError::Empty));
    }

    #[test]
    fn a_secret_has_some_bytes_and_not_too_many() {
        assert!(Secret::new(vec![b'a'; SECRET_BYTES_MAX]).is_ok());
        let long = Secret::new(vec![b'a'; SECRET_BYTES_MAX + 1]);
        assert_eq!(long.err(), Some(SecretError::TooLong));
        assert_eq!(Secret::new(Vec::new()).err(), Some(SecretError::Empty));
    }
}
