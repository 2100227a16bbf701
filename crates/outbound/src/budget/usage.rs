//! What was used of one budget in the last stretch of its time.
//!
//! The time is cut into sixteen parts, and what was used in a part is forgotten as a whole, once all of it is longer ago
//! than the budget's time. So seventeen parts are kept, and no stretch of that time, however it is laid, has more in it
//! than the budget allows. A window that starts anew at fixed times would let through twice as much around such a time.

use std::{
    array,
    time::{Duration, Instant},
};

/// How many parts the time is cut into.
const PARTS: u64 = 16;
/// How many are kept.
const KEPT: usize = PARTS as usize + 1;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    Requests,
    Bytes,
}

#[derive(Debug)]
pub(super) struct Usage {
    start: Instant,
    part_nanoseconds: u64,
    /// The part that is now, counted from the start.
    part: u64,
    /// What was used in each part; a part is at its number, modulo how many are kept.
    requests: [u64; KEPT],
    bytes: [u64; KEPT],
}

impl Usage {
    pub(super) fn new(per_seconds: u64, now: Instant) -> Self {
        Self {
            start: now,
            // A budget's time is a month at most, which is no reason to overflow.
            part_nanoseconds: per_seconds.saturating_mul(1_000_000_000) / PARTS,
            part: 0,
            requests: [0; KEPT],
            bytes: [0; KEPT],
        }
    }

    /// Forgets what is long enough ago. A time before the last changes nothing: threads pass theirs in any order.
    pub(super) fn advance(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.start).as_nanos();
        let part = elapsed / u128::from(self.part_nanoseconds.max(1));
        let part = u64::try_from(part).unwrap_or(u64::MAX);
        let passed = part.saturating_sub(self.part).min(KEPT as u64);
        for number in 1..=passed {
            // The last ones that passed: those before have been overwritten by them.
            let index = index_of((part - passed).saturating_add(number));
            self.requests[index] = 0;
            self.bytes[index] = 0;
        }
        self.part = self.part.max(part);
    }

    pub(super) fn used(&self, amount: Amount) -> u64 {
        let parts = self.parts(amount).iter();
        parts.fold(0, |used, part| used.saturating_add(*part))
    }

    /// Adds to what is used now.
    pub(super) fn add(&mut self, amount: Amount, more: u64) {
        let index = index_of(self.part);
        let parts = match amount {
            Amount::Requests => &mut self.requests,
            Amount::Bytes => &mut self.bytes,
        };
        parts[index] = parts[index].saturating_add(more);
    }

    /// Takes back what was added last.
    pub(super) fn remove(&mut self, amount: Amount, mut less: u64) {
        let last = self.part;
        let parts = match amount {
            Amount::Requests => &mut self.requests,
            Amount::Bytes => &mut self.bytes,
        };
        for ago in 0..(KEPT as u64).min(last + 1) {
            let part = &mut parts[index_of(last - ago)];
            let taken = less.min(*part);
            *part -= taken;
            less -= taken;
        }
    }

    /// In how long no more than `rest` will count, if nothing is added.
    pub(super) fn at_most_after(&self, amount: Amount, rest: u64, now: Instant) -> Duration {
        let mut used = self.used(amount);
        for (number, part) in self.oldest_first(amount) {
            if used <= rest {
                break;
            }
            used -= part.min(used);
            if used <= rest {
                return self.forgotten_at(number).saturating_duration_since(now);
            }
        }
        Duration::ZERO
    }

    /// When nothing will count any more, if nothing is added; none if nothing does now.
    pub(super) fn idle_at(&mut self, now: Instant) -> Option<Instant> {
        self.advance(now);
        let last = |amount| {
            let used = self.oldest_first(amount).into_iter();
            used.filter(|(_, used)| *used > 0)
                .map(|(number, _)| number)
                .max()
        };
        let last = last(Amount::Requests).max(last(Amount::Bytes));
        last.map(|number| self.forgotten_at(number))
    }

    fn parts(&self, amount: Amount) -> &[u64; KEPT] {
        match amount {
            Amount::Requests => &self.requests,
            Amount::Bytes => &self.bytes,
        }
    }

    /// What is kept, each with the number of its part.
    fn oldest_first(&self, amount: Amount) -> [(u64, u64); KEPT] {
        let parts = self.parts(amount);
        array::from_fn(|ago| {
            // Before the start there were none, and nothing was used in them.
            let number = (self.part + 1 + ago as u64).saturating_sub(KEPT as u64);
            match self.part + ago as u64 >= PARTS {
                true => (number, parts[index_of(number)]),
                false => (0, 0),
            }
        })
    }

    fn forgotten_at(&self, number: u64) -> Instant {
        let parts = number.saturating_add(KEPT as u64);
        let after = Duration::from_nanos(parts.saturating_mul(self.part_nanoseconds));
        self.start.checked_add(after).unwrap_or(self.start)
    }
}

fn index_of(part: u64) -> usize {
    usize::try_from(part % KEPT as u64).unwrap_or_default()
}
