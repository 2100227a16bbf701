//! What is known of a request while it is under way, and told when it is over.

use crate::{
    Error,
    audit::{Audit, Record},
};
use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};
use tokio_util::sync::CancellationToken;

/// What a record says of a request that nobody waited for any longer.
const CANCELLED: &str = "cancelled";

/// A request under way. When the last of those that have something to add lets go of it, its record is told.
pub struct Trail {
    audit: Arc<dyn Audit>,
    underway: Arc<Underway>,
}

/// What is known of a request so far.
pub struct Underway {
    record: Mutex<Record>,
    sent: AtomicU64,
    received: AtomicU64,
    begun: Instant,
}

impl Underway {
    /// Its record, with what is known now.
    #[must_use]
    pub fn record(&self) -> Record {
        let mut record = self.lock().clone();
        record.bytes_sent = self.sent.load(Ordering::Relaxed);
        record.bytes_received = self.received.load(Ordering::Relaxed);
        record.duration = self.begun.elapsed();
        record
    }

    /// Looks at what is known, without the figures.
    pub fn look<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&self.lock())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trail {
    /// Of what is known already.
    #[must_use]
    pub fn new(audit: &Arc<dyn Audit>, record: Record) -> Arc<Self> {
        let underway = Arc::new(Underway {
            record: Mutex::new(record),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            begun: Instant::now(),
        });
        audit.begun(&underway);
        Arc::new(Self {
            audit: Arc::clone(audit),
            underway,
        })
    }

    /// Of one whose end is not known: it is "cancelled" unless it is settled.
    #[must_use]
    pub fn begun(audit: &Arc<dyn Audit>, mut record: Record) -> Arc<Self> {
        record.error = CANCELLED;
        Self::new(audit, record)
    }

    /// Notes what came of it.
    pub(crate) fn settle<T>(&self, outcome: &Result<T, Error>) {
        self.note(|record| match outcome {
            // (A body or a connection may have failed already.)
            Ok(_) if record.error == CANCELLED => record.error = "",
            Ok(_) => {}
            Err(error) => record.failed(error),
        });
    }

    /// Notes something in its record.
    pub fn note(&self, note: impl FnOnce(&mut Record)) {
        note(&mut self.underway.lock());
    }

    /// Counts what was sent; answers how much it was before.
    pub(crate) fn send(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.underway.sent.fetch_add(bytes, Ordering::Relaxed)
    }

    /// How much was sent so far.
    pub(crate) fn sent(&self) -> u64 {
        self.underway.sent.load(Ordering::Relaxed)
    }

    /// No more than that was sent after all; answers how much more was counted.
    pub(crate) fn unsend(&self, sent: u64) -> u64 {
        self.underway.sent.swap(sent, Ordering::Relaxed) - sent
    }

    pub(crate) fn receive(&self, bytes: usize) {
        let bytes = bytes as u64;
        self.underway.received.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        self.audit.record(self.underway.record());
    }
}

/// Ends what is still being sent of a request when it is dropped; none of one that is sent at once.
pub(crate) struct Upload(Option<CancellationToken>);

impl Upload {
    pub(crate) fn new(is_stream: bool) -> Self {
        Self(is_stream.then(CancellationToken::new))
    }

    /// Where the request's body ends with the response.
    pub(crate) fn over(&self) -> CancellationToken {
        self.0.clone().unwrap_or_default()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(over) = &self.0 {
            over.cancel();
        }
    }
}
