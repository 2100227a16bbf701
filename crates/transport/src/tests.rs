//! A connection's end, against a peer that misbehaves.

use crate::{
    backlog::{Backlog, Message},
    frame,
    holdings::{Bounds, Everyone, Full, Holdings},
    server_network,
};
use capnp::message;
use capnp_rpc::{Connection, VatNetwork, rpc_capnp as rpc, rpc_twoparty_capnp::Side};
use futures::{AsyncReadExt as _, AsyncWriteExt as _, future::poll_fn};
use std::{cell::Cell, rc::Rc, sync::Arc, time::Duration};
use tokio_util::compat::TokioAsyncReadCompatExt;

const BOUNDS: Bounds = Bounds {
    message_bytes_max: 1 << 20,
    connection_bytes_max: 4 << 20,
    questions_max: 10,
};

fn local<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    tokio::task::LocalSet::new().block_on(&runtime, test)
}

async fn within<F: Future>(what: &str, step: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(10), step)
        .await
        .unwrap_or_else(|_| panic!("{what}: not in time"))
}

/// A message with a text of that many bytes in it.
fn message_of(bytes: usize) -> Message {
    let mut message = Message::new(message::HeapAllocator::new());
    message
        .init_root::<rpc::message::Builder<'_>>()
        .init_abort()
        .set_reason("x".repeat(bytes));
    message
}

fn framed(message: &Message) -> Vec<u8> {
    capnp::serialize::write_message_to_words(message)
}

fn question(id: u32) -> Vec<u8> {
    let mut message = Message::new(message::HeapAllocator::new());
    message
        .init_root::<rpc::message::Builder<'_>>()
        .init_bootstrap()
        .set_question_id(id);
    framed(&message)
}

fn finish(id: u32) -> Vec<u8> {
    let mut message = Message::new(message::HeapAllocator::new());
    message
        .init_root::<rpc::message::Builder<'_>>()
        .init_finish()
        .set_question_id(id);
    framed(&message)
}

struct Ends {
    server: Box<dyn Connection<Side>>,
    /// As long as it lives, so does the connection.
    _network: Box<dyn VatNetwork<Side>>,
    holdings: Rc<Holdings>,
    everyone: Arc<Everyone>,
    client: tokio_util::compat::Compat<tokio::io::DuplexStream>,
}

async fn ends() -> Ends {
    let (near, far) = tokio::io::duplex(64 * 1024);
    let everyone = Everyone::new(1 << 30);
    let holdings = Holdings::new(BOUNDS, &everyone);
    let mut network = Box::new(server_network(near.compat(), Rc::clone(&holdings)));
    let server = network.accept().await.expect("one connection");
    Ends {
        server,
        _network: network,
        holdings,
        everyone,
        client: far.compat(),
    }
}

impl Ends {
    fn reply(&mut self, to_question: u32, bytes: usize) {
        let mut message = self.server.new_outgoing_message(8);
        let body = message
            .get_body()
            .expect("a body")
            .init_as::<rpc::message::Builder<'_>>();
        let mut answer = body.init_return();
        answer.set_answer_id(to_question);
        answer.init_exception().set_reason("x".repeat(bytes));
        let _ = message.send();
    }
}

#[test]
fn many_small_messages_leave_together_and_in_order() {
    local(async {
        let (near, far) = tokio::io::duplex(64 * 1024);
        let backlog = Backlog::start(near.compat(), Holdings::of_trusted_peer(1 << 20));
        let mut sent = Vec::new();
        for bytes in [1, 100, 70_000, 3, 200_000, 10] {
            let message = message_of(bytes);
            sent.extend(framed(&message));
            backlog.borrow_mut().push(&message, None).expect("taken");
        }
        let mut read = vec![0; sent.len()];
        within("all of it", far.compat().read_exact(&mut read))
            .await
            .expect("all of it");
        assert!(read == sent);
    });
}

