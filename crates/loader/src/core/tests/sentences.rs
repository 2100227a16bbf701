//! One rule of the core each.

mod admission;
mod ending;
mod placement;
mod tenants;

use super::super::*;

/// How long calls may wait.
const WAIT_MS: u64 = 5_000;

/// A core, and what it answers.
struct Loader {
    core: Core,
    now_ms: u64,
}

impl Loader {
    fn new(config: CoreConfig) -> Self {
        Self {
            core: Core::new(config),
            now_ms: 0,
        }
    }

    fn with_isolates(isolates_max: u64) -> Self {
        Self::new(CoreConfig {
            isolates_max,
            ..CoreConfig::default()
        })
    }

    fn tell(&mut self, event: Event) -> Vec<Effect> {
        let mut effects = Vec::new();
        self.core.on_event(self.now_ms, event, &mut effects);
        effects
    }

    fn open(&mut self) -> SessionId {
        let tenant = self.core.allocate_tenant(TenantPolicy::default());
        self.open_for(tenant)
    }

    fn open_for(&mut self, tenant: TenantId) -> SessionId {
        let session = self.core.allocate_session();
        assert_eq!(self.tell(Event::SessionOpened { session, tenant }), []);
        session
    }

    fn load(&mut self, session: SessionId) -> WorkerId {
        let worker = self.core.allocate_worker();
        assert_eq!(self.tell(Event::WorkerLoaded { worker, session }), []);
        worker
    }

    fn load_refused(&mut self, session: SessionId) -> Refusal {
        let worker = self.core.allocate_worker();
        match self.tell(Event::WorkerLoaded { worker, session })[..] {
            [
                Effect::RefuseWorker {
                    worker: refused,
                    refusal,
                },
            ] if refused == worker => refusal,
            ref other => panic!("{other:?}"),
        }
    }

    fn call(&mut self, worker: WorkerId) -> (CallId, Vec<Effect>) {
        let call = self.core.allocate_call();
        (
            call,
            self.tell(Event::CallArrived {
                call,
                worker,
                wait_ms_max: WAIT_MS,
            }),
        )
    }

    /// A call that makes a fresh isolate start.
    fn call_cold(&mut self, worker: WorkerId) -> (CallId, IsolateId) {
        let (call, effects) = self.call(worker);
        match effects[..] {
            [
                Effect::StartIsolate {
                    isolate,
                    worker: started,
                },
                Effect::Dispatch {
                    call: dispatched,
                    isolate: into,
                },
            ] => {
                assert_eq!((started, dispatched, into), (worker, call, isolate));
                (call, isolate)
            }
            ref other => panic!("{other:?}"),
        }
    }

    fn call_waits(&mut self, worker: WorkerId) -> CallId {
        let (call, effects) = self.call(worker);
        assert_eq!(effects, []);
        call
    }

    fn call_refused(&mut self, worker: WorkerId) -> Refusal {
        let (call, effects) = self.call(worker);
        match effects[..] {
            [
                Effect::RefuseCall {
                    call: refused,
                    refusal,
                },
            ] if refused == call => refusal,
            ref other => panic!("{other:?}"),
        }
    }

    fn finish(&mut self, call: CallId) -> Vec<Effect> {
        self.tell(Event::CallFinished {
            call,
            isolate_reusable: true,
        })
    }

    fn break_with(&mut self, call: CallId) -> Vec<Effect> {
        self.tell(Event::CallFinished {
            call,
            isolate_reusable: false,
        })
    }

    fn ended(&mut self, isolate: IsolateId) -> Vec<Effect> {
        self.tell(Event::IsolateEnded { isolate })
    }
}

fn dispatched(effects: &[Effect]) -> Vec<CallId> {
    let call = |effect: &Effect| match effect {
        Effect::Dispatch { call, .. } => Some(*call),
        _ => None,
    };
    effects.iter().filter_map(call).collect()
}
