//! Room in the server's memory for what no connection accounts for: the code of workers that workers load, and what
//! waits for tails. It is bounded as a whole, and so are parts of it, such as those of tenants and sessions.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What a worker takes besides its code.
const WORKER_BYTES: u64 = 2_048;

/// A sum of bytes with a maximum, part of a larger one.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: AtomicU64,
    bytes_max: u64,
    whole: Option<Arc<Self>>,
}

/// There is no room for the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the workers that were loaded by workers or got by an id take {bytes_max} bytes together, the maximum: dispose of some"
)]
pub struct Full {
    bytes_max: u64,
}

impl Room {
    pub(crate) fn new(bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            bytes_max,
            whole: None,
        })
    }

    /// A part of this, with a maximum of its own.
    pub(crate) fn part(self: &Arc<Self>, bytes_max: u64) -> Arc<Self> {
        Arc::new(Self {
            bytes: AtomicU64::new(0),
            bytes_max,
            whole: Some(Arc::clone(self)),
        })
    }

    /// Takes room for a worker's code.
    pub(crate) fn take_for_code(self: &Arc<Self>, code_bytes: u64) -> Result<Taken, Full> {
        self.take(code_bytes.saturating_add(WORKER_BYTES))
    }

    /// Takes room, here and in all that this is a part of.
    pub(crate) fn take(self: &Arc<Self>, bytes: u64) -> Result<Taken, Full> {
        self.add(bytes)?;
        Ok(Taken {
            of: Arc::clone(self),
            bytes,
        })
    }

    fn add(&self, bytes: u64) -> Result<(), Full> {
        let add = |taken: u64| {
            let sum = taken.saturating_add(bytes);
            (sum <= self.bytes_max).then_some(sum)
        };
        self.bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .map_err(|_| Full {
                bytes_max: self.bytes_max,
            })?;
        let of_whole = self.whole.as_ref().map_or(Ok(()), |whole| whole.add(bytes));
        if of_whole.is_err() {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        of_whole
    }
}

/// Room that has been taken. It is given back with this.
#[derive(Debug)]
pub(crate) struct Taken {
    of: Arc<Room>,
    bytes: u64,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut room = Some(&self.of);
        while let Some(of) = room {
            of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
            room = of.whole.as_ref();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_takes_nothing_and_what_is_dropped_is_given_back() {
        let all = Room::new(3 * WORKER_BYTES);
        let (one, other) = (all.part(2 * WORKER_BYTES), all.part(2 * WORKER_BYTES));
        let first = one.take_for_code(0).expect("there is room");
        let second = one.take_for_code(0).expect("there is room");
        assert!(one.take_for_code(0).is_err(), "its own part is full");
        let third = other.take_for_code(0).expect("there is room");
        assert!(other.take_for_code(0).is_err(), "the whole is full");
        drop((first, third));
        let again = other
            .take_for_code(WORKER_BYTES)
            .expect("that is free again");
        drop((second, again));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(one.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_part_of_a_part_counts_in_all_of_them() {
        let all = Room::new(4);
        let tenant = all.part(2);
        let session = tenant.part(1);
        let taken = session.take(1).expect("there is room");
        assert!(session.take(1).is_err(), "the session's part is full");
        let sibling = tenant.part(1);
        let also = sibling
            .take(1)
            .expect("another session of the tenant's has its own");
        assert!(tenant.part(1).take(1).is_err(), "the tenant's part is full");
        assert!(all.part(2).take(2).is_ok(), "another tenant has its own");
        drop((taken, also));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sums_that_overflow_do_not_fit() {
        assert!(Room::new(1_000).take_for_code(u64::MAX).is_err());
    }
}
