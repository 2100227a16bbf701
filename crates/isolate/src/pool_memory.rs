//! Linear memory of all isolates together, so that many small ones can't do what one large one may not.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

/// What all isolates draw on, and apart from it what the isolates of each tenant do. A clone is the same.
#[derive(Clone)]
pub struct PoolMemory {
    pool: Account,
    bytes_max: Arc<AtomicU64>,
    /// One that has been here stays: there are as many as can log in.
    tenants: Arc<Mutex<HashMap<u64, Account>>>,
}

/// Bytes that are taken.
#[derive(Clone, Default)]
struct Account(Arc<AtomicU64>);

/// What one isolate has taken, of the pool's and of its tenant's. Goes back when it is dropped.
pub(crate) struct Purse {
    pool: Account,
    pool_bytes_max: Arc<AtomicU64>,
    tenant: Account,
    tenant_bytes_max: u64,
    taken: u64,
}

/// There is not enough left.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct PurseEmpty {
    pub(crate) limit_name: &'static str,
    /// What would be taken then; more than the limit.
    pub(crate) used: u64,
    pub(crate) limit: u64,
}

impl PoolMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            pool: Account::default(),
            bytes_max: Arc::new(AtomicU64::new(bytes_max)),
            tenants: Arc::default(),
        }
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.pool.used()
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max.load(Ordering::Relaxed)
    }

    /// Sets what may be taken altogether, in bytes. What is taken already stays taken.
    pub fn set_bytes_max(&self, bytes_max: u64) {
        self.bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// Tenants that have had isolates.
    pub(crate) fn tenants(&self) -> Vec<u64> {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.keys().copied().collect()
    }

    /// What the isolates of a tenant have taken.
    pub(crate) fn used_by(&self, tenant: u64) -> u64 {
        let tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        tenants.get(&tenant).map_or(0, Account::used)
    }

    /// Whether nine tenths are taken, or there is no room for two more isolates of that size.
    pub(crate) fn is_short(&self, fresh_bytes: u64) -> bool {
        let bytes_max = self.bytes_max();
        let room = (bytes_max / 10).max(fresh_bytes.saturating_mul(2));
        self.used().saturating_add(room) > bytes_max
    }

    /// Whether more than half is taken.
    pub(crate) fn is_half_used(&self) -> bool {
        self.used() > self.bytes_max() / 2
    }

    /// For an isolate of a tenant whose isolates may take so much together.
    pub(crate) fn purse(&self, tenant: u64, tenant_bytes_max: u64) -> Purse {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        Purse {
            pool: self.pool.clone(),
            pool_bytes_max: Arc::clone(&self.bytes_max),
            tenant: tenants.entry(tenant).or_default().clone(),
            tenant_bytes_max,
            taken: 0,
        }
    }
}

impl Purse {
    /// Takes all of `bytes` or nothing. One that is refused never makes another one fail.
    pub(crate) fn take(&mut self, bytes: u64) -> Result<(), PurseEmpty> {
        let tenant = ("tenant_memory_bytes_max", self.tenant_bytes_max);
        self.tenant.take(bytes, tenant)?;
        let pool = (
            "pool_memory_bytes_max",
            self.pool_bytes_max.load(Ordering::Relaxed),
        );
        if let Err(empty) = self.pool.take(bytes, pool) {
            self.tenant.give_back(bytes);
            return Err(empty);
        }
        self.taken += bytes;
        Ok(())
    }
}

impl Purse {
    /// Gives everything back.
    pub(crate) fn empty(&mut self) {
        let taken = std::mem::take(&mut self.taken);
        self.pool.give_back(taken);
        self.tenant.give_back(taken);
    }
}

impl Drop for Purse {
    fn drop(&mut self) {
        self.empty();
    }
}

impl Account {
    fn used(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: u64, (limit_name, limit): (&'static str, u64)) -> Result<(), PurseEmpty> {
        let take = |used: u64| used.checked_add(bytes).filter(|taken| *taken <= limit);
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
        match taken {
            Ok(_) => Ok(()),
            Err(used) => Err(PurseEmpty {
                limit_name,
                used: used.saturating_add(bytes),
                limit,
            }),
        }
    }

    fn give_back(&self, bytes: u64) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_before_the_last_tenth_and_before_a_fresh_isolate_has_no_room() {
        let memory = PoolMemory::new(100);
        let mut purse = memory.purse(1, u64::MAX);
        assert_eq!(purse.take(80), Ok(()));
        assert!(!memory.is_short(10) && memory.is_short(11));
        assert_eq!(purse.take(10), Ok(()));
        assert!(!memory.is_short(1));
        assert_eq!(purse.take(1), Ok(()));
        assert!(memory.is_short(1));
    }

    #[test]
    fn what_does_not_fit_changes_nothing_and_names_whose_bound_it_is() {
        let memory = PoolMemory::new(100);
        let (mut one, mut other) = (memory.purse(1, 70), memory.purse(2, u64::MAX));
        assert_eq!(one.take(60), Ok(()));
        let empty = |limit_name, used, limit| {
            Err(PurseEmpty {
                limit_name,
                used,
                limit,
            })
        };
        assert_eq!(one.take(11), empty("tenant_memory_bytes_max", 71, 70));
        assert_eq!(other.take(41), empty("pool_memory_bytes_max", 101, 100));
        let all = u64::MAX;
        assert_eq!(other.take(all), empty("pool_memory_bytes_max", all, 100));
        assert_eq!(
            (memory.used(), memory.used_by(1), memory.used_by(2)),
            (60, 60, 0)
        );
        assert_eq!(other.take(40), Ok(()));
        drop(one);
        assert_eq!(
            (memory.used(), memory.used_by(1), memory.used_by(2)),
            (40, 0, 40)
        );
    }

    #[test]
    fn the_isolates_of_a_tenant_share_its_bound() {
        let memory = PoolMemory::new(100);
        let (mut one, mut other) = (memory.purse(1, 50), memory.purse(1, 50));
        assert_eq!(one.take(30), Ok(()));
        assert!(other.take(30).is_err());
        assert_eq!(other.take(20), Ok(()));
    }
}
