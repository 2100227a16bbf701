//! What must be true whatever a client has sent: nothing panicked, everything that it caused is gone, the process has
//! not grown, and an honest client is served.

use super::scenario::Client;
use coracle_loader::Gauges;
use coracle_server::Server;
use std::{
    fs,
    sync::{
        Mutex, Once, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// How long the server has to clean up after a client. A second of it may be a guest's last one.
const CLEAN_UP_TIME_MAX: Duration = Duration::from_secs(120);
/// How long an honest client may wait on a machine that has other things to do.
pub(super) const ANSWER_TIME_MAX: Duration = Duration::from_secs(120);
/// How much the process may have grown in all since the oracle began to watch.
const GROWTH_BYTES_MAX: u64 = 400 << 20;

static HOOK: Once = Once::new();
static PANICS: AtomicU64 = AtomicU64::new(0);
static PANIC_LAST: Mutex<String> = Mutex::new(String::new());

/// Watches a server.
pub(super) struct Oracle {
    bytes_before: u64,
}

impl Oracle {
    /// From now on every panic in the process counts, also one that is caught.
    pub(super) fn new() -> Self {
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                PANICS.fetch_add(1, Ordering::Relaxed);
                *PANIC_LAST.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
                before(panic);
            }));
        });
        Self {
            bytes_before: resident_bytes(),
        }
    }

    /// What is wrong, if anything is. Needs a `LocalSet`.
    pub(super) async fn check(&self, server: &Server) -> Result<(), String> {
        self.check_panics()?;
        let deadline = Instant::now() + CLEAN_UP_TIME_MAX;
        loop {
            let (gauges, held_bytes) = (server.service().gauges(), server.held_bytes());
            if gauges == Gauges::default() && held_bytes == 0 {
                break;
            }
            if Instant::now() > deadline {
                return Err(format!(
                    "{held_bytes} bytes are held, and there is {gauges:?}"
                ));
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let honest = Client::over(server.connect());
        match tokio::time::timeout(ANSWER_TIME_MAX, honest.is_served()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(format!("an honest client was told: {error}")),
            Err(_) => return Err("an honest client is not served".into()),
        }
        drop(honest);
        let grown = resident_bytes().saturating_sub(self.bytes_before);
        if grown > GROWTH_BYTES_MAX {
            return Err(format!("the process has grown by {} MiB", grown >> 20));
        }
        self.check_panics()
    }

    pub(super) fn check_panics(&self) -> Result<(), String> {
        match PANICS.load(Ordering::Relaxed) {
            0 => Ok(()),
            count => {
                let last = PANIC_LAST.lock().unwrap_or_else(PoisonError::into_inner);
                Err(format!("{count} panics, the last: {last}"))
            }
        }
    }
}

fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap_or("0 kB");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .unwrap_or(0)
        * 1024
}
