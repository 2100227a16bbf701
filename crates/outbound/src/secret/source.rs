//! Where a secret is read, as the configuration says it.

use super::{Http, Secret, SecretError, command, file, is_plain, vault::Vault};
use crate::Destination;
use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};
use std::{ffi::OsString, fmt, path::PathBuf, time::Duration};

const REFRESH_DEFAULT: Duration = Duration::from_secs(300);
const REFRESH_SECONDS_MAX: u64 = 86_400;
const TIMEOUT_SECONDS_DEFAULT: u64 = 10;
const TIMEOUT_SECONDS_MAX: u64 = 60;
const KEY_BYTES_MAX: usize = 253;

/// Where a secret is read. In JSON it is exactly one of
///
/// - `{"file": "/path"}`: a file that its owner alone may read;
/// - `{"mount": "/var/run/secrets/x", "key": "token"}`: a key of a secret that Kubernetes mounts;
/// - `{"environment": "NAME"}`;
/// - `{"command": ["program", "argument"], "timeout_seconds": 10}`: what a program prints (1 to 60 s, 10 unless given);
/// - `{"vault": {"url": "https://vault:8200/v1/secret/data/x", "field": "token", "token": …, "namespace": "team",
///   "plain_http": false}}`: a field in Vault, where `token` is any of the other places.
///
/// With each of them `refresh_seconds` (1 to 86,400, 300 unless given) is after what time it is read again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretSource {
    place: Place,
    /// None where it is not said.
    refresh: Option<Duration>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Local(LocalPlace),
    Vault {
        vault: Box<Vault>,
        token: LocalPlace,
    },
}

/// A place that needs no other secret.
#[derive(Clone, PartialEq, Eq)]
enum LocalPlace {
    File(PathBuf),
    Mount {
        folder: PathBuf,
        key: String,
    },
    Environment(String),
    Command {
        program: String,
        arguments: Vec<String>,
        timeout: Duration,
    },
}

impl SecretSource {
    /// After what time it is read again.
    pub(super) fn refresh(&self) -> Duration {
        self.refresh.unwrap_or(REFRESH_DEFAULT)
    }

    /// Reads it, now.
    pub(super) async fn read(&self, http: &dyn Http) -> Result<Secret, SecretError> {
        match &self.place {
            Place::Local(place) => place.read().await,
            Place::Vault { vault, token } => vault.read(&token.read().await?, http).await,
        }
    }
}

impl LocalPlace {
    async fn read(&self) -> Result<Secret, SecretError> {
        match self {
            Self::File(path) => file::read(path.clone()).await,
            Self::Mount { folder, key } => file::read_mount(folder.clone(), key.clone()).await,
            Self::Environment(name) => {
                let text = std::env::var_os(name);
                let text = text.ok_or_else(|| SecretError::Environment(name.clone()))?;
                Secret::new(OsString::into_encoded_bytes(text))
            }
            Self::Command {
                program,
                arguments,
                timeout,
            } => command::run(program, arguments, *timeout).await,
        }
    }
}

/// What a program is called with is left out: it may hold what is not to be shown.
impl fmt::Debug for LocalPlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => formatter.debug_tuple("File").field(path).finish(),
            Self::Mount { folder, key } => {
                let mut mount = formatter.debug_struct("Mount");
                mount.field("folder", folder).field("key", key).finish()
            }
            Self::Environment(name) => formatter.debug_tuple("Environment").field(name).finish(),
            Self::Command { program, .. } => {
                let mut command = formatter.debug_struct("Command");
                command.field("program", program).finish_non_exhaustive()
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    file: Option<PathBuf>,
    mount: Option<PathBuf>,
    key: Option<String>,
    environment: Option<String>,
    command: Option<Words>,
    timeout_seconds: Option<u64>,
    vault: Option<WrittenVault>,
    refresh_seconds: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenVault {
    url: String,
    field: String,
    token: SecretSource,
    namespace: Option<String>,
    #[serde(default)]
    plain_http: bool,
}

impl TryFrom<Written> for SecretSource {
    type Error = &'static str;

    fn try_from(written: Written) -> Result<Self, &'static str> {
        if written.key.is_some() != written.mount.is_some() {
            return Err("\"key\" and \"mount\" belong together");
        }
        if written.timeout_seconds.is_some() && written.command.is_none() {
            return Err("\"timeout_seconds\" belongs to \"command\"");
        }
        let timeout = within(
            written.timeout_seconds.unwrap_or(TIMEOUT_SECONDS_DEFAULT),
            TIMEOUT_SECONDS_MAX,
        );
        let timeout = timeout.ok_or("\"timeout_seconds\" is not from 1 to 60")?;
        let refresh = match written.refresh_seconds {
            None => None,
            Some(seconds) => Some(
                within(seconds, REFRESH_SECONDS_MAX)
                    .ok_or("\"refresh_seconds\" is not from 1 to 86400")?,
            ),
        };
        let places = [
            written.file.map(file_of),
            written
                .mount
                .map(|folder| mount_of(folder, written.key.unwrap_or_default())),
            written.environment.map(environment_of),
            written.command.map(|words| command_of(words.0, timeout)),
            written.vault.map(vault_of),
        ];
        let mut places = places.into_iter().flatten();
        let (Some(place), None) = (places.next(), places.next()) else {
            return Err(
                "a secret is at exactly one place: \"file\", \"mount\", \"environment\", \"command\" or \"vault\"",
            );
        };
        Ok(Self {
            place: place?,
            refresh,
        })
    }
}

