//! What an operator says about requests that leave: policies, who has which, credentials, DNS, and limits.

use crate::{ConfigError, CredentialConfig, SecretSource, places};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{collections::BTreeMap, fmt, marker::PhantomData, path::PathBuf, time::Duration};

pub(crate) const MALFORMED_NAMESERVER: &str = "not an address, such as 10.0.0.10 or 10.0.0.10:53";

/// The file that `--outbound` names. Everything in it has a default, which is that nothing leaves.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The policy of sessions whose tenant has none of its own. Default: nothing leaves.
    pub default_policy: Option<String>,
    /// What each tenant may do, by its name.
    #[serde(deserialize_with = "named_once")]
    pub tenants: BTreeMap<String, TenantConfig>,
    /// Policies by name: each `{"rules": [...]}`, see [`Policy`](crate::Policy).
    #[serde(deserialize_with = "named_once")]
    pub policies: BTreeMap<String, Box<RawValue>>,
    /// Credentials by name.
    #[serde(deserialize_with = "named_once")]
    pub credentials: BTreeMap<String, CredentialConfig>,
    /// How names are resolved.
    pub dns: DnsConfig,
    /// What connections go through. Default: nothing.
    pub proxy: Option<ProxyConfig>,
    /// Certificate authorities besides those of the Mozilla programme: a file in PEM. Default: none.
    pub ca_file: Option<PathBuf>,
    /// What one request may take.
    pub limits: RequestLimits,
}

impl Config {
    /// Reads the file.
    ///
    /// # Errors
    /// It is no JSON, or says what is not known. Whether what it names is there is for
    /// [`Outbound::new`](crate::Outbound::new) to find.
    pub fn of_json(text: &str) -> Result<Self, ConfigError> {
        serde_json::from_str(text).map_err(|error| ConfigError(vec![error.to_string()]))
    }

    /// The name of the policy that sessions of a tenant have.
    #[must_use]
    pub fn policy_of(&self, tenant: &str) -> Option<&str> {
        let own = self
            .tenants
            .get(tenant)
            .and_then(|tenant| tenant.policy.as_ref());
        own.or(self.default_policy.as_ref()).map(String::as_str)
    }
}

/// What a tenant may do.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantConfig {
    /// The policy of its sessions. Default: `default_policy`.
    pub policy: Option<String>,
    /// Policies that its workers may name when they are loaded. They narrow that of the session and are never wider.
    /// Default: none.
    pub may_name: Vec<String>,
}

/// How names are resolved.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DnsConfig {
    /// Servers, such as "10.0.0.10" or "10.0.0.10:5353". Default: what /etc/resolv.conf says.
    pub nameservers: Vec<String>,
    /// Suffixes that are tried, in order, where a name is not found: such as "svc.cluster.local" and "cluster.local" for
    /// names like "prices.shop.svc". The search list of /etc/resolv.conf is not used. Default: none.
    pub search: Vec<String>,
    /// Whether the operating system resolves names, by its own configuration and cache. Default: no.
    pub system: bool,
    /// Answers that are kept. Default: 4,096; 0 is none.
    pub cache_entries_max: u64,
    /// How long at most, in seconds. Default: 300.
    pub cache_seconds_max: u64,
    /// Names that are asked for at once, a quarter of them by one tenant. Default: 256.
    pub lookups_max: usize,
    /// How long one may take, in milliseconds. Default: 5,000.
    pub lookup_ms_max: u64,
}

impl Default for DnsConfig {
    fn default() -> Self {
        Self {
            nameservers: Vec::new(),
            search: Vec::new(),
            system: false,
            cache_entries_max: 4_096,
            cache_seconds_max: 300,
            lookups_max: 256,
            lookup_ms_max: 5_000,
        }
    }
}

/// An HTTP proxy. It is asked for tunnels to addresses, not to names: names are resolved and judged here.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyConfig {
    /// `http://host:port`.
    pub url: String,
    /// What it wants in `Proxy-Authorization`. Default: nothing.
    #[serde(default)]
    pub authorization: Option<SecretSource>,
}