/// A peer that has sent a call on ahead to an answer waits for what that comes to: both are one write. An answer that it
/// has sent nothing ahead to is written at once, and the other one a moment later where nothing comes.
#[test]
fn an_answer_that_nobody_waits_for_goes_with_what_comes_next() {
    let writes = |ahead: Option<u32>, then: bool| {
        local(async move {
            let (near, mut far) = tokio::io::duplex(64 * 1024);
            let holdings = Holdings::new(BOUNDS, &Everyone::new(1 << 30));
            holdings.asked(1, None).expect("few");
            holdings.asked(2, ahead).expect("few");
            let backlog = Backlog::start(near.compat(), holdings);
            let message = message_of(8);
            tokio::time::pause();
            let began = tokio::time::Instant::now();
            backlog.borrow_mut().push(&message, Some(1)).expect("taken");
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            if then {
                backlog.borrow_mut().push(&message, Some(2)).expect("taken");
            }
            let mut read = vec![0; 4 * framed(&message).len()];
            let count = tokio::io::AsyncReadExt::read(&mut far, &mut read).await;
            let messages = count.expect("readable") / framed(&message).len();
            (messages, began.elapsed())
        })
    };
    assert_eq!(writes(None, true), (1, Duration::ZERO));
    assert_eq!(writes(Some(1), true), (2, Duration::ZERO));
    let (messages, waited) = writes(Some(1), false);
    assert_eq!(messages, 1);
    assert!(!waited.is_zero() && waited <= Duration::from_millis(2));
}

#[test]
fn closing_writes_the_rest_first() {
    local(async {
        let (near, far) = tokio::io::duplex(1024);
        let backlog = Backlog::start(near.compat(), Holdings::of_trusted_peer(1 << 20));
        let message = message_of(50_000);
        backlog.borrow_mut().push(&message, None).expect("taken");
        let reading = tokio::task::spawn_local(async move {
            let mut all = Vec::new();
            far.compat()
                .read_to_end(&mut all)
                .await
                .expect("closed properly");
            all
        });
        within(
            "closing",
            poll_fn(|context| backlog.borrow_mut().poll_close(context)),
        )
        .await
        .expect("closed");
        assert!(reading.await.expect("no panic") == framed(&message));
    });
}

#[test]
fn a_peer_that_takes_nothing_is_not_read_from_until_it_does() {
    local(async {
        let mut ends = ends().await;
        ends.holdings.introduce();
        ends.reply(0, 600_000);
        ends.client.write_all(&question(1)).await.expect("room");
        let mut receive = ends.server.receive_incoming_message();
        let refused = tokio::time::timeout(Duration::from_millis(20), &mut receive).await;
        assert!(refused.is_err(), "read although the peer takes nothing");
        assert!(ends.holdings.check().is_ok());
        let mut taken = vec![0; 600_000];
        within("the reply", ends.client.read_exact(&mut taken))
            .await
            .expect("the reply");
        assert!(
            within("the question", receive)
                .await
                .expect("a message")
                .is_some()
        );
    });
}

#[test]
fn a_peer_that_can_not_be_written_to_is_gone() {
    local(async {
        let mut ends = ends().await;
        let receive = ends.server.receive_incoming_message();
        ends.reply(0, 100_000);
        drop(ends.client);
        let error = within("the end", receive).await.err();
        assert!(error.is_none_or(|error| error.kind == capnp::ErrorKind::Disconnected));
    });
}

#[test]
fn a_stranger_may_say_who_they_are_and_no_more() {
    local(async {
        let mut ends = ends().await;
        ends.client.write_all(&question(1)).await.expect("room");
        assert!(
            within("a login", ends.server.receive_incoming_message())
                .await
                .expect("a message")
                .is_some()
        );
        let large = framed(&message_of(100_000));
        let writing = async { ends.client.write_all(&large).await };
        let mut receive = ends.server.receive_incoming_message();
        let early = async {
            tokio::time::timeout(Duration::from_millis(20), &mut receive)
                .await
                .is_err()
        };
        let (written, waits) = futures::join!(
            tokio::time::timeout(Duration::from_millis(40), writing),
            early
        );
        assert!(
            written.is_err() && waits,
            "a stranger's large message was read"
        );
        ends.holdings.introduce();
        // What was not written before is missing, so the message can't come to an end; but it is read now.
        let rest = vec![0; 100_000];
        let _ = futures::join!(
            tokio::time::timeout(Duration::from_millis(200), ends.client.write_all(&rest)),
            tokio::time::timeout(Duration::from_millis(200), receive),
        );
        assert!(ends.holdings.check().is_ok());
    });
}

