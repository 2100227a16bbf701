//! `remap`: a function that the client has recorded with `map()`, applied here.
//!
//! Owns what the instructions of such a function refer to: its input under 0, the results of earlier instructions from 1
//! up, what it has captured from -1 down. Each expression that is evaluated is counted, those of functions inside of
//! functions too.

use crate::{
    Capability, Connection, Kind, Target,
    error::Violation,
    handle::{Charge, Ledger, Promise},
    measure::Measure,
    parcel::{Draft, Followed, Parcel, Slot},
    promises::{Pending, State, Subject, Waiter},
    read::{Context, evaluate},
    session::{Capture, capture_of},
};
use coracle_value::{Text, Value};
use std::{cell::Cell, rc::Rc};

/// A function that waits for what it is applied to.
pub(crate) struct Remap<T> {
    subject: Subject<T>,
    path: Vec<String>,
    captures: Vec<Subject<T>>,
    instructions: Vec<Value>,
    budget: Rc<Cell<usize>>,
    _charge: Charge,
}

impl<T> Remap<T> {
    pub(crate) fn new(
        subject: Subject<T>,
        path: Vec<String>,
        captures: Vec<Subject<T>>,
        instructions: &[Value],
        budget: Rc<Cell<usize>>,
        ledger: &Ledger,
    ) -> Self {
        let bytes = instructions
            .iter()
            .map(|instruction| Measure::of(instruction).bytes)
            .sum();
        Self {
            subject,
            path,
            captures,
            instructions: instructions.to_vec(),
            budget,
            _charge: ledger.charge(bytes),
        }
    }
}

impl<T: Target> Connection<T> {
    pub(crate) fn advance_remap(&mut self, number: u64, mut remap: Box<Remap<T>>) {
        let parcel = match &remap.subject {
            Subject::Promise(promise) => match self.settled(promise.number()) {
                None => {
                    self.wait(promise.number(), Waiter::Promise(number));
                    return self.set(number, State::Remap(remap));
                }
                Some(Err(rejection)) => return self.settle(number, Err(rejection)),
                Some(Ok(parcel)) => Ok(parcel),
            },
            Subject::Value(parcel) => Ok(Rc::clone(parcel)),
            Subject::Capability(capability) => Err(capability.clone()),
            Subject::Sink(..) | Subject::Writer(_) => {
                return self.reject(number, "TypeError", "Cannot use map() on a WritableStream");
            }
        };
        let followed = match &parcel {
            Ok(parcel) => parcel.follow(&remap.path),
            Err(capability) => Followed::Capability(capability.clone(), 0),
        };
        let mapped = match (followed, &parcel) {
            (Followed::Data(Value::Null), _) => {
                let null = self.parcel(Value::Null);
                return self.settle(number, Ok(null));
            }
            (Followed::Data(Value::Undefined), _) => return self.done(number),
            (Followed::Data(Value::Array(members)), Ok(parcel)) => {
                self.map_array(&remap, parcel, members)
            }
            (Followed::Data(value), Ok(parcel)) => self
                .part(parcel, value)
                .and_then(|part| self.map_one(&remap, Subject::Value(part))),
            (Followed::Undefined(_) | Followed::Data(_), _) => {
                Err(self.error("TypeError", "map() of a property of undefined"))
            }
            (Followed::Capability(capability, at), _) => {
                let rest = remap.path.split_off(at);
                if rest.is_empty() {
                    self.map_one(&remap, Subject::Capability(capability))
                } else {
                    let subject = Subject::Capability(capability);
                    let property = Pending {
                        subject,
                        path: rest,
                        args: None,
                        known: 0,
                    };
                    match self.promise_of(State::Access(Box::new(property))) {
                        Err(violation) => return self.fail(&violation),
                        Ok(promise) => {
                            self.wait(promise.number(), Waiter::Promise(number));
                            remap.path.clear();
                            remap.subject = Subject::Promise(promise);
                            return self.set(number, State::Remap(remap));
                        }
                    }
                }
            }
        };
        match mapped {
            Ok(draft) => {
                self.set(number, State::Draft(draft, 0));
                self.ready.push_back(Waiter::Promise(number));
            }
            Err(rejection) => self.settle(number, Err(rejection)),
        }
    }

