//! `coracle serve`: a server, from its start to the end of its drain.

mod announce;
mod environment;
mod signals;

use crate::{
    commands::usage,
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    limits::{self, LimitValue, parse_limit},
    logging::{LogFormat, ServerLog},
    outbound,
    sandbox::message_bytes_for,
    tenants,
    terminal::Terminal,
};
use announce::Announcement;
use clap::{Args, ValueEnum, value_parser};
use coracle_client::Address;
use coracle_isolate::Machine;
use coracle_loader::CoreConfig;
use coracle_server::{Isolation, Server, ServerConfig, Tokens};
pub(crate) use signals::Signals;
use std::{
    net::SocketAddr,
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::oneshot;

/// Start a server that clients speak to over Cap'n Proto, and over Cap'n Web if it is told to.
///
/// Every flag can also be set in the environment, as shown with it; a flag wins. Without a token
/// file, clients on the same machine (loopback and Unix sockets) need no token and all others are
/// turned away.
///
/// SIGTERM and SIGINT drain: readiness turns false, after the delay new work is refused, and calls
/// that are running have the grace to finish. A second one ends the server at once.
#[derive(Args)]
#[command(
    next_help_heading = "Capacity",
    after_long_help = "\
Examples:
  coracle serve
  coracle serve --listen unix:/run/coracle/socket
  coracle serve --listen-web 127.0.0.1:7071
  coracle serve --listen 0.0.0.0:7070 --admin 0.0.0.0:9090 --token-file tokens
  coracle serve --limit wall_ms_max=600_000 --limit memory_bytes_max=33_554_432

A token file has a token a line, optionally with a tenant before it, as in acme:TOKEN;
`openssl rand -hex 32` makes a good token. docs/limits.md lists the limits, docs/deployment.md
says how to run it in a container.

Exit codes: 0 drained, 2 usage, 4 the server could not start, 130 or 143 after a second signal."
)]
pub(crate) struct ServeArgs {
    /// Where clients connect: IP:PORT or unix:/path; may be repeated
    #[arg(
        long,
        value_name = "ADDRESS",
        env = "CORACLE_LISTEN",
        value_delimiter = ','
    )]
    #[arg(help_heading = None, default_value = "127.0.0.1:7070")]
    listen: Vec<Address>,

    /// Where clients connect that speak Cap'n Web, which TypeScript does: IP:PORT; may be repeated [default: nowhere]
    #[arg(long, value_name = "ADDRESS", env = "CORACLE_LISTEN_WEB", value_delimiter = ',', help_heading = None)]
    listen_web: Vec<SocketAddr>,

    /// A host name that Cap'n Web is served under, besides IP addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME", env = "CORACLE_WEB_HOST", value_delimiter = ',', help_heading = None)]
    web_host: Vec<String>,

    /// An origin whose pages may speak Cap'n Web, such as https://app.example; may be repeated [default: none but its own]
    #[arg(long, value_name = "ORIGIN", env = "CORACLE_WEB_ORIGIN", value_delimiter = ',', help_heading = None)]
    web_origin: Vec<String>,

    /// Where probes and metrics are, in HTTP: IP:PORT [default: nowhere]
    #[arg(long, value_name = "ADDRESS", env = "CORACLE_ADMIN", help_heading = None)]
    admin: Option<SocketAddr>,

    /// A host name that probes and metrics answer to, besides IP addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME", env = "CORACLE_ADMIN_HOST", value_delimiter = ',', help_heading = None)]
    admin_host: Vec<String>,

    /// Who may log in: a file with a token a line
    #[arg(long, value_name = "FILE", env = "CORACLE_TOKEN_FILE", help_heading = None)]
    token_file: Option<PathBuf>,

    /// What each tenant may have: a file as in docs/fairness.md [default: the same for all]
    #[arg(long, value_name = "FILE", env = "CORACLE_TENANTS_FILE", help_heading = None)]
    tenants_file: Option<PathBuf>,

    /// A limit for every worker, by its name in docs/limits.md; may be repeated
    #[arg(
        long,
        value_name = "NAME=VALUE",
        env = "CORACLE_LIMIT",
        value_delimiter = ','
    )]
    #[arg(value_parser = parse_limit, help_heading = None)]
    limit: Vec<LimitValue>,

    /// Where requests may go: a file as in docs/outbound.md [default: nowhere]
    #[arg(long, value_name = "FILE", env = "CORACLE_OUTBOUND_FILE", help_heading = None)]
    outbound_file: Option<PathBuf>,

    /// Where usage is written down, by tenant, worker and outcome: a file that is added to [default: nowhere]
    #[arg(long, value_name = "FILE", env = "CORACLE_USAGE_FILE", help_heading = None)]
    usage_file: Option<PathBuf>,

    /// Where sandboxes run: in processes without network, files or secrets, or on threads of this one
    #[arg(long, env = "CORACLE_ISOLATION", value_enum, default_value_t = IsolationArg::Auto, help_heading = None)]
    isolation: IsolationArg,

    #[command(flatten)]
    capacity: CapacityArgs,

    #[command(flatten)]
    drain: DrainArgs,

    #[command(flatten)]
    guest: GuestArgs,

    #[command(flatten)]
    log: LogArgs,
}

