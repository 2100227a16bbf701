//! Clients that would take the server with them if they could: by what they send, and by what they leave unread.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Gauges, Neighbour, PATIENCE, Proxy, Server, answer, client, eventually, frames, growth_at_rest,
    load, resident_bytes, resident_bytes_peak, value,
    wire::{self, Outcome, Wire},
    within,
};
use capnp_rpc::rpc_capnp as rpc;
use coracle_client::args;
use std::time::Duration;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::LocalSet,
};

const MIB: u64 = 1 << 20;

/// Answers with a mebibyte, naps, and counts.
const WORKER: &str = "much() { return 'x'.repeat(1 << 20); }
                      nap() { return new Promise(done => setTimeout(() => done('rested'), 10_000)); }
                      one() { return 1; }";

/// Little enough for one connection to make the server hold that a test can be quick.
const SETTINGS: [(&str, &str); 3] = [
    ("connection-bytes-max", "67108864"),
    ("message-bytes-max", "33554432"),
    // Replies are held back for as long as the machine needs; that must not end the calls.
    ("limit", "wall_ms_max=600000"),
];
/// What that comes to, with what allocators keep of it.
const GROWTH_BYTES_MAX: u64 = 200 * MIB;

/// A server that has served, with its memory at that moment.
async fn warm_server() -> (Server, u64) {
    let server = Server::start_with(&SETTINGS);
    let coracle = client(server.address()).await;
    let entrypoint = load(&coracle, WORKER);
    for _ in 0..5 {
        answer(&entrypoint, "much", args![]).await;
    }
    let before = resident_bytes(server.pid());
    (server, before)
}

async fn still_serves(server: &Server) {
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    let coracle = client(server.address()).await;
    assert_eq!(
        value(answer(&load(&coracle, WORKER), "one", args![]).await).as_f64(),
        Some(1.0)
    );
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn who_does_not_read_is_not_answered_without_end() {
    let (server, before) = warm_server().await;
    let proxy = Proxy::start(server.address()).await;
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(proxy.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
            within(
                PATIENCE,
                "a call",
                wire::outcome(wire::call(&entrypoint, "one")),
            )
            .await
            .unwrap();
            proxy.hold_replies();
            let neighbour = Neighbour::of(server.address()).await;
            let calls: Vec<_> = (0..300).map(|_| wire::call(&entrypoint, "much")).collect();
            let grown = growth_at_rest(&server, before).await;
            assert!(
                grown < GROWTH_BYTES_MAX,
                "the server has grown by {} MiB",
                grown / MIB
            );
            neighbour.was_served().await;

            // It waits for the client, and has not forgotten it.
            proxy.release_replies();
            let (mut answered, mut refused) = (0, 0);
            for call in calls {
                match within(PATIENCE, "an answer", wire::outcome(call)).await {
                    Ok(Outcome::Json(text)) if text.len() > MIB as usize => answered += 1,
                    Err(error) if error.kind == capnp::ErrorKind::Overloaded => refused += 1,
                    other => panic!("{other:?}"),
                }
            }
            assert!(answered > 10, "{answered} answers, {refused} refusals");
        })
        .await;
    still_serves(&server).await;
}

#[tokio::test]
async fn who_keeps_every_result_is_refused_more_and_served_again_after_letting_go() {
    let (server, before) = warm_server().await;
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
            let mut kept = Vec::new();
            let refusal = loop {
                match within(
                    PATIENCE,
                    "an answer",
                    wire::call(&entrypoint, "much").promise,
                )
                .await
                {
                    Ok(response) => kept.push(response),
                    Err(error) => break error,
                }
                assert!(
                    kept.len() < 1_000,
                    "the server keeps {} results of a mebibyte",
                    kept.len()
                );
            };
            assert_eq!(refusal.kind, capnp::ErrorKind::Overloaded, "{refusal}");
            assert!(refusal.extra.contains("connection_bytes_max"), "{refusal}");
            assert!(kept.len() > 10, "only {} results were kept", kept.len());
            let grown = resident_bytes(server.pid()).saturating_sub(before);
            assert!(
                grown < GROWTH_BYTES_MAX,
                "the server has grown by {} MiB",
                grown / MIB
            );
            drop(kept);
            eventually("there is room again", async || {
                wire::outcome(wire::call(&entrypoint, "much"))
                    .await
                    .map_err(|error| error.to_string())
            })
            .await;
        })
        .await;
    still_serves(&server).await;
}

