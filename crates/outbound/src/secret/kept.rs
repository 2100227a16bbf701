//! A value that is read elsewhere and kept: read again from time to time, by one reader at a time, whoever asks.

use super::SecretError;
use futures::{
    FutureExt,
    future::{BoxFuture, Shared},
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// After a failure, how long nobody tries again: what fails at once would else be asked once a request.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// How old a value must be before it is read again because it was refused: else who can make a server refuse could have
/// it read once a request.
const REFUSED_INTERVAL: Duration = Duration::from_secs(10);
/// How long a new value is waited for while there is still an old one.
const PATIENCE: Duration = Duration::from_secs(2);

/// A value with its reader.
pub(crate) struct Kept<T> {
    /// For the log.
    name: Arc<str>,
    slot: Arc<Mutex<Slot<T>>>,
}

struct Slot<T> {
    value: Option<Read<T>>,
    failure: Option<(Instant, SecretError)>,
    reading: Option<Reading<T>>,
}

type Reading<T> = Shared<BoxFuture<'static, Result<T, SecretError>>>;

struct Read<T> {
    value: T,
    read_at: Instant,
    fresh_until: Instant,
    usable_until: Instant,
}

/// A value that was read.
pub(crate) struct Renewed<T> {
    pub(crate) value: T,
    /// After what time it is read again.
    pub(crate) fresh_for: Duration,
    /// How long it is good where reading it again fails.
    pub(crate) usable_for: Duration,
}

impl<T: Clone + Send + Sync + 'static> Kept<T> {
    pub(crate) fn new(name: &str) -> Self {
        let slot = Slot {
            value: None,
            failure: None,
            reading: None,
        };
        Self {
            name: name.into(),
            slot: Arc::new(Mutex::new(slot)),
        }
    }

    /// The value, read with `renew` where there is none or it is due. Reading goes on in a task of its own, so that it
    /// ends however many of those who wait for it go away.
    pub(crate) async fn get<F>(
        &self,
        now: Instant,
        renew: impl FnOnce() -> F,
    ) -> Result<T, SecretError>
    where
        F: Future<Output = Result<Renewed<T>, SecretError>> + Send + 'static,
    {
        let (old, reading) = {
            let mut slot = lock(&self.slot);
            let old = slot.usable(now);
            if slot.is_fresh(now)
                && let Some(value) = old
            {
                return Ok(value);
            }
            if let Some(failure) = slot.recent_failure(now) {
                return old.ok_or(failure);
            }
            let reading = match &slot.reading {
                Some(reading) => reading.clone(),
                None => slot.reading.insert(self.read(now, renew())).clone(),
            };
            (old, reading)
        };
        match old {
            None => reading.await,
            Some(old) => match tokio::time::timeout(PATIENCE, reading).await {
                Ok(Ok(new)) => Ok(new),
                Ok(Err(_)) | Err(_) => Ok(old),
            },
        }
    }

    fn read<F>(&self, now: Instant, renewing: F) -> Reading<T>
    where
        F: Future<Output = Result<Renewed<T>, SecretError>> + Send + 'static,
    {
        let over = Over(Arc::clone(&self.slot));
        let name = Arc::clone(&self.name);
        let task = tokio::spawn(async move {
            let read = renewing.await;
            let mut slot = lock(&over.0);
            match &read {
                Ok(renewed) => slot.keep(renewed, now),
                Err(error) => {
                    let is_kept = slot.usable(now).is_some();
                    tracing::warn!(secret = %name, %error, is_kept, "secret not read");
                    slot.failure = Some((now, error.clone()));
                }
            }
            drop(slot);
            read.map(|renewed| renewed.value)
        });
        task.map(|read| read.unwrap_or(Err(SecretError::BrokenOff)))
            .boxed()
            .shared()
    }

    /// Has a value read again that was refused where it was sent, and says whether another try may go differently.
    pub(crate) fn refused(&self, now: Instant, is_it: impl FnOnce(&T) -> bool) -> bool {
        let mut slot = lock(&self.slot);
        match &mut slot.value {
            Some(read) if !is_it(&read.value) => true,
            Some(read) if now.saturating_duration_since(read.read_at) < REFUSED_INTERVAL => false,
            Some(read) => {
                read.fresh_until = now;
                true
            }
            None => true,
        }
    }

    /// Why it was last not read, until it is read.
    pub(crate) fn failure(&self) -> Option<SecretError> {
        let slot = lock(&self.slot);
        slot.failure.as_ref().map(|(_, error)| error.clone())
    }
}

impl<T: Clone> Slot<T> {
    /// The value, unless it is too old; then it is dropped.
    fn usable(&mut self, now: Instant) -> Option<T> {
        self.value = self.value.take().filter(|read| now < read.usable_until);
        self.value.as_ref().map(|read| read.value.clone())
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.value
            .as_ref()
            .is_some_and(|read| now < read.fresh_until)
    }

    fn recent_failure(&self, now: Instant) -> Option<SecretError> {
        let (at, error) = self.failure.as_ref()?;
        let is_recent = now.saturating_duration_since(*at) < RETRY_INTERVAL;
        is_recent.then(|| error.clone())
    }

    fn keep(&mut self, renewed: &Renewed<T>, now: Instant) {
        self.failure = None;
        self.value = Some(Read {
            value: renewed.value.clone(),
            read_at: now,
            fresh_until: now + renewed.fresh_for,
            usable_until: now + renewed.usable_for,
        });
    }
}