/// Where sandboxes run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IsolationArg {
    /// In processes where the kernel can confine them, else on threads, which is logged
    Auto,
    /// In processes, or not at all
    Cordons,
    /// On threads of the server
    Threads,
}

impl IsolationArg {
    fn isolation(self, cordons_max: Option<u16>) -> Result<Isolation, Failure> {
        let can_confine = coracle_cordon::can_confine();
        match self {
            Self::Threads => return Ok(Isolation::Threads),
            Self::Cordons if !can_confine => {
                return Err(Failure::server(
                    "this kernel can't confine processes (seccomp is missing): run with --isolation threads",
                ));
            }
            Self::Auto if !can_confine => {
                tracing::warn!(
                    "this kernel can't confine processes: sandboxes run on threads of the server"
                );
                return Ok(Isolation::Threads);
            }
            Self::Cordons | Self::Auto => {}
        }
        Ok(Isolation::Cordons {
            // This very file, even where another version has taken its name.
            executable: "/proc/self/exe".into(),
            cordons_max: cordons_max.map_or(CORDONS_MAX, usize::from),
        })
    }
}

/// Processes for sandboxes, where nobody said how many.
const CORDONS_MAX: usize = 16;

#[derive(Args)]
#[command(next_help_heading = "Capacity")]
struct CapacityArgs {
    /// Processes that sandboxes run in, at most; one of them is a spare [default: 16]
    #[arg(long, value_name = "N", env = "CORACLE_CORDONS_MAX", value_parser = value_parser!(u16).range(2..))]
    cordons_max: Option<u16>,

    /// Sandboxes at once [default: what fits the machine or the container]
    #[arg(long, value_name = "N", env = "CORACLE_ISOLATES_MAX", value_parser = value_parser!(u64).range(1..))]
    isolates_max: Option<u64>,

    /// Memory of all sandboxes together, in bytes [default: half of what there is]
    #[arg(long, value_name = "N", env = "CORACLE_POOL_MEMORY_BYTES_MAX", value_parser = value_parser!(u64).range(1..))]
    pool_memory_bytes_max: Option<u64>,

    /// Memory for what workers became once they were loaded, so that the next sandboxes of the same workers start faster, in
    /// bytes; 0 for none [default: a 64th of what there is, 256 MiB at most]
    #[arg(long, value_name = "N", env = "CORACLE_SNAPSHOTS_BYTES_MAX")]
    snapshots_bytes_max: Option<u64>,

    /// Threads that run sandboxes [default: one a core]
    #[arg(long, value_name = "N", env = "CORACLE_ISOLATE_THREADS", value_parser = value_parser!(u16).range(1..))]
    isolate_threads: Option<u16>,

    /// Threads that serve connections [default: one for every four cores]
    #[arg(long, value_name = "N", env = "CORACLE_RPC_THREADS", value_parser = value_parser!(u16).range(1..))]
    rpc_threads: Option<u16>,

    /// Connections at once [default: 1000]
    #[arg(long, value_name = "N", env = "CORACLE_CONNECTIONS_MAX", value_parser = value_parser!(u32).range(1..))]
    connections_max: Option<u32>,

    /// Calls at once, running or waiting [default: 10000]
    #[arg(long, value_name = "N", env = "CORACLE_CALLS_IN_FLIGHT_MAX", value_parser = value_parser!(u64).range(1..))]
    calls_in_flight_max: Option<u64>,

