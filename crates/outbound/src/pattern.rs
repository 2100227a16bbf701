//! Which destinations are meant: how policies and credentials name them.

use crate::{Destination, Host, Scheme};
use serde::{Deserialize, Serialize};
use std::{fmt, net::IpAddr, str::FromStr};

/// `[scheme://]host[:port]`.
///
/// - The scheme is `https` unless it is given; `http` and `tcp` are the others.
/// - The host is a name, an address, a range of addresses (`10.0.0.0/8`), `*.` before a name for exactly one more label,
///   `**.` before a name for any number of them and at least one, or `*` for all.
/// - The port is the scheme's own unless it is given; `*` is any. `tcp` has none of its own.
///
/// A range means destinations that are written as addresses; what a name is resolved to does not count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pattern {
    scheme: Scheme,
    host: HostPattern,
    /// None is any.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum HostPattern {
    Any,
    Name(String),
    OneLabelBefore(String),
    LabelsBefore(String),
    Range { network: IpAddr, prefix: u8 },
}

/// In what a destination differs from what is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    Host,
    Scheme,
    Port,
}

/// Why a text is no pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{pattern}\" does not say where to: {problem}")]
pub struct PatternError {
    pattern: String,
    problem: &'static str,
}

impl Pattern {
    /// Whether a destination is meant.
    #[must_use]
    pub fn matches(&self, destination: &Destination) -> bool {
        self.scheme == destination.scheme()
            && self.port.is_none_or(|port| port == destination.port())
            && self.host.matches(destination.host())
    }

    /// What keeps a destination from being meant: the first of host, scheme and port that differs.
    pub(crate) fn difference(&self, destination: &Destination) -> Option<Difference> {
        if !self.host.matches(destination.host()) {
            Some(Difference::Host)
        } else if self.scheme != destination.scheme() {
            Some(Difference::Scheme)
        } else if self.port.is_some_and(|port| port != destination.port()) {
            Some(Difference::Port)
        } else {
            None
        }
    }

    /// Whether it means every host, or every address, so that it names none.
    pub(crate) fn is_of_any_host(&self) -> bool {
        matches!(
            self.host,
            HostPattern::Any | HostPattern::Range { prefix: 0, .. }
        )
    }

    /// How what is meant is spoken to.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

impl HostPattern {
    fn matches(&self, host: &Host) -> bool {
        match (self, host) {
            (Self::Any, _) => true,
            (Self::Name(name), Host::Name(asked)) => name == asked,
            (Self::OneLabelBefore(name), Host::Name(asked)) => {
                before(asked, name).is_some_and(|labels| !labels.contains('.'))
            }
            (Self::LabelsBefore(name), Host::Name(asked)) => before(asked, name).is_some(),
            (Self::Range { network, prefix }, Host::Address(address)) => {
                let is_within = |address| is_within(address, *network, *prefix);
                // `[::ffff:10.0.0.1]` is connected to as 10.0.0.1, so that it is another spelling of it.
                is_within(*address) || is_within(address.to_canonical())
            }
            _ => false,
        }
    }
}

/// What stands before a name and its dot.
fn before<'a>(asked: &'a str, name: &str) -> Option<&'a str> {
    asked.strip_suffix(name)?.strip_suffix('.')
}

fn is_within(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            (address.to_bits() ^ network.to_bits()) & mask == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            (address.to_bits() ^ network.to_bits()) & mask == 0
        }
        _ => false,
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let wrong = |problem| PatternError {
            pattern: text.into(),
            problem,
        };
        let (scheme, rest) = match text.split_once("://") {
            None => (Scheme::Https, text),
            Some(("https" | "wss", rest)) => (Scheme::Https, rest),
            Some(("http" | "ws", rest)) => (Scheme::Http, rest),
            Some(("tcp", rest)) => (Scheme::Tcp, rest),
            Some(_) => return Err(wrong("the scheme is none of https, http and tcp")),
        };
        let (host, port) = split_port(rest);
        let port = match port {
            None => Some(
                scheme
                    .default_port()
                    .ok_or_else(|| wrong("tcp needs a port"))?,
            ),
            Some("*") => None,
            Some(port) => {
                let number = port.parse().ok().filter(|port| *port != 0);
                Some(number.ok_or_else(|| wrong("the port is no number from 1 to 65535"))?)
            }
        };
        let host = host_pattern(host).map_err(wrong)?;
        Ok(Self { scheme, host, port })
    }
}

fn split_port(rest: &str) -> (&str, Option<&str>) {
    match rest.rsplit_once(':') {
        // A colon of an address in brackets.
        Some((_, after)) if after.contains(']') => (rest, None),
        Some((host, port)) => (host, Some(port)),
        None => (rest, None),
    }
}

