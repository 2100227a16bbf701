//! How calls, isolates, workers and sessions end.

use super::*;

#[test]
fn a_waiting_call_that_its_client_drops_leaves_the_queue() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, _) = loader.call_cold(one);
    let call = loader.call_waits(other);
    assert_eq!(
        loader.tell(Event::CallDropped { call }),
        [Effect::LoseCall {
            call,
            cause: LossCause::Cancelled
        }]
    );
    assert_eq!(
        loader.finish(running),
        [],
        "nobody waits, so nobody is evicted"
    );
}

#[test]
fn an_isolate_ends_when_only_dropped_calls_are_left_in_it() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let worker = loader.load(session);
    let (dropped, isolate) = loader.call_cold(worker);
    let (wanted, _) = loader.call(worker);
    assert_eq!(loader.tell(Event::CallDropped { call: dropped }), []);
    assert_eq!(
        loader.finish(wanted),
        [
            Effect::LoseCall {
                call: dropped,
                cause: LossCause::Cancelled
            },
            Effect::EndIsolate {
                isolate,
                cause: EndCause::CallsDropped
            },
        ]
    );
}

#[test]
fn a_released_worker_without_calls_ends_at_once() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let worker = loader.load(session);
    let (call, isolate) = loader.call_cold(worker);
    loader.finish(call);
    assert_eq!(
        loader.tell(Event::WorkerReleased { worker }),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::WorkerReleased
        }]
    );
    assert_eq!(loader.core.gauges().workers, 0);
}

#[test]
fn a_released_worker_with_calls_ends_with_the_last_of_them() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let worker = loader.load(session);
    let (first, isolate) = loader.call_cold(worker);
    let (second, _) = loader.call(worker);
    assert_eq!(loader.tell(Event::WorkerReleased { worker }), []);
    assert_eq!(loader.finish(first), []);
    assert_eq!(
        loader.finish(second),
        [Effect::EndIsolate {
            isolate,
            cause: EndCause::WorkerReleased
        }]
    );
    assert_eq!(loader.core.gauges().workers, 0);
}

#[test]
fn a_closed_session_takes_its_calls_and_isolates_along() {
    let mut loader = Loader::with_isolates(1);
    let session = loader.open();
    let (one, other) = (loader.load(session), loader.load(session));
    let (running, isolate) = loader.call_cold(one);
    let waiting = loader.call_waits(other);
    let cause = LossCause::Cancelled;
    assert_eq!(
        loader.tell(Event::SessionClosed { session }),
        [
            Effect::LoseCall {
                call: running,
                cause
            },
            Effect::EndIsolate {
                isolate,
                cause: EndCause::SessionClosed
            },
            Effect::LoseCall {
                call: waiting,
                cause
            },
        ]
    );
    assert_eq!(loader.ended(isolate), []);
    assert!(loader.core.is_empty());
    let (call, effects) = loader.call(one);
    assert_eq!(
        effects,
        [Effect::LoseCall { call, cause }],
        "a call that crossed the end of its session"
    );
    assert_eq!(loader.load_refused(session), Refusal::SessionClosed);
}
