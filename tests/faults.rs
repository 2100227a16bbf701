//! What breaks outside of the server: clients and the server itself are killed, disks are full, clocks jump. Whatever was
//! acknowledged has happened, nothing is left over, and who calls again is served.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]
#![allow(
    clippy::result_large_err,
    reason = "what a client throws is seldom, and no hot path"
)]

mod support;

use coracle_client::{
    ConnectOptions, Coracle, Entrypoint, Error, GetOptions, Outbound, Payload, Response, Target,
    Thrown, Value, WorkerCode, args,
};
use futures::{future::BoxFuture, stream};
use std::{
    collections::BTreeMap,
    fs::{self, File},
    process::Stdio,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};
use support::{
    CuttingProxy, Gauges, PATIENCE, Server, answer, class, client, eventually, get, load, module,
    value, verdict, within,
};

/// A tail that hears it and says nothing.
struct Listener;

impl Target for Listener {
    fn call(&self, _: Vec<String>, _: Payload) -> BoxFuture<'static, Result<Payload, Thrown>> {
        Box::pin(async { Ok(Payload::default()) })
    }
}

/// Methods that wait for the client, for the clock, for the network and for streams.
const STORY: &str = "
    async work(n) {
        console.log('working', n);
        const doubled = await this.env.DOUBLE(n);
        await scheduler.wait(1);
        const answered = await (await fetch('https://gateway.test/')).text();
        return [await this.env.DOUBLE(doubled), answered];
    }
    counter() { let n = 0; return () => ++n; }
    chunks() {
        let n = 0;
        return new ReadableStream({
            async pull(c) {
                await scheduler.wait(1);
                if (++n > 3) c.close(); else c.enqueue(new Uint8Array(1000).fill(n));
            },
        });
    }
    async sum(stream) {
        let sum = 0;
        for await (const chunk of stream) sum += chunk.length;
        return sum;
    }";

/// All that a client does in a day, in a second.
async fn story(address: &str) -> Result<(), Error> {
    let coracle = Coracle::connect(address, ConnectOptions::default()).await?;
    let double = coracle.function(|args: Payload| async move {
        tokio::task::yield_now().await;
        let number = args.value.index(0).and_then(Value::as_f64).unwrap();
        Ok(Payload::from(Value::from(number * 2.0)))
    });
    let gateway = coracle.gateway(|_| async { Ok(Response::new(200, "ahoy")) });
    let mut env = Payload::default();
    let binding = env.external(&double);
    env.value = Value::object([("DOUBLE", binding)]);
    let code = WorkerCode {
        outbound: Outbound::Gateway(gateway),
        ..module(&class(STORY))
    };
    let worker = coracle.load(code.env(env).tail(coracle.serve(Listener)));
    worker.ready().await?;
    let entrypoint = worker.entrypoint("default");

    let worked = entrypoint.call("work", args![5]).await?.value()?;
    let expected = Value::Array(vec![20.into(), "ahoy".into()]);
    assert_eq!(worked, expected);

    let counter = entrypoint.call("counter", args![]).await?.payload()?;
    let counter = counter.stub(&counter.value).unwrap().clone();
    assert_eq!(counter.call("", args![]).await?.value()?, 1.into());

    let chunks = entrypoint.call("chunks", args![]).await?.payload()?;
    let mut chunks = chunks.byte_stream(&chunks.value).unwrap();
    assert_eq!(chunks.read_to_end(10_000).await?.len(), 3_000);

    let given = coracle.byte_stream(stream::iter([Ok(vec![1; 700]), Ok(vec![2; 300])]));
    let mut one = Payload::default();
    one.value = Value::Array(vec![one.external(&given)]);
    assert_eq!(entrypoint.call("sum", one).await?.value()?, 1_000.into());

    let got = coracle.get("by id", GetOptions::default(), || async {
        Ok(module("export default { next(n) { return n + 1; } }"))
    });
    let next = got.entrypoint("default").call("next", args![1]).await?;
    assert_eq!(next.value()?, 2.into());
    Ok(())
}

