//! One isolate: its mailbox, its invocations, its guest, driven a slice at a time.
//!
//! An actor is plain data between slices and may be run by any thread, one at a time. It decides nothing about other
//! isolates and knows no thread, queue or socket; time comes from a [`Clock`], what it wants done leaves in [`Effects`].
//! This file has its life: mail in, slices, what an entry leaves behind. `calls` begins and cancels invocations,
//! `operations` keeps what they wait for, `outcome` says what the guest's words and failures mean, `ending` reports.

mod calls;
mod ending;
mod operations;
mod outcome;

use crate::{
    border::{self, Allowance, Outbox},
    clock::Clock,
    fuel,
    instance::{Done, Entry, Instance, Running, Terms},
    invocation::{Invocation, Memory},
    message::{Call, Event, Outcome, WorkerSpec},
    pool_memory::PoolMemory,
    sandbox::Sandbox,
};
use coracle_abi as abi;
use operations::Operation;
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
    /// On a thread for isolates: about a millisecond.
    pub(crate) const OWN_THREAD: Self = Self {
        slice: fuel::SLICE,
        turn_cpu_max: Duration::from_millis(1),
    };
    /// On a thread that has other things to do: about a tenth of that.
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
}

pub(crate) enum AlarmChange {
    Set(Alarm),
    /// The operation's alarm is no longer wanted.
    Clear {
        operation: u64,
    },
}

/// Something to be told at a time of the monotonic clock.
pub(crate) struct Alarm {
    pub(crate) at: Duration,
    pub(crate) mail: Mail,
}

/// What can be in a mailbox.
pub(crate) enum Mail {
    Call { call: Box<Call>, arrived: Duration },
    Settle { operation: u64, bytes: Vec<u8> },
    Collect,
    WallTime { invocation: u64 },
    Cancel { invocation: u64 },
    End,
}

