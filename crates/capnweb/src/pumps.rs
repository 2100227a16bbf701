//! Pumps: streams that are sent to the client.
//!
//! Owns the way of bytes from their source into a pipe of the client's: one pull at a time, as many bytes unacknowledged as
//! the window allows, and the end, or the error, at last. Letting go of the source cancels it.

use crate::{
    Capability, Connection, Kind, Target, handle::Promise, limits::PULL_BYTES, promises::Waiter,
    tables::Import, text::push_bytes, write::Source,
};

/// What is pumped into one pipe.
pub(crate) struct Pump<T> {
    feed: Feed<T>,
    /// Bytes that the client has not acknowledged, and something for each write.
    in_flight: usize,
    pulling: Option<Promise>,
    /// The end was sent.
    ended: bool,
}

enum Feed<T> {
    Stream(Capability<T>),
    Bytes(Vec<u8>, usize),
}

/// What a write counts besides its bytes.
const WRITE_OVERHEAD: usize = 256;

impl<T: Target> Connection<T> {
    /// Opens a pipe at the client's.
    pub(crate) fn open_pump(&mut self, source: Source<T>) {
        let id = self.import_next;
        self.import_next += 1;
        self.imports.insert(id, Import::Pipe);
        let feed = match source {
            Source::Bytes(bytes) => Feed::Bytes(bytes, 0),
            Source::Host(target) => Feed::Stream(Capability::Host {
                target,
                kind: Kind::Source,
            }),
            Source::Peer(peer) => Feed::Stream(Capability::Peer {
                peer,
                kind: Kind::Source,
            }),
        };
        let pump = Pump {
            feed,
            in_flight: 0,
            pulling: None,
            ended: false,
        };
        self.pumps.insert(id, pump);
        self.ready.push_back(Waiter::Pump(id));
        self.send(String::from("[\"pipe\"]"));
    }

    /// Goes on with a pump as far as it goes.
    pub(crate) fn pump(&mut self, id: i64) {
        loop {
            let window = self.limits.window_bytes_max;
            let Some(pump) = self.pumps.get_mut(&id) else {
                return;
            };
            if pump.ended || pump.in_flight >= window {
                return;
            }
            let chunk = match &mut pump.feed {
                Feed::Bytes(bytes, at) => {
                    let end = bytes.len().min(*at + PULL_BYTES);
                    let chunk = bytes[*at..end].to_vec();
                    *at = end;
                    (!chunk.is_empty()).then_some(chunk)
                }
                Feed::Stream(stream) => {
                    let Some(promise) = pump.pulling.take() else {
                        let stream = stream.clone();
                        let promise = self.pull_stream(&stream);
                        self.wait(promise.number(), Waiter::Pump(id));
                        if let Some(pump) = self.pumps.get_mut(&id) {
                            pump.pulling = Some(promise);
                        }
                        return;
                    };
                    match self.settled(promise.number()) {
                        None => {
                            if let Some(pump) = self.pumps.get_mut(&id) {
                                pump.pulling = Some(promise);
                            }
                            return;
                        }
                        Some(Err(error)) => {
                            let reason = self.express_plain(&error.value);
                            return self.end_pump(id, "abort", &reason);
                        }
                        Some(Ok(parcel)) => parcel.value.as_bytes().map(<[u8]>::to_vec),
                    }
                }
            };
            match chunk {
                Some(bytes) => self.write_pump(id, &bytes),
                None => return self.end_pump(id, "close", ""),
            }
        }
    }

    fn write_pump(&mut self, id: i64, bytes: &[u8]) {
        let mut message = format!("[\"stream\",[\"pipeline\",{id},[\"write\"],[");
        push_bytes(&mut message, bytes, None);
        message.push_str("]]]");
        let counted = bytes.len() + WRITE_OVERHEAD;
        self.stream(
            message,
            Import::Write {
                pump: id,
                bytes: counted,
            },
        );
        if !self.input_ended
            && let Some(pump) = self.pumps.get_mut(&id)
        {
            pump.in_flight += counted;
        }
    }

    fn end_pump(&mut self, id: i64, method: &str, reason: &str) {
        if let Some(pump) = self.pumps.get_mut(&id) {
            pump.ended = true;
        }
        let message = format!("[\"stream\",[\"pipeline\",{id},[\"{method}\"],[{reason}]]]");
        self.stream(message, Import::End { pump: id });
        if self.input_ended {
            self.pump_over(id);
        }
    }

    /// Sends a call whose answer comes by itself; after the end of the input none does.
    fn stream(&mut self, message: String, import: Import) {
        let id = self.import_next;
        self.import_next += 1;
        if !self.input_ended {
            self.imports.insert(id, import);
        }
        self.send(message);
    }

    /// The client has taken a write, or refused it.
    pub(crate) fn pump_written(&mut self, id: i64, bytes: usize, refused: bool) {
        let Some(pump) = self.pumps.get_mut(&id) else {
            return;
        };
        pump.in_flight = pump.in_flight.saturating_sub(bytes);
        match refused {
            true => self.pump_over(id),
            false => self.ready.push_back(Waiter::Pump(id)),
        }
    }

    /// Nothing more goes into the pipe.
    pub(crate) fn pump_over(&mut self, id: i64) {
        if self.pumps.remove(&id).is_some() && self.imports.remove(&id).is_some() {
            self.send(format!("[\"release\",{id},1]"));
        }
    }

    /// Nobody acknowledges anything any more.
    pub(crate) fn forsake_pumps(&mut self) {
        let ids: Vec<i64> = self.pumps.keys().copied().collect();
        for id in ids {
            let Some(pump) = self.pumps.get_mut(&id) else {
                continue;
            };
            pump.in_flight = 0;
            match pump.ended {
                true => self.pump_over(id),
                false => self.ready.push_back(Waiter::Pump(id)),
            }
        }
    }
}
