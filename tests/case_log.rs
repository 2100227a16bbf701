//! What the log of cases says of many workers one after the other, and of the server's own memory: what no worker can show
//! alone. `cases/README.md` names these tests.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{Coracle, Limits, Value, args};
use futures::{StreamExt, stream};
use support::{
    Server, answer, client, growth_at_rest, module, resident_bytes, resident_bytes_peak, value,
    verdict,
};

const MIB: u64 = 1 << 20;

/// Case M15: what a worker writes to the console is bounded while it runs, and not only when it is over.
#[tokio::test]
async fn a_flood_on_the_console_takes_no_memory_of_the_server() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let limits = Limits {
        cpu_ms_max: 300,
        ..Limits::default()
    };
    for flood in [
        "console.log('x')",
        "console.log('x'.repeat(10_000))",
        "console.error('x'.repeat(1_000_000))",
        "Promise.reject(new Error('x'.repeat(10_000)))",
    ] {
        let source = format!("export default {{ run(_) {{ for (;;) {flood}; }} }};");
        let entrypoint = coracle
            .load(module(&source).limits(limits))
            .entrypoint("default");
        let before = resident_bytes(server.pid()).max(resident_bytes_peak(server.pid()));
        let stopped = answer(&entrypoint, "run", args![0]).await;
        let grown = resident_bytes_peak(server.pid()).saturating_sub(before);
        assert!(grown < 80 * MIB, "{flood}: {} MiB", grown / MIB);
        assert!(matches!(verdict(&stopped).0, "cpu" | "memory"), "{flood}");
        let kept: usize = stopped.logs.iter().map(|line| line.message.len()).sum();
        assert!(kept <= 262_144, "{flood}: {kept} bytes were kept");
        if flood.starts_with("console") {
            assert!(kept > 0 && stopped.log_bytes_dropped > 0, "{flood}");
        }
    }
}

/// Case M20: workers that are gone leave nothing of their code behind, however many they were and each with its own.
#[tokio::test]
async fn the_code_of_workers_that_are_gone_takes_no_memory() {
    const CODE_BYTES: usize = 1_000_000;
    let server = Server::start();
    let coracle = client(server.address()).await;
    let padding = "x".repeat(CODE_BYTES);
    let load = async |number: usize| {
        let source = format!("export default {{ run(_) {{ return {number}; }} }}; // {padding}");
        let entrypoint = coracle.load(module(&source)).entrypoint("default");
        let found = value(answer(&entrypoint, "run", args![0]).await);
        assert_eq!(found, Value::from(number as f64));
    };
    for number in 0..50 {
        load(number).await;
    }
    let warm = resident_bytes(server.pid());
    // A tenth of it would be noticed.
    for number in 50..450 {
        load(number).await;
    }
    let grown = growth_at_rest(&server, warm).await;
    assert!(grown < 32 * MIB, "it has grown by {} MiB", grown / MIB);
    drop(coracle);
    server.is_empty().await;
}

/// Case M21: ten thousand workers that come, run and go leave the server as large as it was.
#[tokio::test]
async fn ten_thousand_workers_leave_the_server_as_large_as_it_was() {
    // So few that each has been used once it is warm.
    let server = Server::start_with(&[("isolates-max", "64")]);
    let coracle = client(server.address()).await;
    // The same again and again, until as many snapshots are kept as may be.
    for _ in 0..3 {
        run_and_forget(&coracle, 2_000).await;
    }
    let warm = resident_bytes(server.pid());
    run_and_forget(&coracle, 10_000).await;
    let grown = growth_at_rest(&server, warm).await;
    // Slots of the pool that were never used before are touched as late as now, which is not a leak: two kilobytes for each
    // worker would be.
    let most = (warm / 20).max(20 << 20);
    assert!(
        grown <= most,
        "it has grown by {grown} bytes, of at most {most}"
    );
    drop(coracle);
    server.is_empty().await;
}

async fn run_and_forget(coracle: &Coracle, count: usize) {
    const AT_ONCE: usize = 16;
    let bodies = [
        "return x + 1",
        "const all = Array.from({ length: 1000 }, (_, i) => ({ i })); return x + all.length / 1000",
        "console.log('x'.repeat(1000)); await null; return x + 1",
        "setTimeout(() => {}, 1e6); return x + 1",
    ];
    stream::iter(0..count)
        .for_each_concurrent(AT_ONCE, async |number| {
            let body = bodies[number % bodies.len()];
            let source = format!("export default {{ async run(x) {{ {body}; }} }}; // {number}");
            let entrypoint = coracle.load(module(&source)).entrypoint("default");
            let found = value(answer(&entrypoint, "run", args![number as f64]).await);
            assert_eq!(found, Value::from(number as f64 + 1.0));
        })
        .await;
}
