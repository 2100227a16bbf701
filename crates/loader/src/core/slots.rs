//! The isolates: a slot each, with the calls inside and the order of the idle ones.
//!
//! A slot and its list of calls are reused by the next isolate, so a fresh isolate allocates
//! nothing. The idle slots of each tenant form a doubly linked list through the slots themselves:
//! putting one in, taking one out and finding the least recently used one are a few stores each.

use super::id::{IdMap, Next};
use super::{CallId, IsolateId, TenantId, WorkerId};

/// Where a slot lies. Reused, unlike the id of the isolate in it.
pub(super) type SlotIndex = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotState {
    /// No isolate; the slot can be taken.
    Free,
    /// Calls run in it.
    Busy,
    /// No call runs in it; it is in its tenant's list of the idle ones.
    Idle,
    /// Asked to end; the slot is taken until the runtime confirms.
    Ending,
}

pub(super) struct Slot {
    pub(super) isolate: IsolateId,
    pub(super) worker: WorkerId,
    pub(super) tenant: TenantId,
    pub(super) state: SlotState,
    pub(super) calls: Vec<CallId>,
    /// How many of `calls` nobody waits for any more.
    pub(super) calls_dropped: usize,
    /// When it came to rest; later is greater.
    idle_since: u64,
    idle_before: Option<SlotIndex>,
    idle_after: Option<SlotIndex>,
}

/// The slots of one tenant.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Held {
    /// With an isolate, ending ones included.
    pub(super) taken: u64,
    /// Of these: live, without a call.
    pub(super) idle: u64,
    /// Of these: asked to end and not yet gone.
    pub(super) ending: u64,
    idle_oldest: Option<SlotIndex>,
    idle_newest: Option<SlotIndex>,
}

impl Held {
    /// With an isolate that has not been asked to end.
    pub(super) fn live(&self) -> u64 {
        self.taken - self.ending
    }

    /// With an isolate that serves calls.
    pub(super) fn busy(&self) -> u64 {
        self.live() - self.idle
    }
}

#[derive(Default)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    free: Vec<SlotIndex>,
    by_isolate: IdMap<IsolateId, SlotIndex>,
    isolate_last: u64,
    slots_max: usize,
    /// What each tenant holds. One that has been here stays: there are as many as can log in.
    held: IdMap<TenantId, Held>,
    idle_last: u64,
    idle_count: usize,
    ending_count: usize,
}

impl Slots {
    pub(super) fn new(isolates_max: u64) -> Self {
        Self {
            slots_max: usize::try_from(isolates_max).unwrap_or(usize::MAX),
            ..Self::default()
        }
    }

    /// Takes a free slot for a new isolate, which counts as busy. `None` if all are taken.
    pub(super) fn take(&mut self, worker: WorkerId, tenant: TenantId) -> Option<SlotIndex> {
        if !self.has_free() {
            return None;
        }
        let isolate = IsolateId::next(&mut self.isolate_last);
        let index = self.free.pop().unwrap_or(self.slots.len());
        if index == self.slots.len() {
            self.slots.push(Slot {
                isolate,
                worker,
                tenant,
                state: SlotState::Busy,
                calls: Vec::new(),
                calls_dropped: 0,
                idle_since: 0,
                idle_before: None,
                idle_after: None,
            });
        } else {
            let slot = &mut self.slots[index];
            (slot.isolate, slot.worker, slot.tenant) = (isolate, worker, tenant);
            slot.state = SlotState::Busy;
        }
        self.held.entry(tenant).or_default().taken += 1;
        self.by_isolate.insert(isolate, index);
        Some(index)
    }

    /// Puts a call into a slot and returns its position there.
    pub(super) fn enter(&mut self, index: SlotIndex, call: CallId) -> usize {
        if self.slots[index].state == SlotState::Idle {
            self.unlink(index);
            self.slots[index].state = SlotState::Busy;
        }
        let calls = &mut self.slots[index].calls;
        calls.push(call);
        calls.len() - 1
    }

    /// Takes the call at `position` out, and returns the one that took its place there, if any.
    pub(super) fn leave(&mut self, index: SlotIndex, position: usize) -> Option<CallId> {
        let calls = &mut self.slots[index].calls;
        calls.swap_remove(position);
        calls.get(position).copied()
    }

    pub(super) fn mark_dropped(&mut self, index: SlotIndex) {
        self.slots[index].calls_dropped += 1;
    }

    pub(super) fn unmark_dropped(&mut self, index: SlotIndex) {
        self.slots[index].calls_dropped -= 1;
    }

    /// Puts a slot without calls at the end of its tenant's idle ones.
    pub(super) fn rest(&mut self, index: SlotIndex) {
        let held = self.held.entry(self.slots[index].tenant).or_default();
        let before = held.idle_newest.replace(index);
        match before {
            Some(before) => self.slots[before].idle_after = Some(index),
            None => held.idle_oldest = Some(index),
        }
        held.idle += 1;
        self.idle_count += 1;
        self.idle_last += 1;
        let slot = &mut self.slots[index];
        (slot.state, slot.idle_before, slot.idle_after) = (SlotState::Idle, before, None);
        slot.idle_since = self.idle_last;
    }

