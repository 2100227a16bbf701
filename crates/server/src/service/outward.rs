//! Calls that isolates make, and their answers.

use super::{Pending, Service, State, Waiting};
use crate::{
    host::{Caller, HostCall},
    named::Asker,
    opened::{OVER, Opened},
    outbound::Egress,
    outcome::{Answered, CallAnswer},
    router::{Address, AnswerTo, CLIENT_GONE, NOT_CALLABLE, Payload, RemoteCall, threw},
    session::OutCall,
    tables::{Outgoing, Way},
};
use coracle_abi::OUTBOUND;
use coracle_isolate::{Answer, External, Form, Kind, Message, Outcome, OutwardCall};
use coracle_loader::{CallId, IsolateId, Refusal};
use coracle_outbound::{Judge, Kind as RequestKind, Record, RequestDecision, Sender, Trail};
use coracle_value::{Bounds, Interface, Value};
use std::sync::Arc;

/// Bytes of the arguments of a request that are looked at for what is asked for.
const REQUEST_BYTES_MAX: usize = 64 << 10;

impl Service {
    /// Lets requests leave. Once, before anything is loaded.
    pub(crate) fn attach_egress(&self, egress: Egress) {
        let attached = self.egress.set(egress);
        debug_assert!(attached.is_ok(), "attached twice");
    }

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
        let opened = self.opened_by_giver(state, isolate, invocation, &args.externals);
        let externals = adopt(state, isolate, args.externals, opened.as_ref());
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
        let trail = match &callee {
            // A policy tells of it itself.
            Some(Address::Host(_)) => {
                self.follow(state, invocation);
                None
            }
            Some(_) if import == OUTBOUND => {
                let asked = (&*path, &*args.bytes, args.externals.len());
                self.begin_unjudged(state, Judge::Gateway, (isolate, invocation), asked)
            }
            _ => None,
        };
        let outgoing = |way| Outgoing {
            invocation,
            import,
            way,
            trail,
        };
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
                let sent = remote.call(RemoteCall {
                    path,
                    access,
                    args,
                    answer_to: AnswerTo::Operation {
                        service,
                        isolate,
                        operation,
                    },
                });
                let (way, unsent) = match sent {
                    Ok(kept) => (Way::Outside(kept), None),
                    Err(unsent) => (Way::Nowhere, Some(unsent)),
                };
                let is_gone = unsent.is_some();
                if let Some(table) = state.tables.get_mut(&isolate) {
                    table.outgoing.insert(operation, outgoing(way));
                }
                state.discard((callee, unsent));
                if is_gone {
                    self.settle(state, isolate, operation, Ok(threw(CLIENT_GONE)));
                }
                return;
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
                    table
                        .outgoing
                        .insert(operation, outgoing(Way::Outside(kept)));
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
            table.outgoing.insert(operation, outgoing(Way::Call(id)));
        }
    }

    pub(super) fn give_up_outgoing(&self, state: &mut State, outgoing: Option<Outgoing>) {
        let Some(Outgoing { way, trail, .. }) = outgoing else {
            return;
        };
        state.discard(trail);
        match way {
            Way::Call(call) => self.give_up(state, call),
            // Dropping it tells the thread that does it.
            Way::Outside(_) | Way::Nowhere => {}
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
        let outgoing = match state.tables.get_mut(&isolate) {
            Some(table) => table.outgoing.remove(&operation),
            None => return state.discard(answer),
        };
        let mut opened = None;
        if let Some(outgoing) = outgoing {
            if let Ok(answered) = &answer
                && has_connection(&answered.externals)
            {
                opened = self.opened(state, isolate, outgoing.invocation);
            }
            if let Some(trail) = outgoing.trail {
                trail.note(|record| note_gateway(record, &answer));
                state.discard(trail);
            }
        }
        let Some(table) = state.tables.get_mut(&isolate) else {
            return;
        };
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
                table.connect(&externals, opened.as_deref(), &mut refused);
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

    /// What an invocation has opened, or will have; none of one that is over.
    pub(super) fn opened(
        &self,
        state: &mut State,
        isolate: u64,
        invocation: u64,
    ) -> Option<Arc<Opened>> {
        let pending = state.calls.get_mut(&CallId(invocation))?;
        if pending.isolate != Some(IsolateId(isolate)) {
            return None;
        }
        let opened = pending
            .opened
            .get_or_insert_with(|| Arc::new(Opened::new(&self.itself, isolate, invocation)));
        Some(Arc::clone(opened))
    }

    /// The same, for objects that it gives out: they keep it.
    pub(super) fn opened_by_giver(
        &self,
        state: &mut State,
        isolate: u64,
        invocation: u64,
        given: &[External],
    ) -> Option<Arc<Opened>> {
        let mut given = given.iter();
        match given.any(|external| matches!(external, External::Export(..))) {
            true => self.opened(state, isolate, invocation),
            false => None,
        }
    }

    /// Begins the record of a request that no policy is asked about.
    pub(super) fn begin_unjudged(
        &self,
        state: &State,
        judge: Judge,
        (isolate, invocation): (u64, u64),
        asked: (&[String], &[u8], usize),
    ) -> Option<Arc<Trail>> {
        let table = state.tables.get(&isolate)?;
        let (kind, method, destination) = asked_for(asked)?;
        self.follow(state, invocation);
        let sender = Sender {
            tenant: Arc::clone(table.tenant()),
            worker: table.worker_id().0,
            invocation,
        };
        let mut record = Record::unjudged(judge, sender, kind, &method, &destination);
        record.decision = RequestDecision::Allowed;
        Some(Trail::begun(&self.audit, record))
    }

    /// Nothing is left of a call, and so nothing of what it has opened.
    pub(super) fn close_opened(&self, state: &mut State, isolate: u64, opened: u64) {
        let Some(table) = state.tables.get_mut(&isolate) else {
            return;
        };
        let mut closed = Vec::new();
        let unanswered = table.close(opened, &mut closed);
        for operation in unanswered {
            let asker = Asker { isolate, operation };
            self.tell(state, asker, Answer::Failed(OVER.into()));
        }
        state.discard(closed);
    }
}

/// What came of a request to a gateway.
fn note_gateway(record: &mut Record, answer: &CallAnswer) {
    let outcome = answer.as_ref().map(|answered| &answered.report.outcome);
    record.error = match outcome {
        Ok(Outcome::Value(_)) => "",
        Ok(Outcome::Threw(_) | Outcome::Verdict(_)) | Err(_) => "gateway_failed",
    };
}

/// The kind, the method, and the URL or the address of a call of what requests go to; empty where they can't be read.
fn asked_for(
    (path, args, externals): (&[String], &[u8], usize),
) -> Option<(RequestKind, String, String)> {
    let [name] = path else {
        return None;
    };
    let kind = match &**name {
        "fetch" => RequestKind::Fetch,
        "connect" => RequestKind::Connect,
        _ => return None,
    };
    let unread = || Some((kind, String::new(), String::new()));
    if args.len() > REQUEST_BYTES_MAX {
        return unread();
    }
    let bounds = Bounds {
        externals: externals as u32,
        ..Bounds::default()
    };
    let Ok(args) = coracle_value::decode(args, &bounds) else {
        return unread();
    };
    let Some(first) = args.index(0) else {
        return unread();
    };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    Some(match kind {
        RequestKind::Connect => (kind, String::new(), text(Some(first))),
        _ => {
            let request = first.as_interface(Interface::Request).unwrap_or(first);
            (kind, text(request.get("method")), text(request.get("url")))
        }
    })
}

fn has_connection(externals: &[Address]) -> bool {
    externals
        .iter()
        .any(|address| matches!(address, Address::Host(_)))
}

fn bytes_of(outcome: &Outcome) -> u64 {
    match outcome {
        Outcome::Value(value) => value.bytes.len() as u64,
        Outcome::Threw(_) | Outcome::Verdict(_) => 0,
    }
}

/// The addresses that an isolate means by entries of its; `opened` is of the call that gives them out.
pub(super) fn adopt(
    state: &mut State,
    isolate: u64,
    externals: Vec<External>,
    opened: Option<&Arc<Opened>>,
) -> Vec<Address> {
    if externals.is_empty() {
        return Vec::new();
    }
    let Some(table) = state.tables.get(&isolate) else {
        return externals.iter().map(|_| Address::Broken).collect();
    };
    let worker = table.worker();
    let adopted = table.adopt(externals, worker.as_ref(), opened);
    state.discard(worker);
    adopted
}
