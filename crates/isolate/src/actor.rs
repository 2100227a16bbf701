//! One isolate: its mailbox, its invocations, its guest, driven a slice at a time.
//!
//! An actor is plain data between slices and may be run by any thread, one at a time. It decides nothing about other
//! isolates and knows no thread, queue or socket; time comes from a [`Clock`], what it wants done leaves in [`Effects`].

use crate::{
    border::{self, Allowance, Outbox, Started, State, Stop},
    clock::Clock,
    fuel,
    instance::{Entry, Instance, Running},
    invocation::{Invocation, Memory},
    message::{
        Bytes, Call, CallAccess, Event, Form, Outcome, Report, Thrown, Verdict, VerdictKind,
        WorkerSpec,
    },
    sandbox::Sandbox,
};
use coracle_abi as abi;
use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex},
    time::Duration,
};
use wasmtime::Trap;

/// What an actor needs from its surroundings.
pub(crate) struct Surroundings<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) pool_memory: &'a border::PoolMemory,
    /// `None`: every isolate has randomness of its own.
    pub(crate) seed: Option<u64>,
}

/// What an actor wants done.
#[derive(Default)]
pub(crate) struct Effects {
    pub(crate) events: Vec<Event>,
    pub(crate) alarms: Vec<Alarm>,
    /// Operations whose alarm is no longer wanted.
    pub(crate) alarms_cancelled: Vec<u64>,
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
    WallTime { invocation: u64 },
    Cancel { invocation: u64 },
    End,
}

impl Mail {
    /// Whether it is acted on before the code that is running gets its next slice.
    fn is_urgent(&self) -> bool {
        matches!(
            self,
            Self::WallTime { .. } | Self::Cancel { .. } | Self::End
        )
    }
}

/// What to do with an actor after a turn.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing to do until mail comes.
    Idle,
    /// More to run; it has used a whole slice.
    More,
    /// It is over; drop it.
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
    operations: BTreeMap<u64, Operation>,
    fetches_in_flight: u64,
    fetches_held: VecDeque<u64>,
    served: bool,
}

/// A host operation that the guest waits for.
struct Operation {
    invocation: u64,
    fetch: bool,
}

enum Guest {
    /// No instance yet: an isolate costs nothing until it is called.
    Unborn,
    Resting(Box<Instance>),
    Running {
        running: Running,
        entry: EntryKind,
        invocation: u64,
        fuel: u64,
        slices: u64,
    },
    /// Only inside a turn.
    Moving,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Load,
    Run,
}

