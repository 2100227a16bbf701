//! Tails: what is told of a worker's invocations, besides their callers.
//!
//! What happens is noted where the service's state is held, and made into events by a thread that does nothing else.
//! Each tail has a queue of its own, of encoded events, and one call under way at a time: a tail that is slow or gone
//! delays nobody, and what has no room is lost and counted. See docs/decisions/0011-tails.md.

mod encoding;
mod event;
mod http;
mod teller;
mod trace;

pub(crate) use self::{
    teller::{Telling, Tellings, start},
    trace::{Ending, Kept, Trace, logs_bytes, record_bytes},
};

use self::encoding::Event;
use crate::{
    outcome::CallAnswer,
    room::{Room, Taken},
    router::Address,
};
use coracle_isolate::Outcome;
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::sync::oneshot;

/// Tails that one worker may have.
pub(crate) const TAILS_MAX: u32 = 16;
/// Of events that wait for a tail.
const EVENTS_MAX: usize = 1_000;
const BYTES_MAX: usize = 1 << 20;
/// Of what is noted, waits or is in a call, for all tails of the server; for those of one tenant's workers, so that the
/// others' are told whatever becomes of them; and for those of one session's.
const BYTES_TOGETHER_MAX: u64 = 64 << 20;
const BYTES_OF_TENANT_MAX: u64 = BYTES_TOGETHER_MAX / 4;
const BYTES_OF_SESSION_MAX: u64 = BYTES_OF_TENANT_MAX / 4;
/// Events that are passed in one call.
const BATCH_EVENTS_MAX: usize = 100;
/// What an event that waits takes besides its own bytes.
const WAITING_BYTES: usize = 200;
/// How long a client may take to answer a call of its tail. What was sent is lost then, and the tail is called again. A
/// tail that is a worker has the time that its limits give it.
const DELIVERY_TIME_MAX: Duration = Duration::from_secs(30);
/// A call that is made for a tail is told to the tails of its worker, and so is what that leads to, up to this depth:
/// rings of tails come to an end.
pub(crate) const DEPTH_MAX: u8 = 3;

/// Something that is told.
pub(crate) struct Tail {
    address: Address,
    is_streaming: bool,
    /// What may wait for the tails of its session's workers.
    room: Arc<Room>,
    queue: Mutex<Queue>,
    /// Whether its queue had no room for an event since its last call: nothing is made for it then.
    is_full: AtomicBool,
    /// Events that were lost since the last call.
    lost: AtomicU64,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Waiting>,
    bytes: usize,
    sent: Option<Sent>,
}

/// An event that waits.
struct Waiting {
    /// The same one for all tails.
    event: Arc<Event>,
    /// Of the call that will be made for it.
    depth: u8,
    room: Taken,
}

/// The call under way.
struct Sent {
    call: u64,
    /// Of the events in it, one each: their bytes are still there, in its arguments.
    rooms: Vec<Taken>,
    /// Of events that were lost before.
    lost: u64,
    /// Of a call of a client's object: dropping it gives the call up.
    kept: Option<oneshot::Sender<()>>,
}

/// What a tail is called with.
struct Delivery {
    args: Vec<u8>,
    depth: u8,
}

/// The part of one session in what may wait for a tenant's tails.
pub(crate) fn part_of_session(of_tenant: &Arc<Room>) -> Arc<Room> {
    of_tenant.part(BYTES_OF_SESSION_MAX)
}

impl Tail {
    pub(crate) fn new(address: Address, is_streaming: bool, room: &Arc<Room>) -> Arc<Self> {
        Arc::new(Self {
            address,
            is_streaming,
            room: Arc::clone(room),
            queue: Mutex::default(),
            is_full: AtomicBool::new(false),
            lost: AtomicU64::new(0),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Ordering::Relaxed)
    }

    /// Events could not be told.
    fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// Takes an event in; false where there is no room for it.
    fn push(&self, event: &Arc<Event>, depth: u8) -> bool {
        let bytes = event.bytes() + WAITING_BYTES;
        let mut queue = self.queue();
        let is_full = queue.events.len() >= EVENTS_MAX
            || queue.bytes + bytes > BYTES_MAX && !queue.events.is_empty();
        if is_full {
            self.is_full.store(true, Ordering::Relaxed);
            return false;
        }
        let Ok(room) = self.room.take(bytes as u64) else {
            return false;
        };
        queue.bytes += bytes;
        queue.events.push_back(Waiting {
            event: Arc::clone(event),
            depth,
            room,
        });
        true
    }

    fn method(&self) -> &'static str {
        match self.is_streaming {
            true => "tailStream",
            false => "tail",
        }
    }

