//! Connections. A name is resolved once, every address is judged, and the connection goes to one that was let through:
//! there is no second question whose answer could be another.

use crate::{
    AddressClass, Destination, Error, Host, classify,
    config::RequestLimits,
    credential::visible,
    places::{Limit, Place, Places, Use},
    resolve::Resolve,
    secret::KeptSecret,
};
use futures::future::BoxFuture;
use http::Uri;
use hyper_util::{
    client::legacy::connect::{Connected, Connection, proxy::Tunnel},
    rt::TokioIo,
};
use rustls::{ClientConfig, pki_types::ServerName};
use std::{
    io::{self, IoSlice},
    net::{IpAddr, SocketAddr, UdpSocket},
    pin::Pin,
    sync::{Arc, PoisonError, RwLock},
    task::{Context, Poll},
    time::{Duration, Instant},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
    sync::Semaphore,
    time::{timeout, timeout_at},
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tower_service::Service;

/// How long one of several addresses has before the next is tried.
const ATTEMPT_TIME_MAX: Duration = Duration::from_secs(3);

/// Where the server itself listens, which nobody inside it may reach.
#[derive(Clone, Debug, Default)]
pub struct OwnAddresses(Arc<RwLock<Vec<SocketAddr>>>);

impl OwnAddresses {
    /// Adds a listener, which all clones know of then.
    pub fn add(&self, address: SocketAddr) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(address);
    }

    fn has(&self, asked: SocketAddr) -> bool {
        let ip = asked.ip().to_canonical();
        let own = self.0.read().unwrap_or_else(PoisonError::into_inner);
        own.iter().any(|own| {
            // An address that is none leads to the machine itself.
            own.port() == asked.port()
                && (own.ip().to_canonical() == ip
                    || ip.is_unspecified()
                    // Of a name for the machine itself, some addresses may be others than the listener's.
                    || ip.is_loopback() && own.ip().to_canonical().is_loopback()
                    || own.ip().is_unspecified() && is_local(ip))
        })
    }
}

/// Whether an address is one of this machine's: then, and only then, a socket can have it.
fn is_local(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

/// Makes connections to addresses that may be reached.
pub(crate) struct Dialer {
    pub(crate) resolver: Arc<dyn Resolve>,
    pub(crate) own: OwnAddresses,
    pub(crate) proxy: Option<Proxy>,
    pub(crate) limits: RequestLimits,
    pub(crate) places: Arc<Places>,
}

/// What one tenant may have at once of what all of them share, so that no tenant has all of it.
pub(crate) struct Share {
    /// Connections of HTTP.
    http: Limit,
    /// All connections.
    all: Limit,
    /// Names that are asked for.
    lookups: Semaphore,
}

impl Share {
    pub(crate) fn new(connections_max: usize, all: Limit, lookups_max: usize) -> Arc<Self> {
        Arc::new(Self {
            http: Limit::new("connections_max", connections_max),
            all,
            lookups: Semaphore::new(lookups_max.min(Semaphore::MAX_PERMITS)),
        })
    }

    /// Whether no other connection has a place, unless an idle one ends.
    pub(crate) fn is_used_up(&self) -> bool {
        self.http.is_used_up() || self.all.is_used_up()
    }

    /// The limits that a connection needs a place in.
    fn limits(&self, r#use: Use) -> Vec<&Limit> {
        match r#use {
            Use::Http => vec![&self.http, &self.all],
            Use::Socket => vec![&self.all],
        }
    }
}

/// What connections go through.
pub(crate) struct Proxy {
    pub(crate) uri: Uri,
    /// The whole value of `Proxy-Authorization`.
    pub(crate) authorization: Option<KeptSecret>,
}

/// Which addresses may be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// Public ones.
    Public,
    /// Private ones as well: a rule names what is there.
    Private,
    /// Anything but the server itself, for what an operator has said to ask.
    Operator,
}

impl Reach {
    pub(crate) const COUNT: usize = Self::Operator as usize + 1;
}

