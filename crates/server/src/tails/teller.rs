//! The thread that makes events of what was noted, and calls tails.

use super::{
    BYTES_OF_TENANT_MAX, BYTES_TOGETHER_MAX, DELIVERY_TIME_MAX, Delivery, Tail, TailCall,
    encoding::Event,
    event,
    trace::{Ending, Trace},
};
use crate::{
    room::{Room, Taken},
    router::{Address, AnswerTo, Payload, RemoteCall},
    service::Service,
    session::OutCall,
};
use coracle_isolate::{CallAccess, Form, Log};
use coracle_outbound::Record;
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::Instant,
};

/// Something that tails are told of, or that has become of telling them.
pub(crate) enum Telling {
    Onset(Arc<Trace>),
    Logs(Arc<Trace>, Vec<Log>),
    Outbound(Arc<Trace>, Box<Record>),
    Ended(Arc<Trace>, Box<Ending>),
    /// A call of a tail is over.
    Answered {
        tail: Arc<Tail>,
        call: u64,
        delivered: bool,
    },
}

/// What was noted and is not told yet.
pub(crate) struct Tellings {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    /// For all tails of the server, whoever they belong to.
    room: Arc<Room>,
}

#[derive(Default)]
struct Waiting {
    noted: VecDeque<Noted>,
    is_asleep: bool,
    is_over: bool,
}

struct Noted {
    telling: Telling,
    /// What it takes until it has been made into events.
    _room: Option<Taken>,
}

/// What the thread has to do next.
enum Next {
    Tell(Noted),
    /// It is later than it wanted to wait.
    Look,
    End,
}

