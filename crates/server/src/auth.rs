//! Who may log in, and for whom they act.

use chrono::NaiveDate;
use sha2::{Digest, Sha256};
use std::{
    fs, io,
    path::Path,
    time::{SystemTime, UNIX_EPOCH},
};

/// The tenant of whoever needs no token.
pub(crate) const TENANT_DEFAULT: &str = "default";

/// Bearer tokens, kept as hashes.
#[derive(Clone, Debug, Default)]
pub struct Tokens(Vec<Token>);

#[derive(Clone, Debug)]
struct Token {
    hash: [u8; 32],
    tenant: String,
    /// The first moment at which it is no more: seconds since 1970.
    expires: Option<u64>,
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
    /// are skipped. `tenant;sha256:HASH` is a token that only its hash is known of, and `tenant;expires=2027-01-31:TOKEN`
    /// one that is good up to the end of that day, in UTC; both can be said.
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
            let token = Token::parse(line);
            tokens.push(token.map_err(|problem| TokensError::Line {
                line: line_number,
                problem,
            })?);
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

    /// Whether `token` is one of them, and has not expired.
    #[must_use]
    pub fn admit(&self, token: &str) -> bool {
        self.tenant_of(token, now()).is_ok()
    }

    /// The tenant that `token` stands for. Hashes are compared, so the time says nothing about the token.
    fn tenant_of(&self, token: &str, now: u64) -> Result<&str, LoginRefused> {
        let hash: [u8; 32] = Sha256::digest(token).into();
        let mut known = self.0.iter().filter(|known| known.hash == hash).peekable();
        if known.peek().is_none() {
            return Err(LoginRefused::TokenUnknown);
        }
        // Where it is there twice, the longest counts.
        let good = known.find(|known| known.expires.is_none_or(|expires| now < expires));
        good.map(|known| &known.tenant[..])
            .ok_or(LoginRefused::TokenExpired)
    }
}

impl Token {
    fn parse(line: &str) -> Result<Self, &'static str> {
        let (head, token) = line.split_once(':').unwrap_or((TENANT_DEFAULT, line));
        let mut words = head.split(';');
        let tenant = words.next().unwrap_or_default();
        let name_good = !tenant.is_empty()
            && tenant
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if !name_good {
            return Err("a tenant's name has letters, digits, '-', '_' and '.' only");
        }
        let (mut is_hash, mut expires) = (false, None);
        for word in words {
            match (word, word.strip_prefix("expires=")) {
                ("sha256", _) => is_hash = true,
                (_, Some(day)) => expires = Some(end_of(day)?),
                _ => return Err("after a tenant's ';' comes sha256 or expires=YYYY-MM-DD"),
            }
        }
        let hash = match is_hash {
            true => {
                let mut hash = [0; 32];
                hex::decode_to_slice(token, &mut hash)
                    .map_err(|_| "a SHA-256 hash has 64 hexadecimal digits")?;
                hash
            }
            false if token.len() < TOKEN_BYTES_MIN => {
                return Err(
                    "a token has at least 16 characters; `coracle token new` makes a good one",
                );
            }
            false => Sha256::digest(token).into(),
        };
        Ok(Self {
            hash,
            tenant: tenant.to_owned(),
            expires,
        })
    }
}

/// When a day is over, in UTC.
fn end_of(day: &str) -> Result<u64, &'static str> {
    let wrong = "a day is YYYY-MM-DD";
    let day = NaiveDate::parse_from_str(day, "%Y-%m-%d").map_err(|_| wrong)?;
    let next = day.succ_opt().and_then(|next| next.and_hms_opt(0, 0, 0));
    let next = next.ok_or(wrong)?.and_utc().timestamp();
    u64::try_from(next).map_err(|_| wrong)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
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
    #[error("unauthenticated: the token has expired")]
    TokenExpired,
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
        Credentials::BearerToken(token) => {
            let tenant = tokens.tenant_of(token, now())?;
            Ok(tenant.to_owned())
        }
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

    /// A file of hashes is no file of tokens, and a token is good up to the end of its day.
    #[test]
    fn a_token_may_be_a_hash_and_may_expire() {
        let hash = hex::encode(Sha256::digest(TOKEN));
        let text = format!(
            "acme;sha256:{hash}\nacme;expires=2026-02-28:{TOKEN}y\nb;expires=2024-02-29;sha256:{}\n",
            hex::encode(Sha256::digest("other-token-0123456789"))
        );
        let tokens = Tokens::parse(&text).expect("good");
        let asked = |token: &str, at| tokens.tenant_of(token, at).map(str::to_owned);
        assert_eq!(asked(TOKEN, u64::MAX), Ok("acme".into()));
        assert_eq!(asked(&hash, 0), Err(LoginRefused::TokenUnknown));
        // 2026-03-01T00:00:00Z
        let end = 1_772_323_200;
        let expiring = format!("{TOKEN}y");
        assert_eq!(asked(&expiring, end - 1), Ok("acme".into()));
        assert_eq!(asked(&expiring, end), Err(LoginRefused::TokenExpired));
        assert_eq!(
            asked("other-token-0123456789", 1_709_251_199),
            Ok("b".into())
        );
        assert_eq!(
            asked("other-token-0123456789", 1_709_251_200),
            Err(LoginRefused::TokenExpired)
        );
        for wrong in [
            format!("acme;sha256:{TOKEN}"),
            format!("acme;sha1:{hash}"),
            format!("acme;expires=2026-02-29:{TOKEN}"),
            format!("acme;expires=tomorrow:{TOKEN}"),
            format!(";sha256:{hash}"),
        ] {
            assert!(Tokens::parse(&wrong).is_err(), "{wrong}");
        }
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
