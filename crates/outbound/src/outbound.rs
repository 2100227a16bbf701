//! Everything that leaves, for a whole server: made once from the configuration.

use crate::{
    Connections, Credential, Destination, Error, Policies, Policy, PolicyOrigin, Scheme,
    SecretStore,
    audit::Audit,
    channel::{Ask, Channel, Tenant},
    clients::{Clients, Tls},
    config::{Config, ProxyConfig, RequestLimits, TenantConfig},
    dial::{Dialer, OwnAddresses, Proxy, Share},
    operator::OperatorHttp,
    places::{self, Limit, Places},
    resolve::resolver,
};
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, pem::PemObject},
};
use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::sync::Semaphore;

/// What is wrong with a configuration.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct ConfigError(pub(crate) Vec<String>);

/// Which policy a worker is to have besides that of its session.
#[derive(Clone, Copy, Debug)]
pub enum Asked<'a> {
    /// None.
    Session,
    /// The one of this name.
    Named(&'a str),
    /// These rules, in JSON.
    Given(&'a str),
}

/// Why a worker can't have the policy that it asks for.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AskedError {
    /// It is not one that the tenant may name.
    #[error(
        "the policy \"{name}\" is not one that the tenant \"{tenant}\" may name (tenants.{tenant}.may_name)"
    )]
    Named {
        /// The policy.
        name: String,
        /// The tenant.
        tenant: String,
    },
    /// The rules are wrong.
    #[error("{0}")]
    Given(String),
}

/// Where requests leave. It lives in a runtime, which its connections are of.
pub struct Outbound {
    shared: Arc<Shared>,
    policies: BTreeMap<String, Arc<Policy>>,
    /// Of tenants that have none of their own; none is that nothing leaves.
    default_policy: Option<Arc<Policy>>,
    tenants: BTreeMap<String, TenantConfig>,
    /// Those that have sent something.
    active: Mutex<HashMap<String, Arc<Tenant>>>,
}

pub(crate) struct Shared {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) tls: Arc<Tls>,
    pub(crate) limits: RequestLimits,
    pub(crate) audit: Arc<dyn Audit>,
    /// Of the lookups at once, those that one tenant may have.
    lookups_share: usize,
    credentials: BTreeMap<String, Arc<Credential>>,
}

impl Shared {
    pub(crate) fn credential(&self, name: &str) -> Result<Arc<Credential>, Error> {
        let known = self.credentials.get(name).cloned();
        known.ok_or_else(|| Error::Credential(format!("there is no credential \"{name}\"")))
    }
}

impl Outbound {
    /// Checks everything that the configuration says, and reads no secret yet. In a tokio runtime.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn new(
        mut config: Config,
        own: OwnAddresses,
        audit: Arc<dyn Audit>,
    ) -> Result<Self, ConfigError> {
        let mut problems = Vec::new();
        config.leave_room_for_clients(0);
        let places = places(&config.limits, &mut problems);
        let policies = policies(&config, &mut problems);
        for (user, name) in names_of_policies(&config) {
            if !config.policies.contains_key(name) {
                problems.push(format!("{user}: there is no policy \"{name}\""));
            }
        }
        for (policy, credential) in policies.values().flat_map(|policy| {
            let credentials = policy.credentials();
            credentials.map(move |credential| (policy.name(), credential))
        }) {
            if !config.credentials.contains_key(credential) {
                problems.push(format!(
                    "policies.{policy}: there is no credential \"{credential}\""
                ));
            }
        }
        let dns = resolver(&config.dns)
            .map_err(|problem| ConfigError(vec![format!("dns: {problem}")]))?;
        let tls =
            Arc::new(tls(config.ca_file.as_deref()).map_err(|problem| ConfigError(vec![problem]))?);
        let dialer = |proxy: Option<Proxy>| {
            Arc::new(Dialer {
                resolver: Arc::clone(&dns),
                own: own.clone(),
                proxy,
                limits: config.limits.clone(),
                places: Arc::clone(&places),
            })
        };
        let any = Limit::new("", Semaphore::MAX_PERMITS);
        let unshared = Share::new(Semaphore::MAX_PERMITS, any, config.dns.lookups_max);
        let http = Arc::new(OperatorHttp(Clients::new(&dialer(None), &tls, &unshared)));
        let mut store = SecretStore::new(http);
        let proxy = config
            .proxy
            .as_ref()
            .map(|proxy| proxy_of(proxy, &mut store));
        let proxy = proxy
            .transpose()
            .map_err(|problem| ConfigError(vec![format!("proxy: {problem}")]))?;
        let mut credentials = BTreeMap::new();
        for (name, credential) in config.credentials {
            match Credential::new(&name, credential, &mut store) {
                Ok(credential) => {
                    if credential.is_sent_in_plain() {
                        tracing::warn!(
                            credential = name,
                            "a credential may be sent over plain http"
                        );
                    }
                    credentials.insert(name, Arc::new(credential));
                }
                Err(error) => problems.push(error.to_string()),
            }
        }
        if !problems.is_empty() {
            return Err(ConfigError(problems));
        }
        let default_policy = match config.default_policy {
            Some(name) => policies.get(&name).cloned(),
            None => None,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                dialer: dialer(proxy),
                tls,
                limits: config.limits,
                audit,
                lookups_share: config.dns.lookups_max.div_ceil(4),
                credentials,
            }),
            default_policy,
            policies,
            tenants: config.tenants,
            active: Mutex::default(),
        })
    }

    /// The way out of a worker of that tenant: where the policy of its sessions lets requests out, and besides that the
    /// one that is asked for. `ask` decides where a rule says so.
    ///
    /// # Errors
    /// See [`AskedError`].
    pub fn channel(
        &self,
        tenant: &str,
        asked: Asked<'_>,
        ask: Option<Arc<dyn Ask>>,
    ) -> Result<Channel, AskedError> {
        let known = self.tenants.get(tenant);
        let own = known.and_then(|tenant| tenant.policy.as_ref());
        let own = match own {
            Some(name) => self.policies.get(name).cloned(),
            None => self.default_policy.clone(),
        };
        let policies = own.map(Policies::from).unwrap_or_default();
        let besides = match asked {
            Asked::Session => None,
            Asked::Named(name) => {
                let may_name =
                    known.is_some_and(|tenant| tenant.may_name.iter().any(|may| may == name));
                let policy = self.policies.get(name).filter(|_| may_name);
                Some(policy.cloned().ok_or_else(|| AskedError::Named {
                    name: name.into(),
                    tenant: tenant.into(),
                })?)
            }
            Asked::Given(rules) => {
                let policy = Policy::of_json("given", PolicyOrigin::Client, rules);
                Some(Arc::new(
                    policy.map_err(|error| AskedError::Given(error.to_string()))?,
                ))
            }
        };
        let policies = match besides {
            None => policies,
            Some(policy) => policies
                .and(policy)
                .map_err(|error| AskedError::Given(error.to_string()))?,
        };
        Ok(Channel {
            shared: Arc::clone(&self.shared),
            tenant: self.tenant(tenant),
            policies,
            ask,
            session: 0,
        })
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> Connections {
        self.shared.dialer.places.connections()
    }

    fn tenant(&self, name: &str) -> Arc<Tenant> {
        let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tenant) = active.get(name) {
            return Arc::clone(tenant);
        }
        let Shared {
            dialer,
            tls,
            limits,
            ..
        } = &*self.shared;
        let all = dialer.places.of_tenant();
        let share = Share::new(limits.connections_max, all, self.shared.lookups_share);
        let clients = Arc::new(Clients::new(dialer, tls, &share));
        dialer.places.know(&clients);
        let tenant = Arc::new(Tenant {
            clients,
            share,
            sockets: Limit::new("sockets_max", limits.sockets_max),
            budgets: Arc::default(),
        });
        active.insert(name.into(), Arc::clone(&tenant));
        tenant
    }
}

