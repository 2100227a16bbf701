//! What calls have opened to the outside: connections, and bodies that come from there.
//!
//! As in Workers, they are of the call that opened them. They are there while the call is under way or held open, and while
//! somebody outside of the isolate has an object or a stream that the call gave out, for that may be fed by them. Calls of
//! such an object go on with what the first call opened.

use crate::service::Service;
use std::sync::Weak;

/// What is answered to who uses a connection afterwards.
pub(crate) const OVER: &str = "The call that opened this connection is over, and the connection is closed: \
                               `ctx.waitUntil` holds a call open.";

/// Held by all that keep what a call has opened; dropping the last closes it.
pub(crate) struct Opened {
    service: Weak<Service>,
    isolate: u64,
    /// The invocation's number.
    id: u64,
}

impl Opened {
    pub(crate) fn new(service: &Weak<Service>, isolate: u64, id: u64) -> Self {
        Self {
            service: Weak::clone(service),
            isolate,
            id,
        }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if let Some(service) = self.service.upgrade() {
            service.on_opened_over(self.isolate, self.id);
        }
    }
}
