//! SIGTERM and SIGINT, one after the other.

use crate::failure::Failure;
use tokio::signal::unix::{self, SignalKind};

pub(crate) struct Signals {
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Interrupt,
    Terminate,
}

impl Signals {
    /// From here on, neither of them ends the process by itself.
    pub(crate) fn new() -> Result<Self, Failure> {
        let listen = |kind| {
            unix::signal(kind)
                .map_err(|error| Failure::server(format!("can't listen for signals: {error}")))
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

impl Signal {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}
