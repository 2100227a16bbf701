//! A connection's thread. Cap'n Proto objects can't leave it, so it runs what handles ask for, and sends plain data back.

use crate::{
    Address, Error,
    stubs::{Kind, Stub, StubHandle},
};
use capnp_rpc::{RpcSystem, rpc_twoparty_capnp::Side};
use coracle_schema::{gate, loader, session, target, worker};
use futures::io::{AsyncRead, AsyncWrite};
use std::{
    cell::RefCell,
    collections::HashMap,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    net::{TcpStream, UnixStream},
    sync::{mpsc, oneshot},
    task::LocalSet,
};
use tokio_util::compat::TokioAsyncReadCompatExt;

/// How to log in.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// A bearer token. Without one, only servers on the same machine that have no tokens let a client in.
    pub token: Option<String>,
}

/// What the connection's thread keeps for the handles, by the handle's id.
pub(crate) struct Held {
    pub(crate) loader: loader::Client,
    /// Kept so that the login lives as long as the connection.
    _session: session::Client,
    pub(crate) workers: HashMap<u64, worker::Client>,
    /// Entrypoints, stubs that came with values, and objects of this process.
    pub(crate) targets: HashMap<u64, target::Client>,
    /// For the stubs that come with values. Weak, because the thread ends with the last handle outside of it.
    jobs: mpsc::WeakUnboundedSender<Job>,
    ids: Arc<AtomicU64>,
}

impl Held {
    /// Whether a stub is one of this connection's.
    pub(crate) fn is_ours(&self, stub: &Stub) -> bool {
        let jobs = self.jobs.upgrade();
        jobs.is_some_and(|jobs| jobs.same_channel(&stub.0.jobs))
    }

    /// The capability of a stub, if it is one of this connection's.
    pub(crate) fn target_of(&self, stub: &Stub) -> Option<target::Client> {
        let target = self.is_ours(stub).then(|| self.targets.get(&stub.0.id));
        target.flatten().cloned()
    }

    /// A stub for a capability that came with a value; none where all handles are gone.
    pub(crate) fn keep(&mut self, client: target::Client, kind: Kind) -> Option<Stub> {
        let jobs = self.jobs.upgrade()?;
        let id = self.ids.fetch_add(1, Ordering::Relaxed);
        self.targets.insert(id, client);
        Some(Stub(Arc::new(StubHandle { jobs, id, kind })))
    }
}

pub(crate) type Shared = Rc<RefCell<Held>>;
pub(crate) type Job = Box<dyn FnOnce(&Shared) + Send>;

/// The sending end: shared by all handles of a connection. The thread ends with the last of them.
pub(crate) struct Connection {
    jobs: mpsc::UnboundedSender<Job>,
    ids: Arc<AtomicU64>,
    #[cfg(feature = "embedded")]
    _server: Option<coracle_server::Server>,
}

/// Messages from the server may be larger than ours: results, and all logs of a call.
const MESSAGE_BYTES_MAX: u64 = 256 << 20;

/// What carries the bytes.
enum Stream {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
    #[cfg(feature = "embedded")]
    Memory(tokio::io::DuplexStream),
}

impl Connection {
    pub(crate) async fn connect(address: &Address, options: ConnectOptions) -> Result<Self, Error> {
        let failed = |cause: std::io::Error| Error::Connect {
            address: address.to_string(),
            cause: cause.to_string(),
        };
        let stream = match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await.map_err(failed)?;
                stream.set_nodelay(true).map_err(failed)?;
                Stream::Tcp(stream.into_std().map_err(failed)?)
            }
            Address::Unix(path) => Stream::Unix(
                UnixStream::connect(path)
                    .await
                    .and_then(UnixStream::into_std)
                    .map_err(failed)?,
            ),
        };
        let ids = Arc::default();
        let jobs = start(stream, options, &ids).await?;
        Ok(Self {
            jobs,
            ids,
            #[cfg(feature = "embedded")]
            _server: None,
        })
    }

    #[cfg(feature = "embedded")]
    pub(crate) async fn embedded(config: coracle_server::ServerConfig) -> Result<Self, Error> {
        let server = coracle_server::Server::start(config)
            .map_err(|error| Error::Embedded(error.to_string()))?;
        let ids = Arc::default();
        let stream = Stream::Memory(server.connect());
        let jobs = start(stream, ConnectOptions::default(), &ids).await?;
        Ok(Self {
            jobs,
            ids,
            _server: Some(server),
        })
    }

    pub(crate) fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn jobs(&self) -> mpsc::UnboundedSender<Job> {
        self.jobs.clone()
    }

    /// Runs a job on the connection's thread. False where the thread is gone.
    pub(crate) fn run(&self, job: impl FnOnce(&Shared) + Send + 'static) -> bool {
        self.jobs.send(Box::new(job)).is_ok()
    }
}

