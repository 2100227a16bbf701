//! A caller's hold on its call.

use super::{Service, lost};
use crate::outcome::{Answered, CallAnswer};
use coracle_loader::{CallId, LossCause};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::oneshot;

/// A call's stay in the server.
pub(crate) struct Arrival(pub(super) Arc<Service>);

impl Drop for Arrival {
    fn drop(&mut self) {
        self.0.arrived.fetch_sub(1, Ordering::Relaxed);
        self.0.metrics.call_ended();
    }
}

/// A call under way. Dropping it gives the call up.
pub(crate) struct InFlight {
    pub(super) arrival: Arrival,
    pub(super) call: CallId,
    pub(super) answer: oneshot::Receiver<CallAnswer>,
    pub(super) done: bool,
}

impl InFlight {
    /// Waits for the answer.
    pub(crate) async fn answer(mut self) -> CallAnswer {
        let answer = (&mut self.answer).await;
        self.done = true;
        // The sender is kept until it has answered; a lost one would be a fault of ours, told as such.
        answer.unwrap_or_else(|_| Ok(Answered::of(lost(LossCause::IsolateLost, true))))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if !self.done {
            self.arrival.0.drop_call(self.call);
        }
    }
}
