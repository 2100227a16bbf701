//! Tails: what is told of a worker's invocations, besides their callers.
//!
//! Each tail has a queue of its own, bounded in events and bytes, and one call under way at a time: a tail that is slow or
//! gone delays nobody, and what has no room is lost and counted. Events are made and sent where the service's state is not
//! held, in the order in which things happened. See docs/decisions/0011-tails.md.

mod event;
mod http;
mod trace;

pub(crate) use trace::{Ending, Trace};

use crate::{
    router::{Address, AnswerTo, Payload, RemoteCall},
    service::Service,
    session::OutCall,
};
use coracle_isolate::{CallAccess, Form, Log};
use coracle_value::{Text, Value};
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::oneshot;

/// Tails that one worker may have.
pub(crate) const TAILS_MAX: u32 = 16;
/// Of events that wait for a tail.
const EVENTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;
/// Of those that wait for all tails of the server.
const BYTES_TOGETHER_MAX: usize = 64 << 20;
/// Events that are passed in one call.
const BATCH_EVENTS_MAX: usize = 100;
/// What happened and has not been made into events.
const TELLINGS_MAX: usize = 10_000;
/// A call that is made for a tail is told to the tails of its worker, and so is what that leads to, up to this depth: rings of
/// tails come to an end.
pub(crate) const DEPTH_MAX: u8 = 3;

/// Something that is told.
pub(crate) struct Tail {
    address: Address,
    is_streaming: bool,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Waiting>,
    bytes: usize,
    /// Events that had no room since the last call.
    lost: u64,
    /// Events that are in the call under way.
    sent: Option<u64>,
    /// Of a call of a client's object: dropping it gives the call up.
    kept: Option<oneshot::Sender<()>>,
}

/// An event that waits.
struct Waiting {
    event: Value,
    bytes: usize,
    /// Of the call that will be made for it.
    depth: u8,
}

