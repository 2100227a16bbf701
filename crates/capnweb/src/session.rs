//! What expressions in messages refer to: the connection's tables.

use crate::{
    Capability, Connection, Kind, Target,
    error::Violation,
    handle::Promise,
    parcel::{Draft, Slot},
    promises::{Collect, Pending, State, Subject},
    read::{Context, integer},
    remap::Remap,
    tables::Exported,
};
use coracle_value::{Text, Value};
use std::{cell::Cell, rc::Rc};

/// A message that is being evaluated.
pub(crate) struct Session<'c, T: Target> {
    pub(crate) connection: &'c mut Connection<T>,
    /// What the functions of `map()` in it may evaluate, all together.
    pub(crate) budget: Rc<Cell<usize>>,
}

impl<T: Target> Context<T> for Session<'_, T> {
    type Subject = Subject<T>;

    fn step(&mut self) -> Result<(), Violation> {
        Ok(())
    }

    fn subject(&mut self, id: i64) -> Result<Subject<T>, Violation> {
        let Some(what) = self.connection.exports.get(&id) else {
            return Err(Violation::ExportUnknown { id });
        };
        Ok(match what {
            Exported::Target(target, kind) => {
                let (target, kind) = (target.clone(), *kind);
                Subject::Capability(Capability::Host { target, kind })
            }
            Exported::Sink(target, _) => Subject::Sink(id, target.clone()),
            Exported::Promise(pushed) => Subject::Promise(Connection::<T>::pushed_promise(pushed)),
            Exported::Writer => Subject::Writer(id),
        })
    }

    fn reference(&mut self, subject: Subject<T>) -> Result<Slot<T>, Violation> {
        self.connection.slot_of(subject)
    }

    fn access(
        &mut self,
        subject: Subject<T>,
        path: Vec<String>,
        args: Option<Draft<T>>,
    ) -> Result<Promise, Violation> {
        let pending = Pending {
            subject,
            path,
            args,
            known: 0,
        };
        self.connection.promise_of(State::Access(Box::new(pending)))
    }

    fn remap(
        &mut self,
        subject: Subject<T>,
        path: Vec<String>,
        captures: &[Value],
        instructions: &[Value],
    ) -> Result<Promise, Violation> {
        let mut captured = Vec::with_capacity(captures.len());
        for capture in captures {
            captured.push(match capture_of(capture)? {
                Capture::Import(id) => self.subject(id)?,
                Capture::Export(id) => {
                    Subject::Capability(self.connection.import_object(id, Kind::Target)?)
                }
            });
        }
        let budget = Rc::clone(&self.budget);
        let remap = Remap::new(
            subject,
            path,
            captured,
            instructions,
            budget,
            &self.connection.ledger,
        );
        self.connection.promise_of(State::Remap(Box::new(remap)))
    }

    fn export(&mut self, id: i64, kind: Kind) -> Result<Capability<T>, Violation> {
        self.connection.import_object(id, kind)
    }

    fn promise(&mut self, id: i64) -> Result<Promise, Violation> {
        self.connection.import_promise(id)
    }

    fn readable(&mut self, id: i64) -> Result<Capability<T>, Violation> {
        self.connection.readable(id)
    }

    fn blob(&mut self, kind: Text, stream: Capability<T>) -> Result<Promise, Violation> {
        let collect = Collect {
            kind,
            stream,
            bytes: Vec::new(),
            charges: Vec::new(),
            pulling: None,
        };
        self.connection.promise_of(State::Blob(Box::new(collect)))
    }
}

/// What a function of `map()` refers to from outside.
pub(crate) enum Capture {
    Import(i64),
    Export(i64),
}

pub(crate) fn capture_of(capture: &Value) -> Result<Capture, Violation> {
    let invalid = || Violation::ExpressionInvalid {
        reason: "unknown map capture",
        at: String::from("$"),
    };
    match capture.as_array() {
        Some([Value::String(name), id]) => {
            let id = integer(id).ok_or_else(invalid)?;
            match name.as_str() {
                Some("import") => Ok(Capture::Import(id)),
                Some("export") => Ok(Capture::Export(id)),
                _ => Err(invalid()),
            }
        }
        _ => Err(invalid()),
    }
}
