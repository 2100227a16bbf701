//! Three kinds of tests: sentences (one rule each), a simulation that checks every rule after every
//! random event, and broken variants of the core that the simulation has to catch.

mod broken;
mod model;
mod sentences;
mod simulation;

pub(super) use broken::Mutation;

use super::Core;

impl Core {
    /// Whether nothing is left in any table.
    fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.workers.is_empty()
            && self.calls.is_empty()
            && self.slots.taken_count() == 0
            && self.slots.idle_count() == 0
            && self.slots.ending_count() == 0
            && self.queue.is_empty()
            && self.deadlines.is_empty()
    }
}