/// A client that is cut off after any of its messages, or of those for it, or in the middle of one, leaves nothing behind, is
/// told that it was cut off, and takes nobody with it.
#[tokio::test]
async fn a_client_may_go_at_any_moment() {
    let server = Server::start();
    let whole = CuttingProxy::start(server.address(), usize::MAX).await;
    within(PATIENCE, "the story", story(whole.address()))
        .await
        .unwrap();
    let messages = whole.passed();
    assert!(messages > 40, "the story has only {messages} messages");
    server.is_empty().await;

    let mut cut_off = 0;
    for moment in 0..messages {
        let proxy = CuttingProxy::start(server.address(), moment).await;
        match within(PATIENCE, "the story", story(proxy.address())).await {
            // The last messages are those of letting go.
            Ok(()) => assert!(
                moment > messages / 2,
                "after {moment} of {messages} messages"
            ),
            Err(Error::Disconnected(_)) => cut_off += 1,
            Err(other) => panic!("after {moment} messages: {other:?}"),
        }
        server.is_empty().await;
    }
    assert!(cut_off > messages / 2, "{cut_off} of {messages}");
    within(PATIENCE, "a neighbour", story(server.address()))
        .await
        .unwrap();
    server.is_empty().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    assert_eq!(server.metric("coracle_cordons_lost_total").await, 0.0);
}

/// How often each call was done, by its number.
type Done = Arc<Mutex<BTreeMap<u32, u32>>>;

/// A worker whose method has the client note that it was called.
fn noting(coracle: &Coracle, done: &Done) -> Entrypoint {
    let done = Arc::clone(done);
    let note = coracle.function(move |args: Payload| {
        let number = args.value.index(0).and_then(Value::as_f64).unwrap();
        *done.lock().unwrap().entry(number as u32).or_default() += 1;
        async { Ok(Payload::default()) }
    });
    let mut env = Payload::default();
    let binding = env.external(&note);
    env.value = Value::object([("NOTE", binding)]);
    let source = class("async run(n) { await this.env.NOTE(n); return n; }");
    coracle.load(module(&source).env(env)).entrypoint("default")
}

/// A server that is killed in the middle of its work is started again on the same socket. What it had answered was done,
/// once; what it had not answered is an error; and its clients go on.
#[tokio::test]
async fn a_server_that_is_killed_under_load_is_started_again_and_its_clients_go_on() {
    const CALLERS: u32 = 8;
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let address = format!("unix:{}", socket.display());
    let listen = [("listen", &address[..])];
    let mut server = Server::start_with(&listen);
    let done = Done::default();
    let answered = Arc::new(AtomicUsize::new(0));
    let restarted = Arc::new(AtomicBool::new(false));
    let callers = (0..CALLERS).map(|caller| {
        let (address, done) = (address.clone(), Arc::clone(&done));
        let (answered, restarted) = (Arc::clone(&answered), Arc::clone(&restarted));
        tokio::spawn(async move {
            let (mut acknowledged, mut failed, mut since_restart) = (Vec::new(), 0, 0);
            let mut numbers = (caller..).step_by(CALLERS as usize);
            while since_restart < 20 {
                // Refused for as long as there is no server.
                let connecting = Coracle::connect(&address, ConnectOptions::default());
                let Ok(coracle) = connecting.await else {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    continue;
                };
                let worker = noting(&coracle, &done);
                while since_restart < 20 {
                    let number = numbers.next().unwrap();
                    match worker.call("run", args![f64::from(number)]).await {
                        Ok(answer) => {
                            assert_eq!(value(answer), f64::from(number).into());
                            acknowledged.push(number);
                            answered.fetch_add(1, Ordering::Relaxed);
                            if restarted.load(Ordering::Relaxed) {
                                since_restart += 1;
                            }
                        }
                        Err(Error::Disconnected(_)) => {
                            failed += 1;
                            break;
                        }
                        Err(other) => panic!("{other:?}"),
                    }
                }
            }
            (acknowledged, failed)
        })
    });
    let callers: Vec<_> = callers.collect();
    eventually("calls are answered", async || {
        match answered.load(Ordering::Relaxed) {
            enough if enough >= 200 => Ok(()),
            few => Err(format!("{few}")),
        }
    })
    .await;
    server.kill();
    assert!(socket.exists(), "who is killed leaves the socket's file");
    drop(server);
    let server = Server::start_with(&listen);
    restarted.store(true, Ordering::Relaxed);
    let mut failures = 0;
    for caller in callers {
        let (acknowledged, failed) = within(PATIENCE * 3, "a caller", caller).await.unwrap();
        let done = done.lock().unwrap();
        for number in acknowledged {
            assert_eq!(done.get(&number), Some(&1), "call {number}");
        }
        failures += failed;
    }
    assert!(failures >= 1, "nobody noticed that the server was killed");
    server.is_empty().await;
}

