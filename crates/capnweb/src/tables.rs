//! The tables of exports and imports, by the ids that the client knows.
//!
//! Owns who may name what, how often the client's objects were given, and the messages about entries. Ids are never used again: those
//! of results count up from 1 on either side, those of objects down from -1.

use crate::{
    Capability, Connection, Kind, Peer, Target,
    error::{ConvertError, Violation},
    handle::{Handle, Kept, Promise, WeakHandle},
    parcel::{Draft, Parcel},
    promises::{Settled, State, Waiter},
    sinks::Lane,
    write::{Ids, Written, push_path, write},
};
use coracle_value::Value;
use std::rc::Rc;

/// What the client holds, under an id that it releases once.
pub(crate) enum Exported<T> {
    Target(T, Kind),
    Sink(T, Lane<T>),
    /// What the client has pushed.
    Promise(Pushed),
    /// The writable end of a pipe.
    Writer,
}

pub(crate) struct Pushed {
    promise: Promise,
    /// Whether its value is to be sent.
    pulled: bool,
    /// Whether it is released when that has happened.
    streamed: bool,
    resolved: bool,
}

/// What is held of the client's.
pub(crate) enum Import {
    /// An object, and how often it was given out.
    Object { given: u64, handle: WeakHandle },
    /// A result, or what the client has promised.
    Promise(u64),
    /// The writable end of a pipe, as long as something is pumped into it.
    Pipe,
    /// A write into a pipe, of so many bytes.
    Write { pump: i64, bytes: usize },
    /// The end of a pipe.
    End { pump: i64 },
}

impl<T: Target> Connection<T> {
    /// `push` and `stream`.
    pub(crate) fn push(&mut self, expression: &Value, streamed: bool) -> Result<(), Violation> {
        let draft = self.evaluate(expression)?;
        let promise = match draft.sole_promise() {
            Some(promise) => promise.clone(),
            None => self.promise_of(State::Draft(draft, 0))?,
        };
        let number = promise.number();
        let what = Exported::Promise(Pushed {
            promise,
            pulled: streamed,
            streamed,
            resolved: false,
        });
        let id = self.pushed(what)?;
        if streamed {
            self.pulls += 1;
            self.wait(number, Waiter::Resolve(id));
        }
        Ok(())
    }

    /// The entry that the client has given the next id to.
    pub(crate) fn pushed(&mut self, what: Exported<T>) -> Result<i64, Violation> {
        self.check_exports()?;
        let id = self.push_next;
        self.push_next += 1;
        self.exports.insert(id, what);
        Ok(id)
    }

    fn check_exports(&self) -> Result<(), Violation> {
        let entries_max = self.limits.exports_max;
        match self.exports.len() >= entries_max {
            true => Err(Violation::TableFull {
                table: "the table of exports",
                entries_max,
                limit: "exports_max",
            }),
            false => Ok(()),
        }
    }

    fn check_imports(&self) -> Result<(), Violation> {
        let entries_max = self.limits.imports_max;
        match self.imports.len() >= entries_max {
            true => Err(Violation::TableFull {
                table: "the table of imports",
                entries_max,
                limit: "imports_max",
            }),
            false => Ok(()),
        }
    }

    pub(crate) fn pull(&mut self, id: i64) -> Result<(), Violation> {
        let Some(export) = self.exports.get_mut(&id) else {
            return Err(Violation::ExportUnknown { id });
        };
        let Exported::Promise(pushed) = export else {
            let rejection = Value::error("TypeError", "Tried to resolve a non-promise stub.");
            let rejection = self.express_plain(&rejection);
            self.send(format!("[\"reject\",{id},{rejection}]"));
            return Ok(());
        };
        if !std::mem::replace(&mut pushed.pulled, true) {
            let number = pushed.promise.number();
            self.pulls += 1;
            self.wait(number, Waiter::Resolve(id));
        }
        Ok(())
    }

    /// Tells the client what has become of what it has pulled.
    pub(crate) fn send_resolution(&mut self, id: i64) {
        let Some(Exported::Promise(pushed)) = self.exports.get_mut(&id) else {
            return;
        };
        let (number, streamed) = (pushed.promise.number(), pushed.streamed);
        if std::mem::replace(&mut pushed.resolved, true) {
            return;
        }
        self.pulls = self.pulls.saturating_sub(1);
        if let Some(settled) = self.settled(number)
            && let Err(violation) = self.send_settled(id, &settled)
        {
            return self.fail(&violation);
        }
        if streamed {
            self.exports.remove(&id);
        }
    }