    /// What the next call is to be made with, if there are events and no call is under way.
    fn begin(&self, call: u64) -> Option<Delivery> {
        let mut queue = self.queue();
        if queue.sent.is_some() || queue.events.is_empty() {
            return None;
        }
        let count = queue.events.len().min(BATCH_EVENTS_MAX);
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let (mut events, mut rooms, mut depth) = (Vec::new(), Vec::new(), 0);
        for waiting in queue.events.drain(..count) {
            depth = depth.max(waiting.depth);
            events.push(waiting.event);
            rooms.push(waiting.room);
        }
        let bytes: usize = events
            .iter()
            .map(|event| event.bytes() + WAITING_BYTES)
            .sum();
        queue.bytes -= bytes;
        queue.sent = Some(Sent {
            call,
            rooms,
            lost,
            kept: None,
        });
        drop(queue);
        self.is_full.store(false, Ordering::Relaxed);
        let args = encoding::batch(&events, lost);
        Some(Delivery { args, depth })
    }

    /// Keeps a call of a client's object from being given up.
    fn keep(&self, kept: oneshot::Sender<()>) {
        if let Some(sent) = &mut self.queue().sent {
            sent.kept = Some(kept);
        }
    }

    /// A call is over; answers how many events have been lost with it, or nothing where it has been given up before.
    fn end(&self, call: u64, delivered: bool) -> Option<u64> {
        let sent = self.queue().sent.take_if(|sent| sent.call == call)?;
        if delivered {
            return Some(0);
        }
        let lost = sent.rooms.len() as u64;
        self.lose(lost + sent.lost);
        Some(lost)
    }
}

/// A call of a tail. Where it is dropped without an answer, what was sent with it is lost.
pub(crate) struct TailCall {
    tellings: Arc<Tellings>,
    /// There until it is dropped.
    tail: Option<Arc<Tail>>,
    call: u64,
    delivered: bool,
}

impl TailCall {
    /// It has an answer. What that is does not matter, as long as the tail has been reached.
    pub(crate) fn answer(mut self, answer: &CallAnswer) {
        self.delivered = match answer {
            Ok(answered) => match &answered.report.outcome {
                Outcome::Verdict(verdict) => verdict.started,
                Outcome::Value(_) | Outcome::Threw(_) => true,
            },
            Err(_) => false,
        };
    }
}

impl Drop for TailCall {
    fn drop(&mut self) {
        if let Some(tail) = self.tail.take() {
            self.tellings.note_answer(tail, self.call, self.delivered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_value::{Bounds, Value};

    fn event(bytes: usize) -> Arc<Event> {
        let mut writer = encoding::Writer::default();
        writer.properties([("text", Value::from("x".repeat(bytes)))]);
        Arc::new(writer.into_event(false))
    }

    fn told(delivery: &Delivery) -> Vec<Value> {
        let args = coracle_value::decode(&delivery.args, &Bounds::default());
        let events = args.ok().and_then(|args| args.index(0).cloned());
        match events {
            Some(Value::Array(events)) => events,
            other => panic!("{other:?} is no array of events"),
        }
    }

    #[test]
    fn what_was_lost_is_told_with_the_next_event_and_once() {
        let tail = Tail::new(Address::Broken, false, &Room::new(1 << 20));
        assert!(tail.push(&event(1), 1));
        tail.lose(2);
        let first = tail.begin(1).map(|delivery| told(&delivery));
        assert_eq!(
            first.as_ref().and_then(|told| told[0].get("dropped")),
            Some(&2.into())
        );
        assert!(tail.push(&event(1), 1));
        assert!(tail.begin(2).is_none(), "one call at a time");
        // The call fails, and what it should have told is told later.
        assert_eq!(tail.end(1, false), Some(1));
        assert_eq!(tail.end(1, false), None, "that is known");
        let second = tail.begin(2).map(|delivery| told(&delivery));
        assert_eq!(
            second.as_ref().and_then(|told| told[0].get("dropped")),
            Some(&3.into())
        );
        assert_eq!(
            second.as_ref().and_then(|told| told[0].get("truncated")),
            Some(&true.into())
        );
        assert_eq!(tail.end(2, true), Some(0));
        assert!(tail.push(&event(1), 1));
        let third = tail.begin(3).map(|delivery| told(&delivery));
        assert_eq!(third.as_ref().and_then(|told| told[0].get("dropped")), None);
    }

    #[test]
    fn a_queue_is_bounded_and_gives_its_room_back_with_its_events_or_with_itself() {
        let room = Room::new(4 * BYTES_MAX as u64);
        let whole = || room.take(4 * BYTES_MAX as u64).is_ok();
        let tail = Tail::new(Address::Broken, false, &room);
        let half = event(BYTES_MAX / 2);
        assert!(tail.push(&half, 1));
        assert!(!tail.push(&half, 1), "it is full");
        assert!(!tail.has_room());
        assert!(tail.begin(1).is_some());
        assert!(tail.has_room());
        assert!(!whole(), "what was sent takes room until it is answered");
        tail.end(1, true);
        assert!(whole());
        for _ in 0..EVENTS_MAX {
            assert!(tail.push(&event(1), 1));
        }
        assert!(!tail.push(&event(1), 1), "there are too many");
        drop(tail);
        assert!(whole());
    }
}
