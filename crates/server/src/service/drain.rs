//! The way down: no new work, what runs finishes, what is left is ended.

use super::Service;
use coracle_loader::Event;

impl Service {
    pub(crate) fn is_draining(&self) -> bool {
        self.lock().core.is_draining()
    }

    pub(crate) fn drain_start(&self) {
        self.with(|state| state.tell(Event::DrainStarted));
    }

    pub(crate) fn drain_deadline(&self) {
        self.with(|state| state.tell(Event::DrainDeadline));
    }

    /// Waits until nothing is in flight after [`Service::drain_start`].
    pub(crate) async fn drained(&self) {
        let notified = self.drained.notified();
        if !self.lock().drain_complete {
            notified.await;
        }
    }
}