#[tokio::test]
async fn arguments_that_wait_are_not_taken_without_end() {
    let (server, before) = warm_server().await;
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
            // All of these wait for the nap's end.
            let nap = wire::call(&entrypoint, "nap");
            let target = nap.pipeline.get_pipeline();
            let text = "x".repeat(4 << 20);
            let waiting: Vec<_> = (0..120)
                .map(|_| wire::call_with(&target, "than", &text))
                .collect();
            let grown = growth_at_rest(&server, before).await;
            assert!(
                grown < GROWTH_BYTES_MAX,
                "the server has grown by {} MiB",
                grown / MIB
            );
            drop((waiting, nap));
        })
        .await;
    still_serves(&server).await;
}

#[tokio::test]
async fn arguments_of_running_calls_are_not_taken_without_end() {
    let (server, before) = warm_server().await;
    LocalSet::new()
        .run_until(async {
            let wire = Wire::connect(server.address()).await;
            let entrypoint = wire::entrypoint(&wire::load(&wire.loader(), WORKER));
            let text = "x".repeat(4 << 20);
            let calls: Vec<_> = (0..120)
                .map(|_| wire::call_with(&entrypoint, "nap", &text))
                .collect();
            let grown = growth_at_rest(&server, before).await;
            assert!(
                grown < GROWTH_BYTES_MAX,
                "the server has grown by {} MiB",
                grown / MIB
            );
            drop(calls);
        })
        .await;
    still_serves(&server).await;
}

#[tokio::test]
async fn questions_are_not_taken_without_end() {
    let server = Server::start();
    let mut peer = TcpStream::connect(server.address()).await.unwrap();
    peer.write_all(&[frames::bootstrap(), frames::login(1, 0)].concat())
        .await
        .unwrap();
    // Each is answered and kept until it is finished, which none ever is.
    let (mut from_server, mut to_server) = peer.split();
    let ask = async {
        for question in 2..100_000_u32 {
            let bootstrap =
                frames::frame(|message| message.init_bootstrap().set_question_id(question));
            if to_server.write_all(&bootstrap).await.is_err() {
                return;
            }
        }
        std::future::pending().await
    };
    let mut told = Vec::new();
    let listen = async { drop(from_server.read_to_end(&mut told).await) };
    within(PATIENCE, "the server has enough", async {
        tokio::join!(ask, listen)
    })
    .await;
    assert!(
        String::from_utf8_lossy(&told).contains("questions_max"),
        "it was not told why"
    );
    drop(peer);
    still_serves(&server).await;
}

#[tokio::test]
async fn before_the_login_no_more_is_read_than_a_login_needs() {
    let server = Server::start();
    let before = resident_bytes(server.pid());
    let mut peers = Vec::new();
    for _ in 0..40 {
        let mut peer = TcpStream::connect(server.address()).await.unwrap();
        peer.write_all(&frames::header(&[(60 * MIB / 8) as u32]))
            .await
            .unwrap();
        // As much of it as the kernel takes, for a moment.
        let _ = tokio::time::timeout(
            Duration::from_millis(20),
            peer.write_all(&vec![0; 60 * MIB as usize]),
        )
        .await;
        peers.push(peer);
    }
    let grown = growth_at_rest(&server, before).await;
    assert!(
        grown < 60 * MIB,
        "strangers made the server grow by {} MiB",
        grown / MIB
    );
    drop(peers);
    still_serves(&server).await;
}

/// Sends it, and expects to be cut off.
async fn is_cut_off(server: &Server, what: &str, bytes: &[u8]) {
    let before = resident_bytes(server.pid());
    let mut peer = TcpStream::connect(server.address()).await.unwrap();
    let mut told = Vec::new();
    let exchange = async {
        // The connection may be closed before all is sent.
        if peer.write_all(bytes).await.is_ok() {
            let _ = peer.read_to_end(&mut told).await;
        }
    };
    within(Duration::from_secs(5), what, exchange).await;
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(
        grown < 32 * MIB,
        "{what}: the server has grown by {} MiB",
        grown / MIB
    );
}

