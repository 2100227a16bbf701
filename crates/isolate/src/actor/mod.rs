//! One isolate: its mailbox, its invocations, its guest, driven a slice at a time.
//!
//! An actor is plain data between slices and may be run by any thread, one at a time. It decides nothing about other
//! isolates and knows no thread, queue or socket; time comes from a [`Clock`], what it wants done leaves in [`Effects`].
//! This file has its life: mail in, turns. `calls` begins and cancels invocations, `entries` runs them, `operations`
//! keeps what they wait for, `holds` what keeps them open after their answer, `estates` says who pays when nobody waits, `loading` what they load, `outcome` says
//! what the guest's words and failures mean, `ending` reports.

mod calls;
mod ending;
mod entries;
mod estates;
mod holds;
mod kept;
mod loading;
mod operations;
mod outcome;

use crate::{
    border::{self, Outbox},
    clock::Clock,
    fuel,
    instance::{Entry, Instance, Running},
    invocation::{Invocation, Memory},
    message::{Answer, Call, Event, WorkerSpec},
    pool_memory::PoolMemory,
    sandbox::Sandbox,
};
use estates::Estates;
use kept::Kept;
use operations::{Operation, Waiting};
use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};

/// What an actor needs from its surroundings.
pub(crate) struct Surroundings<'a> {
    pub(crate) sandbox: &'a Arc<Sandbox>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) pool_memory: &'a PoolMemory,
    /// `None`: every isolate has randomness of its own.
    pub(crate) seed: Option<u64>,
    pub(crate) pace: Pace,
}

/// How long a turn may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// Fuel of a slice.
    pub(crate) slice: u64,
    /// CPU time after which a turn ends although each of its entries was short.
    pub(crate) turn_cpu_max: Duration,
}

impl Pace {
    /// On a thread for isolates: about a millisecond, in slices of a fifth of it.
    pub(crate) const OWN_THREAD: Self = Self {
        slice: fuel::SLICE,
        turn_cpu_max: Duration::from_millis(1),
    };
    /// On a thread that has other things to do: about a tenth of that, in one slice.
    pub(crate) const ASSISTED: Self = Self {
        slice: fuel::SLICE_ASSISTED,
        turn_cpu_max: Duration::from_micros(100),
    };
}

/// What an actor wants done.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) events: Vec<Event>,
    /// In order: what is set may be cleared in the same turn.
    pub(crate) alarms: Vec<AlarmChange>,
    /// CPU time that was spent in the guest.
    pub(crate) cpu: Duration,
}

pub(crate) enum AlarmChange {
    Set(Alarm),
    /// It is no longer wanted.
    Clear(AlarmOf),
}

/// What an alarm is of; an isolate has one of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AlarmOf {
    WallTime(u64),
    Operation(u64),
}

/// Something to be told at a time of the monotonic clock.
pub(crate) struct Alarm {
    pub(crate) at: Duration,
    pub(crate) mail: Mail,
}

/// What can be in a mailbox.
pub(crate) enum Mail {
    Call {
        call: Box<Call>,
        arrived: Duration,
    },
    Settle {
        operation: u64,
        bytes: Vec<u8>,
    },
    Answer {
        operation: u64,
        answer: Box<Answer>,
    },
    /// A subrequest has waited for its answer as long as it may.
    Unanswered {
        operation: u64,
    },
    Release {
        exports: Vec<u64>,
    },
    /// The guest is to know that nobody waits for an invocation any more.
    Cancelled {
        invocation: u64,
    },
    Collect,
    WallTime {
        invocation: u64,
    },
    Cancel {
        invocation: u64,
    },
    End,
}

impl Mail {
    /// What it is the alarm of, if it is one.
    pub(crate) fn alarm_of(&self) -> Option<AlarmOf> {
        match self {
            Self::WallTime { invocation } => Some(AlarmOf::WallTime(*invocation)),
            Self::Settle { operation, .. } | Self::Unanswered { operation } => {
                Some(AlarmOf::Operation(*operation))
            }
            Self::Call { .. }
            | Self::Answer { .. }
            | Self::Release { .. }
            | Self::Cancelled { .. }
            | Self::Collect
            | Self::Cancel { .. }
            | Self::End => None,
        }
    }

