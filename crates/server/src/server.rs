//! The server: owns threads, listeners and the admin endpoint, and the order in which they come and go.

use crate::{
    admin::{Admin, AdminState, Probe},
    capnweb_front::WebPolicy,
    config::{Isolation, ServerConfig},
    listen::{Listeners, RpcThreads, Serving},
    metrics::{BuildInfo, Metrics},
    outbound::{Egress, EgressError},
    service::{CodeBytesMax, Service},
    tails,
};
use coracle_cordon::{Cordons, CordonsConfig, CordonsError};
use coracle_isolate::{
    CPU_BASELINE, DoesNotFit, Health, Image, ImageError, Machine, Plan, QUICKJS_VERSION, Sandbox,
    SandboxConfig, SandboxError, Scheduler, Stats, SystemClock, Threads, ThreadsConfig,
    WASMTIME_VERSION,
};
use coracle_loader::Tenancy;
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
    isolates: Arc<dyn Scheduler>,
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
    /// Isolates can't be had in processes of their own.
    #[error(transparent)]
    Cordons(#[from] CordonsError),
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
    /// The configuration does not fit the machine or the container.
    #[error(transparent)]
    DoesNotFit(#[from] DoesNotFit),
    /// A tenant's quota of memory is too small for a single isolate.
    #[error(
        "configuration: memory_bytes_max of tenant {tenant} is {bytes}, and an isolate takes {least} before it runs anything, \
         which nine tenths of it must have room for"
    )]
    TenantMemory {
        /// The tenant.
        tenant: String,
        /// Its quota.
        bytes: u64,
        /// The least that is of use.
        least: u64,
    },
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
        Machine::read().fits(&Plan {
            isolates_max: config.core.isolates_max,
            pool_memory_bytes_max: config.pool_memory_bytes_max,
            snapshots_bytes_max: config.snapshots_bytes_max,
            connections_bytes_max: config.connections_bytes_max,
        })?;
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
            config.tenancy.clone(),
            config.limits,
            code_bytes_max,
            Arc::clone(&metrics),
        );
        let (isolates, cordons) = start_isolates(&config, &service)?;
        service.attach(Arc::clone(&isolates));
        has_room_for_one(&config.tenancy, isolates.usage_of(0).fresh_bytes)?;
        service.start_time().map_err(ServerError::Thread)?;
        tails::start(&service).map_err(ServerError::Thread)?;
        let own = OwnAddresses::default();
        let outbound = match config.outbound {
            None => None,
            Some(mut outbound) => {
                outbound.leave_room_for_clients(config.connections_max);
                let threads = config.rpc_threads;
                let audit = Arc::clone(service.audit());
                let started = Egress::start(outbound, threads, own.clone(), audit);
                let (egress, runtime) = started.map_err(|error| match error {
                    EgressError::Config(error) => ServerError::Outbound(error.to_string()),
                    EgressError::Thread(error) => ServerError::Thread(error),
                })?;
                let connections = egress.connections();
                metrics.observe_connections(connections);
                service.attach_egress(egress);
                Some(runtime)
            }
        };

        if let Some(usage) = config.usage {
            service.attach_ledger(usage);
        }
        if let Some(lines_dropped) = config.log_lines_dropped {
            metrics.observe_log(lines_dropped);
        }

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
            web: Arc::new(WebPolicy {
                hosts: config.web_hosts,
                origins: config.web_origins,
            }),
        };
        let rpc =
            Arc::new(RpcThreads::start(config.rpc_threads, &serving).map_err(ServerError::Listen)?);
        if let Some(cordons) = cordons {
            rpc.hear(&cordons);
        }
        let listeners = if config.listen.is_empty() && config.listen_web.is_empty() {
            None
        } else {
            let listening = Listeners::start(&config.listen, &config.listen_web, rpc.dispatcher());
            Some(listening.map_err(ServerError::Listen)?)
        };
        if let Some(listeners) = &listeners {
            let tcp = listeners
                .addresses()
                .iter()
                .filter_map(|address| match address {
                    Address::Tcp(address) => Some(*address),
                    Address::Unix(_) => None,
                });
            for address in tcp.chain(listeners.web_addresses().iter().copied()) {
                own.add(address);
            }
        }
        let condition = Arc::new(Condition {
            service: Arc::clone(&service),
            rpc: Arc::clone(&rpc),
            isolates: Arc::clone(&isolates),
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
            isolates,
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

    /// Where it speaks Cap'n Web.
    #[must_use]
    pub fn web_addresses(&self) -> &[SocketAddr] {
        self.listeners
            .as_ref()
            .map_or(&[], Listeners::web_addresses)
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
        self.isolates.stats()
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
        self.service.flush_ledger();
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

/// Each tenant can have one isolate at least, or its calls would wait for nothing.
fn has_room_for_one(tenancy: &Tenancy, least: u64) -> Result<(), ServerError> {
    let named = tenancy
        .tenants
        .iter()
        .map(|(name, policy)| (&name[..], policy));
    for (tenant, policy) in named.chain([("default", &tenancy.default)]) {
        if let Some(bytes) = policy.memory_bytes_max
            && !policy.has_room_for_one(least)
        {
            let tenant = tenant.to_owned();
            return Err(ServerError::TenantMemory {
                tenant,
                bytes,
                least,
            });
        }
    }
    Ok(())
}

/// What runs isolates, and the same once more where it has them in cordons.
type Started = (Arc<dyn Scheduler>, Option<Arc<Cordons>>);

fn start_isolates(config: &ServerConfig, service: &Arc<Service>) -> Result<Started, ServerError> {
    let image = Image::obtain(&config.guest, config.cache.as_deref())?;
    let machine = Machine::read();
    let isolates_max = u32::try_from(config.core.isolates_max).unwrap_or(u32::MAX);
    let pool = SandboxConfig {
        isolates_max,
        running_max: machine.running_max(isolates_max),
        pagemap_scan: machine.pagemap_scan,
        snapshots_bytes_max: config.snapshots_bytes_max / config.isolation.processes_max(),
    };
    match start_on(config, pool, &image, service) {
        Err(
            ServerError::Sandbox(SandboxError::Image { cause })
            | ServerError::Cordons(CordonsError::Image(cause)),
        ) => {
            tracing::warn!(
                cause,
                "the image does not fit this machine; compiling the guest for it"
            );
            let image = Image::compile_native(&config.guest)?;
            start_on(config, pool, &image, service)
        }
        started => started,
    }
}

fn start_on(
    config: &ServerConfig,
    pool: SandboxConfig,
    image: &Image,
    service: &Arc<Service>,
) -> Result<Started, ServerError> {
    let threads = ThreadsConfig {
        threads: config.isolate_threads.max(1),
        niceness: ISOLATE_NICENESS,
        pool_memory_bytes_max: config.pool_memory_bytes_max,
        seed: config.seed,
    };
    // Weakly: the service owns the scheduler, not the other way round.
    let service = Arc::downgrade(service);
    let sink = move |event| {
        if let Some(service) = service.upgrade() {
            service.on_isolate_event(event);
        }
    };
    let clock = Arc::new(SystemClock::default());
    Ok(match &config.isolation {
        Isolation::Threads => {
            let sandbox = Arc::new(Sandbox::new(pool, image)?);
            (
                Arc::new(Threads::start(sandbox, clock, threads, sink)),
                None,
            )
        }
        Isolation::Cordons {
            executable,
            cordons_max,
        } => {
            let limits = &config.limits;
            let code = limits.code_bytes_max.saturating_add(limits.env_bytes_max);
            let largest = code.max(limits.args_bytes_max).max(limits.result_bytes_max);
            let cordons = CordonsConfig {
                executable: executable.clone(),
                sandbox: pool,
                threads,
                cordons_max: *cordons_max,
                // Two of them in one message, and what is around them.
                frame_bytes_max: largest.saturating_mul(2).saturating_add(4 << 20),
            };
            let cordons = Arc::new(Cordons::start(cordons, image, clock, sink)?);
            (Arc::clone(&cordons) as Arc<dyn Scheduler>, Some(cordons))
        }
    })
}

/// What the admin endpoint is told.
struct Condition {
    service: Arc<Service>,
    rpc: Arc<RpcThreads>,
    isolates: Arc<dyn Scheduler>,
    isolates_max: u32,
    leaving: AtomicBool,
}

impl Probe for Condition {
    fn live(&self) -> Result<(), String> {
        let health = self.isolates.health();
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
            self.isolates.stats(),
            self.isolates.health(),
            self.isolates_max,
        )
    }
}
