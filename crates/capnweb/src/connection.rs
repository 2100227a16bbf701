//! One connection: its tables, what comes in, and what goes out.
//!
//! Owns the dispatch of messages and the driver's interface. What expressions make of the tables is in `session`, how
//! promises become values in `promises`, streams are in `pipes` and `pumps`.

use crate::{
    Access, Capability, Closed, Effect, Kind, Outcome, Payload, Peer, Target,
    error::Violation,
    handle::{Kept, Ledger, Promise},
    limits::Limits,
    measure::json_members,
    parcel::Parcel,
    pipes::Pipe,
    promises::{Node, State, Waiter},
    pumps::Pump,
    read::{evaluate, integer},
    session::Session,
    tables::{Exported, Import},
};
use coracle_value::{Bounds, Value, from_json};
use std::{
    cell::Cell,
    collections::{BTreeMap, VecDeque},
    rc::Rc,
};

/// The server's side of one connection; see the [crate's documentation](crate).
pub struct Connection<T: Target> {
    pub(crate) limits: Limits,
    pub(crate) ledger: Ledger,
    pub(crate) effects: VecDeque<Effect<T>>,
    /// What is to be looked at again, in order.
    pub(crate) ready: VecDeque<Waiter>,
    pub(crate) promises: BTreeMap<u64, Node<T>>,
    pub(crate) promise_last: u64,
    pub(crate) exports: BTreeMap<i64, Exported<T>>,
    /// The id that the client's next `push`, `stream` or `pipe` gets.
    pub(crate) push_next: i64,
    pub(crate) export_next: i64,
    pub(crate) imports: BTreeMap<i64, Import>,
    pub(crate) import_next: i64,
    /// The lowest id that the client has given out.
    pub(crate) import_lowest: i64,
    /// Promises that were let go of before the client resolved them: it may still do so, once each.
    pub(crate) abandoned: u64,
    /// Calls of the server's objects, and the promises that wait for them.
    pub(crate) calls: BTreeMap<u64, u64>,
    pub(crate) call_last: u64,
    /// The driver's calls of the client's objects.
    pub(crate) asks: BTreeMap<u64, Promise>,
    pub(crate) pipes: BTreeMap<i64, Pipe<T>>,
    pub(crate) pumps: BTreeMap<i64, Pump<T>>,
    /// What was pulled and is not resolved.
    pub(crate) pulls: usize,
    pub(crate) input_ended: bool,
    pub(crate) closed: bool,
}

impl<T: Target> Connection<T> {
    /// A connection whose client finds this object under id 0.
    #[must_use]
    pub fn new(main: T, limits: Limits) -> Self {
        let mut connection = Self {
            limits,
            ledger: Ledger::default(),
            effects: VecDeque::new(),
            ready: VecDeque::new(),
            promises: BTreeMap::new(),
            promise_last: 0,
            exports: BTreeMap::new(),
            push_next: 1,
            export_next: -1,
            imports: BTreeMap::new(),
            import_next: 1,
            import_lowest: 0,
            abandoned: 0,
            calls: BTreeMap::new(),
            call_last: 0,
            asks: BTreeMap::new(),
            pipes: BTreeMap::new(),
            pumps: BTreeMap::new(),
            pulls: 0,
            input_ended: false,
            closed: false,
        };
        let main = Exported::Target(main, Kind::Target);
        connection.exports.insert(0, main);
        connection
    }

    /// Takes a message of the client's. After the connection is closed, messages are ignored.
    pub fn receive(&mut self, message: &str) {
        if self.closed {
            return;
        }
        if let Err(violation) = self.message(message) {
            return self.fail(&violation);
        }
        self.run();
    }

    /// What is to be done next, in order; none until something else happens.
    pub fn next_effect(&mut self) -> Option<Effect<T>> {
        self.run();
        self.effects.pop_front()
    }

    /// Answers a call that an effect has asked for. What was cancelled meanwhile is ignored.
    pub fn answer(&mut self, call: u64, outcome: Outcome<T>) {
        let Some(number) = self.calls.remove(&call) else {
            return;
        };
        let outcome = self.outcome(outcome);
        self.answered(number, outcome);
        self.run();
    }

    /// Calls an object of the client's, or reads what is at the path. The answer is an effect with the same number, which is
    /// the driver's choice and must not be in use.
    pub fn call(
        &mut self,
        ask: u64,
        peer: &Peer,
        access: Access,
        path: &[String],
        args: Payload<T>,
    ) {
        if self.closed {
            let threw = Outcome::error("Error", CLIENT_GONE);
            return self.effects.push_back(Effect::Answer {
                ask,
                outcome: threw,
            });
        }
        let promise = self.begin_ask(peer, access, path, args);
        self.wait(promise.number(), Waiter::Ask(ask));
        self.asks.insert(ask, promise);
        self.run();
    }

