//! A network of two, as the RPC layer wants to see it.

use crate::{
    backlog::{Backlog, Message},
    frame::{self, Segments},
    holdings::{Held, Holdings},
};
use capnp::{
    Error, any_pointer,
    capability::Promise,
    message::{self, ReaderOptions},
};
use capnp_rpc::{
    Connection, IncomingMessage, OutgoingMessage, VatNetwork, rpc_capnp, rpc_twoparty_capnp::Side,
};
use futures::{
    channel::oneshot,
    future::{FutureExt, Shared},
    io::{AsyncRead, AsyncReadExt, AsyncWrite, BufReader, ReadHalf, WriteHalf},
};
use std::{
    cell::RefCell,
    future::poll_fn,
    io,
    pin::{Pin, pin},
    rc::Rc,
    task::Poll,
    time::Duration,
};

const READ_BUFFER_BYTES: usize = 32 * 1024;
/// Pointers that a message may be nested in; ours need a dozen.
const NESTING_MAX: i32 = 64;
/// How long a peer that is being left has to take what was written.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// The client's end of a stream. A message of the server's may have so many bytes.
pub fn client_network<S>(stream: S, message_bytes_max: u64) -> Network<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    Network::new(
        stream,
        Side::Client,
        Holdings::of_trusted_peer(message_bytes_max),
    )
}

/// The server's end of a stream, which holds no more for its peer than that.
pub fn server_network<S>(stream: S, holdings: Rc<Holdings>) -> Network<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    Network::new(stream, Side::Server, holdings)
}

/// A network of two over a stream.
pub struct Network<S> {
    side: Side,
    link: Link<S>,
    /// Resolves when the connection is over.
    over: Shared<oneshot::Receiver<()>>,
}

impl<S> Network<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    fn new(stream: S, side: Side, holdings: Rc<Holdings>) -> Self {
        let (reader, writer) = stream.split();
        let (end, over) = oneshot::channel();
        let link = Link {
            side,
            reader: Rc::new(RefCell::new(Some(BufReader::with_capacity(
                READ_BUFFER_BYTES,
                reader,
            )))),
            backlog: Backlog::start(writer, Rc::clone(&holdings)),
            holdings,
            end: Rc::new(RefCell::new(Some(end))),
        };
        Self {
            side,
            link,
            over: over.shared(),
        }
    }
}

impl<S> VatNetwork<Side> for Network<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    fn connect(&mut self, host: Side) -> Option<Box<dyn Connection<Side>>> {
        (host != self.side).then(|| Box::new(self.link.clone()) as Box<dyn Connection<Side>>)
    }

    fn accept(&mut self) -> Promise<Box<dyn Connection<Side>>, Error> {
        // The client's connection is made by `connect`.
        match self.side {
            Side::Server => Promise::ok(Box::new(self.link.clone())),
            Side::Client => Promise::from_future(std::future::pending()),
        }
    }

    fn drive_until_shutdown(&mut self) -> Promise<(), Error> {
        let over = self.over.clone();
        Promise::from_future(async move {
            // Gone without a word is over, too.
            let _ = over.await;
            Ok(())
        })
    }
}

type Reader<S> = BufReader<ReadHalf<S>>;

struct Link<S> {
    side: Side,
    /// `None` while a message is being read, and for good after one that could not be.
    reader: Rc<RefCell<Option<Reader<S>>>>,
    backlog: Rc<RefCell<Backlog<WriteHalf<S>>>>,
    holdings: Rc<Holdings>,
    end: Rc<RefCell<Option<oneshot::Sender<()>>>>,
}

impl<S> Clone for Link<S> {
    fn clone(&self) -> Self {
        Self {
            side: self.side,
            reader: Rc::clone(&self.reader),
            backlog: Rc::clone(&self.backlog),
            holdings: Rc::clone(&self.holdings),
            end: Rc::clone(&self.end),
        }
    }
}