    /// Of these, calls of one session [default: 1000]
    #[arg(
        long,
        value_name = "N",
        env = "CORACLE_CALLS_IN_FLIGHT_PER_SESSION_MAX"
    )]
    #[arg(value_parser = value_parser!(u64).range(1..))]
    calls_in_flight_per_session_max: Option<u64>,

    /// Calls that wait for a sandbox [default: 1000]
    #[arg(long, value_name = "N", env = "CORACLE_CALLS_QUEUED_MAX", value_parser = value_parser!(u64).range(1..))]
    calls_queued_max: Option<u64>,

    /// How long a call waits before it begins, in milliseconds; its wall_ms_max if that is less [default: 10000]
    #[arg(long, value_name = "N", env = "CORACLE_QUEUE_WAIT_MS_MAX", value_parser = value_parser!(u64).range(1..))]
    queue_wait_ms_max: Option<u64>,

    /// Workers that one session holds [default: 10000]
    #[arg(long, value_name = "N", env = "CORACLE_WORKERS_PER_SESSION_MAX", value_parser = value_parser!(u64).range(1..))]
    workers_per_session_max: Option<u64>,

    /// Bytes of one message from a client [default: 64 MiB, or what the limits need]
    #[arg(long, value_name = "N", env = "CORACLE_MESSAGE_BYTES_MAX", value_parser = value_parser!(u64).range(1..))]
    message_bytes_max: Option<u64>,

    /// Bytes that a connection may make the server hold: code, arguments, results that it does not take [default: 256 MiB]
    #[arg(long, value_name = "N", env = "CORACLE_CONNECTION_BYTES_MAX", value_parser = value_parser!(u64).range(1..))]
    connection_bytes_max: Option<u64>,

    /// The same for all connections together [default: 20 % of what there is]
    #[arg(long, value_name = "N", env = "CORACLE_CONNECTIONS_BYTES_MAX", value_parser = value_parser!(u64).range(1..))]
    connections_bytes_max: Option<u64>,

    /// How long a connection may stay without a login, in milliseconds [default: 10000]
    #[arg(long, value_name = "N", env = "CORACLE_LOGIN_DEADLINE_MS", value_parser = value_parser!(u64).range(1..))]
    login_deadline_ms: Option<u64>,
}

#[derive(Args)]
#[command(next_help_heading = "Drain")]
struct DrainArgs {
    /// How long new work is still taken on after readiness turned false, in milliseconds [default: 5000]
    #[arg(long, value_name = "N", env = "CORACLE_DRAIN_DELAY_MS")]
    drain_delay_ms: Option<u64>,

    /// How long running calls have after that, in milliseconds [default: 30000]
    #[arg(long, value_name = "N", env = "CORACLE_DRAIN_GRACE_MS")]
    drain_grace_ms: Option<u64>,
}

#[derive(Args)]
#[command(next_help_heading = "Log")]
struct LogArgs {
    /// What is logged: error, warn, info, debug, trace, or a filter such as coracle_server=debug,warn
    #[arg(
        long,
        value_name = "FILTER",
        env = "CORACLE_LOG",
        default_value = "info"
    )]
    log: String,

    /// How it is logged, on stderr
    #[arg(long, env = "CORACLE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
}

pub(crate) async fn serve(args: ServeArgs) -> Result<Exit, Failure> {
    let start = Instant::now();
    let log = ServerLog::install(&args.log.log, args.log.log_format, Terminal::detect())?;
    for name in environment::unknown_settings() {
        tracing::warn!(
            name,
            "an environment variable that looks like a setting is none and is ignored"
        );
    }
    let mut config = args.config()?;
    config.log_lines_dropped = Some(Box::new(log.lines_dropped()));
    let (isolates_max, guest) = (config.core.isolates_max, config.guest.hash());
    let tokens_required = config.tokens.required();
    // Heard from here on: as the first process of a container, one that does not listen gets none.
    let mut signals = Signals::new()?;
    let server = tokio::select! {
        server = start_server(config) => server?,
        signal = signals.next() => {
            tracing::info!(signal = signal.name(), "told to end before the start was over");
            return Ok(Exit::Ok);
        }
    };
    let announcement = Announcement {
        addresses: server.addresses(),
        web_addresses: server.web_addresses(),
        admin: server.admin_address(),
        tokens_required,
        isolates_max,
        guest: &guest,
        start: start.elapsed(),
    };
    announcement.make(args.log.log_format);

    let first = signals.next().await;
    tracing::info!(
        signal = first.name(),
        "told to end; a second signal ends at once"
    );
    tokio::select! {
        () = server.drain() => {}
        second = signals.next() => {
            tracing::warn!(signal = second.name(), "told again: ending at once");
            // Not dropped: that would wait for its threads.
            std::mem::forget(server);
            return Ok(Exit::Signal(second.number()));
        }
    }
    Ok(Exit::Ok)
}

