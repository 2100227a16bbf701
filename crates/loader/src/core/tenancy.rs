//! Which tenant may have what: a configuration in JSON, read strictly.

use super::tenant::{Quota, TenantPolicy, Trust};
use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, Visitor},
};
use std::{collections::BTreeMap, fmt};

/// The most weight that a tenant can have. The least is 1.
pub const WEIGHT_MAX: u32 = 1_000;

/// What each tenant may have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tenancy {
    /// By the names that tokens stand for.
    pub tenants: BTreeMap<String, TenantPolicy>,
    /// Those that have no entry, each by itself.
    pub default: TenantPolicy,
}

/// Why a configuration of tenants was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TenancyError {
    /// It is no JSON, or says something that is not known. Names the line and the column.
    #[error("{0}")]
    Malformed(String),
    /// A value is out of its range.
    #[error("{key} is {value}, and may be {range}")]
    OutOfRange {
        /// Where it stands, as in `tenants.acme.weight`.
        key: String,
        /// What stands there.
        value: u64,
        /// What may stand there.
        range: String,
    },
    /// A name that no tenant can have.
    #[error("tenants.{0}: a tenant's name has letters, digits, '-', '_' and '.' only")]
    Name(String),
    /// A group without `"trust": "grouped"`, or that without a group.
    #[error("{0}.group: there has to be one where trust is \"grouped\", and only there")]
    Group(String),
}

impl Tenancy {
    /// Reads a configuration: `{"tenants": {"acme": {"weight": 2}}, "default": {}}`, both of which may be missing. An entry
    /// is whole by itself: what it does not say is not taken from `default`.
    ///
    /// # Errors
    /// See [`TenancyError`].
    pub fn of_json(text: &str) -> Result<Self, TenancyError> {
        let read: File = serde_json::from_str(text)
            .map_err(|error| TenancyError::Malformed(error.to_string()))?;
        let mut tenants = BTreeMap::new();
        for (name, entry) in read.tenants.0 {
            if !is_name(&name) {
                return Err(TenancyError::Name(name));
            }
            let policy = entry.policy(&format!("tenants.{name}"))?;
            tenants.insert(name, policy);
        }
        Ok(Self {
            tenants,
            default: read.default.policy("default")?,
        })
    }

    /// What a tenant may have.
    #[must_use]
    pub fn policy_of(&self, tenant: &str) -> &TenantPolicy {
        self.tenants.get(tenant).unwrap_or(&self.default)
    }
}