#[tokio::test]
async fn what_is_no_message_ends_the_connection() {
    let server = Server::start();
    let million_segments = 999_999_u64.to_le_bytes();
    let many_segments = [&511_u32.to_le_bytes()[..], &[0; 4 * 513]].concat();
    for (what, bytes) in [
        ("a million segments", &million_segments[..]),
        ("four billion segments", &[0xff; 16]),
        ("512 segments", &many_segments),
        ("a message of 32 GiB", &frames::header(&[u32::MAX])),
        (
            "segments that overflow together",
            &frames::header(&[u32::MAX; 200]),
        ),
        (
            "a message over message_bytes_max",
            &frames::header(&[(65 * MIB / 8) as u32]),
        ),
        ("an empty message", &frames::header(&[0])),
        ("text", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"),
    ] {
        is_cut_off(&server, what, bytes).await;
    }
    still_serves(&server).await;
}

#[tokio::test]
async fn pointers_nested_too_deep_are_not_followed() {
    let server = Server::start();
    for depth in [65, 10_000, 1_000_000] {
        let bytes = [
            frames::bootstrap(),
            frames::login(1, 0),
            frames::join_with_pointers_nested(depth),
        ]
        .concat();
        is_cut_off(&server, &format!("pointers {depth} deep"), &bytes).await;
    }
    still_serves(&server).await;
}

#[tokio::test]
async fn lists_of_nothing_are_not_counted_out() {
    let server = Server::start();
    // A worker with eight million modules, in a few kilobytes.
    let mut load = frames::call(2, 1, &[0], frames::LOADER, 0, |params| {
        let code = params
            .init_as::<coracle_schema::loader::load_params::Builder<'_>>()
            .init_code();
        code.init_modules(1_001);
    });
    frames::claim_many_modules(&mut load, 1_001, 8_000_000);
    let bytes = [frames::bootstrap(), frames::login(1, 0), load].concat();
    let before = resident_bytes(server.pid());
    let mut peer = TcpStream::connect(server.address()).await.unwrap();
    peer.write_all(&bytes).await.unwrap();
    // It is told so, and nothing else happens to it.
    let mut told = Vec::new();
    let listen = async {
        while !String::from_utf8_lossy(&told).contains("are allowed") {
            assert!(
                peer.read_buf(&mut told).await.unwrap() > 0,
                "it was cut off"
            );
        }
    };
    within(PATIENCE, "a refusal", listen).await;
    let grown = resident_bytes_peak(server.pid()).saturating_sub(before);
    assert!(
        grown < 64 * MIB,
        "the server has grown by {} MiB",
        grown / MIB
    );
    drop(peer);
    still_serves(&server).await;
}

#[tokio::test]
async fn a_question_that_is_asked_twice_ends_the_connection() {
    let server = Server::start();
    is_cut_off(
        &server,
        "the same bootstrap twice",
        &[frames::bootstrap(), frames::bootstrap()].concat(),
    )
    .await;
    let unknown_answer = frames::frame(|message| {
        let mut answer: rpc::return_::Builder<'_> = message.init_return();
        answer.set_answer_id(77);
        answer.set_canceled(());
    });
    is_cut_off(&server, "an answer to no question", &unknown_answer).await;
    still_serves(&server).await;
}

#[tokio::test]
async fn half_a_message_is_waited_for_and_then_forgotten() {
    let server = Server::start_with(&[("login-deadline-ms", "500")]);
    let mut peer = TcpStream::connect(server.address()).await.unwrap();
    peer.write_all(&frames::bootstrap()[..11]).await.unwrap();
    server
        .settles_at(Gauges {
            connections: 1,
            ..Gauges::default()
        })
        .await;
    let mut told = Vec::new();
    let _ = within(PATIENCE, "it is closed", peer.read_to_end(&mut told)).await;
    still_serves(&server).await;
}
