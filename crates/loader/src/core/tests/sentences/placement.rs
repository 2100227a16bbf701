//! Where calls run, and who waits.

use super::*;

#[test]
fn the_first_call_starts_an_isolate_and_later_ones_share_it() {
    let mut loader = Loader::with_isolates(2);
    let session = loader.open();
    let worker = loader.load(session);
    let (first, isolate) = loader.call_cold(worker);
    let (second, effects) = loader.call(worker);
    assert_eq!(
        effects,
        [Effect::Dispatch {
            call: second,
            isolate
        }]
    );
    assert_eq!(loader.finish(first), []);
    assert_eq!(loader.finish(second), []);
    let (third, effects) = loader.call(worker);
    assert_eq!(
        effects,
        [Effect::Dispatch {
            call: third,
            isolate
        }]
    );
}

#[test]
fn two_workers_never_share_an_isolate() {
    let mut loader = Loader::with_isolates(2);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    assert_ne!(loader.call_cold(one).1, loader.call_cold(other).1);
}

#[test]
fn where_memory_is_short_the_isolate_that_has_been_idle_for_longest_goes() {
    let mut loader = Loader::with_isolates(3);
    let session = loader.open();
    let (one, two) = (loader.load(session), loader.load(session));
    let (call_one, isolate_one) = loader.call_cold(one);
    assert_eq!(loader.tell(Event::MemoryShort), []);
    let (call_two, _) = loader.call_cold(two);
    loader.finish(call_one);
    loader.finish(call_two);
    assert_eq!(
        loader.tell(Event::MemoryShort),
        [Effect::EndIsolate {
            isolate: isolate_one,
            cause: EndCause::Evicted
        }]
    );
}

#[test]
fn a_full_house_evicts_the_isolate_that_has_been_idle_for_longest() {
    let mut loader = Loader::with_isolates(2);
    let session = loader.open();
    let (one, two, three) = (
        loader.load(session),
        loader.load(session),
        loader.load(session),
    );
    let (call_one, _) = loader.call_cold(one);
    let (call_two, isolate_two) = loader.call_cold(two);
    loader.finish(call_two);
    loader.finish(call_one);
    let (call_three, effects) = loader.call(three);
    assert_eq!(
        effects,
        [Effect::EndIsolate {
            isolate: isolate_two,
            cause: EndCause::Evicted
        }]
    );
    let effects = loader.ended(isolate_two);
    assert_eq!(dispatched(&effects), [call_three]);
    assert!(matches!(effects[0], Effect::StartIsolate { worker, .. } if worker == three));
}

#[test]
fn a_worker_whose_isolate_was_evicted_gets_a_fresh_one_at_its_next_call() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (call, isolate) = loader.call_cold(one);
    loader.finish(call);
    let (call, _) = loader.call(other);
    let effects = loader.ended(isolate);
    assert_eq!(dispatched(&effects), [call]);
    loader.finish(call);
    let (call, effects) = loader.call(one);
    let [
        Effect::EndIsolate {
            isolate: second,
            cause: EndCause::Evicted,
        },
    ] = effects[..]
    else {
        panic!("{effects:?}")
    };
    let effects = loader.ended(second);
    assert_eq!(dispatched(&effects), [call]);
    assert!(matches!(effects[0], Effect::StartIsolate { isolate: third, .. } if third > second));
}

#[test]
fn a_busy_isolate_is_never_evicted() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, isolate) = loader.call_cold(one);
    let waiting = loader.call_waits(other);
    assert_eq!(
        loader.finish(running),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::Evicted
        }]
    );
    assert_eq!(dispatched(&loader.ended(isolate)), [waiting]);
}

#[test]
fn an_isolate_that_is_ending_holds_its_slot_until_it_is_gone() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let worker = loader.load(session);
    let (call, isolate) = loader.call_cold(worker);
    assert_eq!(
        loader.break_with(call),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::NotReusable
        }]
    );
    let waiting = loader.call_waits(worker);
    assert_eq!(dispatched(&loader.ended(isolate)), [waiting]);
}