#[test]
fn messages_that_wait_bound_what_is_read() {
    local(async {
        let mut ends = ends().await;
        ends.holdings.introduce();
        let message = framed(&message_of(400_000));
        let mut client = ends.client;
        let writing = tokio::task::spawn_local(async move {
            for _ in 0..3 {
                client.write_all(&message).await.expect("taken at last");
            }
            client
        });
        let mut waiting = Vec::new();
        for _ in 0..2 {
            waiting.push(
                within("a message", ends.server.receive_incoming_message())
                    .await
                    .expect("a message"),
            );
        }
        let mut third = ends.server.receive_incoming_message();
        assert!(
            tokio::time::timeout(Duration::from_millis(20), &mut third)
                .await
                .is_err(),
            "that is too much"
        );
        waiting.pop();
        assert!(
            within("the third", third)
                .await
                .expect("a message")
                .is_some()
        );
        drop(writing.await);
    });
}

#[test]
fn a_peer_that_finishes_no_question_is_cut_off() {
    local(async {
        let mut ends = ends().await;
        for id in 0..100 {
            ends.client.write_all(&question(id)).await.expect("room");
            ends.client.write_all(&finish(id)).await.expect("room");
            for _ in 0..2 {
                assert!(
                    within("a message", ends.server.receive_incoming_message())
                        .await
                        .expect("a message")
                        .is_some()
                );
            }
        }
        for id in 0..11 {
            ends.client.write_all(&question(id)).await.expect("room");
        }
        for _ in 0..10 {
            assert!(
                within("a message", ends.server.receive_incoming_message())
                    .await
                    .expect("a message")
                    .is_some()
            );
        }
        let error = within("the end", ends.server.receive_incoming_message())
            .await
            .err()
            .expect("one too many");
        assert_eq!(error.kind, capnp::ErrorKind::Overloaded, "{error}");
    });
}

#[test]
fn what_has_become_of_a_peers_promises_is_not_taken_in() {
    local(async {
        let mut ends = ends().await;
        let mut message = Message::new(message::HeapAllocator::new());
        let mut resolve = message
            .init_root::<rpc::message::Builder<'_>>()
            .init_resolve();
        resolve.set_promise_id(3);
        resolve.init_cap().set_sender_promise(3);
        let resolve = framed(&message);
        ends.client
            .write_all(&[resolve, question(1)].concat())
            .await
            .expect("room");
        let received = within("the question", ends.server.receive_incoming_message())
            .await
            .expect("a message");
        let root = received.expect("a message");
        let root = root
            .get_body()
            .expect("a body")
            .get_as::<rpc::message::Reader<'_>>()
            .expect("a message");
        assert!(matches!(root.which(), Ok(rpc::message::Bootstrap(_))));
        let head = within("an answer", frame::read_head(&mut ends.client, 1 << 20))
            .await
            .expect("a head")
            .expect("one");
        let answer = within("an answer", frame::read_segments(&mut ends.client, head))
            .await
            .expect("all of it");
        let answer = message::Reader::new(answer, message::ReaderOptions::new());
        let answer = answer
            .get_root::<rpc::message::Reader<'_>>()
            .expect("a message");
        assert!(matches!(answer.which(), Ok(rpc::message::Unimplemented(_))));
    });
}

#[test]
fn answers_take_room_until_they_are_taken_and_finished() {
    local(async {
        let mut ends = ends().await;
        ends.holdings.introduce();
        ends.client.write_all(&question(7)).await.expect("room");
        drop(within("a message", ends.server.receive_incoming_message()).await);
        assert_eq!(ends.everyone.bytes(), 0);

        ends.reply(7, 3 << 20);
        assert_eq!(
            ends.holdings.check(),
            Err(Full::Connection {
                limit: BOUNDS.connection_bytes_max
            })
        );
        let mut taken = vec![0; 3 << 20];
        within("the answer", ends.client.read_exact(&mut taken))
            .await
            .expect("the answer");
        assert!(ends.everyone.bytes() > 3 << 20);
        assert!(ends.holdings.check().is_ok());

        ends.client.write_all(&finish(7)).await.expect("room");
        drop(within("a message", ends.server.receive_incoming_message()).await);
        assert!(
            ends.everyone.bytes() < 1000,
            "{} bytes are still held",
            ends.everyone.bytes()
        );
    });
}

