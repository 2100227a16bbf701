//! The server: owns threads, listeners and the admin endpoint, and the order in which they come and go.

use crate::{
    admin::{Admin, AdminState, Probe},
    config::ServerConfig,
    listen::{Listeners, RpcThreads, Serving},
    metrics::{BuildInfo, Metrics},
    outbound::{Egress, EgressError, Records},
    service::{CodeBytesMax, Service},
    tails,
};
use coracle_isolate::{
    CPU_BASELINE, Health, Image, ImageError, Machine, QUICKJS_VERSION, Sandbox, SandboxConfig,
    SandboxError, Scheduler, Stats, SystemClock, Threads, ThreadsConfig, WASMTIME_VERSION,
};
use coracle_outbound::OwnAddresses;
use coracle_schema::Address;
use coracle_transport::{Bounds, Everyone};
use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{io::DuplexStream, runtime::Runtime};

/// Niceness of the threads that run isolates: those that serve the network come first.
const ISOLATE_NICENESS: i32 = 5;

/// Questions that every connection may leave unfinished, however few calls it may have.
const QUESTIONS_MIN: usize = 10_000;

/// A running server. Dropping it ends everything at once; [`Server::drain`] lets calls finish first.
pub struct Server {
    service: Arc<Service>,
    threads: Arc<Threads>,
    rpc: Option<Arc<RpcThreads>>,
    listeners: Option<Listeners>,
    admin: Option<Admin>,
    /// What requests leave by.
    outbound: Option<Runtime>,
    condition: Arc<Condition>,
    everyone: Arc<Everyone>,
    drain_delay: Duration,
    drain_grace: Duration,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The guest could not be made ready.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The pool of isolates could not be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxError),
    /// An address can't be listened on.
    #[error("can't listen: {0}")]
    Listen(io::Error),
    /// The admin endpoint's address can't be listened on.
    #[error("can't listen for admin on {address}: {source}")]
    Admin {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// A thread can't be started.
    #[error("can't start a thread: {0}")]
    Thread(io::Error),
    /// What the configuration says of requests that leave.
    #[error("outbound: {0}")]
    Outbound(String),
    /// The configuration contradicts itself.
    #[error("configuration: {0}")]
    Config(&'static str),
}

impl Server {
    /// Starts everything; when it returns, the server answers.
    ///
    /// # Errors
    /// See [`ServerError`].
    pub fn start(config: ServerConfig) -> Result<Self, ServerError> {
        if config.core.isolates_max == 0 {
            return Err(ServerError::Config("isolates_max must be at least 1"));
        }
        let metrics = Metrics::new(BuildInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            guest: config.guest.hash()[..16].to_owned(),
            wasmtime: WASMTIME_VERSION.into(),
            quickjs: QUICKJS_VERSION.into(),
            cpu_baseline: CPU_BASELINE.into(),
        });
        let code_bytes_max = CodeBytesMax {
            per_session: config.connection_bytes_max,
            all: config.connections_bytes_max,
        };
        let service = Service::new(
            config.core,
            config.limits,
            code_bytes_max,
            Arc::clone(&metrics),
        );
        let threads = Arc::new(start_isolates(&config, &service)?);
        service.attach(Arc::clone(&threads) as Arc<dyn Scheduler>);
        tails::start(&service).map_err(ServerError::Thread)?;
        let own = OwnAddresses::default();
        let outbound = match config.outbound {
            None => None,
            Some(outbound) => {
                let records = Records {
                    metrics: Arc::clone(&metrics),
                    service: Arc::downgrade(&service),
                };
                let threads = config.rpc_threads;
                let started = Egress::start(outbound, threads, own.clone(), records);
                let (egress, runtime) = started.map_err(|error| match error {
                    EgressError::Config(error) => ServerError::Outbound(error.to_string()),
                    EgressError::Thread(error) => ServerError::Thread(error),
                })?;
                service.attach_egress(egress);
                Some(runtime)
            }
        };

        // Twice what may be in flight: those, and those that were answered and not finished.
        let questions = usize::try_from(
            config
                .core
                .calls_in_flight_per_session_max
                .saturating_mul(2),
        )
        .unwrap_or(usize::MAX);
        let everyone = Everyone::new(config.connections_bytes_max);
        let serving = Serving {
            service: Arc::clone(&service),
            tokens: Arc::new(config.tokens),
            bounds: Bounds {
                message_bytes_max: config.message_bytes_max,
                connection_bytes_max: config.connection_bytes_max,
                questions_max: QUESTIONS_MIN.max(questions),
            },
            everyone: Arc::clone(&everyone),
            login_deadline: config.login_deadline,
            connections_max: config.connections_max,
        };
        let rpc =
            Arc::new(RpcThreads::start(config.rpc_threads, &serving).map_err(ServerError::Listen)?);
        let listeners = if config.listen.is_empty() {
            None
        } else {
            Some(Listeners::start(&config.listen, rpc.dispatcher()).map_err(ServerError::Listen)?)
        };
        for address in listeners.iter().flat_map(Listeners::addresses) {
            if let Address::Tcp(address) = address {
                own.add(*address);
            }
        }
        let condition = Arc::new(Condition {
            service: Arc::clone(&service),
            rpc: Arc::clone(&rpc),
            threads: Arc::clone(&threads),
            isolates_max: u32::try_from(config.core.isolates_max).unwrap_or(u32::MAX),
            leaving: AtomicBool::new(false),
        });
        let admin = match config.admin {
            None => None,
            Some(address) => {
                let state = AdminState {
                    metrics,
                    probe: Arc::clone(&condition) as Arc<dyn Probe>,
                    hosts_allowed: config.admin_hosts,
                };
                let admin = Admin::start(address, state)
                    .map_err(|source| ServerError::Admin { address, source })?;
                own.add(admin.local_addr());
                Some(admin)
            }
        };
        Ok(Self {
            service,
            threads,
            rpc: Some(rpc),
            listeners,
            admin,
            outbound,
            condition,
            everyone,
            drain_delay: config.drain_delay,
            drain_grace: config.drain_grace,
        })
    }

    /// Where it listens, with the ports that the system chose.
    #[must_use]
    pub fn addresses(&self) -> &[Address] {
        self.listeners.as_ref().map_or(&[], Listeners::addresses)
    }

    /// Where the admin endpoint listens.
    #[must_use]
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin.as_ref().map(Admin::local_addr)
    }

    /// A connection without a socket: the other end is served as if a local client had connected.
    #[must_use]
    pub fn connect(&self) -> DuplexStream {
        match &self.rpc {
            Some(rpc) => rpc.connect_memory(),
            None => unreachable!("the threads live until the server is dropped"),
        }
    }

    /// The heart of the server, for those who embed it and want figures.
    #[must_use]
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// Bytes that connections make the server hold at this moment: code, arguments, results that wait for them.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.everyone.bytes()
    }

    /// Figures of the isolates.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.threads.stats()
    }

    /// The way down: readiness turns false, after the drain delay new work is refused, running calls have the grace to
    /// finish, what is left then is ended with a verdict.
    pub async fn drain(&self) {
        self.condition.leaving.store(true, Ordering::Relaxed);
        self.service.metrics().set_draining(true);
        tracing::info!(
            delay_ms = self.drain_delay.as_millis() as u64,
            "draining: readiness is false"
        );
        tokio::time::sleep(self.drain_delay).await;
        self.service.drain_start();
        let in_time = tokio::time::timeout(self.drain_grace, self.service.drained()).await;
        if in_time.is_err() {
            let left = self.service.gauges();
            tracing::warn!(?left, "the drain's grace is over; what is left is ended");
            self.service.drain_deadline();
            // Their answers still have to get out.
            let _ = tokio::time::timeout(Duration::from_secs(1), self.service.drained()).await;
        }
        // Replies that were just made are written by their threads.
        tokio::time::sleep(Duration::from_millis(50)).await;
        tracing::info!("drained");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // No new connections, then no connections; the isolates' threads end with their last owner.
        self.admin = None;
        self.listeners = None;
        self.condition.leaving.store(true, Ordering::Relaxed);
        // What is under way is given up: waiting for it could take for ever.
        if let Some(outbound) = self.outbound.take() {
            outbound.shutdown_background();
        }
    }
}