fn is_name(name: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && name.bytes().all(is_of_name)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
#[derive(Default)]
struct File {
    tenants: NamedOnce,
    default: Entry,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Entry {
    weight: Option<u64>,
    isolates_max: Option<u64>,
    cpu_seconds_per_minute_max: Option<u64>,
    loads_per_second_max: Option<u64>,
    memory_bytes_max: Option<u64>,
    bytes_out_per_minute_max: Option<u64>,
    trust: Level,
    group: Option<String>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Isolated,
    Grouped,
    #[default]
    Shared,
}

impl Entry {
    fn policy(self, place: &str) -> Result<TenantPolicy, TenancyError> {
        let out_of_range = |key: &str, value: u64, range: String| TenancyError::OutOfRange {
            key: format!("{place}.{key}"),
            value,
            range,
        };
        let weight = self.weight.unwrap_or(1);
        let weight = u32::try_from(weight)
            .ok()
            .filter(|weight| (1..=WEIGHT_MAX).contains(weight))
            .ok_or_else(|| out_of_range("weight", weight, format!("1 to {WEIGHT_MAX}")))?;
        // A quota of nothing would be a wait without an end.
        let quota = |quota: Quota, value: Option<u64>| match value {
            Some(0) => Err(out_of_range(quota.as_str(), 0, "1 or more".into())),
            other => Ok(other),
        };
        let trust = match (self.trust, self.group) {
            (Level::Isolated, None) => Trust::Isolated,
            (Level::Shared, None) => Trust::Shared,
            (Level::Grouped, Some(group)) if is_name(&group) => Trust::Grouped(group),
            _ => return Err(TenancyError::Group(place.to_owned())),
        };
        Ok(TenantPolicy {
            weight,
            isolates_max: quota(Quota::Isolates, self.isolates_max)?,
            cpu_seconds_per_minute_max: quota(
                Quota::CpuSecondsPerMinute,
                self.cpu_seconds_per_minute_max,
            )?,
            loads_per_second_max: quota(Quota::LoadsPerSecond, self.loads_per_second_max)?,
            memory_bytes_max: quota(Quota::MemoryBytes, self.memory_bytes_max)?,
            bytes_out_per_minute_max: quota(
                Quota::BytesOutPerMinute,
                self.bytes_out_per_minute_max,
            )?,
            trust,
        })
    }
}

/// Entries by name, of which none comes twice: the later one would silently win.
#[derive(Default)]
struct NamedOnce(BTreeMap<String, Entry>);

impl<'de> Deserialize<'de> for NamedOnce {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = NamedOnce;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a tenant's name for each key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<NamedOnce, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((name, entry)) = map.next_entry::<String, Entry>()? {
                    if entries.contains_key(&name) {
                        return Err(de::Error::custom(format!(
                            "tenant \"{name}\" is there twice"
                        )));
                    }
                    entries.insert(name, entry);
                }
                Ok(NamedOnce(entries))
            }
        }

        from.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        Tenancy::of_json(text)
            .expect_err("should be refused")
            .to_string()
    }

    #[test]
    fn everything_that_can_be_said_is_read() {
        let tenancy = Tenancy::of_json(
            r#"{"tenants": {"acme": {"weight": 2, "isolates_max": 50, "cpu_seconds_per_minute_max": 30,
                "loads_per_second_max": 100, "memory_bytes_max": 1000, "bytes_out_per_minute_max": 7,
                "trust": "grouped", "group": "ours"}}, "default": {"weight": 3, "trust": "isolated"}}"#,
        )
        .expect("good");
        let acme = TenantPolicy {
            weight: 2,
            isolates_max: Some(50),
            cpu_seconds_per_minute_max: Some(30),
            loads_per_second_max: Some(100),
            memory_bytes_max: Some(1_000),
            bytes_out_per_minute_max: Some(7),
            trust: Trust::Grouped("ours".into()),
        };
        assert_eq!(*tenancy.policy_of("acme"), acme);
        let other = tenancy.policy_of("other");
        assert_eq!((other.weight, &other.trust), (3, &Trust::Isolated));
        assert_eq!(other.isolates_max, None);
    }

    #[test]
    fn what_is_left_out_bounds_nothing() {
        let nothing = Tenancy::of_json("{}").expect("good");
        assert_eq!(nothing, Tenancy::default());
        let empty = Tenancy::of_json(r#"{"tenants": {"a": {}}}"#).expect("good");
        assert_eq!(*empty.policy_of("a"), TenantPolicy::default());
    }

    #[test]
    fn a_mistake_is_named_with_its_line_or_its_key() {
        for (text, named) in [
            ("{\n\"tenant\": {}}", "unknown field `tenant`"),
            ("{\n\"tenant\": {}}", "line 2"),
            (
                r#"{"tenants": {"a": {"wieght": 1}}}"#,
                "unknown field `wieght`",
            ),
            (
                "{\"tenants\": {\n\"a\": {}, \"a\": {}}}",
                "\"a\" is there twice at line 2",
            ),
            (
                r#"{"tenants": {"a": {"weight": 0}}}"#,
                "tenants.a.weight is 0, and may be 1 to 1000",
            ),
            (r#"{"default": {"weight": 1001}}"#, "default.weight is 1001"),
            (
                r#"{"default": {"isolates_max": 0}}"#,
                "default.isolates_max is 0, and may be 1 or more",
            ),
            (r#"{"default": {"isolates_max": -1}}"#, "line 1"),
            (r#"{"default": {"isolates_max": 1.5}}"#, "line 1"),
            (
                r#"{"tenants": {"a b": {}}}"#,
                "tenants.a b: a tenant's name",
            ),
            (
                r#"{"default": {"trust": "full"}}"#,
                "unknown variant `full`",
            ),
            (r#"{"default": {"trust": "grouped"}}"#, "default.group"),
            (r#"{"default": {"group": "x"}}"#, "default.group"),
            ("", "line 1"),
        ] {
            let refused = refused(text);
            assert!(refused.contains(named), "{text}: {refused}");
        }
    }
}