    fn map_array(
        &mut self,
        remap: &Remap<T>,
        parcel: &Parcel<T>,
        members: &[Value],
    ) -> Result<Draft<T>, Rc<Parcel<T>>> {
        let mut drafts = Vec::new();
        for member in members {
            let input = match member {
                Value::External(index) => match parcel.externals.get(*index as usize) {
                    Some(capability) => Subject::Capability(capability.clone()),
                    None => continue,
                },
                member => Subject::Value(self.part(parcel, member)?),
            };
            drafts.push(self.map_one(remap, input)?);
        }
        let array = Draft::array(drafts, &self.ledger, &self.limits);
        array.map_err(|error| self.parcel(error.to_value()))
    }

    /// Applies the function once. What goes wrong rejects the promise of the whole, and ends nothing else.
    fn map_one(&mut self, remap: &Remap<T>, input: Subject<T>) -> Result<Draft<T>, Rc<Parcel<T>>> {
        let applied = self.apply(remap, input);
        applied.map_err(|violation| self.parcel(violation.to_value()))
    }

    fn apply(&mut self, remap: &Remap<T>, input: Subject<T>) -> Result<Draft<T>, Violation> {
        let Some((last, instructions)) = remap.instructions.split_last() else {
            return Err(Violation::ExpressionInvalid {
                reason: "a map() function without instructions",
                at: String::from("$"),
            });
        };
        let mut variables = vec![input];
        for instruction in instructions {
            let draft = self.instruction(remap, &variables, instruction)?;
            variables.push(match draft.sole_promise() {
                Some(promise) => Subject::Promise(promise.clone()),
                None => Subject::Promise(self.promise_of(State::Draft(draft, 0))?),
            });
        }
        self.instruction(remap, &variables, last)
    }

    fn instruction(
        &mut self,
        remap: &Remap<T>,
        variables: &[Subject<T>],
        instruction: &Value,
    ) -> Result<Draft<T>, Violation> {
        let (ledger, limits) = (self.ledger.clone(), self.limits);
        let mut scope = Scope {
            connection: self,
            variables,
            captures: &remap.captures,
            budget: &remap.budget,
        };
        evaluate(instruction, &mut scope, &ledger, &limits)
    }
}

/// What an instruction refers to.
struct Scope<'c, T: Target> {
    connection: &'c mut Connection<T>,
    variables: &'c [Subject<T>],
    captures: &'c [Subject<T>],
    budget: &'c Rc<Cell<usize>>,
}

impl<T: Target> Context<T> for Scope<'_, T> {
    type Subject = Subject<T>;

    fn step(&mut self) -> Result<(), Violation> {
        let steps_max = self.connection.limits.remap_steps_max;
        match self.budget.get().checked_sub(1) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(Violation::StepsExceeded { steps_max }),
        }
    }

    fn subject(&mut self, id: i64) -> Result<Subject<T>, Violation> {
        let found = match id {
            0.. => self.variables.get(id as usize),
            _ => self.captures.get(id.unsigned_abs() as usize - 1),
        };
        found.cloned().ok_or(Violation::ExportUnknown { id })
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
            match capture_of(capture)? {
                Capture::Import(id) => captured.push(self.subject(id)?),
                Capture::Export(_) => return Err(no_exports()),
            }
            self.step()?;
        }
        // Its instructions are copied for each time that the outer function is applied.
        for _ in 0..instructions
            .iter()
            .map(|instruction| Measure::of(instruction).members)
            .sum()
        {
            self.step()?;
        }
        let budget = Rc::clone(self.budget);
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

    fn export(&mut self, _: i64, _: Kind) -> Result<Capability<T>, Violation> {
        Err(no_exports())
    }

    fn promise(&mut self, _: i64) -> Result<Promise, Violation> {
        Err(no_exports())
    }

    fn readable(&mut self, id: i64) -> Result<Capability<T>, Violation> {
        Err(Violation::PipeUnknown { id })
    }

    fn blob(&mut self, _: Text, _: Capability<T>) -> Result<Promise, Violation> {
        Err(no_exports())
    }
}

fn no_exports() -> Violation {
    Violation::ExpressionInvalid {
        reason: "a map() function can't refer to exports",
        at: String::from("$"),
    }
}