    /// What a tenant holds.
    pub(super) fn held(&self, tenant: TenantId) -> Held {
        self.held.get(&tenant).copied().unwrap_or_default()
    }

    /// The slot of a tenant's that has been idle for longest.
    pub(super) fn idle_oldest_of(&self, tenant: TenantId) -> Option<SlotIndex> {
        self.held.get(&tenant)?.idle_oldest
    }

    #[cfg(test)]
    pub(super) fn idle_newest_of(&self, tenant: TenantId) -> Option<SlotIndex> {
        self.held.get(&tenant)?.idle_newest
    }

    /// The slot that goes first when one has to: of the tenants with an idle one, that which holds most live ones for
    /// its weight gives the one that has been idle for longest.
    pub(super) fn idle_to_go(&self, weight_of: impl Fn(TenantId) -> u32) -> Option<SlotIndex> {
        let mut first: Option<(u64, u64, SlotIndex)> = None;
        for (tenant, held) in &self.held {
            let Some(oldest) = held.idle_oldest else {
                continue;
            };
            let (live, weight) = (held.live(), u64::from(weight_of(*tenant)));
            let goes_before = first.is_none_or(|(live_first, weight_first, index)| {
                let (own, others) = (live * weight_first, live_first * weight);
                let longer = self.slots[oldest].idle_since < self.slots[index].idle_since;
                own > others || own == others && longer
            });
            if goes_before {
                first = Some((live, weight, oldest));
            }
        }
        first.map(|(.., index)| index)
    }

    /// Marks a slot as ending. Its calls must be out.
    pub(super) fn begin_ending(&mut self, index: SlotIndex) {
        if self.slots[index].state == SlotState::Idle {
            self.unlink(index);
        }
        let slot = &mut self.slots[index];
        slot.state = SlotState::Ending;
        slot.calls_dropped = 0;
        self.held.entry(slot.tenant).or_default().ending += 1;
        self.ending_count += 1;
    }

    /// Frees a slot that was ending.
    pub(super) fn release(&mut self, index: SlotIndex) {
        let slot = &mut self.slots[index];
        slot.state = SlotState::Free;
        self.by_isolate.remove(&slot.isolate);
        let held = self.held.entry(slot.tenant).or_default();
        held.taken -= 1;
        held.ending -= 1;
        self.ending_count -= 1;
        self.free.push(index);
    }

    pub(super) fn find(&self, isolate: IsolateId) -> Option<SlotIndex> {
        self.by_isolate.get(&isolate).copied()
    }

    pub(super) fn get(&self, index: SlotIndex) -> &Slot {
        &self.slots[index]
    }

    /// Takes the calls of a slot out, as one list that has to be given back with
    /// [`Self::return_list`].
    pub(super) fn take_calls(&mut self, index: SlotIndex) -> Vec<CallId> {
        std::mem::take(&mut self.slots[index].calls)
    }

    /// Gives an emptied list back, so that the next isolate of the slot needs no new one.
    pub(super) fn return_list(&mut self, index: SlotIndex, mut list: Vec<CallId>) {
        list.clear();
        self.slots[index].calls = list;
    }

    /// Every slot that holds a live isolate, in the order of the slots.
    pub(super) fn live(&self) -> impl Iterator<Item = SlotIndex> + '_ {
        let live = |slot: &Slot| matches!(slot.state, SlotState::Busy | SlotState::Idle);
        self.slots
            .iter()
            .enumerate()
            .filter(move |(_, slot)| live(slot))
            .map(|(index, _)| index)
    }

    pub(super) fn slots_max(&self) -> usize {
        self.slots_max
    }

    pub(super) fn has_free(&self) -> bool {
        self.taken_count() < self.slots_max
    }

    /// Slots with an isolate, ending ones included.
    pub(super) fn taken_count(&self) -> usize {
        self.by_isolate.len()
    }

    /// Slots with an isolate that serves calls.
    pub(super) fn busy_count(&self) -> usize {
        self.taken_count() - self.idle_count - self.ending_count
    }

    pub(super) fn idle_count(&self) -> usize {
        self.idle_count
    }

    pub(super) fn ending_count(&self) -> usize {
        self.ending_count
    }

    fn unlink(&mut self, index: SlotIndex) {
        let (before, after) = (self.slots[index].idle_before, self.slots[index].idle_after);
        let held = self.held.entry(self.slots[index].tenant).or_default();
        match before {
            Some(before) => self.slots[before].idle_after = after,
            None => held.idle_oldest = after,
        }
        match after {
            Some(after) => self.slots[after].idle_before = before,
            None => held.idle_newest = before,
        }
        held.idle -= 1;
        self.idle_count -= 1;
    }
}