impl Mail {
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
    invocations: BTreeMap<u64, Invocation>,
    operations: HashMap<u64, Operation>,
    /// Operations that the guest still waits for and that will not be settled; it is told with the next call.
    forgotten: Vec<u64>,
    served: bool,
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
            forgotten: Vec::new(),
            served: false,
        }
    }

    pub(crate) fn post(&mut self, mail: Mail) {
        if mail.is_urgent() {
            self.urgent.push_back(mail);
        } else {
            self.mailbox.push_back(mail);
        }
    }

    /// Whether there is mail that it has not acted on.
    pub(crate) fn has_mail(&self) -> bool {
        !self.urgent.is_empty() || !self.mailbox.is_empty()
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
        loop {
            if self.act_on_urgent_mail(around, effects) == Life::Ended {
                return Turn::Ended;
            }
            if let Guest::Running(run) = &mut self.guest {
                let before = around.clock.thread_cpu();
                let done = run.running.slice();
                let spent = around.clock.thread_cpu().saturating_sub(before);
                cpu += spent;
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
            if cpu >= around.pace.turn_cpu_max {
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
                Mail::Call { .. } | Mail::Settle { .. } | Mail::Collect => {
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
            Mail::Collect => self.enter(Entry::Collect, NOBODY, around),
            Mail::WallTime { .. } | Mail::Cancel { .. } | Mail::End => unreachable!("urgent"),
        }
    }

    /// Begins an entry into the instance, which is at rest; without one nothing happens.
    fn enter(&mut self, entry: Entry, invocation: u64, around: &Surroundings<'_>) {
        let terms = self.terms(EntryKind::Run, invocation, around);
        self.guest = match std::mem::replace(&mut self.guest, Guest::Unborn) {
            Guest::Resting(instance) => {
                let running = instance.enter(entry, terms);
                Guest::Running(Run::new(running, EntryKind::Run, invocation, terms))
            }
            other => other,
        };
    }

    fn terms(&self, kind: EntryKind, invocation: u64, around: &Surroundings<'_>) -> Terms {
        let now_ms = around.clock.epoch_ms();
        let Some(books) = self.invocations.get(&invocation) else {
            let allowance = Allowance {
                memory_bytes_max: self.spec.limits.memory_bytes_max,
                ..Allowance::default()
            };
            return Terms {
                fuel: fuel::COLLECTION,
                slice: around.pace.slice,
                now_ms,
                allowance,
            };
        };
        Terms {
            fuel: match kind {
                EntryKind::Load => books.limits.startup_fuel_max,
                EntryKind::Run => books.fuel_left(),
            },
            slice: around.pace.slice,
            now_ms,
            allowance: Allowance {
                log_bytes: books.log_bytes_left,
                subrequests_sent: books.subrequests,
                subrequests_max: books.limits.subrequests_max,
                memory_bytes_max: books.limits.memory_bytes_max,
            },
        }
    }

    // --- what a slice leaves behind ---

    /// After a slice that did not end the entry.
    fn after_slice(
        &mut self,
        spent: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let Guest::Running(run) = &mut self.guest else {
            return Life::GoesOn;
        };
        run.slices += 1;
        let (kind, invocation) = (run.kind, run.invocation);
        self.charge_cpu(invocation, kind, spent);
        match kind {
            EntryKind::Load => self.take_what_a_load_said(invocation),
            EntryKind::Run => {
                if self.deliver(invocation, around, effects) == Life::Ended {
                    return Life::Ended;
                }
            }
        }
        self.end_if_cpu_is_used_up(invocation, around, effects)
    }

    /// After an entry has ended.
    fn after_entry(
        &mut self,
        done: Done,
        spent: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let guest = match done.instance {
            Some(instance) => Guest::Resting(instance),
            None => Guest::Unborn,
        };
        let Guest::Running(run) = std::mem::replace(&mut self.guest, guest) else {
            return Life::GoesOn;
        };
        let (kind, invocation) = (run.kind, run.invocation);
        self.charge_cpu(invocation, kind, spent);
        self.charge_fuel(invocation, kind, run.fuel - done.fuel_left.min(run.fuel));
        if kind == EntryKind::Load {
            self.take_what_a_load_said(invocation);
        } else if self.deliver(invocation, around, effects) == Life::Ended {
            return Life::Ended;
        }
        if let Err(error) = done.outcome {
            let outcome = self.outcome_of_failure(&error, kind, invocation);
            return self.end(Some((invocation, outcome)), around, effects);
        }
        if kind == EntryKind::Load {
            return self.after_load(invocation, around, effects);
        }
        if self.end_if_cpu_is_used_up(invocation, around, effects) == Life::Ended {
            return Life::Ended;
        }
        self.forget_if_reported(invocation, effects);
        Life::GoesOn
    }

    fn charge_cpu(&mut self, invocation: u64, kind: EntryKind, spent: Duration) {
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match kind {
                EntryKind::Load => books.cpu_load += spent,
                EntryKind::Run => books.cpu_run += spent,
            }
        }
    }

    fn charge_fuel(&mut self, invocation: u64, kind: EntryKind, burnt: u64) {
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match kind {
                EntryKind::Load => books.fuel_load += burnt,
                EntryKind::Run => books.fuel_run += burnt,
            }
        }
    }

    fn end_if_cpu_is_used_up(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let verdict = self
            .invocations
            .get(&invocation)
            .and_then(Invocation::verdict_on_cpu);
        match verdict {
            Some(verdict) => {
                let culprit = (invocation, Outcome::Verdict(verdict));
                self.end(Some(culprit), around, effects)
            }
            None => Life::GoesOn,
        }
    }

    /// Logs and counters of the slice, into the books of the invocation that ran.
    fn take_outbox_books(&mut self, invocation: u64) {
        let mut outbox = border::lock(&self.outbox);
        let logs = std::mem::take(&mut outbox.logs);
        let bytes = std::mem::take(&mut outbox.log_bytes);
        let dropped = std::mem::take(&mut outbox.log_bytes_dropped);
        if let Some(books) = self.invocations.get_mut(&invocation) {
            books.log_bytes_left = books.log_bytes_left.saturating_sub(bytes);
            books.log_bytes_dropped += dropped;
            books.logs.extend(logs);
        }
    }

    /// A load can only log and say how it went, once; what else a broken guest does in it is not taken.
    fn take_what_a_load_said(&mut self, invocation: u64) {
        self.take_outbox_books(invocation);
        let mut outbox = border::lock(&self.outbox);
        for started in std::mem::take(&mut outbox.started) {
            if let border::Started::Timer { .. } = started {
                outbox.timer_done();
            }
        }
        outbox.cancelled.clear();
        outbox
            .finished
            .retain(|finished| finished.invocation == NOBODY);
        outbox.finished.truncate(1);
    }

    /// The guest has reported how the load went, as the outcome of invocation 0; or it hangs.
    fn after_load(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let said = border::lock(&self.outbox).finished.pop();
        if let Some(said) = &said
            && said.kind == abi::finish::UNDEFINED
        {
            self.forget_if_reported(invocation, effects);
            return Life::GoesOn;
        }
        let outcome = self.outcome_of_load(said, invocation);
        // Every call that waits for the same modules has the same outcome.
        for other in self.waiting_calls() {
            if other != invocation {
                self.answer_waiting(other, outcome.clone(), around, effects);
            }
        }
        self.end(Some((invocation, outcome)), around, effects)
    }

    /// Acts on what the guest asked for in a slice.
    fn deliver(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        self.take_outbox_books(invocation);
        let (finished, started, cancelled) = {
            let mut outbox = border::lock(&self.outbox);
            (
                std::mem::take(&mut outbox.finished),
                std::mem::take(&mut outbox.started),
                std::mem::take(&mut outbox.cancelled),
            )
        };
        for start in started {
            self.start_operation(start, invocation, around, effects);
        }
        for operation in cancelled {
            self.drop_operation(operation, around, effects);
        }
        for finished in finished {
            if self.finish(finished, around, effects) == Life::Ended {
                return Life::Ended;
            }
        }
        Life::GoesOn
    }

    fn memory(&self) -> Memory {
        let outbox = border::lock(&self.outbox);
        Memory {
            bytes: outbox.memory_bytes,
            denied: outbox.memory_denied,
        }
    }
}

impl Run {
    fn new(running: Running, kind: EntryKind, invocation: u64, terms: Terms) -> Self {
        Self {
            running,
            kind,
            invocation,
            fuel: terms.fuel,
            slice: terms.slice,
            slices: 0,
        }
    }
}
