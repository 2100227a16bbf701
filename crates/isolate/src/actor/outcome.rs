//! What the guest's words and its failures mean.

use super::{Actor, Effects, EntryKind, Life, Surroundings};
use crate::{
    border::{Finished, Stop},
    message::{Bytes, Call, CallAccess, Form, Outcome, Thrown, Verdict, VerdictKind},
};
use coracle_abi as abi;
use coracle_loader::Limits;
use wasmtime::Trap;

impl Actor {
    /// The guest says that an invocation is over. What it says of one that is not there, or is over already, counts for
    /// nothing.
    pub(super) fn finish(
        &mut self,
        finished: Finished,
        around: &Surroundings<'_>,
        effects: &mut Effects,
    ) -> Life {
        let invocation = finished.invocation;
        let Some(books) = self
            .invocations
            .get_mut(&invocation)
            .filter(|books| !books.reported)
        else {
            return Life::GoesOn;
        };
        // The arguments were too deep: no code of the call has run, and the isolate is as good as before.
        let refused = finished.kind == abi::finish::VALUE_TOO_DEEP && finished.bytes.is_empty();
        books.started &= !refused;
        // Until it said so, whatever comes after that in the same entry: that would depend on where slices end.
        if self.paying.invocation == invocation {
            books.fuel_run = self.paying.fuel_before + finished.fuel_burnt;
        }
        let outcome = self.outcome_of_finish(finished);
        if let Outcome::Value(value) = &outcome
            && self.give_out(&value.externals, invocation, around, effects) == Life::Ended
        {
            return Life::Ended;
        }
        if matches!(outcome, Outcome::Verdict(_)) && !refused {
            return self.end(Some((invocation, outcome)), around, effects);
        }
        self.report(invocation, outcome, around, effects);
        Life::GoesOn
    }

    fn outcome_of_finish(&self, finished: Finished) -> Outcome {
        let Finished {
            invocation,
            kind,
            bytes,
            length,
            ..
        } = finished;
        let Some(books) = self.invocations.get(&invocation) else {
            return Outcome::Verdict(trap(true, "the guest finished an unknown invocation"));
        };
        let limit = books.limits.result_bytes_max;
        let too_large = |size: u64| {
            let verdict = books.verdict(VerdictKind::ResultSize, "result_bytes_max", size, limit);
            Outcome::Verdict(verdict)
        };
        let value = |form: Form, bytes: Vec<u8>| Outcome::Value(Bytes::data(form, bytes));
        match kind {
            abi::finish::UNDEFINED => Outcome::Value(Bytes::UNDEFINED),
            abi::finish::CBOR | abi::finish::JSON if length as u64 > limit => {
                too_large(length as u64)
            }
            abi::finish::CBOR => value(Form::Cbor, bytes),
            abi::finish::JSON => value(Form::Json, bytes),
            abi::finish::WITH_EXTERNALS if bytes.len() < length => too_large(length as u64),
            abi::finish::WITH_EXTERNALS => match minicbor::decode::<abi::Encoded<'_>>(&bytes) {
                Ok(encoded) if encoded.bytes.len() as u64 > limit => {
                    too_large(encoded.bytes.len() as u64)
                }
                Ok(encoded) if encoded.externals.len() <= abi::EXTERNALS_MAX => {
                    Outcome::Value(Bytes {
                        form: encoded.form,
                        bytes: encoded.bytes.to_vec(),
                        externals: encoded.externals,
                    })
                }
                _ => Outcome::Verdict(trap(
                    true,
                    "the guest reported a result in a way that can't be read",
                )),
            },
            abi::finish::THREW => threw(&bytes),
            abi::finish::RESULT_TOO_LARGE => {
                let size = bytes.try_into().map_or(0, u64::from_le_bytes);
                too_large(size.max(limit.saturating_add(1)))
            }
            abi::finish::VALUE_TOO_DEEP => self.too_deep(invocation),
            _ => Outcome::Verdict(trap(
                true,
                "the guest reported an outcome that does not exist",
            )),
        }
    }

    /// What the guest said of a load that did not go well, or that it said nothing.
    pub(super) fn outcome_of_load(&self, said: Option<Finished>, invocation: u64) -> Outcome {
        match said {
            Some(said) if said.kind == abi::finish::THREW => threw(&said.bytes),
            Some(said) if said.kind == abi::finish::VALUE_TOO_DEEP => self.too_deep(invocation),
            Some(_) => Outcome::Verdict(trap(
                false,
                "the guest reported a load in a way that does not exist",
            )),
            None => Outcome::Verdict(Verdict::without_limit(VerdictKind::Hung, false)),
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

    /// What an entry's error means for the invocation that paid for it.
    pub(super) fn outcome_of_failure(
        &self,
        error: &wasmtime::Error,
        kind: EntryKind,
        invocation: u64,
    ) -> Outcome {
        let Some(books) = self.invocations.get(&invocation) else {
            return Outcome::Verdict(trap(true, &format!("{error:#}")));
        };
        if let Some(stop) = error.downcast_ref::<Stop>() {
            let verdict = books.verdict(stop.kind, stop.limit_name, stop.used, stop.limit);
            return Outcome::Verdict(verdict);
        }
        let limits = &books.limits;
        Outcome::Verdict(match (error.downcast_ref::<Trap>(), kind) {
            (Some(Trap::OutOfFuel), EntryKind::Load) => books.verdict(
                VerdictKind::Startup,
                "startup_fuel_max",
                books.fuel_load,
                limits.startup_fuel_max,
            ),
            (Some(Trap::OutOfFuel), EntryKind::Run) => books.verdict(
                VerdictKind::Fuel,
                "fuel_max",
                books.fuel_run,
                limits.fuel_max,
            ),
            (Some(Trap::StackOverflow), _) => books.verdict_plain(VerdictKind::Stack),
            _ => Verdict {
                detail: format!("{error:#}"),
                ..books.verdict_plain(VerdictKind::Trap)
            },
        })
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

pub(super) fn encoded(value: &Bytes) -> abi::Encoded<'_> {
    abi::Encoded {
        form: value.form,
        bytes: value.bytes[..].into(),
        externals: value.externals.clone(),
    }
}

/// The message that begins a call.
pub(super) fn invoke_message(call: &Call, limits: &Limits, forgotten: Vec<u64>) -> Vec<u8> {
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
        result_bytes_max: clamp(limits.result_bytes_max),
        value_depth_max: clamp(limits.value_depth_max),
        forgotten,
        export: call.export,
    };
    let mut bytes = Vec::with_capacity(call.args.bytes.len() + call.props.bytes.len() + 128);
    // Encoding into a Vec can't fail.
    let _ = minicbor::encode(&message, &mut bytes);
    bytes
}
