//! The admin endpoint over real sockets: what it answers, whom it refuses, and that nothing makes it silent.

#![allow(
    clippy::disallowed_methods,
    reason = "a slow client is one that sleeps"
)]

use coracle_isolate::{Bytes, Health, Outcome, Report, Stats, Usage};
use coracle_server::{Admin, AdminState, BuildInfo, Metrics, Probe};
use std::{
    env,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// A server in whatever state a test wants.
#[derive(Default)]
struct FakeServer {
    live: Mutex<Option<String>>,
    ready: Mutex<Option<String>>,
    /// Held by a test that wants every check to get stuck.
    stuck: Mutex<()>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FakeServer {
    fn set_live(&self, reason: Option<&str>) {
        *lock(&self.live) = reason.map(str::to_owned);
    }

    fn set_ready(&self, reason: Option<&str>) {
        *lock(&self.ready) = reason.map(str::to_owned);
    }
}

impl Probe for FakeServer {
    fn live(&self) -> Result<(), String> {
        let _stuck = lock(&self.stuck);
        lock(&self.live).clone().map_or(Ok(()), Err)
    }

    fn ready(&self) -> Result<(), String> {
        lock(&self.ready).clone().map_or(Ok(()), Err)
    }

    fn stats(&self) -> (Stats, Health, u32) {
        let _stuck = lock(&self.stuck);
        let stats = Stats {
            isolates: 3,
            queued: 1,
            running: 2,
            memory_bytes: 4096,
            panics: 0,
            ..Stats::default()
        };
        let health = Health {
            threads: 2,
            threads_lost: 0,
        };
        (stats, health, 64)
    }
}

struct Running {
    admin: Admin,
    server: Arc<FakeServer>,
    metrics: Arc<Metrics>,
}

fn start() -> Running {
    let metrics = Metrics::new(BuildInfo {
        version: "1.2.3".into(),
        guest: "0123abcd".into(),
        wasmtime: "48.0.8".into(),
        quickjs: "0.12.1".into(),
        cpu_baseline: "x86-64-v3".into(),
    });
    let server = Arc::new(FakeServer::default());
    let state = AdminState {
        metrics: Arc::clone(&metrics),
        probe: Arc::clone(&server) as Arc<dyn Probe>,
        hosts_allowed: vec!["coracle.example".into()],
    };
    let admin = Admin::start(([127, 0, 0, 1], 0).into(), state).expect("the endpoint starts");
    Running {
        admin,
        server,
        metrics,
    }
}

struct Answer {
    status: u16,
    headers: String,
    body: String,
}

impl Answer {
    #[track_caller]
    fn expect(&self, status: u16, body: &str) {
        assert_eq!((self.status, self.body.as_str()), (status, body));
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the endpoint accepts");
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout can be set");
    stream
}

/// Sends a request as it stands, and reads until the server closes: there is no other end to an answer here.
fn exchange(address: SocketAddr, request: &str) -> Answer {
    let mut stream = connect(address);
    stream
        .write_all(request.as_bytes())
        .expect("the request is taken");
    read_answer(&mut stream)
}

fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut text = String::new();
    stream
        .read_to_string(&mut text)
        .expect("the connection ends with the answer");
    let (head, body) = text.split_once("\r\n\r\n").expect("an HTTP answer");
    let (status_line, headers) = head.split_once("\r\n").expect("headers");
    let status = status_line
        .split(' ')
        .nth(1)
        .and_then(|code| code.parse().ok());
    Answer {
        status: status.expect("a status"),
        headers: headers.to_ascii_lowercase(),
        body: body.to_owned(),
    }
}

impl Running {
    fn address(&self) -> SocketAddr {
        self.admin.local_addr()
    }

    fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &self.address().to_string())
    }

    fn request(&self, method: &str, path: &str, host: &str) -> Answer {
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        exchange(self.address(), &request)
    }
}

#[test]
fn liveness_says_why_it_is_red() {
    let running = start();
    running.get("/livez").expect(200, "ok\n");
    running.server.set_live(Some(
        "1 of 2 isolate threads is stuck\nrpc thread 0 is gone",
    ));
    running.get("/livez").expect(
        503,
        "live: 1 of 2 isolate threads is stuck\nlive: rpc thread 0 is gone\n",
    );
    running.server.set_live(None);
    running.get("/livez").expect(200, "ok\n");
}

#[test]
fn readiness_needs_liveness_too_and_lists_its_checks() {
    let running = start();
    running.get("/readyz").expect(200, "ok\n");
    running
        .get("/readyz?verbose")
        .expect(200, "[+] live\n[+] ready\n");
    running.server.set_ready(Some("draining"));
    running.get("/readyz").expect(503, "ready: draining\n");
    running
        .get("/readyz?verbose=1")
        .expect(503, "[+] live\n[-] ready: draining\n");
    running.get("/livez").expect(200, "ok\n");
    running.server.set_ready(None);
    running.server.set_live(Some("stuck"));
    running.get("/readyz").expect(503, "live: stuck\n");
}