impl Dialer {
    /// The addresses of a host that may be reached.
    async fn addresses(
        &self,
        host: &Host,
        port: u16,
        reach: Reach,
        share: &Share,
    ) -> Result<Vec<SocketAddr>, Error> {
        let found = match host {
            Host::Address(address) => vec![*address],
            Host::Name(name) => match self.resolver.known(name) {
                Some(found) => found,
                None => {
                    let _place = share.lookups.acquire().await;
                    let resolved = self.resolver.resolve(name).await;
                    resolved.map_err(|reason| Error::Resolve {
                        host: name.clone(),
                        reason,
                    })?
                }
            },
        };
        let mut reached = Vec::new();
        let mut refused = None;
        for ip in &found {
            let address = SocketAddr::new(*ip, port);
            match self.judge(host, address, reach) {
                Ok(()) => reached.push(address),
                // Its other addresses are as likely to be the server's.
                Err(error @ Error::AddressOwn { .. }) => return Err(error),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        match (reached.is_empty(), refused) {
            (false, _) => Ok(reached),
            (true, Some(error)) => Err(error),
            (true, None) => Err(Error::Resolve {
                host: host.to_string(),
                reason: "it has no address".into(),
            }),
        }
    }

    fn judge(&self, host: &Host, address: SocketAddr, reach: Reach) -> Result<(), Error> {
        if self.own.has(address) {
            return Err(Error::AddressOwn {
                host: host.to_string(),
                address,
            });
        }
        let class = classify(address.ip());
        let (host, addresses) = (host.to_string(), address.ip().to_string());
        match reach {
            _ if class == AddressClass::Public => Ok(()),
            Reach::Operator => Ok(()),
            _ if !class.may_be_named() => Err(Error::AddressNever {
                host,
                class,
                addresses,
            }),
            Reach::Private => Ok(()),
            Reach::Public => Err(Error::AddressPrivate {
                host,
                class,
                addresses,
            }),
        }
    }

    /// A connection to a host, made ready by `finish`: a place for it, its name's addresses, and all that `finish` does
    /// take `connect_ms_max` together.
    pub(crate) async fn dial<T>(
        &self,
        destination: &Destination,
        reach: Reach,
        (share, r#use): (&Share, Use),
        finish: impl AsyncFnOnce(TcpStream) -> Result<T, Error>,
    ) -> Result<(T, Place), Error> {
        let (host, port) = (destination.host(), destination.port());
        let time_max = self.limits.connect();
        let deadline = tokio::time::Instant::now() + time_max;
        let place = self
            .places
            .take(r#use, &share.limits(r#use), time_max)
            .await?;
        let dial = async {
            let addresses = self.addresses(host, port, reach, share).await?;
            let stream = self.dial_first(&addresses, destination).await?;
            finish(stream).await
        };
        match timeout_at(deadline, dial).await {
            Ok(outcome) => Ok((outcome?, place)),
            Err(_) => Err(Error::TooSlow {
                origin: destination.origin(),
                what: "take the connection",
                time_max,
                limit: "connect_ms_max",
            }),
        }
    }

    async fn dial_first(
        &self,
        addresses: &[SocketAddr],
        destination: &Destination,
    ) -> Result<TcpStream, Error> {
        let mut reason = String::new();
        for (index, address) in addresses.iter().enumerate() {
            let attempt = async {
                match &self.proxy {
                    None => dial_directly(*address).await,
                    Some(proxy) => dial_through(proxy, *address).await,
                }
            };
            let is_last = index + 1 == addresses.len();
            // The last has what is left of the time.
            let outcome = match is_last {
                true => attempt.await,
                false => match timeout(ATTEMPT_TIME_MAX, attempt).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err("no answer".into()),
                },
            };
            match outcome {
                Ok(stream) => return Ok(stream),
                Err(error) => reason = error,
            }
        }
        Err(Error::Connect {
            origin: destination.origin(),
            reason,
        })
    }
}

async fn dial_directly(address: SocketAddr) -> Result<TcpStream, String> {
    let connected = TcpStream::connect(address).await;
    let stream = connected.map_err(|error| error.to_string())?;
    // Small requests are not to wait for each other's acknowledgements.
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    Ok(stream)
}

/// A tunnel to an address, from a proxy. The proxy itself is the operator's, and is not judged.
async fn dial_through(proxy: &Proxy, address: SocketAddr) -> Result<TcpStream, String> {
    let mut tunnel = Tunnel::new(proxy.uri.clone(), ToProxy);
    if let Some(authorization) = &proxy.authorization {
        let secret = authorization.get(Instant::now()).await;
        let secret = secret.map_err(|_| "the proxy's authorization is not available")?;
        let mut value = visible(secret.bytes())
            .ok_or("the proxy's authorization has a character that is not visible")?;
        value.set_sensitive(true);
        tunnel = tunnel.with_auth(value);
    }
    let uri = Uri::builder()
        .scheme("http")
        .authority(address.to_string())
        .path_and_query("/")
        .build();
    let uri = uri.map_err(|error| error.to_string())?;
    match tunnel.call(uri).await {
        Ok(stream) => Ok(stream.into_inner()),
        Err(error) => Err(format!("through the proxy: {error}")),
    }
}

#[derive(Clone)]
struct ToProxy;

impl Service<Uri> for ToProxy {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, proxy: Uri) -> Self::Future {
        Box::pin(async move {
            let host = proxy.host().unwrap_or_default();
            let host = host.trim_start_matches('[').trim_end_matches(']');
            let stream = TcpStream::connect((host, proxy.port_u16().unwrap_or(80))).await?;
            stream.set_nodelay(true)?;
            Ok(TokioIo::new(stream))
        })
    }
}

/// Makes the connections of HTTP clients.
#[derive(Clone)]
pub(crate) struct Connector(pub(crate) Arc<Route>);

/// How it makes them.
pub(crate) struct Route {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) tls: Arc<ClientConfig>,
    pub(crate) reach: Reach,
    pub(crate) share: Arc<Share>,
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = Error;
    type Future = BoxFuture<'static, Result<TokioIo<Stream>, Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let route = Arc::clone(&self.0);
        Box::pin(async move {
            // What the client was given is canonical, and reading it again changes nothing.
            let destination = Destination::of_url(&uri.to_string())?;
            let Route {
                dialer,
                tls,
                reach,
                share,
            } = &*route;
            let finish = async |stream| match uri.scheme_str() {
                Some("https") => {
                    let secured = secure(tls, destination.host(), stream).await?;
                    Ok(Bytes::Tls(Box::new(secured)))
                }
                _ => Ok(Bytes::Plain(stream)),
            };
            let share = (&**share, Use::Http);
            let (bytes, place) = dialer.dial(&destination, *reach, share, finish).await?;
            Ok(TokioIo::new(Stream {
                bytes,
                _place: place,
            }))
        })
    }
}

