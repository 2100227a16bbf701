//! What an isolate that is broken out of its engine can say to the service, and what comes of it.

use super::super::{CodeBytesMax, Service};
use crate::{
    metrics::{BuildInfo, Metrics},
    router::{Address, CLIENT_GONE, Payload, Remote},
    session::{Grants, Session, Worker},
};
use coracle_abi::{ChildOutbound, OUTBOUND, import_of};
use coracle_isolate::{
    Answer, Bytes, CallAccess, Child, ChildEntrypoint, Event, External, Form, Health, Kind,
    Loading, Message, Outcome, OutwardCall, Scheduler, Stats, Thrown,
};
use coracle_loader::{CoreConfig, Encoded, Limits, LimitsRequest, Module, ModuleBody, WorkerCode};
use coracle_value::Value;
use std::sync::{Arc, Mutex};

/// A scheduler that runs nothing; the tests say what isolates do.
#[derive(Default)]
struct Quiet(Mutex<Vec<Message>>);

impl Scheduler for Quiet {
    fn send(&self, message: Message) {
        self.0.lock().expect("whole").push(message);
    }

    fn health(&self) -> Health {
        Health {
            threads: 1,
            threads_lost: 0,
        }
    }

    fn stats(&self) -> Stats {
        Stats::default()
    }
}

struct Stage {
    service: Arc<Service>,
    scheduler: Arc<Quiet>,
    session: Session,
}

/// A worker with a loader as its first import, and its isolate.
struct Parent {
    isolate: u64,
    _worker: Worker,
    _call: tokio::task::JoinHandle<()>,
}

const LOADER: u64 = 1;
/// What is first in `env`.
const HELD: u64 = 1;

impl Stage {
    fn new() -> Self {
        let text = String::new;
        let metrics = Metrics::new(BuildInfo {
            version: text(),
            guest: text(),
            wasmtime: text(),
            quickjs: text(),
            cpu_baseline: text(),
        });
        let room = CodeBytesMax {
            per_session: 1 << 30,
            all: 1 << 30,
        };
        let service = Service::new(
            CoreConfig::default(),
            coracle_loader::Tenancy::default(),
            Limits::default(),
            room,
            metrics,
        );
        let scheduler = Arc::new(Quiet::default());
        service.attach(Arc::clone(&scheduler) as Arc<dyn Scheduler>);
        let session = Session::open(&service, "tenant".into());
        Self {
            service,
            scheduler,
            session,
        }
    }

    fn sent(&self) -> Vec<Message> {
        std::mem::take(&mut *self.scheduler.0.lock().expect("whole"))
    }

    async fn parent(&self) -> Parent {
        self.holder_of(vec![Address::Loader(Arc::default())]).await
    }

