//! Where a request goes, in the one form that everything is decided on.

use std::{fmt, net::IpAddr, sync::Arc};
use url::{Position, Url};

/// The longest URL that is looked at, in bytes.
pub const URL_BYTES_MAX: usize = 32 << 10;
/// The longest name of a host that DNS can ask for, and the longest part of one.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// A URL, or an address to connect to, read once by the WHATWG rules (<https://url.spec.whatwg.org>): the name in lower
/// case and ASCII, numbers as the addresses that they mean, no dot at the end of the name, no default port, no fragment.
/// There is no user or password in one. Cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Destination(Arc<Parts>);

#[derive(Clone, PartialEq, Eq, Hash)]
struct Parts {
    scheme: Scheme,
    host: Host,
    port: u16,
    /// None for an address.
    url: Option<Url>,
}

/// How a destination is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http:` and `ws:`
    Http,
    /// `https:` and `wss:`
    Https,
    /// A connection of bytes.
    Tcp,
}

/// What is spoken to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A name for DNS, in lower case and ASCII.
    Name(String),
    /// An address.
    Address(IpAddr),
}

/// Why a text is no destination.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no URL.
    #[error("not a URL: {0}")]
    Unreadable(url::ParseError),
    /// It is longer than [`URL_BYTES_MAX`].
    #[error("the URL has {0} bytes, {URL_BYTES_MAX} are allowed")]
    TooLong(usize),
    /// It is of a scheme that goes nowhere.
    #[error("URLs of the scheme \"{0}:\" are not fetched: only http: and https: are")]
    Scheme(String),
    /// It has a user or a password.
    #[error("the URL has a user or a password in it, which are not sent: use a header")]
    UserInfo,
    /// Its host is no name that DNS could know.
    #[error("\"{0}\" is not the name of a host")]
    Host(String),
    /// It is no address with a port.
    #[error("\"{0}\" is not an address: host:port is")]
    Address(String),
}