fn start_isolates(config: &ServerConfig, service: &Arc<Service>) -> Result<Threads, ServerError> {
    let image = Image::obtain(&config.guest, config.cache.as_deref())?;
    let machine = Machine::read();
    let isolates_max = u32::try_from(config.core.isolates_max).unwrap_or(u32::MAX);
    let sandbox_config = SandboxConfig {
        isolates_max,
        running_max: machine.running_max(isolates_max),
        pagemap_scan: machine.pagemap_scan,
    };
    let sandbox = match Sandbox::new(sandbox_config, &image) {
        Ok(sandbox) => sandbox,
        Err(SandboxError::Image { cause }) => {
            tracing::warn!(
                cause,
                "the image does not fit this machine; compiling the guest for it"
            );
            Sandbox::new(sandbox_config, &Image::compile_native(&config.guest)?)?
        }
        Err(error) => return Err(error.into()),
    };
    let threads = ThreadsConfig {
        threads: config.isolate_threads.max(1),
        niceness: ISOLATE_NICENESS,
        pool_memory_bytes_max: config.pool_memory_bytes_max,
        seed: config.seed,
    };
    // Weakly: the service owns the scheduler, not the other way round.
    let service = Arc::downgrade(service);
    Ok(Threads::start(
        Arc::new(sandbox),
        Arc::new(SystemClock::default()),
        threads,
        move |event| {
            if let Some(service) = service.upgrade() {
                service.on_isolate_event(event);
            }
        },
    ))
}

/// What the admin endpoint is told.
struct Condition {
    service: Arc<Service>,
    rpc: Arc<RpcThreads>,
    threads: Arc<Threads>,
    isolates_max: u32,
    leaving: AtomicBool,
}

impl Probe for Condition {
    fn live(&self) -> Result<(), String> {
        let health = self.threads.health();
        if health.threads_lost > 0 {
            return Err(format!(
                "{} of {} isolate threads are stuck in a slice",
                health.threads_lost, health.threads
            ));
        }
        let lost = self.rpc.lost();
        if lost > 0 {
            return Err(format!(
                "{lost} of {} connection threads do not answer",
                self.rpc.count()
            ));
        }
        Ok(())
    }

    fn ready(&self) -> Result<(), String> {
        if self.leaving.load(Ordering::Relaxed) || self.service.is_draining() {
            return Err("draining".into());
        }
        Ok(())
    }

    fn stats(&self) -> (Stats, Health, u32) {
        (
            self.threads.stats(),
            self.threads.health(),
            self.isolates_max,
        )
    }
}