    /// Nobody waits for the answer of this call any more. The client is told.
    pub fn give_up(&mut self, ask: u64) {
        self.asks.remove(&ask);
        self.run();
    }

    /// No more messages come, as after the last line of an HTTP batch: what only the client could answer fails.
    pub fn end_input(&mut self) {
        if self.closed || std::mem::replace(&mut self.input_ended, true) {
            return;
        }
        self.forsake();
        self.run();
    }

    /// Whether nothing that the client has asked for is left to be sent: the end of a batch.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.pulls == 0 && self.pumps.is_empty()
    }

    /// Ends the connection for a reason of the driver's, which the client is told.
    pub fn abort(&mut self, reason: &str) {
        if !self.closed {
            self.send_abort(&Value::error("Error", reason));
            self.close(Closed::Aborted(reason.into()));
        }
    }

    /// The connection was lost.
    pub fn disconnected(&mut self) {
        self.close(Closed::Disconnected);
    }

    /// Whether it has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// What is held for the client, in bytes: values, arguments that wait, buffers of streams.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.ledger.held_bytes()
    }

    /// The entries in the tables of imports and of exports.
    #[must_use]
    pub fn table_sizes(&self) -> (usize, usize) {
        (self.imports.len(), self.exports.len())
    }

    fn message(&mut self, message: &str) -> Result<(), Violation> {
        let Limits {
            message_bytes_max: bytes_max,
            members_max,
            ..
        } = self.limits;
        let bytes = message.len();
        if bytes > bytes_max {
            return Err(Violation::MessageTooLong { bytes, bytes_max });
        }
        let members = json_members(message);
        if members > members_max {
            return Err(Violation::MembersExceeded {
                members,
                members_max,
            });
        }
        let bounds = Bounds {
            depth_max: self.limits.json_depth(),
            bytes_max,
            externals: 0,
        };
        let message = from_json(message, &bounds)?;
        let Some([Value::String(name), rest @ ..]) = message.as_array() else {
            return Err(Violation::MessageInvalid(
                "it is no array that begins with a name",
            ));
        };
        match (name.as_str().unwrap_or(""), rest) {
            ("push", [expression, ..]) => self.push(expression, false),
            ("stream", [expression, ..]) => self.push(expression, true),
            ("pipe", _) => self.pipe(),
            ("pull", [id, ..]) => self.pull(id_of(id)?),
            ("resolve", [id, expression, ..]) => self.resolve(id_of(id)?, expression, false),
            ("reject", [id, expression, ..]) => self.resolve(id_of(id)?, expression, true),
            ("release", [id, count, ..]) => {
                let count = integer(count).and_then(|count| u64::try_from(count).ok());
                match count {
                    Some(count @ 1..) => self.release(id_of(id)?, count),
                    _ => Err(Violation::MessageInvalid("a release of less than one")),
                }
            }
            ("abort", rest) => {
                let reason = rest.first().map_or(Ok(Value::Undefined), |expression| {
                    self.evaluate(expression).map(|draft| draft.value)
                })?;
                let text = match reason.as_error() {
                    Some(error) => error.message.to_string(),
                    None => reason
                        .as_text()
                        .map(ToString::to_string)
                        .unwrap_or_default(),
                };
                self.close(Closed::ByClient(text));
                Ok(())
            }
            _ => Err(Violation::MessageInvalid(
                "its kind is unknown, or parts are missing",
            )),
        }
    }

    pub(crate) fn evaluate(
        &mut self,
        expression: &Value,
    ) -> Result<crate::parcel::Draft<T>, Violation> {
        let (ledger, limits) = (self.ledger.clone(), self.limits);
        let mut session = Session {
            connection: self,
            budget: Rc::new(Cell::new(limits.remap_steps_max)),
        };
        evaluate(expression, &mut session, &ledger, &limits)
    }

    /// Does all that can be done without the outside.
    pub(crate) fn run(&mut self) {
        loop {
            if let Some(kept) = self.ledger.take_dropped() {
                self.dropped(kept);
            } else if let Some(waiter) = self.ready.pop_front() {
                self.wake(waiter);
            } else {
                break;
            }
        }
        let (bytes, bytes_max) = (self.ledger.held_bytes(), self.limits.held_bytes_max);
        if bytes > bytes_max && !self.closed {
            self.fail(&Violation::HeldExceeded { bytes, bytes_max });
        }
    }

    fn wake(&mut self, waiter: Waiter) {
        match waiter {
            Waiter::Promise(number) => self.advance(number),
            Waiter::Resolve(id) => self.send_resolution(id),
            Waiter::Pump(id) => self.pump(id),
            Waiter::Ask(ask) => {
                let Some(promise) = self.asks.remove(&ask) else {
                    return;
                };
                let outcome = match self.settled(promise.number()) {
                    Some(Ok(parcel)) => Outcome::Value((*parcel).clone().into_payload()),
                    Some(Err(parcel)) => Outcome::Threw((*parcel).clone().into_payload()),
                    None => return,
                };
                self.effects.push_back(Effect::Answer { ask, outcome });
            }
        }
    }

    fn dropped(&mut self, kept: Kept) {
        match kept {
            Kept::Promise(number) => self.drop_promise(number),
            Kept::Object(id) => self.drop_object(id),
            Kept::Pipe(id) => self.drop_reader(id),
        }
    }

    pub(crate) fn send(&mut self, message: String) {
        if !self.closed {
            self.effects.push_back(Effect::Send(message));
        }
    }

    /// Ends the connection for what the client did.
    pub(crate) fn fail(&mut self, violation: &Violation) {
        if !self.closed {
            self.send_abort(&violation.to_value());
            self.close(Closed::Violation(violation.clone()));
        }
    }

    fn send_abort(&mut self, reason: &Value) {
        let expression = self.express_plain(reason);
        self.send(format!("[\"abort\",{expression}]"));
    }

    fn close(&mut self, reason: Closed) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        for call in std::mem::take(&mut self.calls).into_keys() {
            self.effects.push_back(Effect::Cancel { call });
        }
        for ask in std::mem::take(&mut self.asks).into_keys() {
            let outcome = Outcome::error("Error", CLIENT_GONE);
            self.effects.push_back(Effect::Answer { ask, outcome });
        }
        self.ready.clear();
        self.exports.clear();
        self.pumps.clear();
        self.pipes.clear();
        self.promises.clear();
        self.imports.clear();
        self.pulls = 0;
        // What was dropped with it has nobody to be told.
        while self.ledger.take_dropped().is_some() {}
        self.effects.push_back(Effect::Close(reason));
    }

    fn outcome(&self, outcome: Outcome<T>) -> Result<Rc<Parcel<T>>, Rc<Parcel<T>>> {
        let (payload, threw) = match outcome {
            Outcome::Value(payload) => (payload, false),
            Outcome::Threw(payload) => (payload, true),
        };
        match Parcel::of_payload(payload, &self.ledger, &self.limits) {
            Ok(parcel) if threw => Err(Rc::new(parcel)),
            Ok(parcel) => Ok(Rc::new(parcel)),
            Err(error) => Err(self.parcel(error.to_value())),
        }
    }

    /// A value that refers to nothing.
    pub(crate) fn parcel(&self, value: Value) -> Rc<Parcel<T>> {
        Rc::new(Parcel::plain(value, &self.ledger))
    }

    pub(crate) fn error(&self, name: &str, message: &str) -> Rc<Parcel<T>> {
        self.parcel(Value::error(name, message))
    }

    fn begin_ask(
        &mut self,
        peer: &Peer,
        access: Access,
        path: &[String],
        args: Payload<T>,
    ) -> Promise {
        let promise = self.promise_unchecked(State::Busy);
        let number = promise.number();
        let args = match access {
            Access::Get => Ok(None),
            Access::Call => Parcel::of_payload(args, &self.ledger, &self.limits).map(Some),
        };
        match args {
            Ok(args) => self.call_peer(number, peer, path, args),
            Err(error) => {
                let rejection = self.parcel(error.to_value());
                self.settle(number, Err(rejection));
            }
        }
        promise
    }

    /// A capability that the client is given or has given.
    pub(crate) fn call_capability(
        &mut self,
        number: u64,
        capability: &Capability<T>,
        path: Vec<String>,
        args: Option<Parcel<T>>,
    ) {
        match capability {
            Capability::Host {
                target,
                kind: Kind::Target,
            } => {
                self.call_host(number, target.clone(), path, args, None);
            }
            Capability::Peer {
                peer,
                kind: Kind::Target,
            } => {
                self.call_peer(number, peer, &path, args);
            }
            _ => {
                let rejection = self.error("TypeError", "A stream has no properties over RPC.");
                self.settle(number, Err(rejection));
            }
        }
    }
}

pub(crate) const CLIENT_GONE: &str = "The client that holds this object has disconnected.";

fn id_of(id: &Value) -> Result<i64, Violation> {
    integer(id).ok_or(Violation::MessageInvalid("an id that is no integer"))
}
