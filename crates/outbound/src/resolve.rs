//! Names to addresses: asked once for a connection, and only for names that a policy has let through.

use crate::config::{DnsConfig, MALFORMED_NAMESERVER};
use futures::future::BoxFuture;
use hickory_resolver::{
    TokioResolver,
    config::{ConnectionConfig, NameServerConfig, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
};
use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};
use tokio::sync::Semaphore;

/// Addresses of one name that are looked at.
const ADDRESSES_MAX: usize = 32;

/// Resolves names.
pub trait Resolve: Send + Sync {
    /// The addresses of a name, best first; what went wrong, in words.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>>;

    /// What it would answer without asking anybody.
    fn known(&self, _name: &str) -> Option<Vec<IpAddr>> {
        None
    }
}

/// DNS, by the configuration of the machine or by our own, with a cache.
///
/// Names are asked for as they are, and not with the machine's search list: nobody has judged `api.example.com.inside.test`.
pub(crate) struct Dns {
    resolver: TokioResolver,
    search: Vec<String>,
    lookups: Lookups,
    answers: Answers,
}

/// Answers that are valid still, by the names that were asked for. What is in here waits for no lookup of others, as it
/// would in the resolver's own cache, which is asked within one.
struct Answers {
    entries_max: usize,
    time_max: Duration,
    by_name: Mutex<HashMap<String, (Vec<IpAddr>, Instant)>>,
}

impl Answers {
    fn new(config: &DnsConfig) -> Self {
        Self {
            entries_max: usize::try_from(config.cache_entries_max).unwrap_or(usize::MAX),
            time_max: Duration::from_secs(config.cache_seconds_max),
            by_name: Mutex::default(),
        }
    }

    fn get(&self, name: &str, now: Instant) -> Option<Vec<IpAddr>> {
        let by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        let (found, until) = by_name.get(name)?;
        (*until > now).then(|| found.clone())
    }

    fn keep(&self, name: &str, found: &[IpAddr], until: Instant) {
        let now = Instant::now();
        let until = until.min(now + self.time_max);
        let mut by_name = self.by_name.lock().unwrap_or_else(PoisonError::into_inner);
        if by_name.len() >= self.entries_max {
            by_name.retain(|_, (_, until)| *until > now);
        }
        // (Where all of them are valid still, this one is asked for again.)
        if by_name.len() < self.entries_max || by_name.contains_key(name) {
            by_name.insert(name.into(), (found.to_vec(), until));
        }
    }
}

/// The resolver of the operating system, which reads what it is configured with by itself.
pub(crate) struct System(Lookups);

/// What both bound: names that are asked for at once, and the time that one takes.
struct Lookups {
    places: Semaphore,
    deadline: Duration,
}

/// The resolver that is configured. In a runtime.
pub(crate) fn resolver(config: &DnsConfig) -> Result<Arc<dyn Resolve>, String> {
    let lookups = Lookups {
        places: Semaphore::new(config.lookups_max.clamp(1, Semaphore::MAX_PERMITS)),
        deadline: Duration::from_millis(config.lookup_ms_max),
    };
    if config.system {
        return match config.nameservers.is_empty() && config.search.is_empty() {
            true => Ok(Arc::new(System(lookups))),
            false => Err(
                "system: the operating system has nameservers and a search list of its own".into(),
            ),
        };
    }
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
    Ok(Arc::new(Dns {
        resolver,
        search: config.search.clone(),
        lookups,
        answers: Answers::new(config),
    }))
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

impl Lookups {
    async fn ask<T>(&self, lookup: impl Future<Output = Result<T, String>>) -> Result<T, String> {
        let lookup = async {
            let _place = self.places.acquire().await;
            lookup.await
        };
        let answer = tokio::time::timeout(self.deadline, lookup).await;
        let ms = self.deadline.as_millis();
        answer.unwrap_or_else(|_| Err(format!("no answer within {ms} ms (lookup_ms_max)")))
    }
}

impl Dns {
    /// The addresses of a name as it is, and how long that is so; none where there is no such name, or it has none.
    async fn lookup(&self, name: String) -> Result<Option<(Vec<IpAddr>, Instant)>, String> {
        match self.resolver.lookup_ip(name).await {
            Ok(found) => {
                let addresses: Vec<_> = found.iter().take(ADDRESSES_MAX).collect();
                let is_any = !addresses.is_empty();
                Ok(is_any.then(|| (addresses, found.valid_until())))
            }
            Err(error) if error.is_nx_domain() || error.is_no_records_found() => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Resolve for Dns {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(self.lookups.ask(async move {
            let mut found = self.lookup(format!("{name}.")).await?;
            for suffix in &self.search {
                if found.is_none() {
                    found = self.lookup(format!("{name}.{suffix}.")).await?;
                }
            }
            let (found, until) = found.ok_or("there is no such name, or it has no address")?;
            self.answers.keep(name, &found, until);
            Ok(found)
        }))
    }

    fn known(&self, name: &str) -> Option<Vec<IpAddr>> {
        self.answers.get(name, Instant::now())
    }
}

impl Resolve for System {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(self.0.ask(async move {
            let found = tokio::net::lookup_host((name, 0)).await;
            let found = found.map_err(|error| error.to_string())?;
            Ok(found
                .map(|address| address.ip())
                .take(ADDRESSES_MAX)
                .collect())
        }))
    }
}
