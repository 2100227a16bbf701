//! Code that would take the machine with it if it could, each piece with a neighbour who must not notice.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{Answer, Coracle, Limits, args};
use std::{
    thread::available_parallelism,
    time::{Duration, Instant},
};
use support::{
    Appetite, Neighbour, PATIENCE, Server, answer, class, client, load, module, resident_bytes,
    threw, value, verdict,
};

/// Runs `run()` of a class with these methods while a neighbour is served; afterwards the same worker serves on.
async fn beside_a_neighbour(methods: &str, limits: Limits) -> Answer {
    beside_a_neighbour_of(Server::start(), methods, limits).await
}

async fn beside_a_neighbour_of(server: Server, methods: &str, limits: Limits) -> Answer {
    let neighbour = Neighbour::of(server.address()).await;
    let coracle = client(server.address()).await;
    let code = module(&class(&format!("{methods} well() {{ return true; }}")));
    let entrypoint = coracle.load(code.limits(limits)).entrypoint("default");
    let stopped = answer(&entrypoint, "run", args![]).await;
    neighbour.was_served().await;
    assert_eq!(
        value(answer(&entrypoint, "well", args![]).await).as_bool(),
        Some(true)
    );
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    assert_eq!(
        server
            .metric("coracle_invocations_total{outcome=\"trap\"}")
            .await,
        0.0
    );
    drop((coracle, entrypoint));
    server.is_empty().await;
    stopped
}

#[tokio::test]
async fn an_endless_loop_is_stopped() {
    let stopped = beside_a_neighbour("run() { for (;;); }", Limits::default()).await;
    assert!(
        matches!(
            verdict(&stopped),
            ("cpu", "cpu_ms_max") | ("fuel", "fuel_max")
        ),
        "{stopped:?}"
    );
}

#[tokio::test]
async fn an_endless_loop_that_catches_everything_is_stopped() {
    let methods = "run() { for (;;) { try { for (;;); } catch {} finally { continue; } } }";
    let limits = Limits {
        fuel_max: 300_000_000,
        ..Limits::default()
    };
    assert_eq!(
        verdict(&beside_a_neighbour(methods, limits).await),
        ("fuel", "fuel_max")
    );
}

#[tokio::test]
async fn an_endless_loop_at_module_scope_is_stopped() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let neighbour = Neighbour::of(server.address()).await;
    let stopped = answer(
        &coracle.load(module("for (;;);")).entrypoint("default"),
        "run",
        args![],
    )
    .await;
    assert_eq!(verdict(&stopped), ("startup", "startup_fuel_max"));
    neighbour.was_served().await;
}

#[tokio::test]
async fn an_allocation_bomb_is_stopped_and_costs_the_server_little_more_than_the_limit() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "run() { const all = []; for (;;) all.push(new Array(1000).fill(all.length)); }",
    );
    let before = resident_bytes(server.pid());
    let stopped = answer(&entrypoint, "run", args![]).await;
    assert_eq!(verdict(&stopped), ("memory", "memory_bytes_max"));
    let grown = resident_bytes(server.pid()).saturating_sub(before);
    assert!(grown < 80 << 20, "the server grew by {} MiB", grown >> 20);
}

#[tokio::test]
async fn allocation_bombs_of_other_kinds_are_stopped() {
    for bomb in [
        "[...'.'.repeat(1e9)]",
        "'x'.repeat(2 ** 28).split('')",
        "new Array(1024 * 1024 * 60).fill()",
        "const all = []; for (;;) all.push(new ArrayBuffer(1 << 20))",
        "const all = new Map(); for (let i = 0; ; i++) all.set(i, {})",
    ] {
        // Time enough for memory to run out first, on a slow machine too.
        let server = Server::start_with(&[("limit", "cpu_ms_max=20_000")]);
        let methods = format!("run() {{ {bomb}; return 'survived'; }}");
        let stopped = beside_a_neighbour_of(server, &methods, Limits::default()).await;
        assert!(
            matches!(verdict(&stopped), ("memory", "memory_bytes_max")),
            "{bomb}: {stopped:?}"
        );
    }
}

#[tokio::test]
async fn a_regular_expression_that_backtracks_without_end_is_stopped() {
    for expression in [
        "/^(a+)+$/.test('a'.repeat(40) + '!')",
        "/(x+x+)+y/.exec('x'.repeat(64))",
    ] {
        let methods = format!("run() {{ return {expression}; }}");
        let stopped = beside_a_neighbour(&methods, Limits::default()).await;
        assert!(
            matches!(verdict(&stopped).0, "cpu" | "fuel"),
            "{expression}: {stopped:?}"
        );
    }
}

