//! Promises: results of calls, values that wait for others, and what the client has promised.
//!
//! Owns how a promise becomes a value. A promise is looked at when something that it waits for is known; nothing here calls
//! itself for another promise, however long the chain.

use crate::{
    Access, Capability, Connection, Effect, Kind, Payload, Target,
    error::Violation,
    handle::{Charge, Promise},
    limits::PULL_BYTES,
    parcel::{Draft, Followed, Parcel, Slot},
    remap::Remap,
};
use coracle_value::{Interface, Text, Value};
use std::rc::Rc;

/// A promise and who waits for it.
pub(crate) struct Node<T> {
    pub(crate) state: State<T>,
    pub(crate) waiters: Vec<Waiter>,
}

/// What a promise has become.
pub(crate) type Settled<T> = Result<Rc<Parcel<T>>, Rc<Parcel<T>>>;

pub(crate) enum State<T> {
    Settled(Settled<T>),
    /// Waits for the promises in a value; how many of its slots are known.
    Draft(Draft<T>, usize),
    /// Waits for what it is a property or a result of.
    Access(Box<Pending<T>>),
    /// Waits for what a function is applied to.
    Remap(Box<Remap<T>>),
    /// Waits until the call before it of the same stream is over.
    Queued(Box<Queued<T>>),
    /// Waits for an answer of the driver's; of a stream's calls with its export.
    Call(u64, Option<i64>),
    /// Waits for the client's resolution of this import.
    Import(i64),
    /// Waits for bytes of this pipe.
    Pull(i64),
    /// Waits until its bytes have been read.
    Written,
    /// Collects a stream.
    Blob(Box<Collect<T>>),
    /// Is being looked at.
    Busy,
}

/// Who is told that a promise is settled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waiter {
    /// Another promise.
    Promise(u64),
    /// The client, that has pulled this export.
    Resolve(i64),
    /// The driver, that has made this call.
    Ask(u64),
    /// What goes into this pipe.
    Pump(i64),
}

/// What an expression's `import` or `pipeline` names.
#[derive(Clone)]
pub(crate) enum Subject<T> {
    Capability(Capability<T>),
    Promise(Promise),
    Value(Rc<Parcel<T>>),
    /// A stream of the server's that the client writes to, by its export.
    Sink(i64, T),
    /// The writable end of a pipe, by its export.
    Writer(i64),
}

/// A property that is read, or a call.
pub(crate) struct Pending<T> {
    pub(crate) subject: Subject<T>,
    pub(crate) path: Vec<String>,
    pub(crate) args: Option<Draft<T>>,
    /// How many slots of the arguments are known.
    pub(crate) known: usize,
}

/// A call of a stream of the server's.
pub(crate) struct Queued<T> {
    pub(crate) target: T,
    pub(crate) path: Vec<String>,
    pub(crate) args: Parcel<T>,
    /// Why it will not be made when its turn comes.
    pub(crate) refused: Option<Rc<Parcel<T>>>,
}

/// A blob that is being collected.
pub(crate) struct Collect<T> {
    pub(crate) kind: Text,
    pub(crate) stream: Capability<T>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) pulling: Option<Promise>,
}

/// Whether the promises in slots are known.
pub(crate) enum Known<T> {
    All,
    Waiting,
    Rejected(Rc<Parcel<T>>),
}

impl<T: Target> Connection<T> {
    /// A new promise.
    pub(crate) fn promise_of(&mut self, state: State<T>) -> Result<Promise, Violation> {
        let entries_max = self.limits.promises_max;
        if self.promises.len() >= entries_max {
            return Err(Violation::TableFull {
                table: "the table of promises",
                entries_max,
                limit: "promises_max",
            });
        }
        Ok(self.promise_unchecked(state))
    }

    /// A promise that the driver or a stream asks for, of which there are few.
    pub(crate) fn promise_unchecked(&mut self, state: State<T>) -> Promise {
        self.promise_last += 1;
        let number = self.promise_last;
        let waiters = Vec::new();
        if !matches!(state, State::Busy | State::Settled(_)) {
            self.ready.push_back(Waiter::Promise(number));
        }
        self.promises.insert(number, Node { state, waiters });
        Promise::new(&self.ledger, number)
    }