#[test]
fn what_has_started_stays_started() {
    let running = start();
    running.server.set_ready(Some("compiling the guest"));
    running
        .get("/startupz")
        .expect(503, "ready: compiling the guest\n");
    running.server.set_ready(None);
    running.get("/startupz").expect(200, "ok\n");
    running.server.set_ready(Some("draining"));
    running.get("/startupz").expect(200, "ok\n");
}

#[test]
fn metrics_are_those_of_the_moment() {
    let running = start();
    running.metrics.set_draining(true);
    let answer = running.get("/metrics");
    assert_eq!(answer.status, 200);
    assert!(
        answer
            .headers
            .contains("content-type: text/plain; version=0.0.4; charset=utf-8"),
        "{}",
        answer.headers
    );
    for line in [
        "coracle_draining 1",
        "coracle_isolates_live 3",
        "coracle_isolates_max 64",
    ] {
        assert!(answer.body.lines().any(|have| have == line), "{line}");
    }
}

#[test]
fn promtool_has_nothing_against_the_metrics() {
    let running = start();
    running.metrics.invocation(&Report {
        outcome: Outcome::Value(Bytes::UNDEFINED),
        usage: Usage {
            wall_us: 1_000,
            cpu_us: 900,
            ..Usage::default()
        },
        logs: Vec::new(),
        log_bytes_dropped: 0,
    });
    let exposition = running.get("/metrics").body;
    let promtool = promtool();
    let mut check = Command::new(&promtool)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}", promtool.display()));
    let mut input = check.stdin.take().expect("stdin is piped");
    input
        .write_all(exposition.as_bytes())
        .expect("promtool reads");
    drop(input);
    let output = check.wait_with_output().expect("promtool ends");
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.is_empty(), "{said}");
}

/// The binary that `$CORACLE_PROMTOOL` names, that `tools/promtool` has fetched, or that is on the `PATH`.
fn promtool() -> PathBuf {
    if let Some(named) = env::var_os("CORACLE_PROMTOOL") {
        return named.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("promtool"));
    [root.join("target/tools/usr/bin/promtool")]
        .into_iter()
        .chain(on_path)
        .find(|candidate| candidate.is_file())
        .expect(
            "this test needs promtool: run tools/promtool, which fetches it into target/tools, or set CORACLE_PROMTOOL \
             to its path",
        )
}

#[test]
fn the_version_is_json() {
    running_version(&start().get("/version"));
}

#[track_caller]
fn running_version(answer: &Answer) {
    assert!(
        answer.headers.contains("content-type: application/json"),
        "{}",
        answer.headers
    );
    answer.expect(
        200,
        "{\"version\":\"1.2.3\",\"guest\":\"0123abcd\",\"quickjs\":\"0.12.1\",\"wasmtime\":\"48.0.8\",\
         \"cpu_baseline\":\"x86-64-v3\"}\n",
    );
}

#[test]
fn other_paths_say_which_there_are() {
    let running = start();
    for path in ["/", "/metrics/", "/livez/x", "/debug/pprof"] {
        let answer = running.get(path);
        assert_eq!(answer.status, 404, "{path}");
        for endpoint in ["/livez", "/readyz", "/startupz", "/metrics", "/version"] {
            assert!(answer.body.contains(endpoint), "{path}: {}", answer.body);
        }
    }
}

