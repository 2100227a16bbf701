//! Where a server is reached, in the one spelling that server, client and command line share.

use std::{fmt, net::SocketAddr, path::PathBuf, str::FromStr};

/// Where a server listens and a client connects: `HOST:PORT`, `tcp:HOST:PORT` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A TCP address.
    Tcp(SocketAddr),
    /// The path of a Unix socket. An existing socket that nobody listens on is replaced.
    Unix(PathBuf),
}

/// An address that can't be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no address: use IP:PORT (127.0.0.1:7070) or unix:/path/to/socket")]
pub struct AddressError {
    text: String,
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        if let Some(path) = text.strip_prefix("unix:").filter(|path| !path.is_empty()) {
            return Ok(Self::Unix(PathBuf::from(path)));
        }
        let address = text.strip_prefix("tcp:").unwrap_or(text);
        let address = match address.strip_prefix("localhost:") {
            Some(port) => format!("127.0.0.1:{port}"),
            None => address.to_owned(),
        };
        address.parse().map(Self::Tcp).map_err(|_| AddressError {
            text: text.to_owned(),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for text in ["127.0.0.1:7070", "[::1]:7070", "unix:/run/coracle.sock"] {
            assert_eq!(
                text.parse::<Address>()
                    .map(|address| address.to_string())
                    .as_deref(),
                Ok(text)
            );
        }
        assert_eq!(
            "localhost:1".parse(),
            Ok(Address::Tcp(([127, 0, 0, 1], 1).into()))
        );
        assert_eq!(
            "tcp:127.0.0.1:1".parse(),
            Ok(Address::Tcp(([127, 0, 0, 1], 1).into()))
        );
    }

    #[test]
    fn what_is_no_address_says_what_one_looks_like() {
        for text in [
            "",
            "unix:",
            "7070",
            "example.com:7070",
            "http://127.0.0.1:7070",
        ] {
            let error = text.parse::<Address>().expect_err("no address");
            assert!(error.to_string().contains("127.0.0.1:7070"), "{error}");
        }
    }
}