/// Places for as many connections as there may be.
fn places(limits: &RequestLimits, problems: &mut Vec<String>) -> Arc<Places> {
    let max = limits.outbound_connections_max.unwrap_or(1);
    let files_max = places::files_max().unwrap_or(u64::MAX);
    if max as u64 > files_max {
        problems.push(format!(
            "limits.outbound_connections_max: {max} connections, and the process may have {files_max} files open \
             (RLIMIT_NOFILE)"
        ));
    }
    Places::new(max, limits.outbound_connections_per_tenant_max)
}

/// Reads the policies; what is wrong with one is noted with its name.
fn policies(config: &Config, problems: &mut Vec<String>) -> BTreeMap<String, Arc<Policy>> {
    let mut policies = BTreeMap::new();
    for (name, rules) in &config.policies {
        match Policy::of_json(name, PolicyOrigin::Operator, rules.get()) {
            Ok(policy) => _ = policies.insert(name.clone(), Arc::new(policy)),
            Err(error) => problems.push(format!("policies.{name}: {error}")),
        }
    }
    policies
}

/// Where the configuration names a policy, and which.
fn names_of_policies(config: &Config) -> impl Iterator<Item = (String, &str)> {
    let default = config.default_policy.iter();
    let default = default.map(|name| ("default_policy".to_owned(), name.as_str()));
    let tenants = config.tenants.iter().flat_map(|(tenant, config)| {
        let own = config
            .policy
            .iter()
            .map(move |name| (format!("tenants.{tenant}.policy"), name));
        let may = config
            .may_name
            .iter()
            .map(move |name| (format!("tenants.{tenant}.may_name"), name));
        own.chain(may).map(|(place, name)| (place, name.as_str()))
    });
    default.chain(tenants)
}

fn proxy_of(config: &ProxyConfig, store: &mut SecretStore) -> Result<Proxy, String> {
    let destination = Destination::of_url(&config.url).map_err(|error| error.to_string())?;
    if destination.scheme() != Scheme::Http {
        return Err(format!(
            "\"{}\" is not http://host:port",
            destination.origin()
        ));
    }
    let uri = destination.origin().parse();
    let authorization = config.authorization.clone();
    let authorization = authorization.map(|source| store.keep("proxy.authorization", source));
    Ok(Proxy {
        uri: uri.map_err(|_| "its address can't be used".to_owned())?,
        authorization: authorization
            .transpose()
            .map_err(|error| error.to_string())?,
    })
}

/// TLS with the authorities that are trusted: 1.2 at least, and every certificate checked.
fn tls(ca_file: Option<&Path>) -> Result<Tls, String> {
    let mut roots = RootCertStore::empty();
    roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    if let Some(path) = ca_file {
        let unread = |error: &dyn std::fmt::Display| format!("ca_file {}: {error}", path.display());
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unread(&error))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unread(&error))?;
            roots.add(certificate).map_err(|error| unread(&error))?;
        }
    }
    let roots = Arc::new(roots);
    let config = |protocols: &[&[u8]]| {
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
        let builder = builder.with_safe_default_protocol_versions();
        let builder = builder.map_err(|error| error.to_string())?;
        let mut config = builder
            .with_root_certificates(Arc::clone(&roots))
            .with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
        Ok::<_, String>(Arc::new(config))
    };
    Ok(Tls {
        any: config(&[b"h2", b"http/1.1"])?,
        http1: config(&[b"http/1.1"])?,
        bare: config(&[])?,
    })
}