/// CPU time after which a turn ends although each of its entries was short.
const TURN_CPU_MAX: Duration = Duration::from_millis(1);

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
            operations: BTreeMap::new(),
            fetches_in_flight: 0,
            fetches_held: VecDeque::new(),
            served: false,
        }
    }

    pub(crate) fn post(&mut self, mail: Mail) {
        if mail.is_urgent() {
            self.urgent.push_back(mail)
        } else {
            self.mailbox.push_back(mail)
        }
    }

    /// Whether it holds a stack: it is in the middle of running code.
    pub(crate) fn holds_stack(&self) -> bool {
        matches!(self.guest, Guest::Running { .. })
    }

    /// Acts on what is in the mailbox and runs code, for about a slice.
    pub(crate) fn turn(&mut self, around: &Surroundings<'_>, effects: &mut Effects) -> Turn {
        let mut cpu = Duration::ZERO;
        loop {
            while let Some(mail) = self.urgent.pop_front() {
                if self.act_on_urgent(mail, around, effects) {
                    return Turn::Ended;
                }
            }
            match std::mem::replace(&mut self.guest, Guest::Moving) {
                Guest::Running {
                    mut running,
                    entry,
                    invocation,
                    fuel,
                    slices,
                } => {
                    let before = around.clock.thread_cpu();
                    let done = running.slice();
                    let spent = around.clock.thread_cpu().saturating_sub(before);
                    cpu += spent;
                    self.charge_cpu(invocation, entry, spent);
                    match done {
                        None => {
                            let slices = slices + 1;
                            self.guest = Guest::Running {
                                running,
                                entry,
                                invocation,
                                fuel,
                                slices,
                            };
                            if self.after_slice(invocation, slices, around, effects) {
                                return Turn::Ended;
                            }
                            return Turn::More;
                        }
                        Some((instance, outcome)) => {
                            if self.after_entry(
                                instance, outcome, entry, invocation, fuel, around, effects,
                            ) {
                                return Turn::Ended;
                            }
                        }
                    }
                }
                resting => {
                    self.guest = resting;
                    match self.mailbox.pop_front() {
                        Some(mail) => {
                            if self.act_on(mail, around, effects) {
                                return Turn::Ended;
                            }
                        }
                        None => {
                            self.end_hung(around, effects);
                            return Turn::Idle;
                        }
                    }
                }
            }
            if cpu >= TURN_CPU_MAX {
                return Turn::More;
            }
        }
    }

    // --- mail ---

    /// Returns whether the isolate ended.
    fn act_on_urgent(
        &mut self,
        mail: Mail,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        match mail {
            Mail::End => {
                self.drop_guest();
                effects.events.push(Event::Ended {
                    isolate: self.isolate,
                });
                true
            }
            Mail::WallTime { invocation } => {
                let Some(books) = self.invocations.get(&invocation) else {
                    return self.refuse_waiting(invocation, VerdictKind::Wall, around, effects);
                };
                let limit = books.limits.wall_ms_max;
                let used = around
                    .clock
                    .monotonic()
                    .saturating_sub(books.arrived)
                    .as_millis() as u64;
                let verdict = books.verdict(VerdictKind::Wall, "wall_ms_max", used, limit);
                self.end(invocation, Outcome::Verdict(verdict), around, effects)
            }
            Mail::Cancel { invocation } => {
                let Some(books) = self.invocations.get(&invocation) else {
                    return self.refuse_waiting(
                        invocation,
                        VerdictKind::Cancelled,
                        around,
                        effects,
                    );
                };
                let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::Cancelled));
                let others = self
                    .invocations
                    .values()
                    .filter(|books| !books.reported)
                    .count()
                    > 1
                    || self
                        .mailbox
                        .iter()
                        .any(|mail| matches!(mail, Mail::Call { .. }));
                let runs_now = matches!(&self.guest, Guest::Running { invocation: current, .. } if *current == invocation);
                if !others || runs_now {
                    return self.end(invocation, outcome, around, effects);
                }
                // Others are in the isolate: what this call left waiting is forgotten, the rest goes on.
                self.report(invocation, outcome, around, effects);
                self.forget_operations(invocation, effects);
                false
            }
            Mail::Call { .. } | Mail::Settle { .. } => unreachable!("not urgent"),
        }
    }

    /// A call that is still in the mailbox is over before it began.
    fn refuse_waiting(
        &mut self,
        invocation: u64,
        kind: VerdictKind,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        let position = self.mailbox.iter().position(
            |mail| matches!(mail, Mail::Call { call, .. } if call.invocation == invocation),
        );
        let Some(Mail::Call { call, arrived }) =
            position.and_then(|position| self.mailbox.remove(position))
        else {
            return false;
        };
        let mut books = Invocation::new(&call, arrived, self.served);
        let now = around.clock.monotonic();
        let verdict = match kind {
            VerdictKind::Wall => {
                let used = now.saturating_sub(arrived).as_millis() as u64;
                books.verdict(kind, "wall_ms_max", used, call.limits.wall_ms_max)
            }
            _ => books.verdict_plain(kind),
        };
        let report = books.report(Outcome::Verdict(verdict), now, self.memory());
        self.send(invocation, report, true, effects);
        false
    }

    /// Returns whether the isolate ended.
    fn act_on(&mut self, mail: Mail, around: &Surroundings<'_>, effects: &mut Effects) -> bool {
        match mail {
            Mail::Call { call, arrived } => self.begin_call(call, arrived, around, effects),
            Mail::Settle { operation, bytes } => {
                let Some(Operation { invocation, fetch }) = self.operations.remove(&operation)
                else {
                    return false;
                };
                if fetch {
                    self.fetch_done(effects, around);
                }
                let Guest::Resting(instance) = std::mem::replace(&mut self.guest, Guest::Moving)
                else {
                    unreachable!("an isolate with an operation has an instance")
                };
                if !fetch {
                    border::lock(&self.outbox).timer_done();
                }
                self.enter(
                    instance,
                    Entry::Settle(operation, bytes),
                    EntryKind::Run,
                    invocation,
                    around,
                );
                false
            }
            Mail::WallTime { .. } | Mail::Cancel { .. } | Mail::End => unreachable!("urgent"),
        }
    }

    fn begin_call(
        &mut self,
        call: Box<Call>,
        arrived: Duration,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        let id = call.invocation;
        let size = call.args.bytes.len() as u64;
        if size > call.limits.args_bytes_max {
            let mut books = Invocation::new(&call, arrived, self.served);
            let verdict = books.verdict(
                VerdictKind::ArgsSize,
                "args_bytes_max",
                size,
                call.limits.args_bytes_max,
            );
            let report = books.report(
                Outcome::Verdict(verdict),
                around.clock.monotonic(),
                self.memory(),
            );
            self.send(id, report, true, effects);
            return false;
        }
        match std::mem::replace(&mut self.guest, Guest::Moving) {
            Guest::Unborn => {
                let seed = around.seed.unwrap_or_else(|| {
                    let mut bytes = [0; 8];
                    border::system_random(&mut bytes);
                    u64::from_le_bytes(bytes)
                });
                let state = State::new(
                    Arc::clone(&self.outbox),
                    &self.spec.limits,
                    around.pool_memory.clone(),
                    around.seed,
                );
                let instance = Instance::new(around.sandbox, state, seed);
                self.invocations
                    .insert(id, Invocation::new(&call, arrived, self.served));
                match instance {
                    Ok(instance) => {
                        // The call follows once the modules have been evaluated.
                        self.mailbox.push_front(Mail::Call { call, arrived });
                        let load = Arc::clone(&self.spec.load);
                        self.enter(
                            Box::new(instance),
                            Entry::Load(load),
                            EntryKind::Load,
                            id,
                            around,
                        );
                        false
                    }
                    Err(error) => {
                        self.guest = Guest::Unborn;
                        let outcome = self.outcome_of_failure(&error, EntryKind::Load, id);
                        self.end(id, outcome, around, effects)
                    }
                }
            }
            Guest::Resting(instance) => {
                let books = self
                    .invocations
                    .entry(id)
                    .or_insert_with(|| Invocation::new(&call, arrived, self.served));
                if call.access == CallAccess::Ready {
                    self.guest = Guest::Resting(instance);
                    self.report(id, Outcome::Value(Bytes::UNDEFINED), around, effects);
                    return false;
                }
                books.started = true;
                let message = invoke_message(&call);
                self.enter(instance, Entry::Invoke(message), EntryKind::Run, id, around);
                false
            }
            Guest::Running { .. } | Guest::Moving => unreachable!("mail is taken between entries"),
        }
    }

    fn enter(
        &mut self,
        mut instance: Box<Instance>,
        entry: Entry,
        kind: EntryKind,
        invocation: u64,
        around: &Surroundings<'_>,
    ) {
        let now_ms = around.clock.epoch_ms();
        let books = self.invocations.get(&invocation);
        let fuel = match (kind, books) {
            (EntryKind::Load, Some(books)) => books.limits.startup_fuel_max,
            (EntryKind::Run, Some(books)) => books.fuel_left(),
            (_, None) => 0,
        };
        let allowance = books.map_or_else(Allowance::default, |books| Allowance {
            log_bytes: books.log_bytes_left,
            subrequests_sent: books.subrequests,
            subrequests_max: books.limits.subrequests_max,
        });
        instance.store.data_mut().begin(now_ms, allowance);
        let running = instance.enter(entry, fuel, now_ms);
        self.guest = Guest::Running {
            running,
            entry: kind,
            invocation,
            fuel,
            slices: 0,
        };
    }

    // --- what a slice leaves behind ---

    fn charge_cpu(&mut self, invocation: u64, entry: EntryKind, spent: Duration) {
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match entry {
                EntryKind::Load => books.cpu_load += spent,
                EntryKind::Run => books.cpu_run += spent,
            }
        }
    }

    /// After a slice that did not end the entry. Returns whether the isolate ended.
    fn after_slice(
        &mut self,
        invocation: u64,
        slices: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        if self.deliver(invocation, around, effects) {
            return true;
        }
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return false;
        };
        if books.cpu_exceeded() {
            // How much fuel is left can't be read while the entry is suspended; a slice is what a slice burns.
            books.fuel_run += slices * fuel::SLICE;
            let verdict = books.verdict(
                VerdictKind::Cpu,
                "cpu_ms_max",
                books.cpu_run.as_millis() as u64,
                books.limits.cpu_ms_max,
            );
            return self.end(invocation, Outcome::Verdict(verdict), around, effects);
        }
        false
    }

    /// After an entry has ended. Returns whether the isolate ended.
    #[expect(clippy::too_many_arguments, reason = "all of it is what the entry was")]
    fn after_entry(
        &mut self,
        instance: Box<Instance>,
        outcome: wasmtime::Result<()>,
        entry: EntryKind,
        invocation: u64,
        fuel: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        let left = instance
            .store
            .get_fuel()
            .unwrap_or(0)
            .saturating_sub(instance.store.data().charged());
        if let Some(books) = self.invocations.get_mut(&invocation) {
            match entry {
                EntryKind::Load => books.fuel_load += fuel - left.min(fuel),
                EntryKind::Run => books.fuel_run += fuel - left.min(fuel),
            }
        }
        self.guest = Guest::Resting(instance);
        // A denied growth is judged before anything that the guest says: code that caught the failure may say anything.
        let (denied, wanted) = {
            let outbox = border::lock(&self.outbox);
            (outbox.memory_denied, outbox.memory_wanted)
        };
        if let Some(wanted) = wanted.filter(|_| denied > 0) {
            self.take_outbox_books(invocation);
            let verdict = self.invocations.get(&invocation).map(|books| {
                books.verdict(
                    VerdictKind::Memory,
                    wanted.limit_name,
                    wanted.bytes,
                    wanted.limit,
                )
            });
            let verdict =
                verdict.unwrap_or_else(|| Verdict::without_limit(VerdictKind::Memory, true));
            return self.end(invocation, Outcome::Verdict(verdict), around, effects);
        }
        if let Err(error) = outcome {
            if self.deliver(invocation, around, effects) {
                return true;
            }
            let outcome = self.outcome_of_failure(&error, entry, invocation);
            return self.end(invocation, outcome, around, effects);
        }
        if entry == EntryKind::Load {
            return self.after_load(invocation, around, effects);
        }
        self.deliver(invocation, around, effects)
    }

    /// The guest has reported how the load went, as the outcome of invocation 0; or it hangs.
    fn after_load(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        let finished = std::mem::take(&mut border::lock(&self.outbox).finished);
        self.take_outbox_books(invocation);
        let outcome = match finished
            .into_iter()
            .find(|finished| finished.invocation == 0)
        {
            Some(finished) if finished.kind == abi::finish::UNDEFINED => return false,
            Some(finished) if finished.kind == abi::finish::THREW => threw(&finished.bytes),
            Some(finished) if finished.kind == abi::finish::VALUE_TOO_DEEP => {
                self.too_deep(invocation)
            }
            Some(_) => Outcome::Verdict(trap(
                false,
                "the guest reported a load in a way that does not exist",
            )),
            None => Outcome::Verdict(Verdict::without_limit(VerdictKind::Hung, false)),
        };
        // Every call that waits for the same modules has the same outcome.
        let waiting: Vec<u64> = self
            .mailbox
            .iter()
            .filter_map(|mail| match mail {
                Mail::Call { call, .. } if call.invocation != invocation => Some(call.invocation),
                _ => None,
            })
            .collect();
        for other in waiting {
            self.answer_waiting(other, outcome.clone(), around, effects);
        }
        self.end(invocation, outcome, around, effects)
    }

    /// Logs and counters of the slice, into the books of the invocation that ran.
    fn take_outbox_books(&mut self, invocation: u64) {
        let mut outbox = border::lock(&self.outbox);
        let logs = std::mem::take(&mut outbox.logs);
        let dropped = std::mem::take(&mut outbox.log_bytes_dropped);
        if let Some(books) = self.invocations.get_mut(&invocation) {
            let bytes: usize = logs.iter().map(|log| log.message.len()).sum();
            books.log_bytes_left = books.log_bytes_left.saturating_sub(bytes as u64);
            books.log_bytes_dropped += dropped;
            books.logs.extend(logs);
        }
    }

    /// Acts on what the guest asked for in a slice. Returns whether a limit ended the isolate.
    fn deliver(
        &mut self,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        self.take_outbox_books(invocation);
        let (finished, started, cancelled) = {
            let mut outbox = border::lock(&self.outbox);
            if outbox.memory_denied > 0 {
                // What it reports after that is not taken; the entry is judged when it ends.
                outbox.finished.clear();
            }
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
            if self.operations.remove(&operation).is_some() {
                self.timer_done(operation, effects);
            }
        }
        for finished in finished {
            let Some(books) = self.invocations.get(&finished.invocation) else {
                continue;
            };
            if books.reported {
                continue;
            }
            // The arguments were too deep: no code of the call has run, and the isolate is as good as before.
            let refused = finished.kind == abi::finish::VALUE_TOO_DEEP && finished.bytes.is_empty();
            if refused && let Some(books) = self.invocations.get_mut(&finished.invocation) {
                books.started = false;
            }
            let outcome = self.outcome_of_finish(
                finished.kind,
                finished.bytes,
                finished.length,
                finished.invocation,
            );
            if matches!(outcome, Outcome::Verdict(_)) && !refused {
                return self.end(finished.invocation, outcome, around, effects);
            }
            self.report(finished.invocation, outcome, around, effects);
            self.forget_operations(finished.invocation, effects);
        }
        false
    }

    fn timer_done(&self, operation: u64, effects: &mut Effects) {
        border::lock(&self.outbox).timer_done();
        effects.alarms_cancelled.push(operation);
    }

    fn start_operation(
        &mut self,
        start: Started,
        invocation: u64,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        match start {
            Started::Timer { operation, ms } => {
                let delay = Duration::try_from_secs_f64(ms / 1000.0).unwrap_or(Duration::ZERO);
                self.operations.insert(
                    operation,
                    Operation {
                        invocation,
                        fetch: false,
                    },
                );
                let at = around.clock.monotonic() + delay;
                effects.alarms.push(Alarm {
                    at,
                    mail: Mail::Settle {
                        operation,
                        bytes: Vec::new(),
                    },
                });
            }
            Started::Fetch { operation, url } => {
                self.operations.insert(
                    operation,
                    Operation {
                        invocation,
                        fetch: true,
                    },
                );
                if let Some(books) = self.invocations.get_mut(&invocation) {
                    books.subrequests += 1;
                }
                // Nothing is granted yet: every request is refused, and says where it wanted to go.
                tracing::debug!(isolate = self.isolate, url, "outbound request refused");
                let in_flight_max = self.spec.limits.subrequests_in_flight_max;
                if self.fetches_in_flight < in_flight_max {
                    self.fetches_in_flight += 1;
                    self.refuse_fetch(operation, around, effects);
                } else {
                    self.fetches_held.push_back(operation);
                }
            }
        }
    }

    fn refuse_fetch(&self, operation: u64, around: &Surroundings<'_>, effects: &mut Effects) {
        let bytes = self.spec.outbound_refusal.as_bytes().to_vec();
        effects.alarms.push(Alarm {
            at: around.clock.monotonic(),
            mail: Mail::Settle { operation, bytes },
        });
    }

    fn fetch_done(&mut self, effects: &mut Effects, around: &Surroundings<'_>) {
        self.fetches_in_flight = self.fetches_in_flight.saturating_sub(1);
        if let Some(operation) = self.fetches_held.pop_front() {
            self.fetches_in_flight += 1;
            self.refuse_fetch(operation, around, effects);
        }
    }

    /// What an invocation that is over left waiting dies with it, as a request's timers do in Workers.
    fn forget_operations(&mut self, invocation: u64, effects: &mut Effects) {
        let left: Vec<(u64, bool)> = self
            .operations
            .iter()
            .filter(|(_, operation)| operation.invocation == invocation)
            .map(|(id, operation)| (*id, operation.fetch))
            .collect();
        for (operation, fetch) in left {
            self.operations.remove(&operation);
            if fetch {
                self.fetches_in_flight = self.fetches_in_flight.saturating_sub(1);
            } else {
                self.timer_done(operation, effects);
            }
        }
    }

    // --- outcomes ---

    fn outcome_of_finish(
        &self,
        kind: u32,
        bytes: Vec<u8>,
        length: usize,
        invocation: u64,
    ) -> Outcome {
        let Some(books) = self.invocations.get(&invocation) else {
            return Outcome::Verdict(trap(true, "the guest finished an unknown invocation"));
        };
        let limit = books.limits.result_bytes_max;
        let too_large = |size: u64| {
            Outcome::Verdict(books.verdict(
                VerdictKind::ResultSize,
                "result_bytes_max",
                size,
                limit,
            ))
        };
        match kind {
            abi::finish::UNDEFINED => Outcome::Value(Bytes::UNDEFINED),
            abi::finish::CBOR | abi::finish::JSON if length as u64 > limit => {
                too_large(length as u64)
            }
            abi::finish::CBOR => Outcome::Value(Bytes {
                form: Form::Cbor,
                bytes,
            }),
            abi::finish::JSON => Outcome::Value(Bytes {
                form: Form::Json,
                bytes,
            }),
            abi::finish::THREW => threw(&bytes),
            abi::finish::RESULT_TOO_LARGE => {
                let size = bytes.try_into().map_or(0, u64::from_le_bytes);
                too_large(size.max(limit + 1))
            }
            abi::finish::VALUE_TOO_DEEP => self.too_deep(invocation),
            _ => Outcome::Verdict(trap(
                true,
                "the guest reported an outcome that does not exist",
            )),
        }
    }

    fn too_deep(&self, invocation: u64) -> Outcome {
        let verdict = self.invocations.get(&invocation).map(|books| {
            let limit = books.limits.value_depth_max;
            books.verdict(VerdictKind::ValueDepth, "value_depth_max", limit + 1, limit)
        });
        Outcome::Verdict(
            verdict.unwrap_or_else(|| Verdict::without_limit(VerdictKind::ValueDepth, true)),
        )
    }

    /// What an entry's error means.
    fn outcome_of_failure(
        &self,
        error: &wasmtime::Error,
        entry: EntryKind,
        invocation: u64,
    ) -> Outcome {
        let Some(books) = self.invocations.get(&invocation) else {
            return Outcome::Verdict(trap(true, &format!("{error:#}")));
        };
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return Outcome::Verdict(books.verdict(
                stop.kind,
                stop.limit_name,
                stop.used,
                stop.limit,
            ));
        }
        Outcome::Verdict(match error.downcast_ref::<Trap>() {
            Some(Trap::OutOfFuel) if entry == EntryKind::Load => {
                let limit = books.limits.startup_fuel_max;
                books.verdict(
                    VerdictKind::Startup,
                    "startup_fuel_max",
                    books.fuel_load.max(limit),
                    limit,
                )
            }
            Some(Trap::OutOfFuel) => {
                let limit = books.limits.fuel_max;
                books.verdict(
                    VerdictKind::Fuel,
                    "fuel_max",
                    books.fuel_run.max(limit),
                    limit,
                )
            }
            Some(Trap::StackOverflow) => books.verdict_plain(VerdictKind::Stack),
            Some(other) => Verdict {
                detail: other.to_string(),
                ..books.verdict_plain(VerdictKind::Trap)
            },
            None => Verdict {
                detail: format!("{error:#}"),
                ..books.verdict_plain(VerdictKind::Trap)
            },
        })
    }

    // --- ends ---

    /// With nothing left that could settle a call, it is over; the isolate serves on.
    fn end_hung(&mut self, around: &Surroundings<'_>, effects: &mut Effects) {
        if !self.operations.is_empty() || self.invocations.is_empty() {
            return;
        }
        let hung: Vec<u64> = self.invocations.keys().copied().collect();
        for invocation in hung {
            let Some(books) = self.invocations.get(&invocation) else {
                continue;
            };
            let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::Hung));
            self.report(invocation, outcome, around, effects);
        }
    }

    /// Ends the isolate: the culprit gets `outcome`, the others are told that they lost it. Always returns true.
    fn end(
        &mut self,
        culprit: u64,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> bool {
        let memory = self.memory();
        self.drop_guest();
        let now = around.clock.monotonic();
        let others: Vec<u64> = self
            .invocations
            .keys()
            .copied()
            .filter(|id| *id != culprit)
            .collect();
        for other in others {
            if let Some(mut books) = self.invocations.remove(&other)
                && !books.reported
            {
                let outcome = Outcome::Verdict(books.verdict_plain(VerdictKind::IsolateLost));
                let report = books.report(outcome, now, memory);
                self.send(other, report, true, effects);
            }
        }
        let waiting: Vec<u64> = self
            .mailbox
            .iter()
            .filter_map(|mail| match mail {
                Mail::Call { call, .. } if call.invocation != culprit => Some(call.invocation),
                _ => None,
            })
            .collect();
        for other in waiting {
            let outcome = Outcome::Verdict(Verdict::without_limit(VerdictKind::IsolateLost, false));
            self.answer_waiting(other, outcome, around, effects);
        }
        if let Some(mut books) = self.invocations.remove(&culprit)
            && !books.reported
        {
            let report = books.report(outcome, now, memory);
            self.send(culprit, report, false, effects);
        } else {
            // The culprit had its result before its leftovers broke a limit: nobody is told, the isolate just ends.
            effects.events.push(Event::Finished {
                isolate: self.isolate,
                invocation: culprit,
                report: Box::new(Report {
                    outcome,
                    usage: crate::message::Usage::default(),
                    logs: Vec::new(),
                    log_bytes_dropped: 0,
                }),
                isolate_reusable: false,
            });
        }
        effects.events.push(Event::Ended {
            isolate: self.isolate,
        });
        true
    }

    fn answer_waiting(
        &mut self,
        invocation: u64,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let position = self.mailbox.iter().position(
            |mail| matches!(mail, Mail::Call { call, .. } if call.invocation == invocation),
        );
        if let Some(Mail::Call { call, arrived }) =
            position.and_then(|position| self.mailbox.remove(position))
        {
            let mut books = Invocation::new(&call, arrived, self.served);
            let report = books.report(outcome, around.clock.monotonic(), self.memory());
            self.send(invocation, report, true, effects);
        }
    }

    /// Reports an invocation and closes its books, unless code of its own is still running.
    fn report(
        &mut self,
        invocation: u64,
        outcome: Outcome,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) {
        let memory = self.memory();
        let Some(books) = self.invocations.get_mut(&invocation) else {
            return;
        };
        let report = books.report(outcome, around.clock.monotonic(), memory);
        let runs_on = matches!(&self.guest, Guest::Running { invocation: current, .. } if *current == invocation);
        if !runs_on {
            self.invocations.remove(&invocation);
        }
        self.served = true;
        self.send(invocation, report, true, effects);
    }

    fn send(&self, invocation: u64, report: Report, isolate_reusable: bool, effects: &mut Effects) {
        effects.events.push(Event::Finished {
            isolate: self.isolate,
            invocation,
            report: Box::new(report),
            isolate_reusable,
        });
    }

    fn memory(&self) -> Memory {
        let outbox = border::lock(&self.outbox);
        Memory {
            bytes: outbox.memory_bytes,
            denied: outbox.memory_denied,
        }
    }

    fn drop_guest(&mut self) {
        self.guest = Guest::Unborn;
        self.operations.clear();
        self.fetches_held.clear();
    }
}