/// A server whose log can't be written serves all the same, and says how many lines are lost only where it can.
#[tokio::test]
async fn a_full_disk_behind_the_log_costs_no_call() {
    let folder = tempfile::tempdir().unwrap();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let socket = folder.path().join("socket");
    let mut server = Server::start_unheard(&socket, &[], &[], full.into()).await;
    for _ in 0..20 {
        let story = story(server.address());
        within(PATIENCE, "the story", story).await.unwrap();
    }
    assert_eq!(get(server.admin(), "/livez").await.0, 200);
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.terminate();
    let ended = server.exits_within(PATIENCE).await;
    assert!(ended.success(), "{ended}");
}

/// Nor does one whose log nobody reads: it does not wait for a reader, and counts what it gives up. (Each request of a worker
/// is a line.)
#[tokio::test]
async fn a_log_that_nobody_reads_holds_nobody_up() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let mut server = Server::start_unheard(&socket, &[], &[], Stdio::piped()).await;
    let unread = server.take_stderr();
    let coracle = client(server.address()).await;
    let asking = load(
        &coracle,
        "async ask() { for (let i = 0; i < 200; i++) await fetch('https://a.test/').catch(() => {}); return 'asked'; }",
    );
    eventually("lines of the log are given up", async || {
        assert_eq!(value(answer(&asking, "ask", args![]).await), "asked".into());
        match server.metric("coracle_log_lines_dropped_total").await {
            0.0 => Err("none".into()),
            _ => Ok(()),
        }
    })
    .await;
    assert_eq!(get(server.admin(), "/livez").await.0, 200);
    server.terminate();
    let ended = server.exits_within(PATIENCE).await;
    assert!(ended.success(), "{ended}");
    drop(unread);
}

/// The time of day may jump, both ways: limits, timers and calls go by a clock that does not, and `Date.now()` shows what the
/// machine says.
#[tokio::test]
async fn a_clock_that_jumps_moves_dates_and_nothing_else() {
    const DAY: f64 = 86_400_000.0;
    let library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
    let library = match fs::exists(library).unwrap() {
        true => library,
        false => "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    };
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let offset = folder.path().join("offset");
    let set = |days: i32| {
        // Whole or not at all: it is read at any time.
        let new = folder.path().join("new");
        fs::write(&new, format!("{days:+}d\n")).unwrap();
        fs::rename(new, &offset).unwrap();
    };
    set(0);
    let environment = [
        ("LD_PRELOAD", library),
        ("FAKETIME_TIMESTAMP_FILE", offset.to_str().unwrap()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1"),
        ("FAKETIME_NO_CACHE", "1"),
    ];
    // A cordon may not read the file that says how late it is.
    let threads = [("isolation", "threads"), ("limit", "wall_ms_max=20000")];
    let server = Server::start_unheard(&socket, &threads, &environment, Stdio::null()).await;
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "now() { return Date.now(); }
         async rest(ms) { await scheduler.wait(ms); return 'rested'; }",
    );
    let now = async || {
        value(answer(&worker, "now", args![]).await)
            .as_f64()
            .unwrap()
    };
    let start = now().await;
    for days in [300, -300, 0] {
        let began = Instant::now();
        let resting = worker.call("rest", args![300]);
        let jumping = async {
            eventually("the call rests", async || match server.gauges().await {
                Gauges { calls: 1, .. } => Ok(()),
                other => Err(format!("{other:?}")),
            })
            .await;
            set(days);
        };
        let (rested, ()) = futures::join!(resting, jumping);
        assert_eq!(value(rested.unwrap()), "rested".into());
        assert!(began.elapsed() >= Duration::from_millis(300));
        let moved = now().await - start - DAY * f64::from(days);
        assert!((0.0..60_000.0).contains(&moved), "{days} days: {moved}");
        // Limits still end what has to end.
        let spinning = load(&coracle, "spin() { for (;;); }");
        let spun = answer(&spinning, "spin", args![]).await;
        assert!(
            ["cpu", "fuel"].contains(&verdict(&spun).0),
            "{:?}",
            spun.outcome
        );
    }
    assert_eq!(get(server.admin(), "/livez").await.0, 200);
    let neighbour = load(&client(server.address()).await, "one() { return 1; }");
    assert_eq!(value(answer(&neighbour, "one", args![]).await), 1.into());
}
