//! Pipes: streams that the client sends.
//!
//! Owns the bytes between the client's writes and the reader's pulls. A write is acknowledged when its bytes have been
//! read, so the client's window is what waits here; a client that keeps none is stopped at a bound.

use crate::{
    Capability, Connection, Kind, Peer, Target,
    error::Violation,
    handle::{Charge, Kept},
    limits::PULL_BYTES,
    parcel::Parcel,
    promises::State,
    tables::Exported,
};
use coracle_value::Value;
use std::{collections::VecDeque, rc::Rc};

/// A pipe, from the message that opens it until both ends are gone.
pub(crate) struct Pipe<T> {
    chunks: VecDeque<Chunk>,
    buffered: usize,
    /// Who waits for bytes, and for how many at most.
    puller: Option<(u64, usize)>,
    end: Option<End<T>>,
    reader: Reader,
    writer_gone: bool,
}

struct Chunk {
    bytes: Vec<u8>,
    read: usize,
    /// The write's promise.
    written: u64,
    _charge: Charge,
}

enum End<T> {
    /// With the promise of the `close()`, until all has been read.
    Closed(Option<u64>),
    Failed(Rc<Parcel<T>>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// Its `readable` has not come.
    Unknown,
    Held,
    Gone,
}

impl<T: Target> Connection<T> {
    /// `pipe`.
    pub(crate) fn pipe(&mut self) -> Result<(), Violation> {
        let id = self.pushed(Exported::Writer)?;
        let pipe = Pipe {
            chunks: VecDeque::new(),
            buffered: 0,
            puller: None,
            end: None,
            reader: Reader::Unknown,
            writer_gone: false,
        };
        self.pipes.insert(id, pipe);
        Ok(())
    }

    /// The readable end, which can be had once.
    pub(crate) fn readable(&mut self, id: i64) -> Result<Capability<T>, Violation> {
        match self.pipes.get_mut(&id) {
            Some(pipe) if pipe.reader == Reader::Unknown => pipe.reader = Reader::Held,
            _ => return Err(Violation::PipeUnknown { id }),
        }
        let peer = Peer(self.ledger.handle(Kept::Pipe(id)));
        Ok(Capability::Peer {
            peer,
            kind: Kind::Source,
        })
    }

    pub(crate) fn write_pipe(&mut self, id: i64, number: u64, bytes: Vec<u8>) {
        let bytes_max = self.limits.pipe_bytes_max;
        let charge = self.ledger.charge(bytes.len());
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return self.reject(number, "TypeError", CANCELLED);
        };
        if pipe.reader == Reader::Gone {
            return self.reject(number, "TypeError", CANCELLED);
        }
        match &pipe.end {
            Some(End::Failed(failed)) => {
                let failed = Rc::clone(failed);
                return self.settle(number, Err(failed));
            }
            Some(End::Closed(_)) => {
                return self.reject(number, "TypeError", "The stream is closed.");
            }
            None => {}
        }
        if bytes.is_empty() {
            return self.done(number);
        }
        if pipe.buffered + bytes.len() > bytes_max {
            let message = format!(
                "more than {bytes_max} bytes of the stream wait to be read (pipe_bytes_max)"
            );
            let failed = self.error("RangeError", &message);
            self.settle(number, Err(Rc::clone(&failed)));
            return self.fail_pipe(id, failed);
        }
        pipe.buffered += bytes.len();
        pipe.chunks.push_back(Chunk {
            bytes,
            read: 0,
            written: number,
            _charge: charge,
        });
        self.set(number, State::Written);
        self.feed(id);
    }

