//! What the code takes of workers that workers load. No connection accounts for it, so it is bounded here: for each
//! session, and for all together.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

/// What a worker takes besides its code.
const WORKER_BYTES: u64 = 2_048;

/// A sum of bytes with a maximum, part of a larger one.
#[derive(Debug)]
pub(crate) struct CodeBytes {
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

impl CodeBytes {
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
    pub(crate) fn take(self: &Arc<Self>, code_bytes: u64) -> Result<Taken, Full> {
        let bytes = code_bytes.saturating_add(WORKER_BYTES);
        let whole = match &self.whole {
            Some(whole) => Some(Box::new(whole.take_exactly(bytes)?)),
            None => None,
        };
        let mut taken = self.take_exactly(bytes)?;
        taken.whole = whole;
        Ok(taken)
    }

    fn take_exactly(self: &Arc<Self>, bytes: u64) -> Result<Taken, Full> {
        let add = |taken: u64| {
            let sum = taken.saturating_add(bytes);
            (sum <= self.bytes_max).then_some(sum)
        };
        let added = self
            .bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        match added {
            Ok(_) => Ok(Taken {
                of: Arc::clone(self),
                bytes,
                whole: None,
            }),
            Err(_) => Err(Full {
                bytes_max: self.bytes_max,
            }),
        }
    }
}

/// Room that has been taken. It is given back with this.
#[derive(Debug)]
pub(crate) struct Taken {
    of: Arc<CodeBytes>,
    bytes: u64,
    whole: Option<Box<Self>>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        drop(self.whole.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_takes_nothing_and_what_is_dropped_is_given_back() {
        let all = CodeBytes::new(3 * WORKER_BYTES);
        let (one, other) = (all.part(2 * WORKER_BYTES), all.part(2 * WORKER_BYTES));
        let first = one.take(0).expect("there is room");
        let second = one.take(0).expect("there is room");
        assert!(one.take(0).is_err(), "its own part is full");
        let third = other.take(0).expect("there is room");
        assert!(other.take(0).is_err(), "the whole is full");
        drop((first, third));
        let again = other.take(WORKER_BYTES).expect("that is free again");
        drop((second, again));
        assert_eq!(all.bytes.load(Ordering::Relaxed), 0);
        assert_eq!(one.bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn sums_that_overflow_do_not_fit() {
        assert!(CodeBytes::new(1_000).take(u64::MAX).is_err());
    }
}