/// That nobody reads any more, however that came.
struct Over<T>(Arc<Mutex<Slot<T>>>);

impl<T> Drop for Over<T> {
    fn drop(&mut self) {
        lock(&self.0).reading = None;
    }
}

/// A slot is whole at any time: nothing that can panic runs while it is locked.
fn lock<T>(slot: &Mutex<Slot<T>>) -> MutexGuard<'_, Slot<T>> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A source that counts how often it is read, and fails while it is told to.
    #[derive(Default)]
    struct Source {
        reads: AtomicU64,
        fails: std::sync::atomic::AtomicBool,
        delay: Mutex<Duration>,
    }

    const ERROR: SecretError = SecretError::Empty;

    impl Source {
        async fn read(self: Arc<Self>) -> Result<Renewed<u64>, SecretError> {
            let value = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
            let delay = *self.delay.lock().expect("a delay");
            tokio::time::sleep(delay).await;
            match self.fails.load(Ordering::Relaxed) {
                true => Err(ERROR),
                false => Ok(Renewed {
                    value,
                    fresh_for: Duration::from_secs(300),
                    usable_for: Duration::from_secs(1000),
                }),
            }
        }

        fn set_delay(&self, seconds: u64) {
            *self.delay.lock().expect("a delay") = Duration::from_secs(seconds);
        }
    }

    struct Case {
        source: Arc<Source>,
        kept: Kept<u64>,
        start: Instant,
    }

    impl Case {
        fn new() -> Self {
            Self {
                source: Arc::default(),
                kept: Kept::new("x"),
                start: Instant::now(),
            }
        }

        fn at(&self, seconds: u64) -> Instant {
            self.start + Duration::from_secs(seconds)
        }

        async fn get(&self, seconds: u64) -> Result<u64, SecretError> {
            let source = Arc::clone(&self.source);
            self.kept.get(self.at(seconds), || source.read()).await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_value_is_read_once_until_it_is_due() {
        let case = Case::new();
        case.source.set_delay(1);
        let first = futures::join!(case.get(0), case.get(0), case.get(0));
        assert_eq!(first, (Ok(1), Ok(1), Ok(1)), "one reader for all");
        assert_eq!(case.get(299).await, Ok(1));
        assert_eq!(case.get(300).await, Ok(2));
        assert_eq!(case.get(301).await, Ok(2));
    }

    /// What fails is not asked at every call, and the old value is good for its time and no longer.
    #[tokio::test(start_paused = true)]
    async fn an_old_value_outlives_failures_for_a_time() {
        let case = Case::new();
        assert_eq!(case.get(0).await, Ok(1));
        case.source.fails.store(true, Ordering::Relaxed);
        assert_eq!(case.get(300).await, Ok(1));
        assert_eq!(case.kept.failure(), Some(ERROR));
        assert_eq!(case.get(304).await, Ok(1));
        assert_eq!(case.source.reads.load(Ordering::Relaxed), 2);
        assert_eq!(case.get(305).await, Ok(1));
        assert_eq!(case.source.reads.load(Ordering::Relaxed), 3);
        assert_eq!(case.get(999).await, Ok(1));
        assert_eq!(case.get(1000).await, Err(ERROR));
        case.source.fails.store(false, Ordering::Relaxed);
        assert_eq!(case.get(1003).await, Err(ERROR), "too early for a retry");
        assert_eq!(case.get(1004).await, Ok(5));
        assert_eq!(case.kept.failure(), None);
    }

    /// A reader goes on when the one who came first goes away: else one who always goes away would keep it from others.
    #[tokio::test(start_paused = true)]
    async fn reading_outlives_who_asked_first() {
        let case = Case::new();
        case.source.set_delay(1);
        let impatient = tokio::time::timeout(Duration::from_millis(1), case.get(0)).await;
        assert!(impatient.is_err());
        assert_eq!(case.get(0).await, Ok(1));
        assert_eq!(case.source.reads.load(Ordering::Relaxed), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_source_holds_nobody_up_while_there_is_an_old_value() {
        let case = Case::new();
        assert_eq!(case.get(0).await, Ok(1));
        case.source.set_delay(60);
        let asked = tokio::time::Instant::now();
        assert_eq!(case.get(300).await, Ok(1));
        assert_eq!(asked.elapsed(), PATIENCE);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(case.get(302).await, Ok(2));
    }

    /// Refusals read it anew, but not as often as somebody likes.
    #[tokio::test(start_paused = true)]
    async fn a_refused_value_is_read_again() {
        let case = Case::new();
        assert_eq!(case.get(0).await, Ok(1));
        assert!(!case.kept.refused(case.at(9), |value| *value == 1));
        assert_eq!(case.get(9).await, Ok(1));
        assert!(case.kept.refused(case.at(10), |value| *value == 1));
        assert_eq!(case.get(10).await, Ok(2));
        let has_changed = case.kept.refused(case.at(11), |value| *value == 1);
        assert!(has_changed, "a newer one is there already");
        assert_eq!(case.get(11).await, Ok(2));
    }

    #[tokio::test(start_paused = true)]
    async fn a_reader_that_panics_is_an_error() {
        let case = Case::new();
        let read = case.kept.get(case.at(0), || async { panic!("a bug") });
        assert_eq!(read.await, Err(SecretError::BrokenOff));
        assert_eq!(case.get(0).await, Ok(1));
    }
}