impl Destination {
    /// Reads a URL of `http:`, `https:`, `ws:` or `wss:`.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn of_url(text: &str) -> Result<Self, Refused> {
        if text.len() > URL_BYTES_MAX {
            return Err(Refused::TooLong(text.len()));
        }
        Self::canonical(Url::parse(text).map_err(Refused::Unreadable)?)
    }

    /// Where a redirect from here leads.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn redirected(&self, location: &str) -> Result<Self, Refused> {
        if location.len() > URL_BYTES_MAX {
            return Err(Refused::TooLong(location.len()));
        }
        let Some(url) = &self.0.url else {
            return Err(Refused::Address(location.into()));
        };
        Self::canonical(url.join(location).map_err(Refused::Unreadable)?)
    }

    /// Reads an address to connect to, `host:port`.
    ///
    /// # Errors
    /// See [`Refused`].
    pub fn of_address(text: &str) -> Result<Self, Refused> {
        if text.len() > URL_BYTES_MAX {
            return Err(Refused::TooLong(text.len()));
        }
        let unread = || Refused::Address(text.into());
        let (host, port) = text.rsplit_once(':').ok_or_else(unread)?;
        let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|port| is_port && *port != 0);
        let port: u16 = port.ok_or_else(unread)?;
        // Nothing that would end the host's part of a URL, so that all of it is read as the host.
        if host.is_empty() || host.contains(['/', '\\', '?', '#', '@']) {
            return Err(unread());
        }
        let url = Url::parse(&format!("http://{host}:1/")).map_err(|_| unread())?;
        let host = Self::canonical(url)?.0.host.clone();
        Ok(Self(Arc::new(Parts {
            scheme: Scheme::Tcp,
            host,
            port,
            url: None,
        })))
    }

    fn canonical(mut url: Url) -> Result<Self, Refused> {
        let scheme = match url.scheme() {
            "http" | "ws" => Scheme::Http,
            "https" | "wss" => Scheme::Https,
            other => return Err(Refused::Scheme(other.into())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refused::UserInfo);
        }
        let host = match url.host() {
            Some(url::Host::Ipv4(address)) => Host::Address(address.into()),
            Some(url::Host::Ipv6(address)) => Host::Address(address.into()),
            Some(url::Host::Domain(name)) => Host::Name(name_of(name)?),
            None => return Err(Refused::Host(String::new())),
        };
        if let Host::Name(name) = &host
            && url.host_str() != Some(name)
        {
            let unread = |_| Refused::Host(name.clone());
            url.set_host(Some(name)).map_err(unread)?;
        }
        url.set_fragment(None);
        let port = url.port_or_known_default().unwrap_or_default();
        if port == 0 {
            return Err(Refused::Address(url.as_str().into()));
        }
        Ok(Self(Arc::new(Parts {
            scheme,
            host,
            port,
            url: Some(url),
        })))
    }

    /// How it is spoken to.
    #[must_use]
    pub fn scheme(&self) -> Scheme {
        self.0.scheme
    }

    /// What is spoken to.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.0.host
    }

    /// At which port; never 0.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// The path of its URL as it is sent, without the query; none for an address to connect to.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.0.url.as_ref().map(Url::path)
    }

    /// Its URL; none for an address to connect to.
    #[must_use]
    pub fn url(&self) -> Option<&Url> {
        self.0.url.as_ref()
    }

    /// The same destination with another query, as a credential may need. Takes the query without its `?`.
    #[must_use]
    pub fn with_query(mut self, query: &str) -> Self {
        if let Some(url) = &mut Arc::make_mut(&mut self.0).url {
            url.set_query(Some(query));
        }
        self
    }

    /// Scheme, host and port, as in `https://example.com:8443`: what may be shown, since the rest may hold secrets.
    #[must_use]
    pub fn origin(&self) -> String {
        self.shown(Position::AfterPort, "")
    }

    /// The origin and the path, without the query.
    pub(crate) fn text(&self) -> String {
        self.shown(Position::AfterPath, self.path().unwrap_or_default())
    }

    /// Its text up to there, which is the origin and that path.
    fn shown(&self, end: Position, path: &str) -> String {
        let Parts {
            scheme,
            host,
            port,
            url,
        } = &*self.0;
        match (url, host) {
            // It is written so already, but for addresses that have several forms.
            (Some(url), Host::Name(_) | Host::Address(IpAddr::V4(_))) => {
                [scheme.as_str(), "://", &url[Position::BeforeHost..end]].concat()
            }
            _ if scheme.default_port() == Some(*port) => format!("{scheme}://{host}{path}"),
            _ => format!("{scheme}://{host}:{port}{path}"),
        }
    }

    /// Whether scheme, host and port are the same.
    #[must_use]
    pub fn is_same_origin(&self, other: &Self) -> bool {
        (self.scheme(), self.host(), self.port()) == (other.scheme(), other.host(), other.port())
    }
}

/// A name that DNS could know, without the dot at its end.
fn name_of(name: &str) -> Result<String, Refused> {
    let bare = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| {
        let is_known =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        !label.is_empty() && label.len() <= LABEL_BYTES_MAX && label.bytes().all(is_known)
    };
    match bare.len() <= NAME_BYTES_MAX && bare.split('.').all(is_label) {
        true => Ok(bare.into()),
        false => Err(Refused::Host(name.into())),
    }
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Tcp => "tcp",
        }
    }

    pub(crate) fn default_port(self) -> Option<u16> {
        match self {
            Self::Http => Some(80),
            Self::Https => Some(443),
            Self::Tcp => None,
        }
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Address(IpAddr::V4(address)) => address.fmt(formatter),
            Self::Address(IpAddr::V6(address)) => write!(formatter, "[{address}]"),
        }
    }
}

/// The origin and the path, without the query.
impl fmt::Display for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text())
    }
}

