//! Threads that serve connections, and the one that accepts them.
//!
//! Cap'n Proto objects stay on the thread that they were made on, so a connection is given to a thread once and for
//! all: to the one that has the fewest.

use crate::{
    auth::{Peer, Tokens},
    capnp_front,
    capnweb_front::{self, WebPolicy},
    service::Service,
    standing::ConnectionSettings,
};
use coracle_cordon::{Cordons, Heard, Voice};
use coracle_isolate::deliver_at_rest;
use coracle_schema::Address;
use coracle_transport::{Bounds, Everyone, Holdings};
use std::{
    fs, io,
    net::SocketAddr,
    os::{
        fd::OwnedFd,
        unix::fs::{FileTypeExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};
use tokio::{
    io::DuplexStream,
    net::{TcpListener, TcpStream, UnixListener, UnixStream, unix::pipe},
    sync::mpsc,
    task::LocalSet,
};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// What every connection is served with.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) service: Arc<Service>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) bounds: Bounds,
    pub(crate) everyone: Arc<Everyone>,
    pub(crate) login_deadline: Duration,
    pub(crate) connections_max: usize,
    pub(crate) web: Arc<WebPolicy>,
}

/// What a thread is given to do.
enum Given {
    Connection(Incoming),
    Voice(OwnedFd, Voice),
}

/// A connection on its way to a thread.
enum Incoming {
    Tcp(std::net::TcpStream, SocketAddr, Speaks),
    Unix(std::os::unix::net::UnixStream),
    Memory(DuplexStream),
}

/// The threads that serve connections.
pub(crate) struct RpcThreads {
    threads: Arc<Vec<RpcThread>>,
    serving: Serving,
}

struct RpcThread {
    sender: mpsc::UnboundedSender<Given>,
    connections: Arc<AtomicUsize>,
    beat: Arc<Beat>,
}

/// Shows that a thread still gets around to its tasks.
struct Beat {
    since: Instant,
    at_ms: AtomicU64,
}

const BEAT_PERIOD: Duration = Duration::from_millis(250);
/// A thread that has not beaten for this long is stuck.
const BEAT_LOST_AFTER: Duration = Duration::from_secs(3);

impl Beat {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            at_ms: AtomicU64::new(0),
        }
    }

    async fn keep(&self) {
        loop {
            self.at_ms
                .store(self.since.elapsed().as_millis() as u64, Ordering::Relaxed);
            tokio::time::sleep(BEAT_PERIOD).await;
        }
    }

    fn is_lost(&self) -> bool {
        let now = self.since.elapsed().as_millis() as u64;
        now.saturating_sub(self.at_ms.load(Ordering::Relaxed)) > BEAT_LOST_AFTER.as_millis() as u64
    }
}

impl RpcThreads {
    pub(crate) fn start(count: usize, serving: &Serving) -> io::Result<Self> {
        let mut threads = Vec::new();
        for index in 0..count.max(1) {
            let (sender, receiver) = mpsc::unbounded_channel();
            let connections = Arc::new(AtomicUsize::new(0));
            let beat = Arc::new(Beat::new());
            let service = Arc::downgrade(&serving.service);
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .on_thread_park(move || {
                    if let Some(service) = service.upgrade() {
                        service.deliver();
                    }
                })
                .build()?;
            let work = {
                let (serving, connections, beat) =
                    (serving.clone(), Arc::clone(&connections), Arc::clone(&beat));
                move || {
                    deliver_at_rest();
                    LocalSet::new()
                        .block_on(&runtime, serve_all(receiver, serving, connections, beat));
                }
            };
            // It ends when nobody can send it connections any more, and closes those that it has.
            std::thread::Builder::new()
                .name(format!("rpc-{index}"))
                .spawn(work)?;
            threads.push(RpcThread {
                sender,
                connections,
                beat,
            });
        }
        Ok(Self {
            threads: Arc::new(threads),
            serving: serving.clone(),
        })
    }

    /// How many of the threads are stuck.
    pub(crate) fn lost(&self) -> usize {
        self.threads
            .iter()
            .filter(|thread| thread.beat.is_lost())
            .count()
    }

