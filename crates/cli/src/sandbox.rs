//! Where the code runs: in this process, or on a server.

use crate::{failure::Failure, guest::GuestArgs, limits};
use clap::Args;
use coracle_client::{ConnectOptions, Coracle};
use coracle_isolate::Machine;
use coracle_loader::{CoreConfig, Limits};
use coracle_server::ServerConfig;
use std::time::Duration;

/// One command runs one worker; `check` has a few that are about to go beside it.
const ISOLATES_MAX: u64 = 4;

/// A server that takes the connection and then says nothing is one that can't be reached.
const CONNECT_DEADLINE: Duration = Duration::from_secs(10);

/// What a message has beside the code or the arguments in it.
const MESSAGE_OVERHEAD_BYTES: u64 = 1 << 20;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Where it runs")]
pub(crate) struct ConnectArgs {
    /// Run on a server instead of in this process: IP:PORT or unix:/path
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<String>,

    /// The server's token; better in the environment, where `ps` does not show it
    #[arg(
        long,
        value_name = "TOKEN",
        env = "CORACLE_TOKEN",
        hide_env_values = true
    )]
    token: Option<String>,
}

impl ConnectArgs {
    /// The server, if one was named.
    pub(crate) fn server(&self) -> Option<&str> {
        self.connect.as_deref()
    }

    pub(crate) async fn connect(&self, address: &str) -> Result<Coracle, Failure> {
        let options = ConnectOptions {
            token: self.token.clone(),
        };
        let connecting = Coracle::connect(address, options);
        match tokio::time::timeout(CONNECT_DEADLINE, connecting).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => {
                let seconds = CONNECT_DEADLINE.as_secs();
                Err(Failure::server(format!(
                    "{address} did not answer within {seconds} s"
                )))
            }
        }
    }
}

/// A sandbox in this process.
pub(crate) async fn embedded(
    guest: &GuestArgs,
    asked: &[limits::LimitValue],
    outbound: Option<coracle_outbound::Config>,
) -> Result<Coracle, Failure> {
    let limits = limits::over_defaults(asked);
    let defaults = ServerConfig::for_machine(&Machine::read());
    let config = ServerConfig {
        limits,
        outbound,
        core: CoreConfig {
            isolates_max: ISOLATES_MAX,
            ..defaults.core
        },
        isolate_threads: 1,
        rpc_threads: 1,
        message_bytes_max: message_bytes_for(&limits).max(defaults.message_bytes_max),
        cache: guest.cache(),
        guest: guest.guest()?,
        ..defaults
    };
    Ok(Coracle::embedded(config).await?)
}

/// What a message needs so that the limits on what it carries are what decides.
pub(crate) fn message_bytes_for(limits: &Limits) -> u64 {
    let load = limits.code_bytes_max + limits.env_bytes_max;
    load.max(limits.args_bytes_max) + MESSAGE_OVERHEAD_BYTES
}
