//! One run's calls of tools, as they come out of its sandbox.
//!
//! What a sandbox sends is hostile: it names anything, passes anything, and as often as its isolate's limits let it. Each
//! call is counted, recorded, converted within bounds, decided by the toolbox, and has its turn when fewer than
//! `calls_in_flight_max` are underway.

use crate::{
    convert::{from_json, to_json},
    execution::{CallRecord, CallStatus},
    journal::{Comes, Journal, Outcome},
    toolbox::{Output, ToolError, Toolbox, json_bytes},
};
use coracle_client::{Payload, Thrown, Value};
use coracle_codemode::{CallCount, LimitExceeded, Limits};
use serde_json::Value as Json;
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};
use tokio::sync::Semaphore;

/// What a record has of a tool's name.
const TOOL_BYTES_MAX: usize = 200;

pub(crate) struct Run {
    toolbox: Arc<Toolbox>,
    journal: Option<Arc<dyn Journal>>,
    turns: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    count: CallCount,
    calls: Vec<CallRecord>,
    has_ended: bool,
}

impl Run {
    pub(crate) fn new(toolbox: Arc<Toolbox>, journal: Option<Arc<dyn Journal>>) -> Self {
        let turns = toolbox.limits().calls_in_flight_max;
        Self {
            turns: Semaphore::new(turns.clamp(1, Semaphore::MAX_PERMITS)),
            toolbox,
            journal,
            state: Mutex::default(),
        }
    }

    fn limits(&self) -> &Limits {
        self.toolbox.limits()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nothing is called any more, and this is what was.
    pub(crate) fn end(&self) -> Vec<CallRecord> {
        self.turns.close();
        let mut state = self.state();
        state.has_ended = true;
        state.calls.clone()
    }

    /// What the guest calls: with a tool and its argument, or with null when the program has ended before its calls.
    pub(crate) async fn answer(&self, args: Payload) -> Result<Payload, Thrown> {
        let Some(tool) = args.value.index(0).and_then(Value::as_str) else {
            let mut state = self.state();
            for call in &mut state.calls {
                call.unawaited |= call.status == CallStatus::Unfinished;
            }
            return Ok(Payload::default());
        };
        let number = self.record(tool);
        let (outcome, at_ms) = match number {
            Some(number) => {
                let input = args.value.index(1).unwrap_or(&Value::Undefined);
                let (outcome, at_ms) = self.call(number, tool, input).await;
                self.note(number, &outcome);
                (outcome, at_ms)
            }
            None => {
                let exceeded = LimitExceeded {
                    limit: "calls_max",
                    unit: "calls",
                    max: self.limits().calls_max,
                    value: self.limits().calls_max + 1,
                    place: "the run".into(),
                };
                (Err(exceeded.into()), None)
            }
        };
        let at = at_ms.map_or(Value::Undefined, |at_ms| Value::Number(at_ms as f64));
        let answer = match outcome {
            Ok(Output::Json(json)) => ("value", from_json(&json)),
            Ok(Output::Bytes(bytes)) => ("value", Value::uint8_array(bytes)),
            Err(error) => {
                let error = Value::object([
                    ("name", "ToolError".into()),
                    ("message", error.message.into()),
                    ("code", Value::from(error.code)),
                ]);
                ("error", error)
            }
        };
        Ok(Value::object([answer, ("at", at)]).into())
    }

    /// Begins the record of a call; none where there are too many, or the run is over.
    fn record(&self, tool: &str) -> Option<usize> {
        let mut state = self.state();
        if state.has_ended || state.calls.len() >= self.limits().calls_max {
            return None;
        }
        state.calls.push(CallRecord {
            tool: tool[..tool.floor_char_boundary(TOOL_BYTES_MAX)].to_owned(),
            status: CallStatus::Unfinished,
            code: String::new(),
            unawaited: false,
            queued_micros: 0,
            duration_micros: 0,
            arguments_bytes: 0,
            result_bytes: 0,
        });
        Some(state.calls.len() - 1)
    }

    fn note(&self, number: usize, outcome: &Result<Output, ToolError>) {
        let mut state = self.state();
        if state.has_ended {
            return;
        }
        let call = &mut state.calls[number];
        match outcome {
            Ok(_) => call.status = CallStatus::Ok,
            Err(error) => {
                call.status = CallStatus::Failed;
                call.code.clone_from(&error.code);
            }
        }
    }

    fn measure(&self, number: usize, write: impl FnOnce(&mut CallRecord)) {
        write(&mut self.state().calls[number]);
    }

    /// What comes of a call, and in a run that is written down, when.
    async fn call(&self, number: usize, tool: &str, input: &Value) -> (Outcome, Option<u64>) {
        let arguments = match self.arguments(number, input) {
            Ok(arguments) => arguments,
            // It would be refused again.
            Err(error) => return (Err(error), None),
        };
        let Some(journal) = &self.journal else {
            return (self.make(number, tool, arguments, None).await, None);
        };
        if let Comes::Known(outcome, at_ms) = journal.comes(number, tool, &arguments).await {
            // It counts, and was judged before.
            let _ = self
                .toolbox
                .prepare(tool, &arguments, &mut self.state().count);
            return (outcome, Some(at_ms));
        }
        let made = self.make(number, tool, arguments.clone(), Some(journal));
        let outcome = made.await;
        match journal.ends(number, tool, &arguments, &outcome).await {
            Ok(at_ms) => (outcome, Some(at_ms)),
            Err(error) => (Err(error), None),
        }
    }

    fn arguments(&self, number: usize, input: &Value) -> Result<Json, ToolError> {
        let arguments = match input {
            Value::Undefined | Value::Null => Json::Object(serde_json::Map::new()),
            value => to_json(value, "input")
                .map_err(|error| ToolError::new("arguments_invalid", error.to_string()))?,
        };
        let bytes = json_bytes(&arguments);
        self.measure(number, |call| call.arguments_bytes = bytes);
        self.limits().call_arguments_bytes_max(bytes, "input")?;
        Ok(arguments)
    }

    async fn make(
        &self,
        number: usize,
        tool: &str,
        arguments: Json,
        journal: Option<&Arc<dyn Journal>>,
    ) -> Outcome {
        let prepared = self
            .toolbox
            .prepare(tool, &arguments, &mut self.state().count)?;
        let prepared = match (journal, &prepared.approval) {
            (Some(journal), Some(rule)) => {
                journal.asks(number, tool, &arguments, rule).await?;
                prepared
            }
            _ => prepared.unasked(tool)?,
        };
        let came = Instant::now();
        let turn = self.turns.acquire().await;
        let _turn = turn.map_err(|_| ToolError::new("internal", "the run is over"))?;
        self.measure(number, |call| call.queued_micros = micros_since(came));
        if let Some(journal) = journal {
            journal.begins(number, tool, &arguments).await?;
        }
        let begun = Instant::now();
        let outcome = prepared.provider.call(&prepared.tool, arguments).await;
        self.measure(number, |call| call.duration_micros = micros_since(begun));
        let output = outcome?;
        let bytes = output.bytes();
        self.measure(number, |call| call.result_bytes = bytes);
        self.limits()
            .call_result_bytes_max(bytes, &format!("the result of {tool}"))?;
        Ok(output)
    }
}

fn micros_since(instant: Instant) -> u64 {
    u64::try_from(instant.elapsed().as_micros()).unwrap_or(u64::MAX)
}