#[tokio::test]
async fn a_flood_of_promises_is_stopped() {
    for flood in [
        "const flood = () => Promise.resolve().then(flood); await flood()",
        "for (;;) await null",
        "const all = []; for (;;) all.push(new Promise(() => {}))",
        "const flood = async () => { flood(); flood(); }; await flood(); for (;;) await null",
    ] {
        let stopped =
            beside_a_neighbour(&format!("async run() {{ {flood}; }}"), Limits::default()).await;
        let (kind, limit) = verdict(&stopped);
        assert!(
            matches!(kind, "cpu" | "fuel" | "memory"),
            "{flood}: {kind} {limit}"
        );
    }
}

#[tokio::test]
async fn deep_recursion_is_an_exception_that_can_be_caught() {
    let methods = "down(n) { return this.down(n + 1) + 1; }
                   run() { try { this.down(0); } catch (error) { return error instanceof RangeError; } }";
    let answer = beside_a_neighbour(methods, Limits::default()).await;
    assert_eq!(value(answer).as_bool(), Some(true));
    let answer = beside_a_neighbour(
        "down(n) { return this.down(n + 1) + 1; } run() { this.down(0); }",
        Limits::default(),
    )
    .await;
    assert_eq!(threw(&answer).0, "RangeError");
}

#[tokio::test]
async fn a_promise_that_never_settles_is_found_out_at_once() {
    let start = Instant::now();
    let stopped =
        beside_a_neighbour("run() { return new Promise(() => {}); }", Limits::default()).await;
    assert_eq!(verdict(&stopped), ("hung", ""));
    assert!(
        start.elapsed() < Duration::from_secs(10),
        "it took {:?}",
        start.elapsed()
    );
}

#[tokio::test]
async fn who_only_waits_is_stopped_by_the_wall_clock() {
    let limits = Limits {
        wall_ms_max: 200,
        ..Limits::default()
    };
    let methods = "run() { return new Promise(done => setTimeout(done, 60_000)); }";
    let stopped = beside_a_neighbour(methods, limits).await;
    assert_eq!(verdict(&stopped), ("wall", "wall_ms_max"));
    assert!(
        stopped.usage.cpu_micros < 100_000,
        "waiting was counted as work: {:?}",
        stopped.usage
    );
}

#[tokio::test]
async fn a_flood_of_console_lines_is_cut_off() {
    let limits = Limits {
        fuel_max: 300_000_000,
        ..Limits::default()
    };
    let stopped =
        beside_a_neighbour("run() { for (;;) console.log('x'.repeat(1000)); }", limits).await;
    assert_eq!(verdict(&stopped), ("fuel", "fuel_max"));
    let kept: usize = stopped.logs.iter().map(|line| line.message.len()).sum();
    assert!((1..=256 * 1024).contains(&kept), "{kept} bytes of logs");
    assert!(stopped.log_bytes_dropped > 0);
}

/// One connection is one thread's; what it asks for must still run on all cores, and nobody else may starve for it.
#[tokio::test]
async fn two_endless_loops_on_one_connection_use_two_cores_while_others_are_served() {
    let server = Server::start();
    let neighbour = Neighbour::of(server.address()).await;
    let coracle = client(server.address()).await;
    // Each is stopped after about a second, and started again.
    let loops = [endless(&coracle), endless(&coracle)];
    tokio::time::sleep(Duration::from_millis(200)).await;
    let appetite = Appetite::of(server.pid());
    tokio::time::sleep(Duration::from_secs(2)).await;
    let (cores, wanted) = (
        available_parallelism().map_or(1, usize::from).min(2) as f64,
        appetite.cores(),
    );
    assert!(
        wanted >= 0.9 * cores,
        "of {cores} cores the loops wanted only {wanted:.2}"
    );
    let served = neighbour.was_served().await;
    assert!(
        served > 50,
        "the neighbour had {served} answers in two seconds"
    );
    for task in loops {
        task.abort();
    }
}

fn endless(coracle: &Coracle) -> tokio::task::JoinHandle<()> {
    let entrypoint = load(coracle, "run() { for (;;); }");
    tokio::spawn(async move {
        loop {
            let stopped = answer(&entrypoint, "run", args![]).await;
            assert!(matches!(verdict(&stopped).0, "cpu" | "fuel"), "{stopped:?}");
        }
    })
}

#[tokio::test]
async fn a_hundred_endless_loops_of_one_client_leave_room_for_another() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let limits = Limits {
        fuel_max: 60_000_000,
        ..Limits::default()
    };
    let mut loops = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let entrypoint = coracle
            .load(module(&class("run() { for (;;); }")).limits(limits))
            .entrypoint("default");
        loops.spawn(async move {
            verdict(&answer(&entrypoint, "run", args![]).await)
                .0
                .to_owned()
        });
    }
    let neighbour = Neighbour::of(server.address()).await;
    let stopped = support::within(PATIENCE * 3, "all loops", loops.join_all()).await;
    assert!(stopped.iter().all(|kind| kind == "fuel"), "{stopped:?}");
    neighbour.was_served().await;
}
