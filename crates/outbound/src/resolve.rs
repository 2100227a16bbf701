//! Names to addresses: asked once for a connection, and only for names that a policy has let through.

use crate::config::{DnsConfig, MALFORMED_NAMESERVER};
use futures::future::BoxFuture;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
};
use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};
use tokio::sync::Semaphore;

/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 32;

/// Resolves names.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, best first; what went wrong, in words.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;
}

/// DNS, by the configuration of the machine or by our own, with a cache.
pub(crate) struct Dns {
    resolver: TokioResolver,
    lookups: Semaphore,
    deadline: Duration,
}

impl Dns {
    /// In a runtime.
    pub(crate) fn new(config: &DnsConfig) -> Result<Arc<Self>, String> {
        let provider = TokioRuntimeProvider::default();
        let mut builder = match config.nameservers.is_empty() {
            true => TokioResolver::builder(provider)
                .map_err(|error| format!("/etc/resolv.conf can't be used: {error}"))?,
            false => {
                let servers = config.nameservers.iter().map(|text| server(text));
                let servers = servers.collect::<Result<_, _>>()?;
                let resolver = ResolverConfig::from_name_servers(servers);
                TokioResolver::builder_with_config(resolver, provider)
            }
        };
        set_options(builder.options_mut(), config);
        let resolver = builder.build().map_err(|error| error.to_string())?;
        Ok(Arc::new(Self {
            resolver,
            lookups: Semaphore::new(config.lookups_max),
            deadline: Duration::from_millis(config.lookup_ms_max),
        }))
    }
}

fn set_options(options: &mut ResolverOpts, config: &DnsConfig) {
    options.cache_size = config.cache_entries_max;
    options.positive_max_ttl = Some(Duration::from_secs(config.cache_seconds_max));
    options.negative_max_ttl = Some(Duration::from_secs(config.cache_seconds_max.min(60)));
    options.try_tcp_on_error = true;
}

/// `1.1.1.1` or `1.1.1.1:53`.
fn server(text: &str) -> Result<NameServerConfig, String> {
    let address = match text.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, 53),
        Err(_) => text
            .parse()
            .map_err(|_| format!("{text:?}: {MALFORMED_NAMESERVER}"))?,
    };
    let connection = |mut connection: ConnectionConfig| {
        connection.port = address.port();
        connection
    };
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections = server.connections.into_iter().map(connection).collect();
    Ok(server)
}

impl Resolve for Dns {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(async move {
            let lookup = async {
                let _permit = self.lookups.acquire().await;
                self.resolver.lookup_ip(name).await
            };
            match tokio::time::timeout(self.deadline, lookup).await {
                Ok(Ok(found)) => Ok(found.iter().take(ADDRESSES_MAX).collect()),
                Ok(Err(error)) if error.is_nx_domain() => Err("there is no such name".into()),
                Ok(Err(error)) if error.is_no_records_found() => Err("it has no address".into()),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err(format!(
                    "no answer within {} ms (lookup_ms_max)",
                    self.deadline.as_millis()
                )),
            }
        })
    }
}
