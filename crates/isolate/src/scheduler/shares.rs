//! Whose turn it is among the tenants: who has had least of the CPU for its weight.
//!
//! Each tenant has a time of its own, which goes on with the CPU that its isolates use, and the slower the more weight it
//! has; the one whose time is earliest is next. Who was idle does not come back with all that it did not use meanwhile: it
//! may be behind the others by [`CREDIT`] at most. Pure: what was used comes in, no clock is read.

use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};

/// How far a tenant that was idle may be behind those that were not, in CPU time of one with the weight 1. So much of a
/// call that comes alone goes before everybody's endless loops.
const CREDIT: Duration = Duration::from_millis(2);
/// The least that a turn costs: one that was too short to measure is a turn all the same.
const TURN_MIN: Duration = Duration::from_micros(1);
/// What a nanosecond of CPU is at weight 1, so that what large weights divide it by leaves something.
const UNITS_PER_NANOSECOND: u128 = 1 << 20;

#[derive(Default)]
pub(super) struct Shares {
    tenants: HashMap<u64, Share>,
    /// Those that may have something to run, by their time.
    ready: BTreeSet<TurnOf>,
    /// The latest time at which somebody was served.
    served: u128,
}

struct Share {
    weight: u32,
    time: u128,
    cpu: Duration,
    ready: bool,
}

/// A tenant's place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TurnOf {
    time: u128,
    pub(super) tenant: u64,
}

impl Shares {
    /// Notes a tenant's weight; 0 is taken as 1.
    pub(super) fn set_weight(&mut self, tenant: u64, weight: u32) {
        self.share(tenant).weight = weight.max(1);
    }

    /// CPU time that a tenant has used so far.
    pub(super) fn cpu_of(&self, tenant: u64) -> Duration {
        self.tenants
            .get(&tenant)
            .map_or(Duration::ZERO, |share| share.cpu)
    }

    /// A tenant has something to run.
    pub(super) fn set_ready(&mut self, tenant: u64) {
        let earliest = self.served.saturating_sub(units(CREDIT, 1));
        let share = self.share(tenant);
        if !std::mem::replace(&mut share.ready, true) {
            share.time = share.time.max(earliest);
            let time = share.time;
            self.ready.insert(TurnOf { time, tenant });
        }
    }

    /// A tenant has nothing to run.
    pub(super) fn set_unready(&mut self, tenant: u64) {
        if let Some(share) = self.tenants.get_mut(&tenant)
            && std::mem::replace(&mut share.ready, false)
        {
            let time = share.time;
            self.ready.remove(&TurnOf { time, tenant });
        }
    }

    /// The tenant that comes first.
    pub(super) fn first(&self) -> Option<TurnOf> {
        self.ready.first().copied()
    }

    /// The tenant that comes next.
    pub(super) fn after(&self, turn: TurnOf) -> Option<TurnOf> {
        let later = (std::ops::Bound::Excluded(turn), std::ops::Bound::Unbounded);
        self.ready.range(later).next().copied()
    }

    /// An isolate of a tenant was taken in its turn.
    pub(super) fn served(&mut self, turn: TurnOf) {
        self.served = self.served.max(turn.time);
    }

    /// A tenant was first and can't run yet, for want of a stack. It saves up no more than one that is idle.
    pub(super) fn passed_over(&mut self, tenant: u64) {
        let earliest = self.served.saturating_sub(units(CREDIT, 1));
        let time = self.share(tenant).time.max(earliest);
        self.set_time(tenant, time);
    }

    /// A turn begins that is expected to cost so much.
    pub(super) fn charge(&mut self, tenant: u64, expected: Duration) {
        let share = self.share(tenant);
        let time = share.time + units(expected, share.weight);
        self.set_time(tenant, time);
    }

    /// A turn is over for which `charged` was taken, and which cost `cpu`.
    pub(super) fn settle(&mut self, tenant: u64, charged: Duration, cpu: Duration) {
        let share = self.share(tenant);
        share.cpu += cpu;
        let time = share.time + units(cpu.max(TURN_MIN), share.weight);
        let time = time.saturating_sub(units(charged, share.weight));
        self.set_time(tenant, time);
    }

    fn set_time(&mut self, tenant: u64, time: u128) {
        let Some(share) = self.tenants.get_mut(&tenant) else {
            return;
        };
        let before = std::mem::replace(&mut share.time, time);
        if share.ready {
            self.ready.remove(&TurnOf {
                time: before,
                tenant,
            });
            self.ready.insert(TurnOf { time, tenant });
        }
    }

    fn share(&mut self, tenant: u64) -> &mut Share {
        self.tenants.entry(tenant).or_insert(Share {
            weight: 1,
            time: 0,
            cpu: Duration::ZERO,
            ready: false,
        })
    }
}

fn units(cpu: Duration, weight: u32) -> u128 {
    cpu.as_nanos() * UNITS_PER_NANOSECOND / u128::from(weight)
}
