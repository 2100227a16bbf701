//! Calls that isolates make, and their answers.

use super::{Pending, Service, State, Waiting};
use crate::{
    host::{Caller, HostCall},
    named::Asker,
    outcome::{Answered, CallAnswer},
    router::{Address, AnswerTo, NOT_CALLABLE, Payload, RemoteCall, threw},
    session::OutCall,
    tables::Outgoing,
};
use coracle_isolate::{Answer, External, Form, Kind, Message, Outcome, OutwardCall};
use coracle_loader::{CallId, Refusal};

impl Service {
    /// An isolate calls something of what it holds.
    pub(super) fn isolate_calls(
        &self,
        state: &mut State,
        isolate: u64,
        invocation: u64,
        operation: u64,
        call: OutwardCall,
    ) {
        let OutwardCall {
            import,
            is_stream,
            path,
            access,
            args,
        } = call;
        let externals = adopt(state, isolate, args.externals);
        let args = Payload {
            form: args.form,
            bytes: args.bytes,
            externals,
        };
        let callee = state
            .tables
            .get(&isolate)
            .and_then(|table| table.import(import))
            .filter(|callee| {
                !is_stream
                    || matches!(callee.kind(), Kind::Source | Kind::Sink)
                    || matches!(callee, Address::Failed(_))
            });
        let form = Form::Cbor;
        let call = match &callee {
            Some(Address::Entrypoint(entrypoint)) => {
                OutCall::of_entrypoint(entrypoint, access, path, args, form)
            }
            Some(Address::Export(export)) => OutCall::of_export(export, access, path, args, form),
            Some(Address::Remote(remote)) => {
                let Some(service) = self.itself.upgrade() else {
                    return;
                };
                let kept = remote.call(RemoteCall {
                    path,
                    access,
                    args,
                    answer_to: AnswerTo::Operation {
                        service,
                        isolate,
                        operation,
                    },
                });
                if let Some(table) = state.tables.get_mut(&isolate) {
                    table.outgoing.insert(operation, Outgoing::Outside(kept));
                }
                return state.discard(callee);
            }
            Some(Address::Host(host)) => {
                let Some(service) = self.itself.upgrade() else {
                    return;
                };
                let worker = state.tables.get(&isolate).map(|table| table.worker_id());
                let call = HostCall {
                    path,
                    access,
                    args,
                    caller: worker.map(|worker| Caller {
                        worker: worker.0,
                        invocation,
                    }),
                };
                let answer_to = AnswerTo::Operation {
                    service,
                    isolate,
                    operation,
                };
                let kept = host.call(call, answer_to);
                if let Some(table) = state.tables.get_mut(&isolate) {
                    table.outgoing.insert(operation, Outgoing::Outside(kept));
                }
                return state.discard(callee);
            }
            Some(Address::Failed(reason)) => {
                let answer = Answer::Failed(reason.to_string());
                state.discard(args);
                return self.tell(state, Asker { isolate, operation }, answer);
            }
            Some(Address::Loader(_) | Address::Worker(_)) => {
                state.discard((args, callee));
                return self.settle(state, isolate, operation, Ok(threw(NOT_CALLABLE)));
            }
            Some(Address::Broken) | None => {
                state.discard(args);
                let broken = threw("This capability is not one that the isolate holds.");
                return self.settle(state, isolate, operation, Ok(broken));
            }
        };
        state.discard(callee);
        if call.worker.is_revoked() {
            state.discard(call);
            return self.settle(state, isolate, operation, Err(Refusal::SessionClosed));
        }
        let payer = state.calls.get(&CallId(invocation));
        let depth = payer.map_or(0, |pending| pending.depth);
        let answer_to = Waiting::Operation { isolate, operation };
        let id = self.place(state, call, answer_to, depth);
        if state.calls.contains_key(&id)
            && let Some(table) = state.tables.get_mut(&isolate)
        {
            table.outgoing.insert(operation, Outgoing::Call(id));
        }
    }

    pub(super) fn give_up_outgoing(&self, state: &mut State, outgoing: Option<Outgoing>) {
        match outgoing {
            Some(Outgoing::Call(call)) => self.give_up(state, call),
            // Dropping it tells the thread that does it.
            Some(Outgoing::Outside(_)) | None => {}
        }
    }

    /// Passes the answer of a call of a worker on.
    pub(super) fn answer(&self, state: &mut State, pending: Pending, answer: CallAnswer) {
        let Pending {
            answer_to,
            callee,
            args,
            props,
            trace,
            ..
        } = pending;
        state.discard((callee, args, props, trace));
        match answer_to {
            Waiting::Caller(sender) => {
                if let Err(unheard) = sender.send(answer) {
                    state.discard(unheard);
                }
            }
            Waiting::Operation { isolate, operation } => {
                self.settle(state, isolate, operation, answer);
            }
            Waiting::Tail(call) => {
                call.answer(&answer);
                state.discard(answer);
            }
            Waiting::Nobody => state.discard(answer),
        }
    }

    /// Tells an isolate what its call came to.
    pub(super) fn settle(
        &self,
        state: &mut State,
        isolate: u64,
        operation: u64,
        answer: CallAnswer,
    ) {
        let Some(table) = state.tables.get_mut(&isolate) else {
            return state.discard(answer);
        };
        table.outgoing.remove(&operation);
        let mut refused = Vec::new();
        let bytes_max = self.limits().result_bytes_max;
        let answer = match answer {
            Err(refusal) => Answer::Failed(refusal.to_string()),
            // A worker's result is within its own limit; a client's may have any size.
            Ok(Answered { report, externals }) if bytes_of(&report.outcome) > bytes_max => {
                refused = externals;
                let bytes = bytes_of(&report.outcome);
                Answer::Failed(format!(
                    "The answer has {bytes} bytes, {bytes_max} are allowed (result_bytes_max)."
                ))
            }
            Ok(Answered {
                mut report,
                externals,
            }) => {
                let externals = table.offer(externals, &mut refused);
                if let Outcome::Value(value) = &mut report.outcome {
                    value.externals = externals;
                }
                Answer::Outcome(report.outcome)
            }
        };
        state.discard(refused);
        let message = Message::Settle {
            isolate,
            operation,
            answer: Box::new(answer),
        };
        self.send(state, message);
    }
}

fn bytes_of(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Value(value) => value.bytes.len() as u64,
        Outcome::Threw(_) | Outcome::Verdict(_) => 0,
    }
}

/// The addresses that an isolate means by entries of its.
pub(super) fn adopt(state: &mut State, isolate: u64, externals: Vec<External>) -> Vec<Address> {
    if externals.is_empty() {
        return Vec::new();
    }
    let Some(table) = state.tables.get(&isolate) else {
        return externals.iter().map(|_| Address::Broken).collect();
    };
    let worker = table.worker();
    let adopted = table.adopt(externals, worker.as_ref());
    state.discard(worker);
    adopted
}
