//! What tenants may have, and what waits for it.

use super::*;

fn policy() -> TenantPolicy {
    TenantPolicy::default()
}

impl Loader {
    /// A session of a new tenant.
    fn open_with(&mut self, policy: TenantPolicy) -> (TenantId, SessionId) {
        let tenant = self.core.allocate_tenant(policy);
        (tenant, self.open_for(tenant))
    }

    fn measured(&mut self, tenant: TenantId, cpu_ms: u64, memory_bytes: u64) -> Vec<Effect> {
        self.tell(Event::TenantMeasured {
            tenant,
            cpu_us: cpu_ms * 1_000,
            memory_bytes,
            fresh_bytes: 100,
        })
    }

    /// Lets time pass until the core wants to be woken.
    fn wait(&mut self) -> Vec<Effect> {
        self.now_ms = self.core.wake_at_ms().expect("something waits for time");
        self.tell(Event::TimePassed)
    }
}

/// CPU time beyond the quota is waited off, by calls of live isolates too, and then they begin in their order.
#[test]
fn calls_wait_until_their_tenants_cpu_time_is_paid_off() {
    let mut loader = Loader::with_isolates(4);
    let (tenant, session) = loader.open_with(TenantPolicy {
        cpu_seconds_per_minute_max: Some(60),
        ..policy()
    });
    let (warm, cold) = (loader.load(session), loader.load(session));
    let (call, _) = loader.call_cold(warm);
    loader.finish(call);
    // A minute's, and two seconds more: at a second a second they take two seconds and a bit.
    assert_eq!(loader.measured(tenant, 62_000, 0), []);
    let waiting = [loader.call_waits(warm), loader.call_waits(cold)];
    assert_eq!(loader.core.gauges().calls_waiting, 2);
    let effects = loader.wait();
    assert_eq!(loader.now_ms, 2_001);
    assert_eq!(dispatched(&effects), waiting);
}

/// A wait that is known to be too long is not begun.
#[test]
fn a_call_that_would_wait_for_too_long_is_told_the_quota_and_the_wait() {
    let mut loader = Loader::with_isolates(4);
    let (tenant, session) = loader.open_with(TenantPolicy {
        cpu_seconds_per_minute_max: Some(30),
        ..policy()
    });
    let worker = loader.load(session);
    loader.measured(tenant, 33_400, 0);
    let refusal = loader.call_refused(worker);
    // 3.4 s at half a second a second, and the first microsecond that is there again.
    let expected = Refusal::Quota {
        quota: Quota::CpuSecondsPerMinute,
        limit: 30,
        used: 34,
        retry_after_ms: 6_801,
    };
    assert_eq!(refusal, expected);
    assert_eq!(
        refusal.to_string(),
        "overloaded: the tenant's cpu_seconds_per_minute_max is 30, and 34 are used; retry in 6801 ms"
    );
    loader.now_ms += 6_801;
    loader.call_cold(worker);
}

/// What was measured twice is taken once.
#[test]
fn only_what_is_new_of_the_cpu_time_is_taken() {
    let mut loader = Loader::with_isolates(4);
    let (tenant, session) = loader.open_with(TenantPolicy {
        cpu_seconds_per_minute_max: Some(10),
        ..policy()
    });
    let worker = loader.load(session);
    for _ in 0..5 {
        loader.measured(tenant, 9_000, 0);
    }
    loader.call_cold(worker);
}

/// At a tenant's number of isolates its own idle one goes, and nobody else's.
#[test]
fn a_tenant_at_its_number_of_isolates_gives_up_its_own_idle_one() {
    let mut loader = Loader::with_isolates(10);
    let (_, other) = loader.open_with(policy());
    let (_, session) = loader.open_with(TenantPolicy {
        isolates_max: Some(1),
        ..policy()
    });
    let kept = loader.load(other);
    let (call, _) = loader.call_cold(kept);
    loader.finish(call);
    let (one, next) = (loader.load(session), loader.load(session));
    let (call, isolate) = loader.call_cold(one);
    let waiting = loader.call_waits(next);
    assert_eq!(
        loader.finish(call),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::Evicted
        }]
    );
    assert_eq!(dispatched(&loader.ended(isolate)), [waiting]);
}

/// Loads beyond the rate go one after the other, as fast as it allows.
#[test]
fn loads_beyond_the_rate_follow_at_its_pace() {
    let mut loader = Loader::with_isolates(10);
    let (_, session) = loader.open_with(TenantPolicy {
        loads_per_second_max: Some(2),
        ..policy()
    });
    let workers = [0; 4].map(|_| loader.load(session));
    loader.call_cold(workers[0]);
    loader.call_cold(workers[1]);
    let waiting = [loader.call_waits(workers[2]), loader.call_waits(workers[3])];
    assert_eq!(dispatched(&loader.wait()), [waiting[0]]);
    assert_eq!(loader.now_ms, 500);
    assert_eq!(dispatched(&loader.wait()), [waiting[1]]);
    assert_eq!(loader.now_ms, 1_000);
}