    fn send_settled(&mut self, id: i64, settled: &Settled<T>) -> Result<(), Violation> {
        let message = match settled {
            Ok(parcel) => match self.express(&parcel.value, &parcel.externals) {
                Ok(written) => {
                    let expression = self.commit(written)?;
                    format!("[\"resolve\",{id},{expression}]")
                }
                Err(error) => {
                    let rejection = self.express_plain(&error.to_value());
                    format!("[\"reject\",{id},{rejection}]")
                }
            },
            Err(parcel) => {
                let rejection = self.express_plain(&parcel.value);
                format!("[\"reject\",{id},{rejection}]")
            }
        };
        self.send(message);
        Ok(())
    }

    fn express(
        &self,
        value: &Value,
        externals: &[Capability<T>],
    ) -> Result<Written<T>, ConvertError> {
        let ids = Ids {
            export: self.export_next,
            import: self.import_next,
        };
        write(value, externals, ids, &self.limits)
    }

    /// A value that may refer to nothing; of an error what does is left out.
    pub(crate) fn express_plain(&self, value: &Value) -> String {
        let ids = Ids {
            export: 0,
            import: 0,
        };
        let write = |value: &Value| write::<T>(value, &[], ids, &self.limits);
        // A blob would want a pipe.
        let written = write(value).map(|written| (written.pipes.is_empty(), written.text));
        match written {
            Ok((true, text)) => text,
            Ok((false, _)) => "[\"error\",\"TypeError\",\"what was thrown holds a stream\"]".into(),
            Err(error) => match write(&error.to_value()) {
                Ok(written) => written.text,
                Err(_) => "[\"error\",\"RangeError\",\"what was thrown is too long\"]".into(),
            },
        }
    }

    /// Gives out what an expression refers to, and opens its pipes, before it is sent.
    fn commit(&mut self, written: Written<T>) -> Result<String, Violation> {
        for (target, kind) in written.given {
            self.check_exports()?;
            let what = match kind {
                Kind::Sink => Exported::Sink(target, Lane::default()),
                kind => Exported::Target(target, kind),
            };
            self.exports.insert(self.export_next, what);
            self.export_next -= 1;
        }
        for source in written.pipes {
            self.check_imports()?;
            self.open_pump(source);
        }
        Ok(written.text)
    }

    pub(crate) fn release(&mut self, id: i64, released: u64) -> Result<(), Violation> {
        if !self.exports.contains_key(&id) {
            return Err(Violation::ExportUnknown { id });
        }
        if released > 1 {
            return Err(Violation::ReleasedTooOften { id, released });
        }
        match self.exports.remove(&id) {
            Some(Exported::Sink(_, lane)) => self.close_lane(lane),
            Some(Exported::Promise(pushed)) if pushed.pulled && !pushed.resolved => {
                self.pulls = self.pulls.saturating_sub(1);
            }
            Some(Exported::Writer) => self.drop_writer(id),
            Some(Exported::Target(..) | Exported::Promise(_)) | None => {}
        }
        Ok(())
    }

    /// The promise of what was pushed.
    pub(crate) fn pushed_promise(pushed: &Pushed) -> Promise {
        pushed.promise.clone()
    }

    /// An object of the client's that an expression names.
    pub(crate) fn import_object(
        &mut self,
        id: i64,
        kind: Kind,
    ) -> Result<Capability<T>, Violation> {
        if id >= 0 {
            return Err(Violation::IdInvalid { id });
        }
        self.import_lowest = self.import_lowest.min(id);
        let handle = match self.imports.get_mut(&id) {
            None => {
                self.check_imports()?;
                let handle = self.ledger.handle(Kept::Object(id));
                let import = Import::Object {
                    given: 1,
                    handle: handle.downgrade(),
                };
                self.imports.insert(id, import);
                handle
            }
            Some(Import::Object { given, handle }) => {
                *given += 1;
                match handle.upgrade() {
                    Some(held) => held,
                    None => {
                        let fresh: Handle = self.ledger.handle(Kept::Object(id));
                        *handle = fresh.downgrade();
                        fresh
                    }
                }
            }
            Some(_) => return Err(Violation::PromiseIdUsed { id }),
        };
        Ok(Capability::Peer {
            peer: Peer(handle),
            kind,
        })
    }

    /// What the client has promised.
    pub(crate) fn import_promise(&mut self, id: i64) -> Result<Promise, Violation> {
        if id >= 0 {
            return Err(Violation::IdInvalid { id });
        }
        if self.imports.contains_key(&id) {
            return Err(Violation::PromiseIdUsed { id });
        }
        self.import_lowest = self.import_lowest.min(id);
        self.check_imports()?;
        let promise = self.promise_of(State::Import(id))?;
        self.imports.insert(id, Import::Promise(promise.number()));
        Ok(promise)
    }