    /// A worker with these in its `env`, and its isolate.
    async fn holder_of(&self, held: Vec<Address>) -> Parent {
        let externals = (0..held.len() as u32).map(Value::External);
        let env = Value::object([("HELD", Value::Array(externals.collect()))]);
        let code = WorkerCode {
            main_module: "main.js".into(),
            modules: vec![Module {
                name: "main.js".into(),
                body: ModuleBody::EsModule("export default {}".into()),
            }],
            env: Encoded {
                form: coracle_loader::Form::Cbor,
                bytes: coracle_value::encode(&env),
                externals: held.len() as u32,
            },
            ..WorkerCode::default()
        };
        let grants = Grants {
            env: held,
            ..Grants::default()
        };
        let worker = self.session.load(&code, grants).expect("it is right");
        let entrypoint = worker.entrypoint("", Payload::UNDEFINED, &LimitsRequest::default());
        let call = tokio::spawn(async move {
            let nothing = (vec!["run".to_owned()], Payload::UNDEFINED);
            let _ = entrypoint
                .invoke(CallAccess::Call, nothing.0, nothing.1, Form::Cbor)
                .await;
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        let started = self.sent().into_iter().find_map(|message| match message {
            Message::Start { isolate, .. } => Some(isolate),
            _ => None,
        });
        Parent {
            isolate: started.expect("the call starts an isolate"),
            _worker: worker,
            _call: call,
        }
    }

    fn asks(&self, isolate: u64, operation: u64, request: Loading) {
        self.service.on_isolate_event(Event::Loading {
            isolate,
            invocation: 1,
            operation,
            request,
        });
    }

    fn loads(&self, isolate: u64, operation: u64, loader: u64, get: Option<u64>) {
        let child = Child {
            loader,
            get,
            load: Ok(Arc::default()),
            env: Vec::new(),
            outbound: ChildOutbound::Inherit,
            tails: Vec::new(),
            asked: LimitsRequest::default(),
            limits: Limits::default(),
        };
        self.asks(isolate, operation, Loading::Load(Box::new(child)));
    }

    fn gets_entrypoint(&self, isolate: u64, operation: u64, worker: u64) {
        let entrypoint = ChildEntrypoint {
            worker,
            name: "default".into(),
            props: Bytes::UNDEFINED,
            asked: LimitsRequest::default(),
        };
        self.asks(
            isolate,
            operation,
            Loading::Entrypoint(Box::new(entrypoint)),
        );
    }

    fn gets(&self, isolate: u64, operation: u64, id: &str) -> Option<Answer> {
        let get = Loading::Get {
            loader: LOADER,
            id: id.into(),
        };
        self.asks(isolate, operation, get);
        self.answer_to(isolate, operation)
    }

    /// What an operation was answered with, if it was.
    fn answer_to(&self, isolate: u64, operation: u64) -> Option<Answer> {
        self.sent().into_iter().find_map(|message| match message {
            Message::Settle {
                isolate: to,
                operation: of,
                answer,
            } if (to, of) == (isolate, operation) => Some(*answer),
            _ => None,
        })
    }

    /// Calls an import; `externals` go along as arguments.
    fn calls(
        &self,
        isolate: u64,
        operation: u64,
        import: u64,
        externals: Vec<External>,
    ) -> Vec<Message> {
        let call = OutwardCall {
            import,
            is_stream: false,
            path: vec!["run".into()],
            access: CallAccess::Call,
            args: Bytes {
                form: Form::Undefined,
                bytes: Vec::new(),
                externals,
            },
        };
        self.service.on_isolate_event(Event::Called {
            isolate,
            invocation: 1,
            operation,
            call: Box::new(call),
        });
        self.sent()
    }

    fn workers(&self) -> u64 {
        self.service.gauges().workers
    }
}

/// The reason that the call got at once.
fn refusal(messages: &[Message]) -> String {
    match messages {
        [Message::Settle { answer, .. }] => match &**answer {
            Answer::Failed(reason) => reason.clone(),
            Answer::Outcome(Outcome::Threw(thrown)) => thrown.message.clone(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_forged_loader_loads_nothing() {
    let stage = Stage::new();
    let parent = stage.parent().await;
    for (operation, loader) in [2, OUTBOUND, u64::MAX, import_of(1), import_of(10)]
        .into_iter()
        .enumerate()
    {
        let operation = 10 + 10 * operation as u64;
        stage.loads(parent.isolate, operation, loader, None);
        assert_eq!(stage.workers(), 1);
        let told = stage.calls(
            parent.isolate,
            operation + 1,
            import_of(operation),
            Vec::new(),
        );
        assert_eq!(refusal(&told), super::NO_LOADER);
    }
}

/// A client may go between the moment in which an isolate calls its object and that in which the call is passed on. The service
/// holds its state then: the isolate is told at once, and nobody waits for anybody.
#[tokio::test]
async fn a_call_of_a_client_that_has_just_gone_is_answered() {
    let stage = Stage::new();
    let (commands, client) = tokio::sync::mpsc::unbounded_channel();
    drop(client);
    let object = Remote::new(commands, 1, 1, Kind::Target);
    let holder = stage
        .holder_of(vec![Address::Remote(Arc::new(object))])
        .await;
    let told = stage.calls(holder.isolate, 10, HELD, Vec::new());
    assert_eq!(refusal(&told), CLIENT_GONE);
    let told = stage.calls(holder.isolate, 11, HELD, Vec::new());
    assert_eq!(refusal(&told), CLIENT_GONE);
}

#[tokio::test]
async fn what_another_isolate_has_made_is_nothing_here() {
    let stage = Stage::new();
    let (one, other) = (stage.parent().await, stage.parent().await);
    stage.loads(one.isolate, 10, LOADER, None);
    stage.gets_entrypoint(one.isolate, 11, import_of(10));
    assert_eq!(stage.workers(), 3);
    stage.gets_entrypoint(other.isolate, 12, import_of(10));
    let told = stage.calls(other.isolate, 13, import_of(12), Vec::new());
    assert_eq!(refusal(&told), super::NO_WORKER);
    let told = stage.calls(other.isolate, 14, import_of(11), Vec::new());
    assert!(refusal(&told).contains("not one that the isolate holds"));
    let own = stage.calls(one.isolate, 15, import_of(11), Vec::new());
    assert!(
        matches!(own[..], [Message::Start { .. }, Message::Call { .. }]),
        "{own:?}"
    );
}

#[tokio::test]
async fn loaders_and_workers_are_not_called_and_not_passed_on_in_arguments() {
    let stage = Stage::new();
    let parent = stage.parent().await;
    stage.loads(parent.isolate, 10, LOADER, None);
    stage.gets_entrypoint(parent.isolate, 11, import_of(10));
    for (operation, import) in [(12, LOADER), (13, import_of(10))] {
        let told = stage.calls(parent.isolate, operation, import, Vec::new());
        assert_eq!(refusal(&told), crate::router::NOT_CALLABLE);
    }
    let passed = vec![
        External::Import(LOADER, Kind::Loader),
        External::Import(import_of(10), Kind::Loader),
        External::Export(5, Kind::Loader),
    ];
    let sent = stage.calls(parent.isolate, 14, import_of(11), passed);
    let [Message::Start { isolate, .. }, Message::Call { call, .. }] = &sent[..] else {
        panic!("{sent:?}")
    };
    let kinds: Vec<_> = call.args.externals.iter().collect();
    let [
        External::Import(loader, Kind::Target),
        External::Import(worker, Kind::Target),
        External::Import(_, Kind::Target),
    ] = kinds[..]
    else {
        panic!("{kinds:?}")
    };
    stage.loads(*isolate, 20, *loader, None);
    stage.gets_entrypoint(*isolate, 21, *worker);
    for operation in [20, 21] {
        let told = stage.calls(*isolate, 30 + operation, import_of(operation), Vec::new());
        assert!(refusal(&told).contains("is not a"), "{told:?}");
    }
}

#[tokio::test]
async fn a_child_goes_when_it_is_let_go_of_and_with_the_isolate_that_loaded_it() {
    let stage = Stage::new();
    let parent = stage.parent().await;
    for operation in 10..20 {
        stage.loads(parent.isolate, operation, LOADER, None);
        stage.gets_entrypoint(parent.isolate, 10 + operation, import_of(operation));
    }
    assert_eq!(stage.workers(), 11);
    let imports = vec![import_of(10), import_of(20), import_of(20), 7, u64::MAX];
    stage.service.on_isolate_event(Event::Released {
        isolate: parent.isolate,
        imports,
    });
    assert_eq!(stage.workers(), 10);
    stage.service.on_isolate_event(Event::Ended {
        isolate: parent.isolate,
    });
    assert_eq!(stage.workers(), 1);
}

#[tokio::test]
async fn what_one_isolate_makes_is_bounded() {
    let stage = Stage::new();
    let parent = stage.parent().await;
    stage.loads(parent.isolate, 10, LOADER, None);
    for operation in 11..10_011 {
        stage.gets_entrypoint(parent.isolate, operation, import_of(10));
    }
    let kept = stage.calls(parent.isolate, 20_000, import_of(10_009), Vec::new());
    assert!(
        matches!(kept[..], [Message::Start { .. }, Message::Call { .. }]),
        "{kept:?}"
    );
    let told = stage.calls(parent.isolate, 20_001, import_of(10_010), Vec::new());
    assert_eq!(refusal(&told), super::NO_ROOM);
}

#[tokio::test]
async fn only_who_was_asked_provides_and_the_next_is_asked_when_that_ends() {
    let stage = Stage::new();
    let (parent, other) = (stage.parent().await, stage.parent().await);
    let isolate = parent.isolate;
    assert_eq!(stage.gets(isolate, 10, "a"), Some(Answer::Provide));
    assert_eq!(stage.gets(isolate, 11, "a"), None);
    assert_eq!(stage.gets(isolate, 12, "a"), None);

    // Nobody else ends the wait, and what they load has no name.
    let thrown = || Loading::NotProvided {
        get: 10,
        thrown: Box::<Thrown>::default(),
    };
    stage.asks(other.isolate, 20, thrown());
    stage.loads(other.isolate, 21, LOADER, Some(10));
    stage.loads(isolate, 22, LOADER, Some(11));
    stage.loads(isolate, 23, LOADER, Some(99));
    assert!(stage.sent().is_empty());

    stage.service.on_isolate_event(Event::CallDropped {
        isolate,
        operation: 10,
    });
    assert_eq!(stage.answer_to(isolate, 11), Some(Answer::Provide));
    stage.asks(isolate, 24, thrown());
    assert!(
        stage.sent().is_empty(),
        "who was asked first is not asked any more"
    );
    stage.loads(isolate, 25, LOADER, Some(11));
    assert_eq!(
        stage.answer_to(isolate, 12),
        Some(Answer::Worker(import_of(12)))
    );
    assert_eq!(
        stage.gets(isolate, 13, "a"),
        Some(Answer::Worker(import_of(13)))
    );
    // The same id in another worker's loader is another name.
    assert_eq!(stage.gets(other.isolate, 14, "a"), Some(Answer::Provide));
}