fn within(seconds: u64, seconds_max: u64) -> Option<Duration> {
    (1..=seconds_max)
        .contains(&seconds)
        .then(|| Duration::from_secs(seconds))
}

fn file_of(path: PathBuf) -> Result<Place, &'static str> {
    match path.is_absolute() {
        true => Ok(Place::Local(LocalPlace::File(path))),
        false => Err("the path of a secret's file starts at /"),
    }
}

fn mount_of(folder: PathBuf, key: String) -> Result<Place, &'static str> {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_key = (1..=KEY_BYTES_MAX).contains(&key.len())
        && key.bytes().all(is_known)
        && key != "."
        && !key.starts_with("..");
    if !is_key {
        return Err("a mount's \"key\" is the plain name of a file");
    }
    match folder.is_absolute() {
        true => Ok(Place::Local(LocalPlace::Mount { folder, key })),
        false => Err("the path of a mount starts at /"),
    }
}

fn environment_of(name: String) -> Result<Place, &'static str> {
    match name.is_empty() || name.contains(['=', '\0']) {
        true => Err("a variable's name has letters, and neither = nor NUL"),
        false => Ok(Place::Local(LocalPlace::Environment(name))),
    }
}

fn command_of(words: Vec<String>, timeout: Duration) -> Result<Place, &'static str> {
    let mut words = words.into_iter();
    let program = words.next().filter(|program| !program.is_empty());
    let program = program.ok_or("a command names a program")?;
    Ok(Place::Local(LocalPlace::Command {
        program,
        arguments: words.collect(),
        timeout,
    }))
}

fn vault_of(written: WrittenVault) -> Result<Place, &'static str> {
    let Place::Local(token) = written.token.place else {
        return Err("the token for Vault is not itself in Vault");
    };
    if written.token.refresh.is_some() {
        return Err("the token for Vault is read with the secret: it has no \"refresh_seconds\"");
    }
    let destination = Destination::of_url(&written.url);
    let destination = destination.map_err(|_| "the \"url\" of Vault is not a URL of https:")?;
    if is_plain(&destination) && !written.plain_http {
        return Err(
            "the \"url\" of Vault is plain http: say \"plain_http\": true where that is meant",
        );
    }
    if written.field.is_empty() {
        return Err("the \"field\" of Vault is empty");
    }
    let namespace = written.namespace.map(|name| name.parse()).transpose();
    let namespace = namespace.map_err(|_| "the \"namespace\" of Vault can't be in a header")?;
    let vault = Vault {
        destination,
        field: written.field,
        namespace,
    };
    Ok(Place::Vault {
        vault: Box::new(vault),
        token,
    })
}

impl<'de> Deserialize<'de> for SecretSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

/// Refuses a bare text without showing it, as the usual errors would: it is probably the secret.
struct SourceVisitor;

impl<'de> de::Visitor<'de> for SourceVisitor {
    type Value = SecretSource;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("where a secret is read, as {\"file\": \"/path\"}")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<SecretSource, A::Error> {
        let written = Written::deserialize(MapAccessDeserializer::new(map))?;
        SecretSource::try_from(written).map_err(de::Error::custom)
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<SecretSource, E> {
        Err(E::custom(
            "a secret does not stand in the configuration: say where it is read, as {\"file\": \"/path\"}",
        ))
    }
}

/// The words of a command; a text in their place is refused without showing it.
struct Words(Vec<String>);

impl<'de> Deserialize<'de> for Words {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(WordsVisitor)
    }
}