    /// Whether it is acted on before the code that is running gets its next slice.
    pub(crate) fn is_urgent(&self) -> bool {
        matches!(
            self,
            Self::WallTime { .. } | Self::Cancel { .. } | Self::End
        )
    }
}

/// What to do with an actor after a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing to do until mail comes.
    Idle,
    /// There is mail that it has not got to.
    Ready,
    /// More to run; it has used a whole slice.
    More,
    /// It is over; drop it.
    Ended,
}

/// Whether an isolate goes on or has ended.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    GoesOn,
    Ended,
}

pub(crate) struct Actor {
    isolate: u64,
    spec: WorkerSpec,
    urgent: VecDeque<Mail>,
    mailbox: VecDeque<Mail>,
    guest: Guest,
    outbox: Arc<Mutex<Outbox>>,
    /// Boxed, because a map keeps room for eleven, also when it is empty.
    invocations: BTreeMap<u64, Box<Invocation>>,
    operations: HashMap<u64, Operation>,
    waiting: Waiting,
    /// Imports that calls need which have not left yet.
    kept: Kept,
    /// How many of them only hold an invocation open.
    holds: usize,
    /// Invocations that a hold has been taken from since the last entry.
    unheld: Vec<u64>,
    estates: Estates,
    /// Operations that the guest still waits for and that will not be settled; it is told with the next call.
    forgotten: Vec<u64>,
    served: bool,
    paying: Paying,
}

/// Who pays for the entry under way or the one that was last, and what it had burnt in the entries before.
#[derive(Clone, Copy, Default)]
struct Paying {
    invocation: u64,
    fuel_before: u64,
}

enum Guest {
    /// No instance yet: an isolate costs nothing until it is called.
    Unborn,
    Resting(Box<Instance>),
    Running(Run),
}

/// An entry under way.
struct Run {
    running: Running,
    kind: EntryKind,
    /// Who pays for it; [`NOBODY`] for the host's own wishes.
    invocation: u64,
    fuel: u64,
    slice: u64,
    slices: u64,
    /// Fuel of it that is not charged.
    housekeeping: u64,
}

/// Loads are reported as invocation 0, and no invocation has that id.
const NOBODY: u64 = 0;

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Load,
    Run,
}

impl Actor {
    pub(crate) fn new(isolate: u64, spec: WorkerSpec) -> Self {
        Self {
            isolate,
            spec,
            urgent: VecDeque::new(),
            mailbox: VecDeque::new(),
            guest: Guest::Unborn,
            outbox: Arc::default(),
            invocations: BTreeMap::new(),
            operations: HashMap::new(),
            waiting: Waiting::default(),
            kept: Kept::default(),
            holds: 0,
            unheld: Vec::new(),
            estates: Estates::default(),
            forgotten: Vec::new(),
            served: false,
            paying: Paying::default(),
        }
    }

    pub(crate) fn post(&mut self, mail: Mail) {
        if mail.is_urgent() {
            self.urgent.push_back(mail);
        } else {
            self.mailbox.push_back(mail);
        }
    }