    pub(crate) fn settled(&self, number: u64) -> Option<Settled<T>> {
        match &self.promises.get(&number)?.state {
            State::Settled(settled) => Some(settled.clone()),
            _ => None,
        }
    }

    /// Tells the waiter when the promise is settled, which may be at once.
    pub(crate) fn wait(&mut self, number: u64, waiter: Waiter) {
        match self.promises.get_mut(&number) {
            Some(node) if !matches!(node.state, State::Settled(_)) => node.waiters.push(waiter),
            _ => self.ready.push_back(waiter),
        }
    }

    pub(crate) fn settle(&mut self, number: u64, outcome: Settled<T>) {
        let Some(node) = self.promises.get_mut(&number) else {
            return;
        };
        node.state = State::Settled(outcome);
        self.ready.extend(node.waiters.drain(..));
    }

    pub(crate) fn reject(&mut self, number: u64, name: &str, message: &str) {
        let rejection = self.error(name, message);
        self.settle(number, Err(rejection));
    }

    pub(crate) fn set(&mut self, number: u64, state: State<T>) {
        if let Some(node) = self.promises.get_mut(&number) {
            node.state = state;
        }
    }

    /// Looks at a promise again.
    pub(crate) fn advance(&mut self, number: u64) {
        let Some(node) = self.promises.get_mut(&number) else {
            return;
        };
        match std::mem::replace(&mut node.state, State::Busy) {
            State::Draft(draft, known) => self.advance_draft(number, draft, known),
            State::Access(pending) => self.advance_access(number, pending),
            State::Remap(remap) => self.advance_remap(number, remap),
            State::Blob(collect) => self.advance_blob(number, collect),
            other => node.state = other,
        }
    }

    fn advance_draft(&mut self, number: u64, draft: Draft<T>, mut known: usize) {
        match self.known(&draft.slots, &mut known, number) {
            Known::Waiting => self.set(number, State::Draft(draft, known)),
            Known::Rejected(rejection) => self.settle(number, Err(rejection)),
            Known::All => match self.fill(draft) {
                Ok(parcel) => self.settle(number, Ok(Rc::new(parcel))),
                Err(rejection) => self.settle(number, Err(rejection)),
            },
        }
    }

    /// Whether all promises in slots are known; if not, the promise waits for the first that is not.
    pub(crate) fn known(&mut self, slots: &[Slot<T>], from: &mut usize, number: u64) -> Known<T> {
        while let Some(slot) = slots.get(*from) {
            if let Slot::Promise(promise) = slot {
                match self.settled(promise.number()) {
                    Some(Ok(_)) => {}
                    Some(Err(rejection)) => return Known::Rejected(rejection),
                    None => {
                        self.wait(promise.number(), Waiter::Promise(number));
                        return Known::Waiting;
                    }
                }
            }
            *from += 1;
        }
        Known::All
    }

    /// Puts what is known into a draft.
    pub(crate) fn fill(&self, draft: Draft<T>) -> Result<Parcel<T>, Rc<Parcel<T>>> {
        let known = |promise: &Promise| match &self.promises.get(&promise.number())?.state {
            State::Settled(Ok(parcel)) => Some(&**parcel),
            _ => None,
        };
        let filled = draft.fill(known, &self.ledger, &self.limits);
        filled.map_err(|error| self.parcel(error.to_value()))
    }