/// Starts the thread and logs in.
async fn start(
    stream: Stream,
    options: ConnectOptions,
    ids: &Arc<AtomicU64>,
) -> Result<mpsc::UnboundedSender<Job>, Error> {
    let (jobs, receiver) = mpsc::unbounded_channel();
    let queue = Queue {
        receiver,
        jobs: jobs.downgrade(),
        ids: Arc::clone(ids),
    };
    let (ready, outcome) = oneshot::channel();
    let failed = |cause: std::io::Error| Error::Connect {
        address: "the connection".into(),
        cause: cause.to_string(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(failed)?;
    std::thread::Builder::new()
        .name("coracle-client".into())
        .spawn(move || LocalSet::new().block_on(&runtime, serve(stream, options, queue, ready)))
        .map_err(failed)?;
    outcome.await.unwrap_or_else(|_| {
        Err(Error::Disconnected(
            "the connection ended during login".into(),
        ))
    })?;
    Ok(jobs)
}

/// The thread's end of what handles ask for.
struct Queue {
    receiver: mpsc::UnboundedReceiver<Job>,
    jobs: mpsc::WeakUnboundedSender<Job>,
    ids: Arc<AtomicU64>,
}

async fn serve(
    stream: Stream,
    options: ConnectOptions,
    jobs: Queue,
    ready: oneshot::Sender<Result<(), Error>>,
) {
    let failed = |cause: std::io::Error| Error::Connect {
        address: "the connection".into(),
        cause: cause.to_string(),
    };
    match stream {
        Stream::Tcp(stream) => match TcpStream::from_std(stream) {
            Ok(stream) => serve_stream(stream.compat(), options, jobs, ready).await,
            Err(error) => drop(ready.send(Err(failed(error)))),
        },
        Stream::Unix(stream) => match UnixStream::from_std(stream) {
            Ok(stream) => serve_stream(stream.compat(), options, jobs, ready).await,
            Err(error) => drop(ready.send(Err(failed(error)))),
        },
        #[cfg(feature = "embedded")]
        Stream::Memory(stream) => serve_stream(stream.compat(), options, jobs, ready).await,
    }
}

async fn serve_stream<S>(
    stream: S,
    options: ConnectOptions,
    queue: Queue,
    ready: oneshot::Sender<Result<(), Error>>,
) where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    let network = coracle_transport::client_network(stream, MESSAGE_BYTES_MAX);
    let mut system = RpcSystem::new(Box::new(network), None);
    let gate: gate::Client = system.bootstrap(Side::Server);
    let disconnector = system.get_disconnector();
    tokio::task::spawn_local(async move {
        // How the connection ended reaches every call that was under way.
        let _ = system.await;
    });

    let mut login = gate.login_request();
    let mut credentials = login.get().init_credentials();
    match &options.token {
        Some(token) => credentials.set_bearer_token(&token[..]),
        None => credentials.set_none(()),
    }
    let promise = login.send();
    let loader = promise.pipeline.get_loader();
    let session = promise.pipeline.get_session();
    let outcome = session.tenant_request().send().promise.await;
    if ready
        .send(outcome.map(drop).map_err(|error| Error::from_rpc(&error)))
        .is_err()
    {
        return;
    }
    let held: Shared = Rc::new(RefCell::new(Held {
        loader,
        _session: session,
        workers: HashMap::new(),
        targets: HashMap::new(),
        jobs: queue.jobs,
        ids: queue.ids,
    }));
    let mut receiver = queue.receiver;
    while let Some(job) = receiver.recv().await {
        job(&held);
    }
    // Everything is released before the connection is closed, so that the server sees it go in good order. Objects that
    // are being called hold on to this.
    let released = {
        let mut held = held.borrow_mut();
        (
            std::mem::take(&mut held.targets),
            std::mem::take(&mut held.workers),
        )
    };
    drop(released);
    drop(held);
    let _ = disconnector.await;
}
