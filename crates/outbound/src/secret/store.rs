//! All secrets of a server, by name.

use super::{Http, Kept, Renewed, Secret, SecretError, SecretSource};
use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

/// How long a secret is used, in seconds, after it should have been read again and could not be: as long as an outage of
/// what keeps it may last.
pub const STALE_SECONDS_MAX: u64 = 3600;

/// The secrets of a server. Each is read when it is first asked for, kept for its source's `refresh_seconds`, and read
/// again when it is asked for after that; a file that has changed is noticed by reading it again. Where that fails, what
/// was read before is used for up to [`STALE_SECONDS_MAX`], and the log and [`SecretStore::failures`] say so.
#[derive(Clone)]
pub struct SecretStore {
    http: Arc<dyn Http>,
    secrets: BTreeMap<String, KeptSecret>,
}

/// One secret of a store.
#[derive(Clone)]
pub(crate) struct KeptSecret {
    source: Arc<SecretSource>,
    http: Arc<dyn Http>,
    kept: Arc<Kept<Secret>>,
}

impl SecretStore {
    /// A store without secrets, which asks other servers through `http`.
    #[must_use]
    pub fn new(http: Arc<dyn Http>) -> Self {
        Self {
            http,
            secrets: BTreeMap::new(),
        }
    }

    /// Adds a secret. It is not read yet.
    ///
    /// # Errors
    /// [`SecretError::Taken`].
    pub fn add(&mut self, name: &str, source: SecretSource) -> Result<(), SecretError> {
        self.keep(name, source).map(|_| ())
    }

    pub(crate) fn keep(
        &mut self,
        name: &str,
        source: SecretSource,
    ) -> Result<KeptSecret, SecretError> {
        if self.secrets.contains_key(name) {
            return Err(SecretError::Taken(name.into()));
        }
        let secret = KeptSecret {
            source: Arc::new(source),
            http: Arc::clone(&self.http),
            kept: Arc::new(Kept::new(name)),
        };
        self.secrets.insert(name.into(), secret.clone());
        Ok(secret)
    }

    /// A secret's value. Call it in a tokio runtime.
    ///
    /// # Errors
    /// [`SecretError::Unknown`], and why it could not be read where there is no earlier value that may still be used.
    pub async fn get(&self, name: &str, now: Instant) -> Result<Secret, SecretError> {
        let secret = self.secrets.get(name);
        let secret = secret.ok_or_else(|| SecretError::Unknown(name.into()))?;
        secret.get(now).await
    }

    /// Which secrets could not be read when that was last tried, and why.
    #[must_use]
    pub fn failures(&self) -> Vec<(String, SecretError)> {
        let failure = |(name, secret): (&String, &KeptSecret)| {
            secret.kept.failure().map(|error| (name.clone(), error))
        };
        self.secrets.iter().filter_map(failure).collect()
    }

    /// The way to other servers.
    pub(crate) fn http(&self) -> &Arc<dyn Http> {
        &self.http
    }
}

impl KeptSecret {
    pub(crate) async fn get(&self, now: Instant) -> Result<Secret, SecretError> {
        let renew = || {
            let (source, http) = (Arc::clone(&self.source), Arc::clone(&self.http));
            async move {
                let value = source.read(http.as_ref()).await?;
                let fresh_for = source.refresh();
                Ok(Renewed {
                    value,
                    fresh_for,
                    usable_for: fresh_for + Duration::from_secs(STALE_SECONDS_MAX),
                })
            }
        };
        self.kept.get(now, renew).await
    }

    /// Has it read again where it is still the one that was refused; see [`Kept::refused`].
    pub(crate) fn refused(&self, now: Instant, secret: &Secret) -> bool {
        self.kept.refused(now, |kept| kept.is_same(secret))
    }

    /// The same, whatever its value is.
    pub(crate) fn refused_any(&self, now: Instant) -> bool {
        self.kept.refused(now, |_| true)
    }
}

impl fmt::Debug for SecretStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.secrets.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::http::script::Script;
    use std::io::ErrorKind;

    /// A changed file is noticed when it is due, and a missing one leaves the old value in use for an hour.
    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_is_read_again_when_it_is_due() {
        use std::{fs, os::unix::fs::PermissionsExt};
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let write = |text: &str| {
            fs::write(&path, text).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
        };
        let source = serde_json::json!({"file": path, "refresh_seconds": 60});
        let mut store = SecretStore::new(Script::new([]));
        let source: SecretSource = serde_json::from_value(source).expect("a source");
        store.add("github", source.clone()).expect("a new name");
        assert_eq!(
            store.add("github", source),
            Err(SecretError::Taken("github".into()))
        );
        let start = Instant::now();
        let read = async |seconds| {
            let read = store
                .get("github", start + Duration::from_secs(seconds))
                .await;
            read.map(|secret| secret.bytes().to_vec())
        };
        write("first");
        assert_eq!(read(0).await, Ok(b"first".to_vec()));
        write("second");
        assert_eq!(read(59).await, Ok(b"first".to_vec()));
        assert_eq!(read(60).await, Ok(b"second".to_vec()));
        assert_eq!(store.failures(), []);
        fs::remove_file(&path).expect("removed");
        assert_eq!(read(120).await, Ok(b"second".to_vec()));
        let kind = ErrorKind::NotFound;
        let missing = SecretError::File {
            path: path.clone(),
            kind,
        };
        assert_eq!(store.failures(), [("github".into(), missing.clone())]);
        let last = 60 + 60 + STALE_SECONDS_MAX;
        assert_eq!(read(last - 1).await, Ok(b"second".to_vec()));
        assert_eq!(read(last).await, Err(missing));
        let unknown = store.get("other", start).await.err();
        assert_eq!(unknown, Some(SecretError::Unknown("other".into())));
    }
}