    fn advance_access(&mut self, number: u64, mut pending: Box<Pending<T>>) {
        let parcel = match &pending.subject {
            Subject::Promise(promise) => match self.settled(promise.number()) {
                None => {
                    self.wait(promise.number(), Waiter::Promise(number));
                    return self.set(number, State::Access(pending));
                }
                Some(Err(rejection)) => return self.settle(number, Err(rejection)),
                Some(Ok(parcel)) => Ok(parcel),
            },
            Subject::Value(parcel) => Ok(Rc::clone(parcel)),
            Subject::Capability(capability) => Err(capability.clone()),
            Subject::Sink(..) | Subject::Writer(_) => return self.advance_stream(number, pending),
        };
        let followed = match &parcel {
            Ok(parcel) => parcel.follow(&pending.path),
            Err(capability) => Followed::Capability(capability.clone(), 0),
        };
        let (capability, at) = match (followed, &parcel) {
            (Followed::Undefined(at), _) => {
                let name = pending.path.get(at).map_or("", String::as_str);
                let message = format!("Cannot read properties of undefined (reading '{name}')");
                return self.reject(number, "TypeError", &message);
            }
            (Followed::Data(_), Ok(parcel))
                if pending.args.is_none() && pending.path.is_empty() =>
            {
                return self.settle(number, Ok(Rc::clone(parcel)));
            }
            (Followed::Data(value), Ok(parcel)) if pending.args.is_none() => {
                let part = self.part(parcel, value);
                return self.settle(number, part);
            }
            (Followed::Data(_), _) => {
                let message = format!("'{}' is not a function.", pending.path.join("."));
                return self.reject(number, "TypeError", &message);
            }
            (Followed::Capability(capability, at), _) => (capability, at),
        };
        let path = pending.path.split_off(at);
        let Some(args) = pending.args.take() else {
            if path.is_empty() {
                let parcel = Parcel::new(
                    Value::External(0),
                    vec![capability],
                    &self.ledger,
                    &self.limits,
                );
                let parcel = parcel.map_err(|error| self.parcel(error.to_value()));
                return self.settle(number, parcel.map(Rc::new));
            }
            return self.call_capability(number, &capability, path, None);
        };
        match self.known(&args.slots, &mut pending.known, number) {
            Known::Waiting => {
                // What it is a property of is known from now on.
                let known = pending.known;
                let subject = Subject::Capability(capability);
                let args = Some(args);
                self.set(
                    number,
                    State::Access(Box::new(Pending {
                        subject,
                        path,
                        args,
                        known,
                    })),
                );
            }
            Known::Rejected(rejection) => self.settle(number, Err(rejection)),
            Known::All => match self.fill(args) {
                Ok(args) => self.call_capability(number, &capability, path, Some(args)),
                Err(rejection) => self.settle(number, Err(rejection)),
            },
        }
    }

    /// A part of a value as a value by itself.
    pub(crate) fn part(&self, parcel: &Parcel<T>, value: &Value) -> Settled<T> {
        let part = parcel.part(value, &self.ledger, &self.limits);
        part.map(Rc::new)
            .map_err(|error| self.parcel(error.to_value()))
    }

    /// A call of a stream: its arguments must be known, and its place in the order comes.
    fn advance_stream(&mut self, number: u64, mut pending: Box<Pending<T>>) {
        let Some(args) = pending.args.take() else {
            return self.reject(number, "TypeError", "A stream has no properties over RPC.");
        };
        match self.known(&args.slots, &mut pending.known, number) {
            Known::Waiting => {
                pending.args = Some(args);
                self.set(number, State::Access(pending));
            }
            Known::Rejected(rejection) => self.settle(number, Err(rejection)),
            Known::All => match self.fill(args) {
                Ok(args) => self.call_stream(number, pending.subject, pending.path, args),
                Err(rejection) => self.settle(number, Err(rejection)),
            },
        }
    }

    /// Asks the driver to call an object of the server's.
    pub(crate) fn call_host(
        &mut self,
        number: u64,
        target: T,
        path: Vec<String>,
        args: Option<Parcel<T>>,
        lane: Option<i64>,
    ) {
        let calls_max = self.limits.calls_max;
        if self.calls.len() >= calls_max {
            let message = format!(
                "{calls_max} calls of this client are in flight, no more are allowed (calls_max)"
            );
            let rejection = self.error("RangeError", &message);
            return self.answered_in(number, lane, Err(rejection));
        }
        self.call_last += 1;
        let call = self.call_last;
        self.calls.insert(call, number);
        self.set(number, State::Call(call, lane));
        let (access, args) = match args {
            Some(args) => (Access::Call, args.into_payload()),
            None => (Access::Get, Payload::UNDEFINED),
        };
        self.effects.push_back(Effect::Call {
            call,
            target,
            access,
            path,
            args,
        });
    }