fn threw(bytes: &[u8]) -> Outcome {
    match minicbor::decode::<Thrown>(bytes) {
        Ok(thrown) => Outcome::Threw(Box::new(thrown)),
        Err(_) => Outcome::Verdict(trap(
            true,
            "the guest described an exception in a way that can't be read",
        )),
    }
}

fn trap(started: bool, detail: &str) -> Verdict {
    Verdict {
        detail: detail.to_owned(),
        ..Verdict::without_limit(VerdictKind::Trap, started)
    }
}

fn encoded(value: &Bytes) -> abi::Encoded<'_> {
    abi::Encoded {
        form: value.form,
        bytes: value.bytes[..].into(),
    }
}

fn invoke_message(call: &Call) -> Vec<u8> {
    let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let message = abi::Invoke {
        invocation: call.invocation,
        entrypoint: &call.entrypoint,
        path: call.path.iter().map(String::as_str).collect(),
        access: if call.access == CallAccess::Get {
            abi::Access::Get
        } else {
            abi::Access::Call
        },
        args: encoded(&call.args),
        props: encoded(&call.props),
        result_form: call.result_form,
        result_bytes_max: clamp(call.limits.result_bytes_max),
        value_depth_max: clamp(call.limits.value_depth_max),
    };
    let mut bytes = Vec::with_capacity(call.args.bytes.len() + call.props.bytes.len() + 128);
    // Encoding into a Vec can't fail.
    let _ = minicbor::encode(&message, &mut bytes);
    bytes
}
