//! Streams of the server's that the client writes to.
//!
//! Owns their order: of a stream only one call is made at a time, and the client does not wait. What fails makes all that
//! comes after it fail, so that `close()` tells whether everything was written.

use crate::{
    Connection, Target,
    parcel::Parcel,
    promises::{Queued, State, Subject},
    tables::Exported,
};
use coracle_value::Value;
use std::{collections::VecDeque, rc::Rc};

/// The calls of one stream.
pub(crate) struct Lane<T> {
    /// Whether one is being made.
    busy: bool,
    /// The promises of those that wait.
    waiting: VecDeque<u64>,
    failed: Option<Rc<Parcel<T>>>,
}

impl<T> Default for Lane<T> {
    fn default() -> Self {
        Self {
            busy: false,
            waiting: VecDeque::new(),
            failed: None,
        }
    }
}

/// What is done to a stream.
pub(crate) enum StreamCall {
    Write(Vec<u8>),
    Close,
    Abort,
}

impl StreamCall {
    /// Reads a call of `write`, `close` or `abort`; an error is a message of a `TypeError`.
    pub(crate) fn of<T>(path: &[String], args: &mut Parcel<T>) -> Result<Self, String> {
        let [method] = path else {
            return Err("A stream has only the methods write, close and abort.".into());
        };
        match method.as_str() {
            "close" => Ok(Self::Close),
            "abort" => Ok(Self::Abort),
            "write" => {
                let chunk = match &mut args.value {
                    Value::Array(args) if !args.is_empty() => args.swap_remove(0),
                    _ => Value::Undefined,
                };
                match chunk {
                    Value::TypedArray { bytes, .. }
                    | Value::ArrayBuffer(bytes)
                    | Value::DataView(bytes) => Ok(Self::Write(bytes)),
                    _ => Err("This stream takes bytes only: write a Uint8Array.".into()),
                }
            }
            method => Err(format!("Unknown WritableStream method: {method}")),
        }
    }
}

impl<T: Target> Connection<T> {
    /// A call of a stream that the client writes to, its arguments known.
    pub(crate) fn call_stream(
        &mut self,
        number: u64,
        subject: Subject<T>,
        path: Vec<String>,
        mut args: Parcel<T>,
    ) {
        let reason = match &args.value {
            Value::Array(args) => args.first().cloned().unwrap_or_default(),
            _ => Value::Undefined,
        };
        let call =
            StreamCall::of(&path, &mut args).map_err(|message| self.error("TypeError", &message));
        match subject {
            Subject::Writer(id) => match call {
                Ok(StreamCall::Write(bytes)) => self.write_pipe(id, number, bytes),
                Ok(StreamCall::Close) => self.close_pipe(id, number),
                Ok(StreamCall::Abort) => self.abort_pipe(id, number, reason),
                Err(refused) => {
                    self.fail_pipe(id, Rc::clone(&refused));
                    self.settle(number, Err(refused));
                }
            },
            Subject::Sink(id, target) => {
                let (args, refused) = match call {
                    Ok(StreamCall::Write(bytes)) => {
                        (Value::array([Value::uint8_array(bytes)]), None)
                    }
                    Ok(StreamCall::Abort) => (args.value, None),
                    Ok(StreamCall::Close) => (Value::Array(vec![]), None),
                    Err(refused) => (Value::Array(vec![]), Some(refused)),
                };
                let args = Parcel::plain(args, &self.ledger);
                let queued = Queued {
                    target,
                    path,
                    args,
                    refused,
                };
                self.call_sink(id, number, queued);
            }
            _ => {}
        }
    }

    fn lane(&mut self, export: i64) -> Option<&mut Lane<T>> {
        match self.exports.get_mut(&export) {
            Some(Exported::Sink(_, lane)) => Some(lane),
            _ => None,
        }
    }

    fn call_sink(&mut self, export: i64, number: u64, queued: Queued<T>) {
        let Some(lane) = self.lane(export) else {
            return self.reject(number, "Error", RELEASED);
        };
        if let Some(failed) = lane.failed.clone() {
            return self.settle(number, Err(failed));
        }
        if lane.busy {
            lane.waiting.push_back(number);
            return self.set(number, State::Queued(Box::new(queued)));
        }
        lane.busy = true;
        self.begin_sink(export, number, queued);
    }

    /// Makes a call whose turn it is.
    fn begin_sink(&mut self, export: i64, number: u64, queued: Queued<T>) {
        let Queued {
            target,
            path,
            args,
            refused,
        } = queued;
        match refused {
            None => self.call_host(number, target, path, Some(args), Some(export)),
            Some(refused) => {
                self.settle(number, Err(Rc::clone(&refused)));
                self.lane_free(export, Some(refused));
            }
        }
    }

    /// A call of a stream is over: the next one's turn.
    pub(crate) fn lane_free(&mut self, export: i64, failed: Option<Rc<Parcel<T>>>) {
        let Some(lane) = self.lane(export) else {
            return;
        };
        lane.busy = false;
        if failed.is_some() {
            lane.failed = failed;
        }
        loop {
            let Some(lane) = self.lane(export) else {
                return;
            };
            let Some(number) = lane.waiting.pop_front() else {
                return;
            };
            let failed = lane.failed.clone();
            let Some(node) = self.promises.get_mut(&number) else {
                continue;
            };
            let State::Queued(queued) = std::mem::replace(&mut node.state, State::Busy) else {
                continue;
            };
            if let Some(failed) = failed {
                self.settle(number, Err(failed));
                continue;
            }
            if let Some(lane) = self.lane(export) {
                lane.busy = true;
            }
            return self.begin_sink(export, number, *queued);
        }
    }

    /// The client has let go of a stream: what has not been called will not be.
    pub(crate) fn close_lane(&mut self, lane: Lane<T>) {
        for number in lane.waiting {
            self.reject(number, "Error", RELEASED);
        }
    }
}

const RELEASED: &str = "The stream was released.";
