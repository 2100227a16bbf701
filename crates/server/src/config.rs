//! How a server is set up. Parsed once; every field has a default that is safe.

use crate::{auth::Tokens, ledger::UsageLedger};
use coracle_isolate::{Guest, Machine};
use coracle_loader::{CoreConfig, Limits, Tenancy};
use coracle_schema::Address;
use std::{net::SocketAddr, path::PathBuf, time::Duration};

/// Where isolates run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Isolation {
    /// On threads of this process.
    Threads,
    /// In processes without network, files or secrets.
    Cordons {
        /// The executable that has a command `cordon`.
        executable: PathBuf,
        /// Cordons at once, a spare one included; at least 2.
        cordons_max: usize,
    },
}

impl Isolation {
    /// Processes that isolates are in, at most.
    pub(crate) fn processes_max(&self) -> u64 {
        match self {
            Self::Threads => 1,
            Self::Cordons { cordons_max, .. } => (*cordons_max).max(2) as u64,
        }
    }
}

/// How a server is set up.
pub struct ServerConfig {
    /// Where clients connect. Default: nowhere, for embedding.
    pub listen: Vec<Address>,
    /// Where clients connect that speak Cap'n Web. Default: nowhere.
    pub listen_web: Vec<SocketAddr>,
    /// Host names that Cap'n Web is served under, besides IP addresses and `localhost`. Default: none.
    pub web_hosts: Vec<String>,
    /// Origins of other sites' pages that may speak Cap'n Web, such as `https://app.example`. Default: none.
    pub web_origins: Vec<String>,
    /// Where the admin endpoint listens. Default: nowhere.
    pub admin: Option<SocketAddr>,
    /// Host names that the admin endpoint answers to, besides IP addresses and `localhost`. Default: none.
    pub admin_hosts: Vec<String>,
    /// Who may log in. Default: nobody needs a token, which is accepted on loopback and Unix sockets only.
    pub tokens: Tokens,
    /// What every worker is bounded by; workers and entrypoints only lower it.
    pub limits: Limits,
    /// How much is let in. Default: what fits this machine.
    pub core: CoreConfig,
    /// What each tenant may have. Default: the same for all, and nothing bounded but by the above.
    pub tenancy: Tenancy,
    /// Linear memory of all isolates together. Default: half of what the process may use.
    pub pool_memory_bytes_max: u64,
    /// Bytes that may be kept of workers that have been loaded, so that the next sandboxes of the same workers start faster;
    /// all processes together. 0: none.
    pub snapshots_bytes_max: u64,
    /// Where isolates run. Default: on threads of this process.
    pub isolation: Isolation,
    /// Threads that run isolates; of each cordon. Default: one a core.
    pub isolate_threads: usize,
    /// Threads that serve connections. Default: one for every four cores.
    pub rpc_threads: usize,
    /// Connections at once. Default: 1,000.
    pub connections_max: usize,
    /// Bytes of one message from a client. Default: 64 MiB, which the default limits on code and arguments fit in.
    pub message_bytes_max: u64,
    /// Bytes that a connection may make the server hold: code, arguments under way, results that were not read or not
    /// let go of. What would add to more is refused. Default: 256 MiB.
    pub connection_bytes_max: u64,
    /// The same for all connections together. Default: 20 % of what the process may use.
    pub connections_bytes_max: u64,
    /// How long a connection may stay without a login. Default: 10 s.
    pub login_deadline: Duration,
    /// How long readiness is false before new work is refused, so that balancers notice. Default: 5 s.
    pub drain_delay: Duration,
    /// How long running calls have after that. Default: 30 s.
    pub drain_grace: Duration,
    /// Where the compiled guest is kept when the executable has none in it. Default: nowhere.
    pub cache: Option<PathBuf>,
    /// The guest. Default: the one built in.
    pub guest: Guest,
    /// Policies for requests that leave, and what belongs to them. Default: none, and nothing leaves.
    pub outbound: Option<coracle_outbound::Config>,
    /// Where usage is written down. Default: nowhere.
    pub usage: Option<UsageLedger>,
    /// How many lines of the process's log were given up so far, for the metric. Default: nobody counts.
    pub log_lines_dropped: Option<Box<dyn Fn() -> u64 + Send + Sync>>,
    /// Gives every isolate the same randomness, so that runs repeat themselves. Default: none.
    pub seed: Option<u64>,
}

impl ServerConfig {
    /// The defaults, for this machine.
    #[must_use]
    pub fn for_machine(machine: &Machine) -> Self {
        let isolates_max = u64::from(machine.isolates_max());
        Self {
            listen: Vec::new(),
            listen_web: Vec::new(),
            web_hosts: Vec::new(),
            web_origins: Vec::new(),
            admin: None,
            admin_hosts: Vec::new(),
            tokens: Tokens::none(),
            limits: Limits::default(),
            core: CoreConfig {
                isolates_max,
                ..CoreConfig::default()
            },
            tenancy: Tenancy::default(),
            pool_memory_bytes_max: machine.memory_bytes / 2,
            snapshots_bytes_max: machine.snapshots_bytes_max(),
            isolation: Isolation::Threads,
            isolate_threads: machine.cores,
            rpc_threads: machine.cores.div_ceil(4),
            connections_max: 1_000,
            message_bytes_max: 64 << 20,
            connection_bytes_max: 256 << 20,
            connections_bytes_max: machine.memory_bytes / 5,
            login_deadline: Duration::from_secs(10),
            drain_delay: Duration::from_secs(5),
            drain_grace: Duration::from_secs(30),
            cache: None,
            guest: Guest::embedded(),
            outbound: None,
            usage: None,
            log_lines_dropped: None,
            seed: None,
        }
    }
}