/// Starts the server on a thread of its own, since that may take seconds: a guest may be compiled.
async fn start_server(config: ServerConfig) -> Result<Server, Failure> {
    let (sender, server) = oneshot::channel();
    let start = move || drop(sender.send(Server::start(config)));
    let thread = thread::Builder::new().name("start".into()).spawn(start);
    thread.map_err(|error| Failure::server(format!("can't start: {error}")))?;
    match server.await {
        Ok(outcome) => Ok(outcome?),
        Err(_) => Err(Failure::server("the start broke")),
    }
}

impl ServeArgs {
    fn config(&self) -> Result<ServerConfig, Failure> {
        let limits = limits::over_defaults(&limits::each_once(self.limit.iter().copied())?);
        let tokens = match &self.token_file {
            Some(path) => Tokens::read(path).map_err(Failure::usage)?,
            None => Tokens::none(),
        };
        let mut config = ServerConfig::for_machine(&Machine::read());
        config.message_bytes_max = config.message_bytes_max.max(message_bytes_for(&limits));
        self.capacity.apply(&mut config);
        self.drain.apply(&mut config);
        Ok(ServerConfig {
            listen: self.listen.clone(),
            listen_web: self.listen_web.clone(),
            web_hosts: self.web_host.clone(),
            web_origins: self.web_origin.clone(),
            admin: self.admin,
            usage: self.usage_file.as_deref().map(usage::open).transpose()?,
            admin_hosts: self.admin_host.clone(),
            tokens,
            limits,
            isolation: self.isolation.isolation(self.capacity.cordons_max)?,
            tenancy: self
                .tenants_file
                .as_deref()
                .map(tenants::read)
                .transpose()?
                .unwrap_or_default(),
            outbound: self
                .outbound_file
                .as_deref()
                .map(outbound::read)
                .transpose()?,
            cache: self.guest.cache(),
            guest: self.guest.guest()?,
            ..config
        })
    }
}

impl CapacityArgs {
    fn apply(&self, config: &mut ServerConfig) {
        let core = config.core;
        config.core = CoreConfig {
            isolates_max: self.isolates_max.unwrap_or(core.isolates_max),
            calls_in_flight_max: self.calls_in_flight_max.unwrap_or(core.calls_in_flight_max),
            calls_in_flight_per_session_max: self
                .calls_in_flight_per_session_max
                .unwrap_or(core.calls_in_flight_per_session_max),
            workers_per_session_max: self
                .workers_per_session_max
                .unwrap_or(core.workers_per_session_max),
            calls_queued_max: self.calls_queued_max.unwrap_or(core.calls_queued_max),
            queue_wait_ms_max: self.queue_wait_ms_max.unwrap_or(core.queue_wait_ms_max),
        };
        set(
            &mut config.pool_memory_bytes_max,
            self.pool_memory_bytes_max,
        );
        set(&mut config.snapshots_bytes_max, self.snapshots_bytes_max);
        set(
            &mut config.isolate_threads,
            self.isolate_threads.map(usize::from),
        );
        set(&mut config.rpc_threads, self.rpc_threads.map(usize::from));
        set(
            &mut config.connections_max,
            self.connections_max.map(|count| count as usize),
        );
        set(&mut config.message_bytes_max, self.message_bytes_max);
        set(&mut config.connection_bytes_max, self.connection_bytes_max);
        set(
            &mut config.connections_bytes_max,
            self.connections_bytes_max,
        );
        set(
            &mut config.login_deadline,
            self.login_deadline_ms.map(Duration::from_millis),
        );
    }
}

impl DrainArgs {
    fn apply(&self, config: &mut ServerConfig) {
        set(
            &mut config.drain_delay,
            self.drain_delay_ms.map(Duration::from_millis),
        );
        set(
            &mut config.drain_grace,
            self.drain_grace_ms.map(Duration::from_millis),
        );
    }
}

fn set<T>(setting: &mut T, asked: Option<T>) {
    if let Some(value) = asked {
        *setting = value;
    }
}

#[cfg(test)]
mod tests;
