//! The admin endpoint: probes, metrics and the version over HTTP, for the kubelet, Prometheus and people.
//!
//! It has a thread and a runtime of its own, so that it answers while RPC and isolate threads are busy or stuck. What
//! it asks of the rest of the server goes through [`Probe`], on other threads and with a time limit: a check that does
//! not come back is a red answer, never a silent one. It only reads; there is no login, and nothing here may ever
//! change the server or tell what a client did. The server starts one and drops it last.

mod connection;
mod endpoints;

use self::connection::OneRequestListener;
use crate::metrics::Metrics;
use coracle_isolate::{Health, Stats};
use std::{
    io,
    net::{SocketAddr, TcpListener},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};
use tokio::{
    runtime::{Builder, Runtime},
    sync::oneshot,
    time,
};

/// Checks that may be under way at once, each on a thread. More wait for their turn, within their own time limit.
const CHECKS_AT_ONCE_MAX: usize = 4;
/// How long [`Admin`]'s drop waits for answers under way.
const STOP_TIME_MAX: Duration = Duration::from_secs(1);

/// What the endpoint asks of the server. May block: it is asked on a thread that nobody else waits for.
pub trait Probe: Send + Sync {
    /// Whether the process works. Red means that only a new one will.
    ///
    /// # Errors
    /// The reasons, one a line.
    fn live(&self) -> Result<(), String>;

    /// Whether new clients should be sent here. Asked together with [`live`](Self::live); both must be well.
    ///
    /// # Errors
    /// The reasons, one a line.
    fn ready(&self) -> Result<(), String>;

    /// The scheduler's figures, and how many isolates there may be.
    fn stats(&self) -> (Stats, Health, u32);
}

/// What the endpoint shows.
#[derive(Clone)]
pub struct AdminState {
    /// Served under `/metrics`; its build under `/version`.
    pub metrics: Arc<Metrics>,
    /// Asked by the rest.
    pub probe: Arc<dyn Probe>,
    /// Names that the `Host` header may have, besides IP addresses and `localhost`.
    pub hosts_allowed: Vec<String>,
}

/// A running admin endpoint. Dropping it lets answers under way finish, for a second at most, and frees the address.
pub struct Admin {
    local_addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Admin {
    /// Binds the address, then serves it.
    ///
    /// # Errors
    /// When the address can't be bound, or there is no thread to be had.
    pub fn start(addr: SocketAddr, state: AdminState) -> io::Result<Self> {
        let listener = TcpListener::bind(addr)?;
        listener.set_nonblocking(true)?;
        let local_addr = listener.local_addr()?;
        let runtime = Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .thread_name("admin-check")
            .max_blocking_threads(CHECKS_AT_ONCE_MAX)
            .build()?;
        let listener = {
            let _entered = runtime.enter();
            OneRequestListener::new(listener)?
        };
        let (stop, stopped) = oneshot::channel();
        let thread = thread::Builder::new()
            .name("admin".into())
            .spawn(move || run(runtime, listener, state, stopped))?;
        Ok(Self {
            local_addr,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// The address that is served; its port is the one that was bound where 0 was asked for.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The thread's life.
fn run(
    runtime: Runtime,
    listener: OneRequestListener,
    state: AdminState,
    stopped: oneshot::Receiver<()>,
) {
    let router = endpoints::router(state);
    let (closing, closed) = oneshot::channel();
    let serving = async {
        axum::serve(listener, router)
            .with_graceful_shutdown(async {
                let _ = stopped.await;
                let _ = closing.send(());
            })
            .await
    };
    let out_of_time = async {
        let _ = closed.await;
        time::sleep(STOP_TIME_MAX).await;
    };
    runtime.block_on(async {
        tokio::select! {
            _ = serving => {}
            () = out_of_time => {}
        }
    });
    // A check that is stuck keeps its thread; nobody waits for it.
    runtime.shutdown_background();
}