/// Speaks TLS on a connection, to whoever proves to be that host.
pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &Arc<ClientConfig>,
    host: &Host,
    stream: S,
) -> Result<TlsStream<S>, Error> {
    let failed = |reason: String| Error::Tls {
        origin: host.to_string(),
        reason,
    };
    let name = match host {
        Host::Address(address) => ServerName::IpAddress((*address).into()),
        Host::Name(name) => {
            ServerName::try_from(name.clone()).map_err(|error| failed(error.to_string()))?
        }
    };
    let connected = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    connected.await.map_err(|error| failed(error.to_string()))
}

/// A connection, with its place among the tenant's.
pub(crate) struct Stream {
    bytes: Bytes,
    _place: Place,
}

/// With or without TLS.
enum Bytes {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        match &self.bytes {
            Bytes::Tls(stream) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                Connected::new().negotiated_h2()
            }
            Bytes::Plain(_) | Bytes::Tls(_) => Connected::new(),
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Bytes::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Bytes::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    /// (Head and body leave in one go, and neither is copied for it.)
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Bytes::Tls(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.bytes {
            Bytes::Plain(stream) => stream.is_write_vectored(),
            Bytes::Tls(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_flush(context),
            Bytes::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.get_mut().bytes {
            Bytes::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Bytes::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