impl Tellings {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            waiting: Mutex::default(),
            wake: Condvar::new(),
            room: Room::new(BYTES_TOGETHER_MAX),
        })
    }

    /// The part of one tenant in what may wait for tails.
    pub(crate) fn part_of_tenant(&self) -> Arc<Room> {
        self.room.part(BYTES_OF_TENANT_MAX)
    }

    /// Notes something down, for which room has been taken. That is all that is done while the service's state is held.
    pub(crate) fn note(&self, telling: Telling, room: Taken) {
        self.push(Noted {
            telling,
            _room: Some(room),
        });
    }

    pub(super) fn note_answer(&self, tail: Arc<Tail>, call: u64, delivered: bool) {
        self.push(Noted {
            telling: Telling::Answered {
                tail,
                call,
                delivered,
            },
            _room: None,
        });
    }

    fn push(&self, noted: Noted) {
        let mut waiting = self.waiting();
        if waiting.is_over {
            return;
        }
        waiting.noted.push_back(noted);
        let wake = std::mem::take(&mut waiting.is_asleep);
        drop(waiting);
        if wake {
            self.wake.notify_one();
        }
    }

    /// Nothing is told any more.
    pub(crate) fn end(&self) {
        self.waiting().is_over = true;
        self.wake.notify_one();
    }

    fn next(&self, until: Option<Instant>) -> Next {
        let mut waiting = self.waiting();
        loop {
            if waiting.is_over {
                return Next::End;
            }
            if let Some(noted) = waiting.noted.pop_front() {
                return Next::Tell(noted);
            }
            waiting.is_asleep = true;
            waiting = match until {
                None => self
                    .wake
                    .wait(waiting)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Next::Look;
                    }
                    let woken = self.wake.wait_timeout(waiting, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts the thread that tells a service's tails. It ends with the service.
pub(crate) fn start(service: &Arc<Service>) -> io::Result<()> {
    let mut teller = Teller {
        tellings: Arc::clone(service.tellings()),
        calls: 0,
        under_way: BTreeMap::new(),
    };
    let service = Arc::downgrade(service);
    thread::Builder::new()
        .name("tails".into())
        .spawn(move || teller.run(&service))?;
    Ok(())
}

struct Teller {
    tellings: Arc<Tellings>,
    /// Calls that have been made.
    calls: u64,
    /// Those of clients' objects that have no answer, with the time until which they may have one. All have the same
    /// time, so the first is the earliest.
    under_way: BTreeMap<u64, (Instant, Arc<Tail>)>,
}

impl Teller {
    fn run(&mut self, service: &Weak<Service>) {
        loop {
            let first = self.under_way.first_key_value();
            let noted = match self.tellings.next(first.map(|(_, (until, _))| *until)) {
                Next::Tell(noted) => Some(noted),
                Next::Look => None,
                Next::End => return,
            };
            let Some(service) = service.upgrade() else {
                return;
            };
            // A fault of ours with one event must not keep all others from being told.
            let told = catch_unwind(AssertUnwindSafe(|| {
                if let Some(noted) = noted {
                    self.tell(&service, noted);
                }
                self.give_up_late(&service);
            }));
            if told.is_err() {
                service.metrics().panicked();
            }
        }
    }

    fn tell(&mut self, service: &Arc<Service>, noted: Noted) {
        let (trace, streamed, finished) = match &noted.telling {
            Telling::Answered {
                tail,
                call,
                delivered,
            } => return self.answered(service, tail, *call, *delivered),
            Telling::Onset(trace) => (trace, 1, 0),
            Telling::Logs(trace, logs) => (trace, logs.len() as u64, 0),
            Telling::Outbound(trace, _) => (trace, 1, 0),
            Telling::Ended(trace, ending) => (trace, ending.outcome_events(trace), 1),
        };
        let trace = Arc::clone(trace);
        let made = Made::of(&noted.telling, &trace, streamed);
        // What was noted goes, and its room with it, before what was made of it takes some.
        drop(noted);
        for tail in &trace.tails[..] {
            let (events, count) = match tail.is_streaming {
                true => (&made.streamed, streamed),
                false => (&made.finished, finished),
            };
            let pushed = events
                .iter()
                .filter(|event| tail.push(event, trace.depth + 1));
            let lost = count.saturating_sub(pushed.count() as u64);
            tail.lose(lost);
            service.metrics().tail_events_dropped(lost);
            self.call(service, tail);
        }
    }

    /// A call is over, unless it has been given up.
    fn answered(&mut self, service: &Arc<Service>, tail: &Arc<Tail>, call: u64, delivered: bool) {
        self.under_way.remove(&call);
        if let Some(lost) = tail.end(call, delivered) {
            service.metrics().tail_events_dropped(lost);
            self.call(service, tail);
        }
    }

    fn give_up_late(&mut self, service: &Arc<Service>) {
        let now = Instant::now();
        while let Some(first) = self.under_way.first_entry()
            && first.get().0 <= now
        {
            let (call, (_, tail)) = first.remove_entry();
            self.answered(service, &tail, call, false);
        }
    }

    /// Begins a call of a tail, if it has events and no call under way.
    fn call(&mut self, service: &Arc<Service>, tail: &Arc<Tail>) {
        let number = self.calls + 1;
        let Some(Delivery { args, depth }) = tail.begin(number) else {
            return;
        };
        self.calls = number;
        // Where nothing comes of it, dropping this says so.
        let answer_to = TailCall {
            tellings: Arc::clone(&self.tellings),
            tail: Some(Arc::clone(tail)),
            call: number,
            delivered: false,
        };
        let path = vec![tail.method().to_owned()];
        let args = Payload {
            form: Form::Cbor,
            bytes: args,
            externals: Vec::new(),
        };
        let access = CallAccess::Call;
        let call = match &tail.address {
            Address::Entrypoint(entrypoint) => {
                OutCall::of_entrypoint(entrypoint, access, path, args, Form::Cbor)
            }
            Address::Export(export) => OutCall::of_export(export, access, path, args, Form::Cbor),
            Address::Remote(remote) => {
                let sent = remote.call(RemoteCall {
                    path,
                    access,
                    args,
                    answer_to: AnswerTo::Tail(answer_to),
                });
                // Dropping one that is not sent says that it was not delivered.
                if let Ok(kept) = sent {
                    tail.keep(kept);
                }
                let until = Instant::now() + DELIVERY_TIME_MAX;
                self.under_way.insert(number, (until, Arc::clone(tail)));
                return;
            }
            Address::Host(_)
            | Address::Failed(_)
            | Address::Loader(_)
            | Address::Worker(_)
            | Address::Broken => return,
        };
        if !call.worker.is_revoked() {
            service.place_for_tail(call, answer_to, depth);
        }
    }
}

/// The events of something, each encoded once. What no tail has room for is not made.
#[derive(Default)]
struct Made {
    streamed: Vec<Arc<Event>>,
    finished: Vec<Arc<Event>>,
}

impl Made {
    fn of(telling: &Telling, trace: &Trace, streamed: u64) -> Self {
        let mut made = Self::default();
        if trace.has_room(true) {
            let events = match telling {
                Telling::Onset(_) => vec![event::onset(trace)],
                Telling::Logs(_, logs) => logs.iter().map(|log| event::log(trace, log)).collect(),
                Telling::Outbound(_, record) => vec![event::outbound(trace, record)],
                Telling::Ended(_, ending) => event::outcome(trace, ending),
                Telling::Answered { .. } => Vec::new(),
            };
            made.streamed = events.into_iter().map(Arc::new).collect();
        } else {
            trace.skip(streamed);
        }
        if let Telling::Ended(_, ending) = telling
            && trace.has_room(false)
        {
            made.finished.push(Arc::new(event::finished(trace, ending)));
        }
        made
    }
}
