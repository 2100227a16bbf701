//! Servers of the Model Context Protocol whose tools programs have: how a file names them, and how long they live.

use crate::{failure::Failure, text::visible};
use coracle_codemode::Limits;
use coracle_executor::{Namespace, Provider};
use coracle_mcp::{McpProvider, McpServer, ProcessConfig};
use coracle_outbound::Channel;
use futures::future::{join_all, select_all};
use serde::Deserialize;
use std::{collections::BTreeMap, env, path::Path, sync::Arc};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    task::JoinHandle,
};

/// Passed on to a process unless the file says otherwise: without it, nothing that is a script starts.
const INHERITED: &str = "PATH";

/// A server: a process has `command`, one elsewhere has `url`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct McpConfig {
    /// A program. With a slash in it, it is relative to the file.
    command: Option<String>,
    /// What it is given.
    #[serde(default)]
    args: Vec<String>,
    /// Its environment, beside `PATH`.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// Variables that it has from our environment, so that a secret need not be in the file.
    #[serde(default)]
    env_from: Vec<String>,
    /// Where it listens by streamable HTTP.
    url: Option<String>,
}

impl McpConfig {
    /// The server that it means.
    pub(crate) fn server(self, folder: &Path, channel: &Arc<Channel>) -> Result<McpServer, String> {
        match (self.command, self.url) {
            (Some(command), None) => {
                let mut environment = BTreeMap::new();
                environment.extend(env::var(INHERITED).map(|value| (INHERITED.into(), value)));
                for name in self.env_from {
                    let value = env::var(&name);
                    let value = value.map_err(|error| format!("wants {name}: {error}"))?;
                    environment.insert(name, value);
                }
                environment.extend(self.env);
                let folder =
                    std::path::absolute(folder.join(".")).map_err(|error| error.to_string())?;
                let command = match command.contains('/') {
                    true => folder.join(command).to_string_lossy().into_owned(),
                    false => command,
                };
                let arguments = self.args;
                let config = ProcessConfig {
                    command,
                    arguments,
                    environment,
                    folder,
                };
                Ok(McpServer::Process(config))
            }
            (None, Some(url)) => {
                let is_bare =
                    self.args.is_empty() && self.env.is_empty() && self.env_from.is_empty();
                let channel = Arc::clone(channel);
                is_bare
                    .then_some(McpServer::Http { url, channel })
                    .ok_or_else(|| "has a url, so it has no args, env or env_from".into())
            }
            _ => Err("has an mcp with either command or url".into()),
        }
    }
}

/// All that a command has connected to. Dropping it ends those that are processes.
pub(crate) struct Servers {
    providers: Arc<Vec<Arc<McpProvider>>>,
    /// Ends them where a signal ends this command.
    signals: Option<JoinHandle<()>>,
}

impl Servers {
    /// Connects to all of them at once.
    pub(crate) async fn connect(
        servers: Vec<(String, McpServer)>,
        limits: &Limits,
    ) -> Result<(Self, Vec<Namespace>), Failure> {
        let (names, providers): (Vec<String>, Vec<_>) = servers
            .into_iter()
            .map(|(name, server)| (name, Arc::new(McpProvider::new(server, limits))))
            .unzip();
        let providers = Arc::new(providers);
        // Before anything is started, so that no signal leaves it behind.
        let signals = match providers.is_empty() {
            true => None,
            false => Some(tokio::spawn(end_at_signal(
                listened_to(),
                Arc::clone(&providers),
            ))),
        };
        let servers = Self { providers, signals };
        let connecting = servers.providers.iter().map(|provider| provider.connect());
        for (name, connected) in names.iter().zip(join_all(connecting).await) {
            connected.map_err(|error| {
                let text = visible(&error.to_string());
                Failure::server(format!("the MCP server of {name:?}: {text}"))
            })?;
        }
        let namespaces = names.into_iter().zip(servers.providers.iter());
        let namespaces = namespaces.map(|(name, provider)| {
            let provider: Arc<dyn Provider> = Arc::<McpProvider>::clone(provider);
            Namespace { name, provider }
        });
        let namespaces = namespaces.collect();
        Ok((servers, namespaces))
    }

    /// Takes leave of all of them.
    pub(crate) async fn close(self) {
        join_all(self.providers.iter().map(|provider| provider.close())).await;
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        if let Some(signals) = &self.signals {
            signals.abort();
        }
        for provider in self.providers.iter() {
            provider.end();
        }
    }
}

/// The signals that end a command.
fn listened_to() -> Vec<(SignalKind, Signal)> {
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let signals = kinds.map(|kind| Some((kind, signal(kind).ok()?)));
    signals.into_iter().flatten().collect()
}

/// Processes are in groups of their own, which a terminal's signals do not reach.
async fn end_at_signal(signals: Vec<(SignalKind, Signal)>, providers: Arc<Vec<Arc<McpProvider>>>) {
    if signals.is_empty() {
        return;
    }
    let waiting = signals.into_iter().map(|(kind, mut signal)| {
        Box::pin(async move {
            signal.recv().await;
            kind.as_raw_value()
        })
    });
    let (number, _, _) = select_all(waiting).await;
    for provider in providers.iter() {
        provider.end();
    }
    #[expect(
        clippy::exit,
        clippy::disallowed_methods,
        reason = "this is the command line, and nothing else would end it"
    )]
    std::process::exit(128 + number);
}