/// Isolates that were only just started count with what they are about to take.
#[test]
fn memory_is_counted_before_it_is_taken() {
    let mut loader = Loader::with_isolates(10);
    let (tenant, session) = loader.open_with(TenantPolicy {
        memory_bytes_max: Some(300),
        ..policy()
    });
    loader.measured(tenant, 0, 0);
    let workers = [0; 3].map(|_| loader.load(session));
    loader.call_cold(workers[0]);
    loader.measured(tenant, 0, 0);
    loader.call_cold(workers[1]);
    loader.measured(tenant, 0, 0);
    let waiting = loader.call_waits(workers[2]);
    loader.now_ms += WAIT_MS;
    let refusal = Refusal::Quota {
        quota: Quota::MemoryBytes,
        limit: 300,
        used: 200,
        retry_after_ms: WAIT_MS,
    };
    let call = waiting;
    assert_eq!(
        loader.tell(Event::TimePassed),
        [Effect::RefuseCall { call, refusal }]
    );
}

/// Idle isolates of a tenant go before those of its that grow find no memory.
#[test]
fn an_idle_isolate_goes_where_its_tenants_memory_is_short() {
    let mut loader = Loader::with_isolates(10);
    let (tenant, session) = loader.open_with(TenantPolicy {
        memory_bytes_max: Some(1_000),
        ..policy()
    });
    let worker = loader.load(session);
    let (call, isolate) = loader.call_cold(worker);
    assert_eq!(loader.measured(tenant, 0, 901), [], "it is busy");
    loader.finish(call);
    assert_eq!(loader.measured(tenant, 0, 900), []);
    assert_eq!(
        loader.measured(tenant, 0, 901),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::Evicted
        }]
    );
}

/// Bytes that were sent are a debt as CPU time is.
#[test]
fn calls_wait_until_the_bytes_that_were_sent_are_paid_off() {
    let mut loader = Loader::with_isolates(4);
    let (tenant, session) = loader.open_with(TenantPolicy {
        bytes_out_per_minute_max: Some(60),
        ..policy()
    });
    let worker = loader.load(session);
    loader.tell(Event::BytesSent { tenant, bytes: 62 });
    let call = loader.call_waits(worker);
    let effects = loader.wait();
    assert_eq!((dispatched(&effects), loader.now_ms), (vec![call], 3_000));
}

/// Nobody waits for ever, and who has waited is told for what.
#[test]
fn a_wait_for_an_isolate_ends_when_the_call_may_wait_no_longer() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (busy, other) = (loader.load(session), loader.load(session));
    loader.call_cold(busy);
    let call = loader.call_waits(other);
    let refusal = Refusal::QueueWait {
        limit: 1,
        waited_ms: WAIT_MS,
        retry_after_ms: WAIT_MS,
    };
    assert_eq!(loader.wait(), [Effect::RefuseCall { call, refusal }]);
    assert_eq!(loader.now_ms, WAIT_MS);
    assert_eq!(loader.core.wake_at_ms(), None);
}

/// The greediest of several leaves an eighth of the isolates; one that is alone leaves nothing.
#[test]
fn a_tenant_leaves_an_eighth_of_the_isolates_where_there_are_others() {
    for (others, most) in [(0, 16), (1, 14)] {
        let mut loader = Loader::with_isolates(16);
        for _ in 0..others {
            loader.open();
        }
        let session = loader.open();
        let mut live = 0;
        loop {
            let worker = loader.load(session);
            match loader.call(worker).1[..] {
                [Effect::StartIsolate { .. }, Effect::Dispatch { .. }] => live += 1,
                _ => break,
            }
        }
        assert_eq!(live, most, "beside {others}");
    }
}

/// Of two tenants that wait, one with three times the weight gets three isolates to one.
#[test]
fn free_isolates_go_to_those_that_wait_by_weight() {
    let mut loader = Loader::with_isolates(1);
    let blocker = loader.open();
    let worker = loader.load(blocker);
    let (mut running, mut isolate) = loader.call_cold(worker);
    let sessions = [3, 1].map(|weight| {
        let heavy = TenantPolicy { weight, ..policy() };
        loader.open_with(heavy).1
    });
    let mut owners = Vec::new();
    for session in sessions {
        for _ in 0..8 {
            let worker = loader.load(session);
            owners.push((loader.call_waits(worker), session));
        }
    }
    let mut served = [0, 0];
    for _ in 0..8 {
        loader.finish(running);
        let effects = loader.ended(isolate);
        let [
            Effect::StartIsolate { isolate: next, .. },
            Effect::Dispatch { call, .. },
        ] = effects[..]
        else {
            panic!("{effects:?}")
        };
        (running, isolate) = (call, next);
        let (_, owner) = owners
            .iter()
            .find(|(owned, _)| *owned == call)
            .expect("one of them");
        served[usize::from(*owner == sessions[1])] += 1;
    }
    assert_eq!(served, [6, 2]);
}

/// The tenant that has most isolates for its weight gives one up, not whoever has rested longest.
#[test]
fn who_has_most_for_its_weight_gives_an_idle_isolate_up() {
    let mut loader = Loader::with_isolates(4);
    let (_, frugal) = loader.open_with(policy());
    let (_, greedy) = loader.open_with(policy());
    let mut isolates = Vec::new();
    for session in [frugal, greedy, greedy, greedy] {
        let worker = loader.load(session);
        let (call, isolate) = loader.call_cold(worker);
        loader.finish(call);
        isolates.push(isolate);
    }
    let newcomer = loader.open();
    let worker = loader.load(newcomer);
    assert_eq!(
        loader.call(worker).1,
        [Effect::EndIsolate {
            isolate: isolates[1],
            cause: EndCause::Evicted
        }]
    );
}
