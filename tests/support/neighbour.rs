//! A client that minds its own business, and what it noticed of the others.

use super::{answer, client, load};
use coracle_client::{Value, args};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use tokio::task::JoinHandle;

/// Calls a small worker over a connection of its own, again and again.
pub struct Neighbour {
    enough: Arc<AtomicBool>,
    calls: JoinHandle<Vec<Duration>>,
}

/// Calls that it makes at least, so that there is something to judge by.
const CALLS_MIN: usize = 20;

impl Neighbour {
    /// Moves in, and has been answered once when this returns.
    pub async fn of(address: &str) -> Self {
        let coracle = client(address).await;
        let entrypoint = load(&coracle, "add(a, b) { return a + b; }");
        let enough = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&enough);
        answer(&entrypoint, "add", args![1, 2]).await;
        let calls = tokio::spawn(async move {
            let mut times = Vec::new();
            while times.len() < CALLS_MIN || !seen.load(Ordering::Relaxed) {
                let start = Instant::now();
                let sum = super::value(answer(&entrypoint, "add", args![20, 22]).await);
                assert_eq!(sum, Value::from(42));
                times.push(start.elapsed());
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            drop(coracle);
            times
        });
        Self { enough, calls }
    }

    /// What it noticed until now: every call was answered, none after an intolerable time. Returns how many.
    pub async fn was_served(self) -> usize {
        self.enough.store(true, Ordering::Relaxed);
        let times = self.calls.await.expect("all its calls were answered");
        let slowest = times.iter().max().expect("there were calls");
        assert!(
            *slowest < Duration::from_secs(2),
            "the neighbour waited for {slowest:?}"
        );
        times.len()
    }
}
