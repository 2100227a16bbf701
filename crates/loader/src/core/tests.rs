//! Three kinds of tests: sentences (one rule each), a simulation that checks every rule after every
//! random event, and broken variants of the core that the simulation has to catch.

mod model;
mod sentences;
mod simulation;

use super::Core;

/// A rule of the core that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mutation {
    /// A slot counts as free while its isolate is still on its way out.
    SlotFreedTooEarly,
    /// The other calls of an isolate that ends are dropped without an answer.
    LossUnsaid,
    /// The first tenant in line is served until its line is empty.
    TurnsNotTaken,
    /// A worker keeps the place of its isolate after it was asked to end.
    PlaceKept,
    /// The most recently used isolate is evicted.
    NewestEvicted,
    /// Calls that wait survive their session.
    QueueOutlivesSession,
    /// The isolate of a released worker is kept when its last call has finished.
    ReleaseForgotten,
    /// The count of a session's calls goes up and never down.
    QuotaLeaks,
    /// A full queue refuses whoever comes, however long the others' lines are.
    RoomNotMade,
}

impl Mutation {
    pub(super) const ALL: [Self; 9] = [
        Self::SlotFreedTooEarly,
        Self::LossUnsaid,
        Self::TurnsNotTaken,
        Self::PlaceKept,
        Self::NewestEvicted,
        Self::QueueOutlivesSession,
        Self::ReleaseForgotten,
        Self::QuotaLeaks,
        Self::RoomNotMade,
    ];
}

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
    }
}