/// What one request may take.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RequestLimits {
    /// Bytes of a request's body. Default: 1 GiB.
    pub request_bytes_max: u64,
    /// Bytes of a response's body, packed and unpacked. Default: 1 GiB.
    pub response_bytes_max: u64,
    /// How long a connection may take to be there, TLS included, in milliseconds. Default: 10,000.
    pub connect_ms_max: u64,
    /// How long a response may take to begin, its request's body included, in milliseconds. Default: 120,000; a model that thinks is slow.
    pub response_ms_max: u64,
    /// How long a body may stand still, in milliseconds. Default: 120,000.
    pub idle_ms_max: u64,
    /// Connections that each tenant keeps to each host when they are idle. Default: 16.
    pub idle_connections_max: usize,
    /// Connections of HTTP that a tenant may have at once, in use and idle. Default: 1,000.
    pub connections_max: usize,
    /// Connections by `connect()` and `WebSocket` that a tenant may have open. Default: 1,000.
    pub sockets_max: usize,
    /// Connections of all kinds that the whole process may have open. Default: what `RLIMIT_NOFILE` leaves beside the
    /// clients' connections, lookups and 100 files more, and at least a quarter of it.
    pub outbound_connections_max: Option<usize>,
    /// How many of these one tenant may have. Default: half.
    pub outbound_connections_per_tenant_max: Option<usize>,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self {
            request_bytes_max: 1 << 30,
            response_bytes_max: 1 << 30,
            connect_ms_max: 10_000,
            response_ms_max: 120_000,
            idle_ms_max: 120_000,
            idle_connections_max: 16,
            connections_max: 1_000,
            sockets_max: 1_000,
            outbound_connections_max: None,
            outbound_connections_per_tenant_max: None,
        }
    }
}

impl Config {
    /// Says how many connections may be open if the file does not: as many as the process can have open files besides so
    /// many connections of clients.
    pub fn leave_room_for_clients(&mut self, connections_max: usize) {
        let reserved = connections_max.saturating_add(self.dns.lookups_max);
        let derived = || places::connections_max(places::files_max(), reserved);
        let max = &mut self.limits.outbound_connections_max;
        max.get_or_insert_with(derived);
    }
}

impl RequestLimits {
    pub(crate) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms_max)
    }

    pub(crate) fn response(&self) -> Duration {
        Duration::from_millis(self.response_ms_max)
    }

    pub(crate) fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms_max)
    }
}

/// A map in which no name is given twice: of two policies of one name nobody knows which is meant.
fn named_once<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de>,
{
    struct Names<V>(PhantomData<V>);

    impl<'de, V: Deserialize<'de>> Visitor<'de> for Names<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut named = BTreeMap::new();
            while let Some((name, value)) = map.next_entry::<String, V>()? {
                if named.contains_key(&name) {
                    return Err(de::Error::custom(format!("\"{name}\" is given twice")));
                }
                named.insert(name, value);
            }
            Ok(named)
        }
    }

    deserializer.deserialize_map(Names(PhantomData))
}

#[cfg(test)]
mod tests {
    use super::Config;

    #[test]
    fn nothing_is_named_twice_and_no_key_is_unknown() {
        for (text, problem) in [
            (
                r#"{"policies": {"a": {"rules": []}, "a": {"rules": []}}}"#,
                "\"a\" is given twice",
            ),
            (r#"{"tenants": {"t": {}, "t": {}}}"#, "\"t\" is given twice"),
            (r#"{"policy": {}}"#, "unknown field `policy`"),
            (r#"{"dns": {"servers": []}}"#, "unknown field `servers`"),
            (
                r#"{"default_policy": "a", "default_policy": "b"}"#,
                "duplicate field",
            ),
        ] {
            let refused = Config::of_json(text)
                .map(drop)
                .map_err(|error| error.to_string());
            assert!(
                refused.as_ref().is_err_and(|error| error.contains(problem)),
                "{text} {refused:?}"
            );
        }
    }
}
