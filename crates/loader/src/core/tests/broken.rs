//! Cores that are broken on purpose: each breaks one rule, and the simulation has to notice.
//!
//! Most are broken from outside, so that the core stays readable: it is set up with other figures than it should have, is
//! not told of an event, or its answers are changed. What can't be reached so asks [`Core::is_broken`] on the spot. Why it is
//! done in this way: docs/decisions/0015-broken-variants-from-outside.md.

use super::super::*;
use std::collections::BTreeMap;

/// A rule that is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Mutation {
    // --- inside the core ---
    /// A slot counts as free while its isolate is still on its way out.
    SlotFreedTooEarly,
    /// The other calls of an isolate that ends are dropped without an answer.
    LossUnsaid,
    /// The first tenant in line is served until its line is empty.
    TurnsNotTaken,
    /// A worker keeps the place of its isolate after it was asked to end.
    PlaceKept,
    /// The most recently used isolate of a tenant is evicted.
    NewestEvicted,
    /// Calls that wait survive their session.
    QueueOutlivesSession,
    /// The isolate of a released worker is kept when its last call has finished.
    ReleaseForgotten,
    /// The count of a session's calls goes up and never down.
    QuotaLeaks,
    /// A full queue refuses whoever comes, however long the others' lines are.
    RoomNotMade,
    /// Of the calls that waited for a quota the last one goes first.
    LastResumedFirst,
    /// A tenant may take every slot although there are others.
    NothingLeftForOthers,
    /// A tenant at its quota keeps its idle isolates while its calls wait.
    OwnIdleKept,

    // --- other figures ---
    /// One isolate more than there are slots.
    IsolatesOneTooMany,
    /// One call more may wait.
    QueueOneTooLong,
    /// One call more in the process.
    CallsOneTooMany,
    /// One call more of a session.
    SessionCallsOneTooMany,
    /// One worker more of a session.
    WorkersOneTooMany,
    /// Calls wait for as long as they say, whatever the server's maximum is.
    QueueWaitUnbounded,
    /// All tenants have the same weight.
    WeightsIgnored,
    /// One isolate more than a tenant's quota.
    TenantIsolatesOneTooMany,
    /// The quota of CPU time is none.
    CpuQuotaIgnored,
    /// The quota of loads is twice as large.
    LoadsQuotaDoubled,
    /// The quota of memory is none.
    MemoryQuotaIgnored,
    /// The quota of bytes out is none.
    BytesOutQuotaIgnored,

    // --- events that do not arrive, or as others ---
    /// CPU time is not taken from the quota.
    CpuUncounted,
    /// CPU time since the start is taken each time, not what is new of it.
    CpuCountedAgain,
    /// Bytes that were sent are not taken from the quota.
    BytesOutUncounted,
    /// What one tenant sends is charged to another one.
    OthersCharged,
    /// Time stands still.
    TimeStandsStill,
    /// The core takes its time in seconds for milliseconds.
    TimeTooSlow,
    /// A dropped call goes on waiting and running.
    DropIgnored,
    /// A call waits for as long as the server lets it, whatever its own deadline is.
    DeadlineIgnored,
    /// An isolate in which nothing may run again is used again.
    BrokenIsolateReused,
    /// Short memory evicts nobody.
    MemoryShortIgnored,
    /// A tenant whose memory is short keeps its idle isolates.
    TenantMemoryShortIgnored,
    /// The deadline of a drain passes without a consequence.
    DrainDeadlineIgnored,

    // --- answers that do not leave, or as others ---
    /// An isolate is not told to end.
    EndUnsaid,
    /// A refusal for a wait comes without a hint.
    HintMissing,
    /// A refusal names a quota that is not used up.
    QuotaMisnamed,
    /// A refusal says that nothing is used.
    UseMisstated,
    /// A call that is refused is dispatched nevertheless.
    RefusalIgnored,
}

impl Mutation {
    pub(super) const ALL: [Self; 41] = [
        Self::SlotFreedTooEarly,
        Self::LossUnsaid,
        Self::TurnsNotTaken,
        Self::PlaceKept,
        Self::NewestEvicted,
        Self::QueueOutlivesSession,
        Self::ReleaseForgotten,
        Self::QuotaLeaks,
        Self::RoomNotMade,
        Self::LastResumedFirst,
        Self::NothingLeftForOthers,
        Self::OwnIdleKept,
        Self::IsolatesOneTooMany,
        Self::QueueOneTooLong,
        Self::CallsOneTooMany,
        Self::SessionCallsOneTooMany,
        Self::WorkersOneTooMany,
        Self::QueueWaitUnbounded,
        Self::WeightsIgnored,
        Self::TenantIsolatesOneTooMany,
        Self::CpuQuotaIgnored,
        Self::LoadsQuotaDoubled,
        Self::MemoryQuotaIgnored,
        Self::BytesOutQuotaIgnored,
        Self::CpuUncounted,
        Self::CpuCountedAgain,
        Self::BytesOutUncounted,
        Self::OthersCharged,
        Self::TimeStandsStill,
        Self::TimeTooSlow,
        Self::DropIgnored,
        Self::DeadlineIgnored,
        Self::BrokenIsolateReused,
        Self::MemoryShortIgnored,
        Self::TenantMemoryShortIgnored,
        Self::DrainDeadlineIgnored,
        Self::EndUnsaid,
        Self::HintMissing,
        Self::QuotaMisnamed,
        Self::UseMisstated,
        Self::RefusalIgnored,
    ];
}

