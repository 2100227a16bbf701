//! Quotas, drain, and what is ignored.

use super::*;

#[test]
fn each_quota_refuses_with_its_own_name() {
    let mut loader = Loader::new(CoreConfig {
        calls_in_flight_max: 3,
        calls_in_flight_per_session_max: 2,
        workers_per_session_max: 1,
        ..CoreConfig::default()
    });
    let tenant = loader.core.allocate_tenant(TenantPolicy::default());
    let (one, other) = (loader.open_for(tenant), loader.open_for(tenant));
    let (worker, other_worker) = (loader.load(one), loader.load(other));
    assert_eq!(loader.load_refused(one), Refusal::Workers { limit: 1 });
    let (call, _) = loader.call_cold(worker);
    loader.call(worker);
    assert_eq!(
        loader.call_refused(worker),
        Refusal::SessionCalls { limit: 2 }
    );
    loader.call_cold(other_worker);
    assert_eq!(
        loader.call_refused(other_worker),
        Refusal::CallsInFlight { limit: 3 }
    );
    loader.finish(call);
    let (call, effects) = loader.call(other_worker);
    assert_eq!(dispatched(&effects), [call], "a finished call makes room");
    for (refusal, name) in [
        (Refusal::Workers { limit: 1 }, "workers_per_session_max"),
        (
            Refusal::SessionCalls { limit: 2 },
            "calls_in_flight_per_session_max",
        ),
        (Refusal::CallsInFlight { limit: 3 }, "calls_in_flight_max"),
        (
            Refusal::Isolates {
                limit: 4,
                retry_after_ms: 100,
            },
            "isolates_max",
        ),
    ] {
        assert!(refusal.to_string().contains(name), "{refusal}");
    }
}

#[test]
fn a_drain_refuses_what_is_new_and_is_complete_when_the_last_call_has_finished() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, isolate) = loader.call_cold(one);
    let waiting = loader.call_waits(other);
    assert_eq!(loader.tell(Event::DrainStarted), []);
    assert_eq!(loader.call_refused(one), Refusal::Draining);
    assert_eq!(loader.load_refused(session), Refusal::Draining);
    loader.finish(running);
    assert_eq!(
        dispatched(&loader.ended(isolate)),
        [waiting],
        "it was let in before"
    );
    assert_eq!(loader.finish(waiting), [Effect::DrainComplete]);
    assert_eq!(loader.tell(Event::DrainStarted), [], "said once");
}

#[test]
fn a_drain_of_an_idle_server_is_complete_at_once() {
    assert_eq!(
        Loader::with_isolates(1).tell(Event::DrainStarted),
        [Effect::DrainComplete]
    );
}

#[test]
fn the_deadline_of_a_drain_loses_what_runs_and_refuses_what_waits() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, isolate) = loader.call_cold(one);
    let waiting = loader.call_waits(other);
    loader.tell(Event::DrainStarted);
    assert_eq!(
        loader.tell(Event::DrainDeadline),
        [
            Effect::RefuseCall {
                call: waiting,
                refusal: Refusal::Draining
            },
            Effect::LoseCall {
                call: running,
                cause: LossCause::IsolateEvicted
            },
            Effect::EndIsolate {
                isolate,
                cause: EndCause::DrainDeadline
            },
            Effect::DrainComplete,
        ]
    );
}

#[test]
fn an_event_about_something_unknown_is_ignored() {
    let mut loader = Loader::with_isolates(1);
    for event in [
        Event::SessionClosed {
            session: SessionId(9),
        },
        Event::WorkerReleased {
            worker: WorkerId(9),
        },
        Event::CallDropped { call: CallId(9) },
        Event::CallFinished {
            call: CallId(9),
            isolate_reusable: false,
        },
        Event::IsolateEnded {
            isolate: IsolateId(9),
        },
    ] {
        assert_eq!(loader.tell(event), []);
    }
    assert!(loader.core.is_empty());
}

#[test]
fn ids_ascend_and_are_never_reused() {
    let mut core = Core::new(CoreConfig::default());
    assert!(core.allocate_call() < core.allocate_call());
    assert!(core.allocate_worker() < core.allocate_worker());
    assert!(core.allocate_session() < core.allocate_session());
    assert!(
        core.allocate_tenant(TenantPolicy::default())
            < core.allocate_tenant(TenantPolicy::default())
    );
}
