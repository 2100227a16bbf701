//! Sandboxes live in processes that can do nothing else, and what happens to one of those happens to nobody else.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{
    ConnectOptions, Coracle, Entrypoint, EntrypointOptions, Limits, Outcome, Value, Verdict, args,
};
use futures::future::join_all;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Write,
};
use support::{
    PATIENCE, Server, answer, class, client, cordons, eventually, load, module, status, value,
    wanted_ns, within,
};
use tempfile::NamedTempFile;

const WORKER: &str =
    "rest(ms) { return new Promise(done => setTimeout(() => done('rested'), ms)); }
                      spin() { for (;;); }
                      work(n) { let sum = 0; for (let i = 0; i < n; i++) sum += i; return sum; }
                      count() { return this.constructor.n = (this.constructor.n ?? 0) + 1; }";

fn pid(process: u32) -> Pid {
    Pid::from_raw(i32::try_from(process).unwrap()).unwrap()
}

fn signal(process: u32, signal: Signal) {
    kill_process(pid(process), signal).expect("a cordon of the server that was started here");
}

/// The cordon that a worker's isolate is in, told from others by what it works.
async fn cordon_of(server: &Server, worker: &Entrypoint) -> u32 {
    let before: BTreeMap<u32, u64> = cordons(server.pid())
        .into_iter()
        .map(|pid| (pid, wanted_ns(pid)))
        .collect();
    // Far more than what any needs to start.
    value(answer(worker, "work", args![3_000_000]).await);
    let worked = |pid: &u32| wanted_ns(*pid) - before.get(pid).unwrap_or(&0);
    cordons(server.pid())
        .into_iter()
        .max_by_key(worked)
        .unwrap()
}

/// Workers that have been called once.
async fn workers(coracle: &Coracle, count: usize) -> Vec<Entrypoint> {
    let workers: Vec<Entrypoint> = (0..count).map(|_| load(coracle, WORKER)).collect();
    for worker in &workers {
        assert_eq!(
            value(answer(worker, "count", args![]).await),
            Value::from(1)
        );
    }
    workers
}

fn verdict(outcome: Outcome) -> Verdict {
    match outcome {
        Outcome::Verdict(verdict) => *verdict,
        other => panic!("no verdict: {other:?}"),
    }
}

/// What `serve` starts by itself is confined: no privileges to be had, system calls filtered, no environment, and no file
/// open but the pipes to and from the server and what the pool needs.
#[tokio::test]
async fn a_cordon_has_nothing_that_it_does_not_need() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    workers(&coracle, 1).await;
    let cordons = eventually("one is in use and one is to spare", async || {
        let cordons = cordons(server.pid());
        let confined = |pid: &u32| status(*pid, "Seccomp:").as_deref() == Some("2");
        match cordons.len() >= 2 && cordons.iter().all(confined) {
            true => Ok(cordons),
            false => Err(format!("{cordons:?}")),
        }
    })
    .await;
    for cordon in cordons {
        assert_eq!(status(cordon, "NoNewPrivs:").as_deref(), Some("1"));
        let Ok(environment) = fs::read(format!("/proc/{cordon}/environ")) else {
            // Who is not root does not even see this of a process of the same user: it can't be dumped.
            continue;
        };
        assert_eq!(environment, b"");
        let open = fs::read_dir(format!("/proc/{cordon}/fd")).unwrap();
        let targets: BTreeSet<String> = open
            .filter_map(|descriptor| fs::read_link(descriptor.unwrap().path()).ok())
            .map(|target| target.to_string_lossy().into_owned())
            .collect();
        for target in &targets {
            let known = target.starts_with("pipe:")
                || target.starts_with("/memfd:")
                || target == "/dev/null"
                || target == &format!("/proc/{cordon}/pagemap");
            assert!(known, "{target} of {targets:?}");
        }
        let pipes = targets.iter().filter(|target| target.starts_with("pipe:"));
        assert_eq!(pipes.count(), 2, "{targets:?}");
        let limits = fs::read_to_string(format!("/proc/{cordon}/limits")).unwrap();
        let core = limits
            .lines()
            .find(|line| line.starts_with("Max core file size"));
        assert_eq!(
            core.unwrap().split_whitespace().nth(4),
            Some("0"),
            "{limits}"
        );
    }
}