fn host_pattern(text: &str) -> Result<HostPattern, &'static str> {
    const NOT_A_HOST: &str =
        "the host is no name, address, range of addresses, * or a name after *. or **.";
    if text == "*" {
        return Ok(HostPattern::Any);
    }
    if let Some((network, prefix)) = text.split_once('/') {
        let network: IpAddr = bare(network).parse().map_err(|_| NOT_A_HOST)?;
        let bits = if network.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.parse().ok().filter(|prefix| *prefix <= bits);
        let prefix = prefix.ok_or("the range's length is too large, or no number")?;
        if first_of(network, prefix) != network {
            return Err("the range's address has bits set beyond its length");
        }
        return Ok(HostPattern::Range { network, prefix });
    }
    type Make = fn(String) -> HostPattern;
    let (make, name): (Make, &str) = match text.split_once('.') {
        Some(("*", name)) => (HostPattern::OneLabelBefore, name),
        Some(("**", name)) => (HostPattern::LabelsBefore, name),
        _ => (HostPattern::Name, text),
    };
    // Read as URLs are, so that both have one form.
    let read = Destination::of_address(&format!("{name}:1")).map_err(|_| NOT_A_HOST)?;
    match read.host().clone() {
        Host::Name(name) => Ok(make(name)),
        Host::Address(network) if name == text => Ok(HostPattern::Range {
            network,
            prefix: if network.is_ipv4() { 32 } else { 128 },
        }),
        Host::Address(_) => Err("there is nothing before an address"),
    }
}

fn bare(address: &str) -> &str {
    let inner = address
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    inner.unwrap_or(address)
}

/// The first address of the range that an address is in.
fn first_of(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

impl TryFrom<String> for Pattern {
    type Error = PatternError;

    fn try_from(text: String) -> Result<Self, PatternError> {
        text.parse()
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.to_string()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}://", self.scheme)?;
        match &self.host {
            HostPattern::Any => formatter.write_str("*")?,
            HostPattern::Name(name) => formatter.write_str(name)?,
            HostPattern::OneLabelBefore(name) => write!(formatter, "*.{name}")?,
            HostPattern::LabelsBefore(name) => write!(formatter, "**.{name}")?,
            HostPattern::Range { network, prefix } => {
                let whole = if network.is_ipv4() { 32 } else { 128 };
                match (network, *prefix == whole) {
                    (IpAddr::V6(network), true) => write!(formatter, "[{network}]")?,
                    (network, true) => write!(formatter, "{network}")?,
                    (IpAddr::V6(network), false) => write!(formatter, "[{network}]/{prefix}")?,
                    (network, false) => write!(formatter, "{network}/{prefix}")?,
                }
            }
        }
        match self.port {
            None => formatter.write_str(":*"),
            Some(port) if self.scheme.default_port() == Some(port) => Ok(()),
            Some(port) => write!(formatter, ":{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        let pattern: Pattern = pattern.parse().expect("a pattern");
        pattern.matches(&Destination::of_url(url).expect("a URL"))
    }

    /// N10: wildcards are whole labels.
    #[test]
    fn wildcards_are_whole_labels() {
        assert!(matches("*.example.com", "https://a.example.com/"));
        assert!(!matches("*.example.com", "https://a.b.example.com/"));
        assert!(matches("**.example.com", "https://a.b.example.com/"));
        for pattern in ["*.example.com", "**.example.com", "example.com"] {
            for host in [
                "evil-example.com",
                "example.com.evil.org",
                "com",
                "xexample.com",
            ] {
                assert!(
                    !matches(pattern, &format!("https://{host}/")),
                    "{pattern} {host}"
                );
            }
        }
        assert!(!matches("*.example.com", "https://example.com/"));
        assert!(!matches("**.example.com", "https://example.com/"));
        assert!(matches("*", "https://anything.at/"));
    }

    #[test]
    fn scheme_and_port_are_those_that_are_said() {
        assert!(!matches("a.com", "http://a.com/"));
        assert!(matches("http://a.com", "http://a.com/"));
        assert!(!matches("a.com", "https://a.com:8443/"));
        assert!(matches("a.com:8443", "https://a.com:8443/"));
        assert!(matches("a.com:*", "https://a.com:1/"));
        assert!(matches("10.0.0.0/8:*", "https://10.255.1.1/"));
        assert!(!matches("10.0.0.0/8", "https://11.0.0.0/"));
        assert!(matches("[fd00::]/8", "https://[fd12::1]/"));
        assert!(matches("0.0.0.0/0", "https://1.1.1.1/"));
        assert!(matches("10.0.0.0/8", "https://[::ffff:10.0.0.1]/"));
        assert!(!matches("10.0.0.0/8", "https://[::ffff:11.0.0.1]/"));
        let database: Pattern = "tcp://db.internal:5432".parse().expect("a pattern");
        assert!(
            database.matches(&Destination::of_address("db.internal:5432").expect("an address"))
        );
    }

    #[test]
    fn patterns_are_written_as_they_are_read() {
        for text in [
            "https://a.com",
            "http://*.a.com:81",
            "https://**.a.com:*",
            "tcp://*:5432",
            "https://10.0.0.0/8",
            "https://[fd00::]/8:*",
            "https://[::1]",
            "https://127.0.0.1",
        ] {
            let pattern: Pattern = text.parse().expect("a pattern");
            assert_eq!(pattern.to_string(), text);
        }
        assert_eq!(
            "A.com.".parse::<Pattern>().map(String::from).as_deref(),
            Ok("https://a.com")
        );
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            "ftp://a.com",
            "a*.com",
            "*.*.com",
            "a.*",
            "https://",
            "a.com:0",
            "a.com:65536",
            "tcp://a.com",
            "a.com/x",
            "10.0.0.0/33",
            "10.0.0.1/8",
            "*.10.0.0.1",
            "u@a.com",
            "https://a.com/",
            "***.a.com",
        ] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }
}