    pub(crate) fn close_pipe(&mut self, id: i64, number: u64) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return self.reject(number, "TypeError", CANCELLED);
        };
        match &pipe.end {
            Some(End::Failed(failed)) => {
                let failed = Rc::clone(failed);
                return self.settle(number, Err(failed));
            }
            Some(End::Closed(_)) => {
                return self.reject(number, "TypeError", "The stream is closed.");
            }
            None if pipe.reader == Reader::Gone => {
                return self.reject(number, "TypeError", CANCELLED);
            }
            None => {}
        }
        pipe.end = Some(End::Closed(Some(number)));
        self.set(number, State::Written);
        self.feed(id);
    }

    pub(crate) fn abort_pipe(&mut self, id: i64, number: u64, reason: Value) {
        let failed = self.parcel(match reason {
            Value::External(_) => Value::Undefined,
            reason => reason,
        });
        self.fail_pipe(id, failed);
        self.done(number);
    }

    /// The client has released the writable end.
    pub(crate) fn drop_writer(&mut self, id: i64) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        pipe.writer_gone = true;
        if pipe.end.is_none() {
            let failed = self.error(
                "Error",
                "WritableStream RPC stub was disposed without calling close()",
            );
            self.fail_pipe(id, failed);
        }
        self.forget_pipe(id);
    }

    /// Nobody holds the readable end any more.
    pub(crate) fn drop_reader(&mut self, id: i64) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        pipe.reader = Reader::Gone;
        let closing = match &mut pipe.end {
            Some(End::Closed(closing)) => closing.take(),
            _ => None,
        };
        let unread = std::mem::take(&mut pipe.chunks);
        pipe.buffered = 0;
        for number in unread.iter().map(|chunk| chunk.written).chain(closing) {
            self.reject(number, "TypeError", CANCELLED);
        }
        self.forget_pipe(id);
    }

    fn forget_pipe(&mut self, id: i64) {
        if let Some(pipe) = self.pipes.get(&id)
            && pipe.writer_gone
            && pipe.reader != Reader::Held
        {
            self.pipes.remove(&id);
        }
    }

    /// A pull whose promise nobody holds any more.
    pub(crate) fn forget_pull(&mut self, id: i64, number: u64) {
        if let Some(pipe) = self.pipes.get_mut(&id)
            && pipe.puller.is_some_and(|(puller, _)| puller == number)
        {
            pipe.puller = None;
        }
    }

    /// A call of the readable end, as of any source: `pull` and `cancel`.
    pub(crate) fn call_pipe(
        &mut self,
        id: i64,
        number: u64,
        path: &[String],
        args: Option<Parcel<T>>,
    ) {
        let [method] = path else {
            return self.reject(
                number,
                "TypeError",
                "A stream has only the methods pull and cancel.",
            );
        };
        match method.as_str() {
            "pull" => {
                let asked = args.as_ref().and_then(|args| args.value.index(0)?.as_f64());
                let bytes_max = asked.map_or(PULL_BYTES, |bytes| bytes as usize);
                self.pull_pipe(id, number, bytes_max.max(1));
            }
            "cancel" => {
                self.drop_reader(id);
                self.done(number);
            }
            _ => self.reject(
                number,
                "TypeError",
                "A stream has only the methods pull and cancel.",
            ),
        }
    }

    pub(crate) fn pull_pipe(&mut self, id: i64, number: u64, bytes_max: usize) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return self.reject(number, "TypeError", CANCELLED);
        };
        if pipe.reader == Reader::Gone {
            return self.reject(number, "TypeError", CANCELLED);
        }
        if pipe.puller.is_some() {
            return self.reject(number, "TypeError", "The stream is being read already.");
        }
        pipe.puller = Some((number, bytes_max));
        self.set(number, State::Pull(id));
        self.feed(id);
    }

    /// Hands bytes, or the end, to who waits for them.
    fn feed(&mut self, id: i64) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        if let Some((number, bytes_max)) = pipe.puller {
            if let Some(chunk) = pipe.chunks.front_mut() {
                let end = chunk.read.saturating_add(bytes_max).min(chunk.bytes.len());
                let bytes = chunk.bytes[chunk.read..end].to_vec();
                chunk.read = end;
                pipe.buffered -= bytes.len();
                pipe.puller = None;
                let written = chunk.written;
                let is_read = end == chunk.bytes.len();
                if is_read {
                    pipe.chunks.pop_front();
                    self.done(written);
                }
                let bytes = self.parcel(Value::uint8_array(bytes));
                self.settle(number, Ok(bytes));
            } else if let Some(end) = &pipe.end {
                let outcome = match end {
                    End::Closed(_) => Ok(()),
                    End::Failed(failed) => Err(Rc::clone(failed)),
                };
                pipe.puller = None;
                match outcome {
                    Ok(()) => self.done(number),
                    Err(failed) => self.settle(number, Err(failed)),
                }
            }
        }
        if let Some(pipe) = self.pipes.get_mut(&id)
            && pipe.chunks.is_empty()
            && let Some(End::Closed(closing)) = &mut pipe.end
            && let Some(number) = closing.take()
        {
            self.done(number);
        }
    }

    pub(crate) fn fail_pipe(&mut self, id: i64, failed: Rc<Parcel<T>>) {
        let Some(pipe) = self.pipes.get_mut(&id) else {
            return;
        };
        let closing = match &mut pipe.end {
            Some(End::Closed(closing)) => closing.take(),
            _ => None,
        };
        pipe.end = Some(End::Failed(Rc::clone(&failed)));
        pipe.buffered = 0;
        let unread = std::mem::take(&mut pipe.chunks);
        for number in unread.iter().map(|chunk| chunk.written).chain(closing) {
            self.settle(number, Err(Rc::clone(&failed)));
        }
        self.feed(id);
    }

    /// What has not ended will not.
    pub(crate) fn forsake_pipes(&mut self) {
        let open: Vec<i64> = self
            .pipes
            .iter()
            .filter_map(|(id, pipe)| pipe.end.is_none().then_some(*id))
            .collect();
        for id in open {
            let failed = self.error("Error", crate::tables::BATCH_ENDED);
            self.fail_pipe(id, failed);
        }
    }

    /// Settles with undefined.
    pub(crate) fn done(&mut self, number: u64) {
        let undefined = self.parcel(Value::Undefined);
        self.settle(number, Ok(undefined));
    }
}

const CANCELLED: &str = "The stream was cancelled.";