impl Tail {
    pub(crate) fn new(address: Address, is_streaming: bool) -> Arc<Self> {
        Arc::new(Self {
            address,
            is_streaming,
            queue: Mutex::default(),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event in; false where there is no room for it.
    fn push(&self, event: Value, bytes: usize, depth: u8, together: &AtomicUsize) -> bool {
        let mut queue = self.queue();
        let used = together.load(Ordering::Relaxed);
        let is_full = queue.events.len() >= EVENTS_MAX
            || queue.bytes + bytes > BYTES_MAX && !queue.events.is_empty()
            || used + bytes > BYTES_TOGETHER_MAX;
        if is_full {
            queue.lost += 1;
            return false;
        }
        together.fetch_add(bytes, Ordering::Relaxed);
        queue.bytes += bytes;
        queue.events.push_back(Waiting {
            event,
            bytes,
            depth,
        });
        true
    }

    fn method(&self) -> &'static str {
        match self.is_streaming {
            true => "tailStream",
            false => "tail",
        }
    }

    /// The arguments of the next call and its depth, if there are events and no call is under way.
    fn begin(&self, together: &AtomicUsize) -> Option<(Vec<u8>, u8)> {
        let mut queue = self.queue();
        if queue.sent.is_some() || queue.events.is_empty() {
            return None;
        }
        let count = queue.events.len().min(BATCH_EVENTS_MAX);
        queue.sent = Some(count as u64);
        let lost = std::mem::take(&mut queue.lost);
        let sent: Vec<Waiting> = queue.events.drain(..count).collect();
        let bytes: usize = sent.iter().map(|waiting| waiting.bytes).sum();
        let depth = sent.iter().map(|waiting| waiting.depth).max().unwrap_or(0);
        queue.bytes -= bytes;
        drop(queue);
        together.fetch_sub(bytes, Ordering::Relaxed);
        let mut events: Vec<Value> = sent.into_iter().map(|waiting| waiting.event).collect();
        if lost > 0
            && let Some(Value::Object(properties)) = events.first_mut()
        {
            let truncated = Text::from("truncated");
            properties.retain(|(name, _)| *name != truncated);
            properties.push((truncated, true.into()));
            properties.push(("dropped".into(), Value::Number(lost as f64)));
        }
        let events = event::array_of(events);
        Some((coracle_value::encode(&Value::Array(vec![events])), depth))
    }

    /// The call is over; answers how many events have been lost with it.
    fn end(&self, delivered: bool) -> u64 {
        let mut queue = self.queue();
        let sent = queue.sent.take().unwrap_or(0);
        let lost = if delivered { 0 } else { sent };
        queue.lost += lost;
        let kept = queue.kept.take();
        drop(queue);
        drop(kept);
        lost
    }
}

/// Something to be done for tails once the service's state is let go.
pub(crate) enum Telling {
    Onset(Arc<Trace>),
    Logs(Arc<Trace>, Vec<Log>),
    Ended(Arc<Trace>, Box<Ending>),
    /// A call of a tail has an answer, or could not be made.
    Answered(Arc<Tail>, bool),
}

/// What there is to be done, and who does it.
#[derive(Default)]
pub(crate) struct Tellings {
    waiting: Mutex<VecDeque<Telling>>,
    /// Held by who does it, so that everything is told in order.
    teller: Mutex<()>,
    /// Bytes of the events that wait for tails.
    bytes: AtomicUsize,
}

impl Tellings {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Telling>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something down. Where too much is waiting, what happened is not told: it comes back, to be dropped where the
    /// service's state is not held.
    pub(crate) fn note(&self, telling: Telling) -> Option<Telling> {
        let mut waiting = self.waiting();
        let is_event = !matches!(telling, Telling::Answered(..));
        if is_event && waiting.len() >= TELLINGS_MAX {
            return Some(telling);
        }
        waiting.push_back(telling);
        None
    }
}

impl Service {
    /// Makes events of what has happened and sends them. Not while the state is held.
    pub(crate) fn tell_tails(&self) {
        let tellings = self.tellings();
        while !tellings.waiting().is_empty() {
            // Who holds it looks again before letting it go.
            let Ok(_teller) = tellings.teller.try_lock() else {
                return;
            };
            loop {
                let Some(telling) = tellings.waiting().pop_front() else {
                    break;
                };
                self.tell_one(telling);
            }
        }
    }

    fn tell_one(&self, telling: Telling) {
        let (trace, streamed, finished) = match telling {
            Telling::Answered(tail, delivered) => {
                self.metrics().tail_events_dropped(tail.end(delivered));
                return self.call_tail(&tail);
            }
            Telling::Onset(trace) => {
                let events = vec![event::onset(&trace)];
                (trace, events, None)
            }
            Telling::Logs(trace, logs) => {
                let events = logs.iter().map(|log| event::log(&trace, log)).collect();
                (trace, events, None)
            }
            Telling::Ended(trace, ending) => {
                let streamed = event::outcome(&trace, &ending);
                let finished = event::finished(&trace, &ending);
                (trace, streamed, Some(finished))
            }
        };
        for tail in &trace.tails[..] {
            let events = match tail.is_streaming {
                true => streamed.clone(),
                false => finished.clone().into_iter().collect(),
            };
            for (event, bytes) in events {
                if !tail.push(event, bytes, trace.depth + 1, &self.tellings().bytes) {
                    self.metrics().tail_events_dropped(1);
                }
            }
            self.call_tail(tail);
        }
    }

    /// Begins a call of a tail, if it has events and no call under way. Not while the state is held.
    fn call_tail(&self, tail: &Arc<Tail>) {
        let Some((bytes, depth)) = tail.begin(&self.tellings().bytes) else {
            return;
        };
        let path = vec![tail.method().to_owned()];
        let args = Payload {
            form: Form::Cbor,
            bytes,
            externals: Vec::new(),
        };
        let access = CallAccess::Call;
        let call = match &tail.address {
            Address::Entrypoint(entrypoint) => {
                OutCall::of_entrypoint(entrypoint, access, path, args, Form::Cbor)
            }
            Address::Export(export) => OutCall::of_export(export, access, path, args, Form::Cbor),
            Address::Remote(remote) => {
                if let Some(service) = self.itself() {
                    let answer_to = AnswerTo::Tail {
                        service,
                        tail: Arc::clone(tail),
                    };
                    let kept = remote.call(RemoteCall {
                        path,
                        access,
                        args,
                        answer_to,
                    });
                    tail.queue().kept = Some(kept);
                }
                return;
            }
            Address::Failed(_) | Address::Loader(_) | Address::Worker(_) | Address::Broken => {
                return self.tail_answered(tail, false);
            }
        };
        match call.worker.is_revoked() {
            true => self.tail_answered(tail, false),
            false => self.place_for_tail(call, tail, depth),
        }
    }

    fn tail_answered(&self, tail: &Arc<Tail>, delivered: bool) {
        let answered = Telling::Answered(Arc::clone(tail), delivered);
        drop(self.tellings().note(answered));
    }
}