impl<S> Connection<Side> for Link<S>
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
{
    fn get_peer_vat_id(&self) -> Side {
        match self.side {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        }
    }

    fn new_outgoing_message(&mut self, first_segment_words: u32) -> Box<dyn OutgoingMessage> {
        let allocator = message::HeapAllocator::new().first_segment_words(first_segment_words);
        Box::new(Outgoing {
            message: Message::new(allocator),
            backlog: Rc::clone(&self.backlog),
            holdings: Rc::clone(&self.holdings),
        })
    }

    fn receive_incoming_message(&mut self) -> Promise<Option<Box<dyn IncomingMessage>>, Error> {
        let Some(mut reader) = self.reader.borrow_mut().take() else {
            return Promise::err(Error::failed("the stream is not read any more".into()));
        };
        let (slot, holdings, backlog) = (
            Rc::clone(&self.reader),
            Rc::clone(&self.holdings),
            Rc::clone(&self.backlog),
        );
        let takes_resolutions = self.side == Side::Client;
        Promise::from_future(async move {
            let incoming = loop {
                let receive = pin!(receive(&mut reader, &holdings));
                match unless_failed(receive, &holdings, &backlog).await? {
                    Some(incoming) if !takes_resolutions && incoming.is_resolution() => {
                        let answer = incoming.unimplemented()?;
                        backlog.borrow_mut().push(&answer, None)?;
                    }
                    incoming => break incoming,
                }
            };
            *slot.borrow_mut() = Some(reader);
            Ok(incoming.map(|incoming| Box::new(incoming) as Box<dyn IncomingMessage>))
        })
    }

    fn shutdown(&mut self, _result: Result<(), Error>) -> Promise<(), Error> {
        let (backlog, end) = (Rc::clone(&self.backlog), Rc::clone(&self.end));
        Promise::from_future(async move {
            let closed = poll_fn(|context| backlog.borrow_mut().poll_close(context));
            // Where the thread itself ends, there is no clock any more, and nobody to wait.
            let outcome = match tokio::runtime::Handle::try_current() {
                Ok(_) => tokio::time::timeout(CLOSE_TIME_MAX, closed).await,
                Err(_) => Ok(Err(io::ErrorKind::ConnectionAborted.into())),
            };
            drop(end.borrow_mut().take());
            match outcome {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(Error::disconnected(error.to_string())),
                Err(_) => Err(Error::disconnected(
                    "the peer did not take what was written".into(),
                )),
            }
        })
    }
}

/// Waits for a message, but not from a peer that is gone for what is written to it.
async fn unless_failed<W: AsyncWrite + Unpin + 'static>(
    mut receive: Pin<&mut impl Future<Output = Result<Option<Incoming>, Error>>>,
    holdings: &Holdings,
    backlog: &RefCell<Backlog<W>>,
) -> Result<Option<Incoming>, Error> {
    poll_fn(|context| {
        if backlog.borrow().has_failed() {
            return Poll::Ready(Err(Error::disconnected(
                "the peer does not take what is written to it".into(),
            )));
        }
        holdings.set_reader(context);
        receive.as_mut().poll(context)
    })
    .await
}