/// A core as the simulation sees it: whole, or broken.
pub(super) struct Subject {
    core: Core,
    broken: Option<Mutation>,
    /// What has been measured of each tenant, where it is counted again.
    cpu_us: BTreeMap<TenantId, u64>,
}

impl Subject {
    pub(super) fn new(mut config: CoreConfig, broken: Option<Mutation>) -> Self {
        match broken {
            Some(Mutation::IsolatesOneTooMany) => config.isolates_max += 1,
            Some(Mutation::QueueOneTooLong) => config.calls_queued_max += 1,
            Some(Mutation::CallsOneTooMany) => config.calls_in_flight_max += 1,
            Some(Mutation::SessionCallsOneTooMany) => config.calls_in_flight_per_session_max += 1,
            Some(Mutation::WorkersOneTooMany) => config.workers_per_session_max += 1,
            Some(Mutation::QueueWaitUnbounded) => config.queue_wait_ms_max = u64::MAX,
            _ => {}
        }
        let mut core = Core::new(config);
        core.broken = broken;
        Self {
            core,
            broken,
            cpu_us: BTreeMap::new(),
        }
    }

    /// For what only asks, and for ids.
    pub(super) fn core(&mut self) -> &mut Core {
        &mut self.core
    }

    pub(super) fn allocate_tenant(&mut self, mut policy: TenantPolicy) -> TenantId {
        match self.broken {
            Some(Mutation::WeightsIgnored) => policy.weight = 1,
            Some(Mutation::TenantIsolatesOneTooMany) => {
                policy.isolates_max = policy.isolates_max.map(|max| max + 1);
            }
            Some(Mutation::CpuQuotaIgnored) => policy.cpu_seconds_per_minute_max = None,
            Some(Mutation::LoadsQuotaDoubled) => {
                policy.loads_per_second_max = policy.loads_per_second_max.map(|max| max * 2);
            }
            Some(Mutation::MemoryQuotaIgnored) => policy.memory_bytes_max = None,
            Some(Mutation::BytesOutQuotaIgnored) => policy.bytes_out_per_minute_max = None,
            _ => {}
        }
        self.core.allocate_tenant(policy)
    }

    pub(super) fn on_event(&mut self, now_ms: u64, event: Event, effects: &mut Vec<Effect>) {
        let now_ms = match self.broken {
            Some(Mutation::TimeStandsStill) => 0,
            Some(Mutation::TimeTooSlow) => now_ms / 1_000,
            _ => now_ms,
        };
        let event = self.as_told(event);
        self.core.on_event(now_ms, event, effects);
        self.as_answered(event, effects);
    }

    fn as_told(&mut self, mut event: Event) -> Event {
        match (self.broken, &mut event) {
            (
                Some(Mutation::TenantMemoryShortIgnored),
                Event::TenantMeasured { memory_bytes, .. },
            ) => *memory_bytes = 0,
            (Some(Mutation::CpuUncounted), Event::TenantMeasured { cpu_us, .. }) => *cpu_us = 0,
            (Some(Mutation::CpuCountedAgain), Event::TenantMeasured { tenant, cpu_us, .. }) => {
                let counted = self.cpu_us.entry(*tenant).or_default();
                *counted += *cpu_us;
                *cpu_us = *counted;
            }
            (Some(Mutation::OthersCharged), Event::BytesSent { tenant, .. }) => {
                tenant.0 = tenant.0 % 3 + 1;
            }
            (Some(Mutation::BytesOutUncounted), Event::BytesSent { .. })
            | (Some(Mutation::DropIgnored), Event::CallDropped { .. })
            | (Some(Mutation::MemoryShortIgnored), Event::MemoryShort)
            | (Some(Mutation::DrainDeadlineIgnored), Event::DrainDeadline) => {
                event = Event::TimePassed;
            }
            (Some(Mutation::DeadlineIgnored), Event::CallArrived { wait_ms_max, .. }) => {
                *wait_ms_max = u64::MAX;
            }
            (
                Some(Mutation::BrokenIsolateReused),
                Event::CallFinished {
                    isolate_reusable, ..
                },
            ) => *isolate_reusable = true,
            _ => {}
        }
        event
    }

    fn as_answered(&self, event: Event, effects: &mut Vec<Effect>) {
        match self.broken {
            Some(Mutation::EndUnsaid) => {
                effects.retain(|effect| !matches!(effect, Effect::EndIsolate { .. }));
            }
            Some(Mutation::RefusalIgnored) => {
                if let Event::CallArrived { call, worker, .. } = event
                    && let Some(isolate) = self.core.live_isolate(worker)
                {
                    for effect in effects.iter_mut() {
                        if matches!(effect, Effect::RefuseCall { call: refused, .. } if *refused == call)
                        {
                            *effect = Effect::Dispatch { call, isolate };
                        }
                    }
                }
            }
            _ => {}
        }
        for effect in effects {
            let Effect::RefuseCall { refusal, .. } = effect else {
                continue;
            };
            match (self.broken, refusal) {
                (
                    Some(Mutation::HintMissing),
                    Refusal::Quota { retry_after_ms, .. }
                    | Refusal::QueueWait { retry_after_ms, .. }
                    | Refusal::Isolates { retry_after_ms, .. },
                ) => *retry_after_ms = 0,
                (Some(Mutation::QuotaMisnamed), Refusal::Quota { quota, .. }) => {
                    *quota = match quota {
                        Quota::Isolates => Quota::LoadsPerSecond,
                        _ => Quota::Isolates,
                    };
                }
                (Some(Mutation::UseMisstated), Refusal::Quota { used, .. }) => *used = 0,
                _ => {}
            }
        }
    }
}
