//! How many connections may be open at once: of all tenants together, because each is an open file of the process, and of
//! each tenant, so that none has all of them.

use crate::{Error, clients::Clients};
use rustix::process::{Resource, getrlimit};
use std::{
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

/// Files that a server needs for itself, besides those of its clients and of DNS.
const FILES_OWN: usize = 100;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Requests, and what they become: WebSockets.
    Http,
    /// `connect()`.
    Socket,
}

/// Connections that are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Of HTTP, in use and idle, WebSockets among them.
    pub http: usize,
    /// By `connect()`.
    pub socket: usize,
    /// How many there may be.
    pub max: usize,
}

/// Places for connections.
pub(crate) struct Places {
    all: Limit,
    per_tenant_max: usize,
    open: [AtomicUsize; 2],
    /// Who may have connections that are idle.
    clients: Mutex<Vec<Weak<Clients>>>,
}

/// A limit, and what is left of it.
pub(crate) struct Limit {
    name: &'static str,
    max: usize,
    left: Arc<Semaphore>,
}

impl Limit {
    pub(crate) fn new(name: &'static str, max: usize) -> Self {
        let max = max.min(Semaphore::MAX_PERMITS);
        Self {
            name,
            max,
            left: Arc::new(Semaphore::new(max)),
        }
    }

    /// # Errors
    /// All places are taken.
    pub(crate) fn try_take(&self) -> Result<OwnedSemaphorePermit, Error> {
        let taken = Arc::clone(&self.left).try_acquire_owned();
        taken.map_err(|_| self.used_up())
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.left.available_permits() == 0
    }

    async fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.left).acquire_owned().await.ok()
    }

    fn used_up(&self) -> Error {
        Error::Connections {
            limit: self.name,
            max: self.max,
            used: self.max.saturating_sub(self.left.available_permits()),
        }
    }
}

/// A place that a connection has.
pub(crate) struct Place {
    places: Arc<Places>,
    r#use: Use,
    _taken: Vec<OwnedSemaphorePermit>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open[self.r#use as usize].fetch_sub(1, Ordering::Relaxed);
    }
}

impl Places {
    pub(crate) fn new(max: usize, per_tenant_max: Option<usize>) -> Arc<Self> {
        Arc::new(Self {
            all: Limit::new("outbound_connections_max", max),
            per_tenant_max: per_tenant_max.unwrap_or(max.div_ceil(2)),
            open: Default::default(),
            clients: Mutex::default(),
        })
    }

    pub(crate) fn connections(&self) -> Connections {
        let [http, socket] = &self.open;
        Connections {
            http: http.load(Ordering::Relaxed),
            socket: socket.load(Ordering::Relaxed),
            max: self.all.max,
        }
    }

    /// What one tenant may have of them.
    pub(crate) fn of_tenant(&self) -> Limit {
        Limit::new("outbound_connections_per_tenant_max", self.per_tenant_max)
    }

    /// Connections of these make room when they are idle.
    pub(crate) fn know(&self, clients: &Arc<Clients>) {
        let mut known = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|clients| clients.strong_count() > 0);
        known.push(Arc::downgrade(clients));
    }

    /// Takes a place within all of these limits and that of all tenants. Waits for one as long as `patience`.
    ///
    /// # Errors
    /// None became free: which limit was in the way.
    pub(crate) async fn take(
        self: &Arc<Self>,
        r#use: Use,
        limits: &[&Limit],
        patience: Duration,
    ) -> Result<Place, Error> {
        let limits = || limits.iter().copied().chain([&self.all]);
        let mut taken = Vec::with_capacity(limits().count());
        let take = async {
            for limit in limits() {
                if std::ptr::eq(limit, &self.all) && limit.is_used_up() {
                    self.let_idle_go();
                }
                taken.extend(limit.take().await);
            }
        };
        if timeout(patience, take).await.is_err() {
            let mut missing = limits().skip(taken.len());
            return Err(missing.next().unwrap_or(&self.all).used_up());
        }
        self.open[r#use as usize].fetch_add(1, Ordering::Relaxed);
        Ok(Place {
            places: Arc::clone(self),
            r#use,
            _taken: taken,
        })
    }

    fn let_idle_go(&self) {
        let known = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .filter_map(Weak::upgrade)
            .for_each(|clients| clients.let_idle_go());
    }
}

/// How many connections may be open in a process with so many files (`RLIMIT_NOFILE`; none is any number), of which so many
/// are for others: what those leave, and at least a quarter.
pub(crate) fn connections_max(files_max: Option<u64>, reserved: usize) -> usize {
    let files = files_max.map_or(usize::MAX, |max| usize::try_from(max).unwrap_or(usize::MAX));
    let left = files.saturating_sub(reserved).saturating_sub(FILES_OWN);
    left.max(files / 4).clamp(1, Semaphore::MAX_PERMITS)
}

/// Files that this process may have open.
pub(crate) fn files_max() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Others always find room, and connections do even where there are few files.
    #[test]
    fn the_files_of_a_process_are_shared_with_its_clients() {
        assert_eq!(connections_max(Some(65_536), 1_256), 64_180);
        assert_eq!(connections_max(Some(1_024), 1_256), 256);
        assert_eq!(connections_max(Some(0), 0), 1);
        assert_eq!(connections_max(None, 5), Semaphore::MAX_PERMITS);
    }

    /// A limit that is used up says its name, its value and the use, and a place that is given back can be taken again.
    #[tokio::test(start_paused = true)]
    async fn the_limit_in_the_way_is_named() {
        let places = Places::new(3, Some(2));
        let (one, other) = (places.of_tenant(), places.of_tenant());
        let take = async |tenant| {
            places
                .take(Use::Socket, &[tenant], Duration::from_millis(5))
                .await
        };
        let (first, _second) = (take(&one).await, take(&one).await);
        let refused = |place: Result<Place, Error>| match place.err() {
            Some(Error::Connections { limit, max, used }) => (limit, max, used),
            other => panic!("{other:?}"),
        };
        let per_tenant = ("outbound_connections_per_tenant_max", 2, 2);
        assert_eq!(refused(take(&one).await), per_tenant);
        let third = take(&other).await;
        assert_eq!(
            refused(take(&other).await),
            ("outbound_connections_max", 3, 3)
        );
        assert_eq!(
            places.connections(),
            Connections {
                http: 0,
                socket: 3,
                max: 3
            }
        );
        drop(first);
        assert!(take(&other).await.is_ok() && third.is_ok());
    }
}