    /// Whether it is in the middle of running code.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.guest, Guest::Running(_))
    }

    /// Whether it holds a stack of the pool's: in the middle of running code, or kept for the next time.
    pub(crate) fn has_stack(&self) -> bool {
        match &self.guest {
            Guest::Unborn => false,
            Guest::Resting(instance) => instance.has_stack(),
            Guest::Running(_) => true,
        }
    }

    /// Gives the stack back to the pool, if it is not in use.
    pub(crate) fn give_back_stack(&mut self) {
        if let Guest::Resting(instance) = &mut self.guest {
            instance.give_back_stack();
        }
    }

    /// Acts on urgent mail only; runs no code.
    pub(crate) fn turn_urgent(&mut self, around: &Surroundings<'_>, effects: &mut Effects) -> Turn {
        if self.act_on_urgent_mail(around, effects) == Life::Ended {
            return Turn::Ended;
        }
        if self.is_running() {
            return Turn::More;
        }
        if !self.mailbox.is_empty() {
            return Turn::Ready;
        }
        self.end_hung(around, effects);
        Turn::Idle
    }

    /// Acts on what is in the mailbox and runs code, for about a slice.
    pub(crate) fn turn(&mut self, around: &Surroundings<'_>, effects: &mut Effects) -> Turn {
        let (mut cpu, mut burnt) = (Duration::ZERO, 0);
        // What is done between two slices is little, and is counted with the second.
        let mut before = around.clock.thread_cpu();
        loop {
            if self.act_on_urgent_mail(around, effects) == Life::Ended {
                return Turn::Ended;
            }
            if let Guest::Running(run) = &mut self.guest {
                let done = run.running.slice();
                let after = around.clock.thread_cpu();
                let spent = after.saturating_sub(before);
                before = after;
                cpu += spent;
                effects.cpu += spent;
                // An entry that began with short slices goes on with them, and gets as many as make a long one.
                burnt += run.slice;
                let whole_slice = done.is_none() && burnt >= around.pace.slice;
                let life = match done {
                    None => self.after_slice(spent, around, effects),
                    Some(done) => self.after_entry(done, spent, around, effects),
                };
                if life == Life::Ended {
                    return Turn::Ended;
                }
                if whole_slice {
                    return Turn::More;
                }
            } else if let Some(mail) = self.mailbox.pop_front() {
                self.act_on(mail, around, effects);
            } else {
                self.end_hung(around, effects);
                return Turn::Idle;
            }
            // One that is done is not given another turn to find that out.
            let has_more = self.is_running() || !self.mailbox.is_empty();
            if has_more && cpu >= around.pace.turn_cpu_max {
                return Turn::More;
            }
        }
    }

    fn act_on_urgent_mail(&mut self, around: &Surroundings<'_>, effects: &mut Effects) -> Life {
        while let Some(mail) = self.urgent.pop_front() {
            let life = match mail {
                Mail::End => self.end_silently(),
                Mail::WallTime { invocation } => self.wall_time_is_up(invocation, around, effects),
                Mail::Cancel { invocation } => self.cancel(invocation, around, effects),
                Mail::Call { .. }
                | Mail::Settle { .. }
                | Mail::Answer { .. }
                | Mail::Unanswered { .. }
                | Mail::Release { .. }
                | Mail::Cancelled { .. }
                | Mail::Collect => {
                    unreachable!("not urgent")
                }
            };
            if life == Life::Ended || self.end_if_abandoned(around, effects) == Life::Ended {
                return Life::Ended;
            }
        }
        Life::GoesOn
    }

    /// Acts on mail between two entries.
    fn act_on(&mut self, mail: Mail, around: &Surroundings<'_>, effects: &mut Effects) {
        match mail {
            Mail::Call { call, arrived } => self.begin_call(call, arrived, around, effects),
            Mail::Settle { operation, bytes } => self.settle(operation, bytes, around, effects),
            Mail::Answer { operation, answer } => {
                self.answered(operation, &answer, around, effects);
            }
            Mail::Unanswered { operation } => self.unanswered(operation, around, effects),
            Mail::Release { exports } => self.release(exports, around),
            Mail::Cancelled { invocation } => self.tell_cancelled(invocation, around),
            Mail::Collect => self.enter(Entry::Collect, NOBODY, around),
            Mail::WallTime { .. } | Mail::Cancel { .. } | Mail::End => unreachable!("urgent"),
        }
    }

    fn memory(&self) -> Memory {
        let outbox = border::lock(&self.outbox);
        Memory {
            bytes: outbox.memory_bytes,
            denied: outbox.memory_denied,
        }
    }
}