#[test]
fn all_calls_that_wait_for_one_worker_start_together() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, isolate) = loader.call_cold(one);
    let waiting = [loader.call_waits(other), loader.call_waits(other)];
    loader.finish(running);
    assert_eq!(dispatched(&loader.ended(isolate)), waiting);
}

#[test]
fn a_limit_that_ends_an_isolate_loses_the_other_calls_in_it_and_the_next_call_starts_afresh() {
    let mut loader = Loader::with_isolates(2);
    let session = loader.open();
    let worker = loader.load(session);
    let (culprit, isolate) = loader.call_cold(worker);
    let (bystander, _) = loader.call(worker);
    assert_eq!(
        loader.break_with(culprit),
        [
            Effect::LoseCall {
                call: bystander,
                cause: LossCause::IsolateLost
            },
            Effect::EndIsolate {
                isolate,
                cause: EndCause::NotReusable
            },
        ]
    );
    assert_eq!(loader.finish(bystander), [], "its outcome came too late");
    assert_ne!(loader.call_cold(worker).1, isolate);
}

#[test]
fn an_isolate_that_ends_by_itself_loses_its_calls() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let worker = loader.load(session);
    let (call, isolate) = loader.call_cold(worker);
    assert_eq!(
        loader.ended(isolate),
        [Effect::LoseCall {
            call,
            cause: LossCause::IsolateLost
        }]
    );
    assert_eq!(loader.ended(isolate), [], "once is enough");
    loader.call_cold(worker);
}

#[test]
fn tenants_take_turns_and_a_tenants_own_workers_keep_their_order() {
    let mut loader = Loader::with_isolates(1);
    let (flood, quiet) = (loader.open(), loader.open());
    let blocker = loader.load(flood);
    let (mut running, mut isolate) = loader.call_cold(blocker);
    let flooding = [0, 1, 2].map(|_| loader.load(flood));
    let flooding = flooding.map(|worker| loader.call_waits(worker));
    let lone = loader.load(quiet);
    let lone = loader.call_waits(lone);
    let mut served = Vec::new();
    for _ in 0..4 {
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
        served.push(call);
    }
    assert_eq!(served, [flooding[0], lone, flooding[1], flooding[2]]);
}

#[test]
fn a_full_queue_refuses_the_next_call_of_the_tenant_that_filled_it() {
    let config = CoreConfig {
        isolates_max: 1,
        calls_queued_max: 2,
        ..CoreConfig::default()
    };
    let mut loader = Loader::new(config);
    let session = loader.open();
    let (blocker, waiting) = (loader.load(session), loader.load(session));
    loader.call_cold(blocker);
    loader.call_waits(waiting);
    loader.call_waits(waiting);
    let refusal = loader.call_refused(waiting);
    assert_eq!(
        refusal,
        Refusal::Isolates {
            limit: 1,
            retry_after_ms: 100
        }
    );
    assert!(refusal.retryable());
    assert!(refusal.to_string().starts_with("overloaded: "), "{refusal}");
}

#[test]
fn a_full_queue_makes_room_for_a_tenant_that_has_less_than_its_share() {
    let config = CoreConfig {
        isolates_max: 1,
        calls_queued_max: 3,
        ..CoreConfig::default()
    };
    let mut loader = Loader::new(config);
    let (flood, quiet) = (loader.open(), loader.open());
    let blocker = loader.load(flood);
    loader.call_cold(blocker);
    let flooding = [0, 1, 2].map(|_| loader.load(flood));
    let flooding = flooding.map(|worker| loader.call_waits(worker));
    let lone = loader.load(quiet);
    let (_, effects) = loader.call(lone);
    let refusal = Refusal::Isolates {
        limit: 1,
        retry_after_ms: 100,
    };
    assert_eq!(
        effects,
        [Effect::RefuseCall {
            call: flooding[2],
            refusal
        }]
    );
    assert_eq!(
        loader.call_refused(lone),
        refusal,
        "one against two is a fair share of three"
    );
}