#[test]
fn what_is_left_of_a_connection_is_given_back() {
    local(async {
        let mut ends = ends().await;
        ends.holdings.introduce();
        ends.client.write_all(&question(7)).await.expect("room");
        drop(within("a message", ends.server.receive_incoming_message()).await);
        ends.reply(7, 100_000);
        let held = ends.holdings.hold(1_000).expect("room");
        assert!(ends.everyone.bytes() > 200_000);
        let everyone = Arc::clone(&ends.everyone);
        drop((ends, held));
        // The task that writes sees it at its next turn.
        tokio::task::yield_now().await;
        assert_eq!(everyone.bytes(), 0);
    });
}

#[test]
fn all_connections_together_have_a_bound_too() {
    let everyone = Everyone::new(1_000);
    let (one, other) = (
        Holdings::new(BOUNDS, &everyone),
        Holdings::new(BOUNDS, &everyone),
    );
    let held = one.hold(1_000).expect("room");
    assert!(matches!(
        other.hold(1),
        Err(Full::Everyone { limit: 1_000 })
    ));
    drop(held);
    assert!(other.hold(1).is_ok());
}

/// A reader that counts what is asked of it.
struct Endless<'a>(&'a Cell<usize>);

impl futures::AsyncRead for Endless<'_> {
    fn poll_read(
        self: std::pin::Pin<&mut Self>,
        _context: &mut std::task::Context<'_>,
        buffer: &mut [u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        self.0.set(self.0.get() + buffer.len());
        buffer.fill(0);
        std::task::Poll::Ready(Ok(buffer.len()))
    }
}

#[test]
fn heads_that_announce_too_much_are_refused_before_anything_is_read() {
    local(async {
        let words = |words: &[u32]| {
            words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        for (head, told) in [
            (words(&[999_999, 0]), "1000000 segments"),
            (words(&[u32::MAX, u32::MAX]), "4294967296 segments"),
            (words(&[511, 0]), "512 segments"),
            (words(&[0, u32::MAX]), "larger than 1048576 bytes"),
            (words(&[0, (1 << 17) + 1]), "larger than 1048576 bytes"),
            (
                words(&[3, 1 << 16, 1 << 16, 1, 0, 0]),
                "larger than 1048576 bytes",
            ),
        ] {
            let error = frame::read_head(&mut &head[..], 1 << 20)
                .await
                .err()
                .expect("refused");
            assert!(error.extra.contains(told), "{error}");
        }
        let fits = frame::read_head(&mut &words(&[0, 1 << 17])[..], 1 << 20)
            .await
            .expect("fits")
            .expect("a head");
        assert_eq!(fits.bytes(), 1 << 20);
        let read = Cell::new(0);
        assert!(
            frame::read_segments(&mut Endless(&read), fits)
                .await
                .is_ok()
        );
        assert_eq!(read.get(), 1 << 20);
    });
}

#[test]
fn a_stream_that_ends_between_messages_has_ended_and_one_that_ends_within_is_broken() {
    local(async {
        assert!(
            frame::read_head(&mut &[][..], 1 << 20)
                .await
                .expect("no error")
                .is_none()
        );
        let message = framed(&message_of(10));
        for length in 1..message.len() {
            let mut stream = &message[..length];
            let read = async {
                let head = frame::read_head(&mut stream, 1 << 20).await?.expect("some");
                frame::read_segments(&mut stream, head).await
            };
            assert!(read.await.is_err(), "{length} of {} bytes", message.len());
        }
    });
}

/// Wherever in a message a connection ends, it is lost, and the message is not blamed.
#[test]
fn a_message_that_is_cut_off_is_a_lost_connection() {
    local(async {
        let whole = framed(&message_of(100));
        for length in 1..whole.len() {
            let mut bytes = &whole[..length];
            let read = async {
                let head = frame::read_head(&mut bytes, 1 << 20).await?;
                frame::read_segments(&mut bytes, head.expect("it has begun")).await
            };
            let error = read.await.err().expect("it is cut off");
            assert_eq!(
                error.kind,
                capnp::ErrorKind::Disconnected,
                "{length}: {error}"
            );
        }
    });
}