#[test]
fn only_get_and_head_are_answered() {
    let running = start();
    let host = running.address().to_string();
    for path in ["/livez", "/readyz", "/startupz", "/metrics", "/version"] {
        let answer = running.request("HEAD", path, &host);
        assert_eq!((answer.status, answer.body.as_str()), (200, ""), "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "BREW"] {
        let answer = running.request(method, "/metrics", &host);
        answer.expect(405, "only GET and HEAD\n");
        assert!(
            answer.headers.contains("allow: get, head"),
            "{}",
            answer.headers
        );
    }
}

#[test]
fn a_rebound_name_is_refused() {
    let running = start();
    for host in [
        "127.0.0.1",
        "[::1]:9090",
        "localhost:9090",
        "coracle.example:9090",
    ] {
        running.request("GET", "/livez", host).expect(200, "ok\n");
    }
    for path in ["/livez", "/metrics", "/version", "/"] {
        let answer = running.request("GET", path, "evil.example:9090");
        assert_eq!(answer.status, 421, "{path}");
        assert!(
            answer
                .body
                .contains("\"evil.example:9090\" is not known here"),
            "{}",
            answer.body
        );
        assert!(answer.body.contains("DNS rebinding"), "{}", answer.body);
    }
    // Not by naming us in the target and somebody else in the header, nor the other way round.
    let target = "http://localhost/metrics";
    assert_eq!(running.request("GET", target, "evil.example").status, 421);
    assert_eq!(
        running
            .request("GET", "http://evil.example/metrics", "localhost")
            .status,
        421
    );
    let without = exchange(running.address(), "GET /metrics HTTP/1.1\r\n\r\n");
    without.expect(400, "a request needs one Host header, in ASCII\n");
    let twice = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n";
    assert_eq!(exchange(running.address(), twice).status, 400);
}

#[test]
fn a_connection_carries_one_request() {
    let running = start();
    let two = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n".repeat(2);
    let answer = exchange(running.address(), &two);
    assert!(
        answer.headers.contains("connection: close"),
        "{}",
        answer.headers
    );
    assert!(
        answer.headers.contains("cache-control: no-store"),
        "{}",
        answer.headers
    );
    answer.expect(200, "ok\n");
}

/// Reads until the server closes the connection, and returns how long that took from `since`.
fn wait_for_close(stream: &mut TcpStream, since: Instant) -> (Duration, String) {
    let mut text = Vec::new();
    // An error is a close too; a timeout of ours is 20 s, which no test takes for a close.
    let _ = stream.read_to_end(&mut text);
    (since.elapsed(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn headers_that_trickle_in_are_cut() {
    let running = start();
    let begun = Instant::now();
    let mut stream = connect(running.address());
    let mut trickle = stream.try_clone().expect("a socket can be cloned");
    thread::spawn(move || {
        let _ = trickle.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nX-Slow: ");
        // Ends when the server has closed.
        while trickle.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(100));
        }
    });
    let (after, text) = wait_for_close(&mut stream, begun);
    assert!((4..8).contains(&after.as_secs()), "{after:?}");
    assert_eq!(text, "");
}

#[test]
fn a_connection_that_says_nothing_is_cut() {
    let running = start();
    let begun = Instant::now();
    let (after, text) = wait_for_close(&mut connect(running.address()), begun);
    assert!((4..8).contains(&after.as_secs()), "{after:?}");
    assert_eq!(text, "");
}

#[test]
fn headers_without_end_are_cut() {
    let running = start();
    let mut stream = connect(running.address());
    let begun = Instant::now();
    let _ = stream.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n");
    let mut sent = 0;
    while stream
        .write_all(format!("X-{sent}: {}\r\n", "x".repeat(1000)).as_bytes())
        .is_ok()
    {
        sent += 1;
        assert!(sent < 1 << 16, "the server reads on and on");
    }
    let (after, text) = wait_for_close(&mut stream, begun);
    assert!(after < Duration::from_secs(4), "{after:?}");
    assert!(!text.starts_with("HTTP/1.1 200"), "{text}");
}

#[test]
fn connections_beyond_the_maximum_wait_their_turn() {
    let running = start();
    let mut idle: Vec<TcpStream> = (0..64).map(|_| connect(running.address())).collect();
    // Accepted in order, so this one is behind all of them.
    let mut late = connect(running.address());
    late.write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("the kernel takes it");
    late.set_read_timeout(Some(Duration::from_millis(500)))
        .expect("a timeout can be set");
    assert!(late.read(&mut [0; 1]).is_err(), "no answer without a place");
    idle.pop();
    late.set_read_timeout(Some(Duration::from_secs(20)))
        .expect("a timeout can be set");
    read_answer(&mut late).expect(200, "ok\n");
}

#[test]
fn a_stuck_server_is_told_of_and_does_not_silence_the_endpoint() {
    let running = start();
    let stuck = lock(&running.server.stuck);
    let reason = "the server did not answer the check within 2 s\n";
    thread::scope(|scope| {
        // More than there are threads for checks.
        for _ in 0..12 {
            scope.spawn(|| {
                running
                    .get("/livez")
                    .expect(503, &format!("live: {reason}"))
            });
        }
    });
    running.get("/metrics").expect(503, reason);
    running
        .get("/readyz?verbose")
        .expect(503, &format!("[-] live: {reason}"));
    let begun = Instant::now();
    running_version(&running.get("/version"));
    assert_eq!(running.get("/").status, 404);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    drop(stuck);
    running.get("/livez").expect(200, "ok\n");
    assert_eq!(running.get("/metrics").status, 200);
}

#[test]
fn stopping_frees_the_address_and_waits_for_nobody_for_long() {
    let running = start();
    let address = running.address();
    let silent = connect(address);
    let stuck = lock(&running.server.stuck);
    let mut waiting = connect(address);
    waiting
        .write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("the request is taken");
    // Otherwise the endpoint may be gone before it has seen the request.
    thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    drop(running.admin);
    assert!(
        begun.elapsed() < Duration::from_secs(3),
        "{:?}",
        begun.elapsed()
    );
    assert!(TcpStream::connect(address).is_err());
    drop((silent, stuck));
}

#[test]
fn an_answer_under_way_is_finished_before_the_stop() {
    let running = start();
    let stuck = lock(&running.server.stuck);
    let mut waiting = connect(running.address());
    waiting
        .write_all(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .expect("the request is taken");
    thread::sleep(Duration::from_millis(200));
    let admin = running.admin;
    let stopping = thread::spawn(move || drop(admin));
    thread::sleep(Duration::from_millis(200));
    drop(stuck);
    read_answer(&mut waiting).expect(200, "ok\n");
    stopping.join().expect("the drop returns");
}

#[test]
fn an_address_in_use_is_an_error_at_the_start() {
    let running = start();
    let state = AdminState {
        metrics: Arc::clone(&running.metrics),
        probe: Arc::clone(&running.server) as Arc<dyn Probe>,
        hosts_allowed: Vec::new(),
    };
    assert!(Admin::start(running.address(), state).is_err());
}
