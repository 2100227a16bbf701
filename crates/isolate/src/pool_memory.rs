//! Linear memory of all isolates together, so that many small ones can't do what one large one may not.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// The account that every isolate draws on. A clone is the same account.
#[derive(Clone)]
pub(crate) struct PoolMemory {
    used: Arc<AtomicU64>,
    bytes_max: u64,
}

impl PoolMemory {
    pub(crate) fn new(bytes_max: u64) -> Self {
        Self {
            used: Arc::default(),
            bytes_max,
        }
    }

    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Whether nine tenths are taken, or there is no room for two more isolates of that size.
    pub(crate) fn is_short(&self, fresh_bytes: u64) -> bool {
        let room = (self.bytes_max / 10).max(fresh_bytes.saturating_mul(2));
        self.used().saturating_add(room) > self.bytes_max
    }

    /// Takes all of `bytes` or nothing. One that is refused never makes another one fail.
    pub(crate) fn take(&self, bytes: u64) -> bool {
        let take = |used: u64| {
            used.checked_add(bytes)
                .filter(|taken| *taken <= self.bytes_max)
        };
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
            .is_ok()
    }

    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_short_before_the_last_tenth_and_before_a_fresh_isolate_has_no_room() {
        let memory = PoolMemory::new(100);
        assert!(memory.take(80));
        assert!(!memory.is_short(10) && memory.is_short(11));
        assert!(memory.take(10));
        assert!(!memory.is_short(1));
        assert!(memory.take(1));
        assert!(memory.is_short(1));
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let memory = PoolMemory::new(100);
        assert!(memory.take(60));
        assert!(!memory.take(41));
        assert!(!memory.take(u64::MAX));
        assert_eq!(memory.used(), 60);
        assert!(memory.take(40));
        memory.give_back(60);
        assert_eq!(memory.used(), 40);
    }
}