async fn receive<S>(
    reader: &mut Reader<S>,
    holdings: &Rc<Holdings>,
) -> Result<Option<Incoming>, Error>
where
    S: AsyncRead + Unpin,
{
    let bytes_max = holdings.bounds().message_bytes_max;
    let Some(head) = frame::read_head(reader, bytes_max).await? else {
        return Ok(None);
    };
    let bytes = head.bytes();
    poll_fn(|_| {
        if holdings.has_room(bytes) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    let held = holdings.hold_message(bytes);
    let segments = frame::read_segments(reader, head).await?;
    let mut options = ReaderOptions::new();
    options.traversal_limit_in_words(Some(usize::try_from(bytes_max / 8).unwrap_or(usize::MAX)));
    options.nesting_limit(NESTING_MAX);
    let incoming = Incoming {
        message: message::Reader::new(segments, options),
        _held: held,
    };
    note_question(&incoming, holdings)?;
    Ok(Some(incoming))
}

/// Counts the peer's questions. What is malformed is left to the RPC layer to complain about.
fn note_question(incoming: &Incoming, holdings: &Holdings) -> Result<(), Error> {
    use rpc_capnp::message::Which;
    let Ok(message) = incoming
        .message
        .get_root::<rpc_capnp::message::Reader<'_>>()
    else {
        return Ok(());
    };
    let asked = match message.which() {
        Ok(Which::Bootstrap(Ok(bootstrap))) => holdings.asked(bootstrap.get_question_id(), None),
        Ok(Which::Call(Ok(call))) => holdings.asked(call.get_question_id(), asked_ahead(call)),
        Ok(Which::Finish(Ok(finish))) => {
            holdings.finished(finish.get_question_id());
            Ok(())
        }
        _ => Ok(()),
    };
    asked.map_err(|too_many| Error::overloaded(format!("overloaded: {too_many}")))
}

/// The question whose answer a call is sent to.
fn asked_ahead(call: rpc_capnp::call::Reader<'_>) -> Option<u32> {
    match call.get_target().ok()?.which() {
        Ok(rpc_capnp::message_target::PromisedAnswer(Ok(answer))) => Some(answer.get_question_id()),
        _ => None,
    }
}

struct Incoming {
    message: message::Reader<Segments>,
    _held: Held,
}

impl Incoming {
    /// Whether it says what a promise of the peer's has become.
    ///
    /// A server that takes no capabilities has no use for that. And the RPC layer believes it: promises that become each
    /// other are kept for ever, and the connection with them.
    fn is_resolution(&self) -> bool {
        let message = self.message.get_root::<rpc_capnp::message::Reader<'_>>();
        message.is_ok_and(|message| {
            matches!(message.which(), Ok(rpc_capnp::message::Which::Resolve(_)))
        })
    }

    /// The answer to a message that is not understood, upon which the peer lets go of what is in it.
    fn unimplemented(&self) -> Result<Message, Error> {
        let mut answer = Message::new(message::HeapAllocator::new());
        answer
            .init_root::<rpc_capnp::message::Builder<'_>>()
            .set_unimplemented(self.message.get_root()?)?;
        Ok(answer)
    }
}

impl IncomingMessage for Incoming {
    fn get_body(&self) -> Result<any_pointer::Reader<'_>, Error> {
        self.message.get_root()
    }
}

struct Outgoing<W> {
    message: Message,
    backlog: Rc<RefCell<Backlog<W>>>,
    holdings: Rc<Holdings>,
}

impl<W: AsyncWrite + Unpin + 'static> OutgoingMessage for Outgoing<W> {
    fn get_body(&mut self) -> Result<any_pointer::Builder<'_>, Error> {
        self.message.get_root()
    }

    fn get_body_as_reader(&self) -> Result<any_pointer::Reader<'_>, Error> {
        self.message.get_root_as_reader()
    }

    fn send(self: Box<Self>) -> (Promise<(), Error>, Rc<Message>) {
        let answers = answered_question(&self.message);
        if let Some(question) = answers {
            self.holdings
                .answered(question, self.size_in_words() as u64 * 8);
        }
        let pushed = self.backlog.borrow_mut().push(&self.message, answers);
        let promise = match pushed {
            Ok(()) => Promise::ok(()),
            Err(error) => Promise::err(Error::disconnected(error.to_string())),
        };
        (promise, Rc::new(self.message))
    }

    fn take(self: Box<Self>) -> Message {
        self.message
    }

    fn size_in_words(&self) -> usize {
        self.message.size_in_words()
    }
}

fn answered_question(message: &Message) -> Option<u32> {
    let message: rpc_capnp::message::Reader<'_> = message.get_root_as_reader().ok()?;
    match message.which() {
        Ok(rpc_capnp::message::Return(Ok(answer))) => Some(answer.get_answer_id()),
        _ => None,
    }
}