/// A cordon that breaks takes its own calls along, each with a verdict that says so, and is replaced: who calls again is
/// served.
#[tokio::test]
async fn a_cordon_that_breaks_loses_its_own_calls_and_is_replaced() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let workers = workers(&coracle, 5).await;
    let broken = cordon_of(&server, &workers[0]).await;
    let resting: Vec<_> = workers
        .iter()
        .cloned()
        .map(|worker| tokio::spawn(async move { answer(&worker, "rest", args![20_000]).await }))
        .collect();
    eventually("the calls are under way", async || {
        let calls = server.gauges().await.calls;
        if calls == 5 {
            Ok(())
        } else {
            Err(format!("{calls}"))
        }
    })
    .await;
    // The first one only takes the handler away that tells traps of Wasm from faults, as a real fault does before it
    // happens once more.
    eventually("the cordon breaks", async || {
        match kill_process(pid(broken), Signal::SEGV) {
            Ok(()) if cordons(server.pid()).contains(&broken) => Err("it runs".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    for call in resting {
        let verdict = verdict(within(PATIENCE, "its answer", call).await.unwrap().outcome);
        assert_eq!(verdict.kind, "isolate_lost");
        assert!(verdict.started);
        assert!(verdict.message.contains("SIGSEGV"), "{}", verdict.message);
    }
    for worker in &workers {
        assert_eq!(
            value(answer(worker, "count", args![]).await),
            Value::from(1)
        );
    }
    assert!(!cordons(server.pid()).contains(&broken));
    assert_eq!(server.metric("coracle_cordons_lost_total").await, 1.0);
    assert!(
        server.log().contains("a cordon is lost"),
        "{}",
        server.log()
    );
    drop((workers, coracle));
    server.is_empty().await;
}

/// The watchdog: a cordon that does nothing any more is ended, and its calls are answered.
#[tokio::test]
async fn a_cordon_that_is_stuck_is_ended() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let workers = workers(&coracle, 1).await;
    let stuck = cordon_of(&server, &workers[0]).await;
    signal(stuck, Signal::STOP);
    let verdict = verdict(answer(&workers[0], "count", args![]).await.outcome);
    assert_eq!(verdict.kind, "isolate_lost");
    assert!(verdict.message.contains("stuck"), "{}", verdict.message);
    assert_eq!(
        value(answer(&workers[0], "count", args![]).await),
        Value::from(1)
    );
}

/// No cordon outlives its server, however that ends.
#[tokio::test]
async fn cordons_go_with_their_server() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let workers = workers(&coracle, 1).await;
    let spinning = tokio::spawn({
        let worker = workers[0].clone();
        async move { worker.call("spin", args![]).await }
    });
    let cordons = cordons(server.pid());
    signal(server.pid(), Signal::KILL);
    for cordon in cordons {
        eventually("the cordon is gone", async || {
            match test_kill_process(pid(cordon)) {
                Err(_) => Ok(()),
                Ok(()) => Err(format!("{cordon} still runs")),
            }
        })
        .await;
    }
    assert!(
        within(PATIENCE, "its end", spinning)
            .await
            .unwrap()
            .is_err()
    );
}

/// A server for tenants of these names, with what its file says of them, and a client of each.
async fn tenants<const N: usize>(
    tenants: &str,
    names: [&str; N],
) -> (Server, [Coracle; N], [NamedTempFile; 2]) {
    let token = |name: &str| format!("a token of {name}'s, which is long enough");
    let lines = names.map(|name| format!("{name}:{}\n", token(name)));
    let files = [lines.concat(), tenants.to_owned()].map(|text| {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    });
    let [tokens, quotas] = files.each_ref().map(|file| file.path().to_str().unwrap());
    let server = Server::start_with(&[
        ("token-file", tokens),
        ("tenants-file", quotas),
        ("cordons-max", "8"),
    ]);
    let clients = names.map(async |name| {
        let options = ConnectOptions {
            token: Some(token(name)),
        };
        let login = Coracle::connect(server.address(), options);
        within(PATIENCE, "a login", login).await.unwrap()
    });
    let clients = join_all(clients).await;
    (server, clients.try_into().ok().unwrap(), files)
}

/// Tenants share a process by their trust: those that are isolated with nobody, those of a group with each other.
#[tokio::test]
async fn who_shares_a_cordon_is_a_matter_of_trust() {
    let file = r#"{"tenants": {
        "alone": {"trust": "isolated"},
        "one": {"trust": "grouped", "group": "ours"},
        "other": {"trust": "grouped", "group": "ours"}
    }}"#;
    let names = ["alone", "one", "other", "any", "some"];
    let (server, clients, _files) = tenants(file, names).await;
    let mut places = BTreeMap::new();
    for (name, coracle) in names.into_iter().zip(&clients) {
        let worker = load(coracle, WORKER);
        places.insert(name, cordon_of(&server, &worker).await);
    }
    assert_eq!(places["one"], places["other"], "{places:?}");
    assert_eq!(places["any"], places["some"], "{places:?}");
    let different: BTreeSet<u32> = ["alone", "one", "any"].map(|name| places[name]).into();
    assert_eq!(different.len(), 3, "{places:?}");
}

/// A tenant whose code has to be stopped again and again gets a process of its own, and leaves the others theirs.
#[tokio::test]
async fn a_suspect_is_put_into_a_cordon_of_its_own() {
    let (server, [bad, good], _files) = tenants("{}", ["bad", "good"]).await;
    let of_good = load(&good, WORKER);
    let shared = cordon_of(&server, &of_good).await;
    assert_eq!(cordon_of(&server, &load(&bad, WORKER)).await, shared);
    let few = EntrypointOptions {
        limits: Limits {
            fuel_max: 1_000_000,
            ..Limits::default()
        },
        ..EntrypointOptions::default()
    };
    for _ in 0..110 {
        let worker = bad.load(module(&class(WORKER)));
        let spinning = worker.entrypoint_with("default", few.clone());
        let stopped = verdict(answer(&spinning, "spin", args![]).await.outcome);
        assert_eq!(stopped.kind, "fuel");
    }
    let alone = cordon_of(&server, &load(&bad, WORKER)).await;
    assert_ne!(alone, shared);
    assert_eq!(cordon_of(&server, &load(&good, WORKER)).await, shared);
    assert_eq!(cordon_of(&server, &of_good).await, shared);
    assert!(server.log().contains("suspect"), "{}", server.log());
}

/// Without cordons everything runs in the server itself.
#[tokio::test]
async fn threads_can_be_asked_for() {
    let server = Server::start_with(&[("isolation", "threads")]);
    let coracle = client(server.address()).await;
    let workers = workers(&coracle, 1).await;
    assert!(cordons(server.pid()).is_empty());
    assert_eq!(
        value(answer(&workers[0], "count", args![]).await),
        Value::from(2)
    );
    assert_eq!(server.metric("coracle_cordons").await, 0.0);
}