    /// Nobody holds this object of the client's any more, unless it has been given again.
    pub(crate) fn drop_object(&mut self, id: i64) {
        if let Some(Import::Object { given, handle }) = self.imports.get(&id)
            && handle.upgrade().is_none()
        {
            let given = *given;
            self.imports.remove(&id);
            self.send(format!("[\"release\",{id},{given}]"));
        }
    }

    /// Nobody waits for this promise of the client's any more.
    pub(crate) fn abandon(&mut self, id: i64) {
        if self.imports.remove(&id).is_some() {
            self.abandoned += 1;
            self.send(format!("[\"release\",{id},1]"));
        }
    }

    /// `resolve` and `reject`.
    pub(crate) fn resolve(
        &mut self,
        id: i64,
        expression: &Value,
        rejected: bool,
    ) -> Result<(), Violation> {
        let known = (1..self.import_next).contains(&id) || (self.import_lowest..0).contains(&id);
        if !known {
            return Err(Violation::ImportUnknown { id });
        }
        if let Some(Import::Object { .. } | Import::Pipe) = self.imports.get(&id) {
            return Err(Violation::NotAPromise { id });
        }
        let draft = self.evaluate(expression)?;
        if rejected && !draft.slots.is_empty() {
            let (reason, at) = ("a rejection that refers to something", String::from("$"));
            return Err(Violation::ExpressionInvalid { reason, at });
        }
        match self.imports.remove(&id) {
            None if self.abandoned == 0 => return Err(Violation::ResolvedTwice { id }),
            // What it brings is let go of with the draft.
            None => self.abandoned -= 1,
            Some(Import::Promise(number)) => {
                self.send(format!("[\"release\",{id},1]"));
                self.resolve_promise(number, draft, rejected);
            }
            Some(Import::Write { pump, bytes }) => self.pump_written(pump, bytes, rejected),
            Some(Import::End { pump }) => self.pump_over(pump),
            Some(Import::Object { .. } | Import::Pipe) => {}
        }
        Ok(())
    }

    fn resolve_promise(&mut self, number: u64, draft: Draft<T>, rejected: bool) {
        if rejected {
            let rejection = self.fill(draft).map(Rc::new);
            let rejection = rejection.unwrap_or_else(|error| error);
            self.settle(number, Err(rejection));
        } else {
            self.set(number, State::Draft(draft, 0));
            self.ready.push_back(Waiter::Promise(number));
        }
    }

    /// Calls an object of the client's, or a pipe that the client writes to.
    pub(crate) fn call_peer(
        &mut self,
        number: u64,
        peer: &Peer,
        path: &[String],
        args: Option<Parcel<T>>,
    ) {
        let id = peer.id();
        if matches!(peer.0.kept(), Kept::Pipe(_)) {
            return self.call_pipe(id, number, path, args);
        }
        if self.input_ended {
            return self.reject(number, "Error", BATCH_ENDED);
        }
        if self.check_imports().is_err() {
            let entries_max = self.limits.imports_max;
            let message = format!(
                "{entries_max} references to this client are held, no more are allowed (imports_max)"
            );
            return self.reject(number, "RangeError", &message);
        }
        let mut message = format!("[\"push\",[\"pipeline\",{id},");
        push_path(&mut message, path);
        if let Some(args) = args {
            let written = match args.value {
                Value::Undefined => Ok("[]".into()),
                Value::Array(_) => match self.express(&args.value, &args.externals) {
                    Ok(written) => match self.commit(written) {
                        // The list of arguments is written without the array around it.
                        Ok(text) => Ok(text[1..text.len() - 1].to_owned()),
                        Err(violation) => return self.fail(&violation),
                    },
                    Err(error) => Err(error.to_value()),
                },
                _ => Err(Value::error("TypeError", "the arguments are no array")),
            };
            match written {
                Ok(text) => {
                    message.push(',');
                    message.push_str(&text);
                }
                Err(error) => {
                    let rejection = self.parcel(error);
                    return self.settle(number, Err(rejection));
                }
            }
        }
        message.push_str("]]");
        let import = self.import_next;
        self.import_next += 1;
        self.imports.insert(import, Import::Promise(number));
        self.set(number, State::Import(import));
        self.send(message);
        self.send(format!("[\"pull\",{import}]"));
    }

    /// What only the client could answer fails.
    pub(crate) fn forsake(&mut self) {
        let promises: Vec<(i64, u64)> = self
            .imports
            .iter()
            .filter_map(|(id, import)| match import {
                Import::Promise(number) => Some((*id, *number)),
                _ => None,
            })
            .collect();
        for (id, number) in promises {
            self.imports.remove(&id);
            self.reject(number, "Error", BATCH_ENDED);
        }
        self.forsake_pipes();
        self.forsake_pumps();
    }
}

pub(crate) const BATCH_ENDED: &str = "The batch has ended: its client can't be called.";