    pub(crate) fn count(&self) -> usize {
        self.threads.len()
    }

    /// A connection without a socket.
    pub(crate) fn connect_memory(&self) -> DuplexStream {
        let (near, far) = tokio::io::duplex(256 * 1024);
        self.dispatcher().dispatch(Incoming::Memory(far));
        near
    }

    /// What cordons say is heard by the threads that serve connections, each cordon by one: it is mostly answers, and they
    /// are theirs to send.
    pub(crate) fn hear(&self, cordons: &Cordons) {
        let threads = Arc::clone(&self.threads);
        let next = AtomicUsize::new(0);
        cordons.hear_on(move |pipe, voice| {
            let index = next.fetch_add(1, Ordering::Relaxed) % threads.len();
            // A thread that has ended drops it, and so ends the cordon.
            let _ = threads[index].sender.send(Given::Voice(pipe, voice));
        });
    }

    pub(crate) fn dispatcher(&self) -> Dispatcher {
        Dispatcher {
            threads: Arc::clone(&self.threads),
            serving: self.serving.clone(),
        }
    }
}

/// Hands connections to threads.
pub(crate) struct Dispatcher {
    threads: Arc<Vec<RpcThread>>,
    serving: Serving,
}

impl Dispatcher {
    fn dispatch(&self, incoming: Incoming) {
        let metrics = self.serving.service.metrics();
        let open: usize = self
            .threads
            .iter()
            .map(|thread| thread.connections.load(Ordering::Relaxed))
            .sum();
        if open >= self.serving.connections_max {
            metrics.connection_refused("connections_max");
            tracing::warn!(
                connections_max = self.serving.connections_max,
                "connection refused"
            );
            return;
        }
        let least = self
            .threads
            .iter()
            .min_by_key(|thread| thread.connections.load(Ordering::Relaxed));
        if let Some(thread) = least {
            thread.connections.fetch_add(1, Ordering::Relaxed);
            if thread.sender.send(Given::Connection(incoming)).is_err() {
                thread.connections.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

async fn serve_all(
    mut receiver: mpsc::UnboundedReceiver<Given>,
    serving: Serving,
    connections: Arc<AtomicUsize>,
    beat: Arc<Beat>,
) {
    tokio::task::spawn_local(async move { beat.keep().await });
    while let Some(given) = receiver.recv().await {
        let incoming = match given {
            Given::Connection(incoming) => incoming,
            Given::Voice(pipe, voice) => {
                tokio::task::spawn_local(listen_to(pipe, voice));
                continue;
            }
        };
        let open = Open::new(&serving.service, &connections);
        let serving = serving.clone();
        tokio::task::spawn_local(async move {
            let _open = open;
            if let Err(error) = serve_one(incoming, serving).await {
                tracing::debug!(%error, "connection could not be served");
            }
        });
    }
}

/// Hears a cordon until it is gone.
async fn listen_to(pipe: OwnedFd, mut voice: Voice) {
    let pipe = match pipe::Receiver::from_owned_fd(pipe) {
        Ok(pipe) => pipe,
        Err(error) => return tracing::error!(%error, "a cordon can't be heard"),
    };
    while pipe.readable().await.is_ok() {
        let heard = pipe.try_io(|| match voice.hear(&pipe) {
            Heard::All => Err(io::ErrorKind::WouldBlock.into()),
            heard => Ok(heard),
        });
        match heard {
            // Others on this thread have their turn.
            Ok(Heard::Part) => tokio::task::yield_now().await,
            Ok(_) => return,
            Err(_) => {}
        }
    }
}

/// Counts a connection for as long as it is open.
struct Open {
    service: Arc<Service>,
    connections: Arc<AtomicUsize>,
}

impl Open {
    fn new(service: &Arc<Service>, connections: &Arc<AtomicUsize>) -> Self {
        service.metrics().connection_opened();
        Self {
            service: Arc::clone(service),
            connections: Arc::clone(connections),
        }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.service.metrics().connection_closed();
        self.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What the transport knows of a peer by its address.
fn peer_at(address: SocketAddr) -> Peer {
    match address.ip().is_loopback() {
        true => Peer::Local,
        false => Peer::Remote,
    }
}

async fn serve_one(incoming: Incoming, serving: Serving) -> io::Result<()> {
    let settings = |peer| ConnectionSettings {
        service: serving.service,
        tokens: serving.tokens,
        peer,
        holdings: Holdings::new(serving.bounds, &serving.everyone),
        login_deadline: serving.login_deadline,
    };
    match incoming {
        Incoming::Tcp(stream, address, speaks) => {
            let peer = peer_at(address);
            stream.set_nodelay(true)?;
            let stream = TcpStream::from_std(stream)?;
            match speaks {
                Speaks::CapnProto => capnp_front::serve(stream.compat(), settings(peer)).await,
                Speaks::Web => capnweb_front::serve(stream, settings(peer), serving.web).await,
            }
        }
        Incoming::Unix(stream) => {
            capnp_front::serve(
                UnixStream::from_std(stream)?.compat(),
                settings(Peer::Local),
            )
            .await;
        }
        Incoming::Memory(stream) => {
            capnp_front::serve(stream.compat(), settings(Peer::Local)).await
        }
    }
    Ok(())
}

/// The listening sockets.
pub(crate) struct Listeners {
    handle: Option<JoinHandle<()>>,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    addresses: Vec<Address>,
    web_addresses: Vec<SocketAddr>,
}

enum Socket {
    Tcp(std::net::TcpListener, Speaks),
    Unix(std::os::unix::net::UnixListener, SocketFile),
}

/// What is spoken over TCP.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Speaks {
    CapnProto,
    Web,
}

/// Removed when the server ends.
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Listeners {
    /// Binds all addresses before it returns, and accepts on a thread of its own.
    pub(crate) fn start(
        listen: &[Address],
        listen_web: &[SocketAddr],
        dispatcher: Dispatcher,
    ) -> io::Result<Self> {
        let web = listen_web
            .iter()
            .map(|address| (Address::Tcp(*address), Speaks::Web));
        let capnp = listen
            .iter()
            .map(|address| (address.clone(), Speaks::CapnProto));
        let sockets = capnp
            .chain(web)
            .map(|(address, speaks)| {
                bind(&address, speaks)
                    .map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")))
            })
            .collect::<io::Result<Vec<Socket>>>()?;
        let (mut addresses, mut web_addresses) = (Vec::new(), Vec::new());
        for socket in &sockets {
            match socket {
                Socket::Tcp(listener, Speaks::Web) => web_addresses.push(listener.local_addr()?),
                Socket::Tcp(listener, Speaks::CapnProto) => {
                    addresses.push(Address::Tcp(listener.local_addr()?));
                }
                Socket::Unix(_, file) => addresses.push(Address::Unix(file.0.clone())),
            }
        }
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let handle = std::thread::Builder::new()
            .name("accept".into())
            .spawn(move || {
                LocalSet::new().block_on(&runtime, async move {
                    let dispatcher = std::rc::Rc::new(dispatcher);
                    for socket in sockets {
                        tokio::task::spawn_local(accept(socket, std::rc::Rc::clone(&dispatcher)));
                    }
                    let _ = stopped.await;
                });
            })?;
        Ok(Self {
            handle: Some(handle),
            stop: Some(stop),
            addresses,
            web_addresses,
        })
    }

    pub(crate) fn addresses(&self) -> &[Address] {
        &self.addresses
    }

    /// Where Cap'n Web is spoken.
    pub(crate) fn web_addresses(&self) -> &[SocketAddr] {
        &self.web_addresses
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(handle) = self.handle.take() {
            let _ = handle.join();
        }
    }
}

fn bind(address: &Address, speaks: Speaks) -> io::Result<Socket> {
    match address {
        Address::Tcp(address) => {
            let domain = socket2::Domain::for_address(*address);
            let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
            socket.set_reuse_address(true)?;
            socket.bind(&(*address).into())?;
            socket.listen(1024)?;
            socket.set_nonblocking(true)?;
            Ok(Socket::Tcp(socket.into(), speaks))
        }
        Address::Unix(path) => {
            let (socket, file) = bind_private(path)?;
            socket.listen(1024)?;
            socket.set_nonblocking(true)?;
            Ok(Socket::Unix(socket.into(), file))
        }
    }
}

/// A Unix socket that only this user may connect to, because whoever may gets in without a token.
///
/// It does not listen yet. Its file is made with the mode that the umask leaves and gets its own a moment later; in
/// between everybody is refused, since nobody can connect to a socket that doesn't listen.
fn bind_private(path: &Path) -> io::Result<(socket2::Socket, SocketFile)> {
    replace_stale_socket(path)?;
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.bind(&socket2::SockAddr::unix(path)?)?;
    let file = SocketFile(path.to_owned());
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok((socket, file))
}

/// Removes a socket that nobody listens on; anything else at the path is left alone.
fn replace_stale_socket(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(facts) if facts.file_type().is_socket() => {
            if std::os::unix::net::UnixStream::connect(path).is_ok() {
                return Err(io::Error::new(
                    io::ErrorKind::AddrInUse,
                    "another process listens on this socket",
                ));
            }
            fs::remove_file(path)
        }
        Ok(_) => Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "the path exists and is no socket",
        )),
        Err(_) => Ok(()),
    }
}

/// How long accepting rests after an error such as too many open files.
const ACCEPT_REST: Duration = Duration::from_millis(100);

async fn accept(socket: Socket, dispatcher: std::rc::Rc<Dispatcher>) {
    let outcome = match socket {
        Socket::Tcp(listener, speaks) => match TcpListener::from_std(listener) {
            Ok(listener) => loop {
                match listener
                    .accept()
                    .await
                    .and_then(|(stream, peer)| Ok((stream.into_std()?, peer)))
                {
                    Ok((stream, peer)) => {
                        dispatcher.dispatch(Incoming::Tcp(stream, peer, speaks));
                    }
                    Err(error) => rest(&error).await,
                }
            },
            Err(error) => error,
        },
        Socket::Unix(listener, _file) => match UnixListener::from_std(listener) {
            Ok(listener) => loop {
                match listener
                    .accept()
                    .await
                    .and_then(|(stream, _)| stream.into_std())
                {
                    Ok(stream) => dispatcher.dispatch(Incoming::Unix(stream)),
                    Err(error) => rest(&error).await,
                }
            },
            Err(error) => error,
        },
    };
    tracing::error!(error = %outcome, "a listener could not be used");
}

async fn rest(error: &io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(ACCEPT_REST).await;
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail that way")]

    use super::*;
    use std::os::unix::net::UnixStream as Stream;

    /// A path for a socket; what is there goes with it.
    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Self {
            let process = std::process::id();
            let path = std::env::temp_dir().join(format!("coracle-{process}-{name}.sock"));
            let _ = fs::remove_file(&path);
            Self(path)
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    #[test]
    fn nobody_can_connect_before_only_this_user_may() {
        let place = Place::new("private");
        let (socket, file) = bind_private(&place.0).unwrap();
        // From here on the mode is what it stays; until here nobody was let in.
        let mode = fs::symlink_metadata(&place.0).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let refused = Stream::connect(&place.0).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        socket.listen(1).unwrap();
        Stream::connect(&place.0).unwrap();
        drop((socket, file));
        assert!(!place.0.exists());
    }

    #[test]
    fn a_stale_socket_is_replaced_and_one_in_use_is_not() {
        let place = Place::new("stale");
        let address = Address::Unix(place.0.clone());
        drop(std::os::unix::net::UnixListener::bind(&place.0).unwrap());
        let first = bind(&address, Speaks::CapnProto).unwrap();
        Stream::connect(&place.0).unwrap();
        let refused = bind(&address, Speaks::CapnProto).err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        Stream::connect(&place.0).unwrap();
        drop(first);
        assert!(!place.0.exists());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let place = Place::new("file");
        fs::write(&place.0, b"kept").unwrap();
        let refused = bind(&Address::Unix(place.0.clone()), Speaks::CapnProto)
            .err()
            .unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&place.0).unwrap(), b"kept");
    }
}