struct WordsVisitor;

impl<'de> de::Visitor<'de> for WordsVisitor {
    type Value = Words;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a program and its arguments, as [\"program\", \"argument\"]")
    }

    fn visit_seq<A: de::SeqAccess<'de>>(self, mut sequence: A) -> Result<Words, A::Error> {
        let mut words = Vec::new();
        while let Some(word) = sequence.next_element()? {
            words.push(word);
        }
        Ok(Words(words))
    }

    fn visit_str<E: de::Error>(self, _: &str) -> Result<Words, E> {
        Err(E::custom(
            "a command is a list of words, as [\"program\", \"argument\"]: no shell reads it",
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(written: serde_json::Value) -> Result<SecretSource, String> {
        serde_json::from_value(written).map_err(|error| error.to_string())
    }

    #[test]
    fn every_place_is_read() {
        for written in [
            json!({"file": "/etc/token"}),
            json!({"file": "/etc/token", "refresh_seconds": 60}),
            json!({"mount": "/var/run/secrets/x", "key": "token"}),
            json!({"environment": "TOKEN"}),
            json!({"command": ["pass", "show", "x"]}),
            json!({"command": ["pass"], "timeout_seconds": 60}),
            json!({"vault": {"url": "https://vault:8200/v1/secret/data/x", "field": "token",
                "token": {"file": "/t"}, "namespace": "team"}}),
            json!({"vault": {"url": "http://127.0.0.1:8100/v1/x", "field": "f",
                "token": {"environment": "T"}, "plain_http": true}}),
        ] {
            assert_eq!(read(written.clone()).err(), None, "{written}");
        }
    }

    /// What is said twice, half, or not at all is a mistake, and never guessed at.
    #[test]
    fn what_is_no_one_place_is_refused() {
        let vault = |key: &str, value: serde_json::Value| {
            let mut vault = json!({"url": "https://v/v1/x", "field": "f", "token": {"file": "/t"}});
            vault[key] = value;
            json!({ "vault": vault })
        };
        for (written, why) in [
            (json!({}), "exactly one place"),
            (
                json!({"file": "/a", "environment": "A"}),
                "exactly one place",
            ),
            (json!({"file": "a"}), "starts at /"),
            (json!({"file": "/a", "key": "b"}), "belong together"),
            (json!({"file": "/a", "mode": 1}), "unknown field `mode`"),
            (json!({"file": "/a", "refresh_seconds": 0}), "1 to 86400"),
            (
                json!({"file": "/a", "timeout_seconds": 5}),
                "belongs to \"command\"",
            ),
            (json!({"mount": "/a"}), "belong together"),
            (json!({"mount": "/a", "key": "../b"}), "plain name"),
            (json!({"mount": "/a", "key": "..data"}), "plain name"),
            (json!({"mount": "/a", "key": ""}), "plain name"),
            (json!({"mount": "a", "key": "b"}), "starts at /"),
            (json!({"environment": "A=B"}), "variable's name"),
            (json!({"command": []}), "names a program"),
            (json!({"command": ["a"], "timeout_seconds": 61}), "1 to 60"),
            (vault("url", json!("http://v/v1/x")), "plain http"),
            (vault("url", json!("https://u:p@v/v1/x")), "not a URL"),
            (vault("field", json!("")), "empty"),
            (vault("namespace", json!("a\nb")), "can't be in a header"),
            (vault("lease", json!(1)), "unknown field `lease`"),
            (
                vault("token", vault("field", json!("f"))),
                "not itself in Vault",
            ),
            (
                vault("token", json!({"file": "/t", "refresh_seconds": 5})),
                "read with the secret",
            ),
        ] {
            let error = read(written.clone()).expect_err(&written.to_string());
            assert!(error.contains(why), "{written}: {error}");
        }
    }

    /// Who writes the secret itself where its place belongs does not find it in the log.
    #[test]
    fn a_secret_in_its_places_place_is_not_shown() {
        for written in [
            json!("sk-canary"),
            json!({"command": "sk-canary"}),
            json!({"vault": {"url": "https://v/", "field": "f", "token": "sk-canary"}}),
        ] {
            let error = read(written.clone()).expect_err(&written.to_string());
            assert!(!error.contains("canary"), "{error}");
        }
        let command = json!({"command": ["pass", "sk-canary"]});
        let shown = format!("{:?}", read(command).expect("a source"));
        assert!(
            shown.contains("pass") && !shown.contains("canary"),
            "{shown}"
        );
    }
}