    /// The driver has answered the call that a promise waits for.
    pub(crate) fn answered(&mut self, number: u64, outcome: Settled<T>) {
        let lane = match self.promises.get(&number) {
            Some(Node {
                state: State::Call(_, lane),
                ..
            }) => *lane,
            _ => return,
        };
        self.answered_in(number, lane, outcome);
    }

    fn answered_in(&mut self, number: u64, lane: Option<i64>, outcome: Settled<T>) {
        let failed = outcome.as_ref().err().cloned();
        self.settle(number, outcome);
        if let Some(export) = lane {
            self.lane_free(export, failed);
        }
    }

    /// Nobody holds the promise any more.
    pub(crate) fn drop_promise(&mut self, number: u64) {
        let Some(node) = self.promises.remove(&number) else {
            return;
        };
        match node.state {
            State::Call(call, lane) => {
                if self.calls.remove(&call).is_some() {
                    self.effects.push_back(Effect::Cancel { call });
                }
                if let Some(export) = lane {
                    self.lane_free(export, None);
                }
            }
            State::Import(id) => self.abandon(id),
            State::Pull(pipe) => self.forget_pull(pipe, number),
            _ => {}
        }
    }

    /// The next bytes of a stream that is read, as a promise.
    pub(crate) fn pull_stream(&mut self, stream: &Capability<T>) -> Promise {
        let promise = self.promise_unchecked(State::Busy);
        let number = promise.number();
        match stream {
            Capability::Host { target, .. } => {
                let args = Value::array([PULL_BYTES as f64]);
                let args = Parcel::plain(args, &self.ledger);
                self.call_host(
                    number,
                    target.clone(),
                    vec!["pull".into()],
                    Some(args),
                    None,
                );
            }
            Capability::Peer { peer, .. } => self.pull_pipe(peer.id(), number, PULL_BYTES),
        }
        promise
    }

    fn advance_blob(&mut self, number: u64, mut collect: Box<Collect<T>>) {
        if let Some(promise) = collect.pulling.take() {
            match self.settled(promise.number()) {
                None => {
                    self.wait(promise.number(), Waiter::Promise(number));
                    collect.pulling = Some(promise);
                    return self.set(number, State::Blob(collect));
                }
                Some(Err(rejection)) => return self.settle(number, Err(rejection)),
                Some(Ok(parcel)) => match parcel.value.as_bytes() {
                    Some(bytes)
                        if collect.bytes.len() + bytes.len() > self.limits.message_bytes_max =>
                    {
                        let bytes_max = self.limits.message_bytes_max;
                        let message =
                            format!("a blob has more than {bytes_max} bytes (message_bytes_max)");
                        return self.reject(number, "RangeError", &message);
                    }
                    Some(bytes) => {
                        collect.charges.push(self.ledger.charge(bytes.len()));
                        collect.bytes.extend_from_slice(bytes);
                    }
                    None => {
                        let Collect { kind, bytes, .. } = *collect;
                        let content = [
                            ("type", Value::String(kind)),
                            ("bytes", Value::ArrayBuffer(bytes)),
                        ];
                        let content = Box::new(Value::object(content));
                        let blob = self.parcel(Value::Interface(Interface::Blob, content));
                        return self.settle(number, Ok(blob));
                    }
                },
            }
        }
        let promise = self.pull_stream(&collect.stream);
        self.wait(promise.number(), Waiter::Promise(number));
        collect.pulling = Some(promise);
        self.set(number, State::Blob(collect));
    }

    /// The subject as it stands in a value.
    pub(crate) fn slot_of(&mut self, subject: Subject<T>) -> Result<Slot<T>, Violation> {
        Ok(match subject {
            Subject::Capability(capability) => Slot::Capability(capability),
            Subject::Promise(promise) => Slot::Promise(promise),
            Subject::Value(parcel) => Slot::Promise(self.promise_of(State::Settled(Ok(parcel)))?),
            Subject::Sink(_, target) => Slot::Capability(Capability::Host {
                target,
                kind: Kind::Sink,
            }),
            Subject::Writer(id) => return Err(Violation::PipeUnknown { id }),
        })
    }
}
