//! Who may log in, and for whom they act.

use sha2::{Digest, Sha256};
use std::{fs, io, path::Path};

/// The tenant of whoever needs no token.
pub(crate) const TENANT_DEFAULT: &str = "default";

/// Bearer tokens, kept as hashes.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone, Debug)]
struct Token {
    hash: [u8; 32],
    tenant: String,
}

/// Why tokens could not be read.
#[derive(Debug, thiserror::Error)]
pub enum TokensError {
    /// The file could not be read.
    #[error("token file {path}: {source}")]
    File {
        /// The file.
        path: String,
        /// The cause.
        source: io::Error,
    },
    /// A line is not a token.
    #[error("token file line {line}: {problem}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no token in it, which would lock everybody out.
    #[error("the token file has no token in it")]
    Empty,
}

/// Shorter tokens can be guessed.
const TOKEN_BYTES_MIN: usize = 16;

impl Tokens {
    /// No tokens: logins without one are accepted where the transport vouches for the peer.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Reads a file with a token a line, optionally preceded by `tenant:`; empty lines and those that start with `#`
    /// are skipped.
    ///
    /// # Errors
    /// See [`TokensError`].
    pub fn read(path: &Path) -> Result<Self, TokensError> {
        let text = fs::read_to_string(path).map_err(|source| TokensError::File {
            path: path.display().to_string(),
            source,
        })?;
        Self::parse(&text)
    }

    /// As [`Tokens::read`], from the file's text.
    ///
    /// # Errors
    /// See [`TokensError`].
    pub fn parse(text: &str) -> Result<Self, TokensError> {
        let mut tokens = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let line_number = index + 1;
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let (tenant, token) = line.split_once(':').unwrap_or((TENANT_DEFAULT, line));
            let name_good = !tenant.is_empty()
                && tenant
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
            if !name_good {
                let problem = "a tenant's name has letters, digits, '-', '_' and '.' only";
                return Err(TokensError::Line {
                    line: line_number,
                    problem,
                });
            }
            if token.len() < TOKEN_BYTES_MIN {
                let problem =
                    "a token has at least 16 characters; `openssl rand -hex 32` makes a good one";
                return Err(TokensError::Line {
                    line: line_number,
                    problem,
                });
            }
            tokens.push(Token {
                hash: Sha256::digest(token).into(),
                tenant: tenant.to_owned(),
            });
        }
        if tokens.is_empty() {
            Err(TokensError::Empty)
        } else {
            Ok(Self(tokens))
        }
    }

    /// Whether a login needs a token.
    #[must_use]
    pub fn required(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether `token` is one of them.
    #[must_use]
    pub fn admit(&self, token: &str) -> bool {
        self.tenant_of(token).is_some()
    }

    /// The tenant that `token` stands for. Hashes are compared, so the time says nothing about the token.
    pub(crate) fn tenant_of(&self, token: &str) -> Option<&str> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        self.0
            .iter()
            .find(|known| known.hash == hash)
            .map(|known| &known.tenant[..])
    }
}

/// What the transport knows of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The same machine: loopback, a Unix socket, or the same process.
    Local,
    /// Anywhere.
    Remote,
}

/// Credentials as they came in.
#[derive(Debug)]
pub(crate) enum Credentials {
    None,
    BearerToken(String),
}

/// Why a login failed. The text says no more than the peer may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoginRefused {
    #[error("unauthenticated: the token is not known")]
    TokenUnknown,
    #[error("unauthenticated: this server wants a bearer token")]
    TokenMissing,
    #[error(
        "unauthenticated: without a token only local clients are accepted; start the server with --token-file to admit others"
    )]
    RemoteWithoutTokens,
}

/// The tenant that a login acts for.
pub(crate) fn login(
    tokens: &Tokens,
    peer: Peer,
    credentials: &Credentials,
) -> Result<String, LoginRefused> {
    match credentials {
        Credentials::BearerToken(token) => match tokens.tenant_of(token) {
            Some(tenant) => Ok(tenant.to_owned()),
            None => Err(LoginRefused::TokenUnknown),
        },
        Credentials::None if tokens.required() => Err(LoginRefused::TokenMissing),
        Credentials::None if peer == Peer::Local => Ok(TENANT_DEFAULT.to_owned()),
        Credentials::None => Err(LoginRefused::RemoteWithoutTokens),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef0123";

    fn bearer(token: &str) -> Credentials {
        Credentials::BearerToken(token.to_owned())
    }

    #[test]
    fn a_token_stands_for_its_tenant() {
        let tokens = Tokens::parse(&format!("# ours\n\nacme:{TOKEN}\n{TOKEN}x\n")).expect("good");
        assert_eq!(
            login(&tokens, Peer::Remote, &bearer(TOKEN)),
            Ok("acme".into())
        );
        assert_eq!(
            login(&tokens, Peer::Remote, &bearer(&format!("{TOKEN}x"))),
            Ok("default".into())
        );
        assert_eq!(
            login(&tokens, Peer::Local, &bearer("wrong")),
            Err(LoginRefused::TokenUnknown)
        );
        assert_eq!(
            login(&tokens, Peer::Local, &Credentials::None),
            Err(LoginRefused::TokenMissing)
        );
    }

    #[test]
    fn without_tokens_only_local_peers_get_in() {
        let none = Tokens::none();
        assert_eq!(
            login(&none, Peer::Local, &Credentials::None),
            Ok("default".into())
        );
        assert_eq!(
            login(&none, Peer::Remote, &Credentials::None),
            Err(LoginRefused::RemoteWithoutTokens)
        );
        assert_eq!(
            login(&none, Peer::Local, &bearer(TOKEN)),
            Err(LoginRefused::TokenUnknown)
        );
    }

    #[test]
    fn a_bad_file_names_its_line() {
        for (text, line) in [
            ("short", 1),
            ("\n#\na b:0123456789abcdef", 3),
            (":0123456789abcdef", 1),
        ] {
            match Tokens::parse(text) {
                Err(TokensError::Line { line: found, .. }) => assert_eq!(found, line, "{text:?}"),
                other => panic!("{text:?}: {other:?}"),
            }
        }
        assert!(matches!(Tokens::parse("# none\n"), Err(TokensError::Empty)));
    }
}