/// As it is shown: the query may hold a secret.
impl fmt::Debug for Destination {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Destination({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Result<String, Refused> {
        Destination::of_url(text).map(|destination| destination.origin())
    }

    /// One name has one form, whatever it was written as.
    #[test]
    fn spellings_of_one_host_are_one_destination() {
        for text in [
            "https://Example.COM/",
            "https://example.com./",
            "https://example.com:443",
            "https:example.com",
            "https:\\\\example.com\\",
            " https://exa\tmple.com/ ",
            "https://ｅxample.com/",
            "wss://example.com/",
        ] {
            assert_eq!(origin(text).as_deref(), Ok("https://example.com"), "{text}");
        }
        for text in [
            "http://2130706433/",
            "http://0x7f.1/",
            "http://0177.0.0.1/",
            "http://127.1/",
            "http://①②⑦.0.0.1/",
            "http://127.0.0.1./",
        ] {
            assert_eq!(origin(text).as_deref(), Ok("http://127.0.0.1"), "{text}");
        }
        assert_eq!(
            origin("http://[::FFFF:7f00:1]:8080/").as_deref(),
            Ok("http://[::ffff:127.0.0.1]:8080")
        );
        assert_eq!(
            origin("http://bücher.example/").as_deref(),
            Ok("http://xn--bcher-kva.example")
        );
    }

    /// What a name can hide in is refused, and not guessed at.
    #[test]
    fn what_is_no_destination_is_refused() {
        assert_eq!(
            origin("http://allowed.com@169.254.169.254/"),
            Err(Refused::UserInfo)
        );
        assert_eq!(origin("http://u:p@allowed.com/"), Err(Refused::UserInfo));
        for scheme in ["ftp", "file", "data", "blob", "javascript", "gopher"] {
            let text = format!("{scheme}://example.com/");
            assert_eq!(origin(&text), Err(Refused::Scheme(scheme.into())), "{text}");
        }
        for host in ["a..b", "..", "a*b.com", "exa'mple.com"] {
            let text = format!("http://{host}/");
            assert!(matches!(origin(&text), Err(Refused::Host(_))), "{text}");
        }
        let label = "a".repeat(64);
        assert!(origin(&format!("http://{label}.com/")).is_err());
        let long = format!("http://a.com/{}", "a".repeat(URL_BYTES_MAX));
        assert_eq!(origin(&long), Err(Refused::TooLong(long.len())));
        assert!(matches!(
            origin("http://1.2.3.4.5/"),
            Err(Refused::Unreadable(_))
        ));
        assert!(matches!(origin("/relative"), Err(Refused::Unreadable(_))));
    }

    #[test]
    fn addresses_are_read_whole() {
        let address = |text| Destination::of_address(text).map(|read| read.origin());
        assert_eq!(
            address("DB.internal.:5432").as_deref(),
            Ok("tcp://db.internal:5432")
        );
        assert_eq!(address("0x7f.1:80").as_deref(), Ok("tcp://127.0.0.1:80"));
        assert_eq!(address("[::1]:80").as_deref(), Ok("tcp://[::1]:80"));
        for text in [
            "", ":80", "a", "a:", "a:0", "a:65536", "a:+1", "a/b:80", "u@a:80", "a#:80", "a?:1",
            "::1:80", "a:1:80",
        ] {
            assert!(address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn redirects_are_read_from_where_they_are_found() {
        let from = Destination::of_url("https://a.com/x/y?z").expect("a URL");
        let to = |location: &str| {
            let to = from.redirected(location);
            to.map(|to| to.url().map(|url| url.as_str().to_owned()))
        };
        assert_eq!(to("../b"), Ok(Some("https://a.com/b".into())));
        assert_eq!(to("//b.com/c#d"), Ok(Some("https://b.com/c".into())));
        assert_eq!(to("http://c.com"), Ok(Some("http://c.com/".into())));
        assert_eq!(
            from.redirected("file:///etc/passwd"),
            Err(Refused::Scheme("file".into()))
        );
    }

    #[test]
    fn what_is_shown_has_no_query() {
        let destination = Destination::of_url("https://a.com/x?token=s#f").expect("a URL");
        assert_eq!(destination.to_string(), "https://a.com/x");
    }
}
