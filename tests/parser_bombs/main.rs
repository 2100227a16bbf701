//! Bombs for every parser that meets a stranger's bytes in the host: what nests deeply, claims to be huge, goes on and on,
//! is made of very many parts, or ends too early.
//!
//! Ten thousand of them, the same in each run: 9,000 for the parsers that are functions, each read on a stack that is a
//! quarter of a thread's and with its memory counted, and 1,000 for the sockets of a server. `docs/parsers.md` lists the
//! parsers.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod bombs;
mod memory;
mod parsers;
#[path = "../support/mod.rs"]
mod support;

use bombs::{Kind, Random};
use parsers::{PARSERS, Parser};
use std::time::{Duration, Instant};
use support::{
    Server, answer, client, frames, growth_at_rest, load, resident_bytes, value, within,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

const BOMBS_READ: usize = 9_000;
const BOMBS_SENT: usize = 1_000;
/// A quarter of what threads have, so that recursion by the input's nesting would not go unnoticed.
const STACK_BYTES: usize = 512 << 10;
/// What reading may take besides what is in proportion to the input: tables that are made whatever it is.
const MEMORY_BYTES: usize = 2 << 20;
/// What no bomb takes on any machine, unless a parser takes the square of its length.
const TIME_MAX: Duration = Duration::from_secs(10);

/// Connections that are bombed at once. One that asks for more than strangers may is closed when its login is overdue.
const SENT_AT_ONCE_MAX: usize = 300;
const PATIENCE_SENDING: Duration = Duration::from_secs(60);
/// What a server may have kept of a thousand broken connections: the allocator's share.
const GROWTH_BYTES_MAX: u64 = 128 << 20;

/// Reads a bomb and says whether it was accepted, after having compared what it took with what it may take.
fn read(parser: &Parser, kind: Kind, bomb: &[u8]) -> bool {
    let began = Instant::now();
    let (is_accepted, taken) = memory::peak(|| (parser.read)(bomb));
    let (name, bytes, took) = (parser.name, bomb.len(), began.elapsed());
    let allowed = parser.memory_factor * bytes + MEMORY_BYTES;
    assert!(
        taken <= allowed,
        "{name}: {kind:?} of {bytes} bytes takes {taken} bytes"
    );
    assert!(
        took <= TIME_MAX,
        "{name}: {kind:?} of {bytes} bytes takes {took:?}"
    );
    is_accepted
}

/// Whatever the bytes are, no parser panics, overflows a small stack, or takes memory or time out of proportion to them.
#[test]
fn no_parser_breaks_on_a_bomb() {
    let bombs_each = BOMBS_READ.div_ceil(PARSERS.len());
    let work = move || {
        for (index, parser) in PARSERS.iter().enumerate() {
            let mut random = Random::new(index as u64);
            assert!(
                (parser.read)(parser.grammar.sample),
                "{}: what is right is accepted",
                parser.name
            );
            let mut refused = 0;
            for _ in 0..bombs_each {
                let (kind, bomb) = bombs::bomb(&parser.grammar, &mut random);
                refused += usize::from(!read(parser, kind, &bomb));
            }
            // Else the bombs are none.
            assert!(
                refused * 4 >= bombs_each,
                "{}: {refused} of {bombs_each} refused",
                parser.name
            );
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(work).unwrap().join().unwrap();
}

/// Memory follows what has come: after each claim comes half a mebibyte of each part, and less than was claimed.
#[test]
fn no_claim_is_believed() {
    for parser in &PARSERS {
        for claim in parser.grammar.claims {
            for part in parser.grammar.parts {
                let run = part.repeat((512 << 10) / part.len());
                read(parser, Kind::Claim, &[*claim, &run].concat());
            }
        }
    }
}

/// What nests is refused by depth long before the stack ends: a mebibyte of each opening.
#[test]
fn what_is_nested_without_end_is_refused() {
    let work = || {
        for parser in PARSERS.iter().filter(|parser| parser.is_depth_bounded) {
            for opening in parser.grammar.openings {
                let bomb = opening.repeat((1 << 20) / opening.len());
                assert!(!read(parser, Kind::Deep, &bomb), "{}", parser.name);
            }
        }
    };
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(work).unwrap().join().unwrap();
}

/// Sends a bomb, says that no more will come, and reads whatever is answered up to the end.
async fn send(address: String, bomb: Vec<u8>) -> std::io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    // The server may close first, and need not read all.
    let _ = stream.write_all(&bomb).await;
    let _ = stream.shutdown().await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    Ok(())
}

/// Bombs on the sockets, before a login and after, end their own connections: nothing panics, memory does not stay taken,
/// and others are served.
#[tokio::test]
async fn no_socket_breaks_on_a_bomb() {
    let server = Server::start_with(&[("login-deadline-ms", "2000")]);
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, "one() { return 1; }");
    let one = async || value(answer(&entrypoint, "one", vec![]).await).as_f64();
    assert_eq!(one().await, Some(1.0));
    let before = resident_bytes(server.pid());
    let rpc = parsers::rpc();
    let login = [frames::bootstrap(), frames::login(1, 0)].concat();
    let mut random = Random::new(1);
    let mut sent = JoinSet::new();
    for index in 0..BOMBS_SENT {
        let grammar = if index % 4 == 0 { &parsers::HTTP } else { &rpc };
        let (_, bomb) = bombs::bomb(grammar, &mut random);
        let (address, bomb) = match index % 4 {
            0 => (server.admin().to_string(), bomb),
            1 => (server.address().to_owned(), bomb),
            _ => (server.address().to_owned(), [&login[..], &bomb].concat()),
        };
        sent.spawn(send(address, bomb));
        if sent.len() >= SENT_AT_ONCE_MAX {
            within(
                PATIENCE_SENDING,
                "a bombed connection ends",
                sent.join_next(),
            )
            .await;
        }
    }
    while let Some(ended) = within(
        PATIENCE_SENDING,
        "a bombed connection ends",
        sent.join_next(),
    )
    .await
    {
        ended.unwrap().unwrap();
    }
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    let grown = growth_at_rest(&server, before).await;
    assert!(
        grown < GROWTH_BYTES_MAX,
        "the server grew by {} MiB",
        grown >> 20
    );
    assert_eq!(one().await, Some(1.0));
}
