//! Programs that wait for somebody, from outside: paused, approved by another process, killed, rejected, taken back. What is
//! counted is what a shop was really asked to do.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use axum::{
    Router,
    extract::{Path as Part, State},
    routing::{delete, get, post},
};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Shop, version: "1" }
paths:
  /price:
    get: { operationId: price, responses: { "200": { content: { application/json: { schema: {} } } } } }
  /orders/{item}:
    post:
      operationId: order
      parameters: [ { name: item, in: path, required: true, schema: { type: string } } ]
      responses: { "200": { content: { application/json: { schema: {} } } } }
  /orders/{id}/cancel:
    delete:
      operationId: cancel
      parameters: [ { name: id, in: path, required: true, schema: { type: integer } } ]
      responses: { "200": { content: { application/json: { schema: {} } } } }
"#;

/// What has been done, such as `order nuts`.
type Done = Arc<Mutex<Vec<String>>>;

struct Shop {
    folder: TempDir,
    done: Done,
}

impl Shop {
    async fn open() -> Self {
        let done: Done = Arc::default();
        let app = Router::new()
            .route("/price", get(async || told(&json!({ "cents": 1250 }))))
            .route("/orders/{item}", post(order))
            .route("/orders/{id}/cancel", delete(cancel))
            .with_state(Arc::clone(&done));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let folder = TempDir::new().unwrap();
        let write = |name: &str, text: String| fs::write(folder.path().join(name), text).unwrap();
        write("shop.yaml", DOCUMENT.into());
        let outbound = json!({
            "default_policy": "shop",
            "policies": {"shop": {"rules": [{"allow": [origin], "private": true}]}},
        });
        write("outbound.json", outbound.to_string());
        let tools = json!({
            "namespaces": {"shop": {"openapi": "shop.yaml", "server": origin}},
            "policy": {"default": "allow", "rules": [{"ask": ["shop.order"]}]},
            "outbound": "outbound.json",
            "reverts": {"shop.order": {"call": "shop.cancel", "with": {"id": "/result/id"}}},
        });
        write("tools.json", tools.to_string());
        Self { folder, done }
    }

    fn done(&self) -> Vec<String> {
        self.done.lock().unwrap().clone()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        let cache = env::var_os("CORACLE_CACHE_DIR").expect(".cargo/config.toml sets it");
        command
            .env(
                "CORACLE_CACHE_DIR",
                std::path::absolute(PathBuf::from(cache)).unwrap(),
            )
            .args(arguments)
            .args(["--runs", "runs.db"])
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    async fn ended(&self, arguments: &[&str]) -> Ended {
        let mut command = self.command(arguments);
        tokio::task::spawn_blocking(move || command.output().unwrap().into())
            .await
            .unwrap()
    }

    /// Runs a program that is paused; answers the run.
    async fn paused(&self, program: &str) -> String {
        let ended = self.exec(program).await;
        assert_eq!(ended.code, 5, "{ended:?}");
        self.run().await
    }

    async fn exec(&self, program: &str) -> Ended {
        self.ended(&["exec", "--tools", "tools.json", "-e", program])
            .await
    }

    /// The run that was begun last.
    async fn run(&self) -> String {
        let listed = self.ended(&["runs", "list"]).await.document();
        listed[0]["run"].as_str().unwrap().to_owned()
    }

    async fn show(&self, run: &str) -> Value {
        self.ended(&["runs", "show", run]).await.document()
    }

    async fn approve(&self, run: &str, more: &[&str]) -> Ended {
        let mut arguments = vec!["runs", "approve", run, "--tools", "tools.json"];
        arguments.extend(more);
        self.ended(&arguments).await
    }
}

type Answer = ([(&'static str, &'static str); 1], String);

fn told(value: &Value) -> Answer {
    ([("content-type", "application/json")], value.to_string())
}

async fn order(State(done): State<Done>, Part(item): Part<String>) -> Answer {
    let id = {
        let mut done = done.lock().unwrap();
        done.push(format!("order {item}"));
        done.len()
    };
    if item == "slow" {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    told(&json!({ "id": id }))
}

async fn cancel(State(done): State<Done>, Part(id): Part<u32>) -> Answer {
    done.lock().unwrap().push(format!("cancel {id}"));
    told(&json!({}))
}

#[derive(Debug)]
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Ended {
    fn document(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// What was done before the pause is not done again, and what a program sees of time and chance is what it saw.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_process_goes_on_where_it_was() {
    let shop = Shop::open().await;
    let run = shop
        .paused(
            "const before = [Date.now(), Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(4))]];
             const { id } = await shop.order({ item: 'nuts-' + before[2] });
             await shop.order({ item: 'oats-' + before[1] });
             return { before, id, later: Date.now() >= before[0], is: new Date(0) instanceof Date };",
        )
        .await;
    assert_eq!(shop.done(), [""; 0]);
    let first = shop.show(&run).await;
    assert_eq!(
        (&first["state"], &first["calls"][0]["state"]),
        (&json!("paused"), &json!("asked"))
    );
    let ended = shop.approve(&run, &[]).await;
    assert_eq!(ended.code, 5, "{ended:?}");
    let ended = shop.approve(&run, &[]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let document = ended.document();
    let result = &document["result"];
    let (random, uuid) = (&result["before"][1], &result["before"][2]);
    let nuts = format!("order nuts-{}", uuid.as_str().unwrap());
    assert_eq!(shop.done(), [nuts, format!("order oats-{random}")]);
    assert_eq!(
        (&result["id"], &result["later"], &result["is"]),
        (&json!(1), &json!(true), &json!(true))
    );
    assert_eq!(result["before"][0], first["createdMs"]);
    // Approving of what is over tells what came of it, and does nothing.
    let again = shop.approve(&run, &[]).await;
    assert_eq!((again.code, again.document()), (0, document));
    assert_eq!(shop.done().len(), 2);
}

/// Several calls are asked about at once, each can be approved by itself, and two who approve at the same time are one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approvals_are_each_counted_once() {
    let shop = Shop::open().await;
    let program =
        "const made = await Promise.all(['a', 'b', 'c'].map((item) => shop.order({ item })));
                   return [made.length, (await shop.price()).cents];";
    let run = shop.paused(program).await;
    let asked = shop.show(&run).await;
    let states: Vec<_> = (0..3)
        .map(|call| asked["calls"][call]["state"].clone())
        .collect();
    assert_eq!(states, ["asked"; 3]);
    let ended = shop.approve(&run, &["--call", "1"]).await;
    assert_eq!((ended.code, shop.done()), (5, Vec::new()), "{ended:?}");
    let (one, other) = tokio::join!(shop.approve(&run, &[]), shop.approve(&run, &[]));
    let codes = [one.code, other.code];
    // The other finds it over, or somebody at it.
    assert!(
        codes.contains(&0) && codes.iter().all(|code| [0, 4].contains(code)),
        "{one:?} {other:?}"
    );
    let mut done = shop.done();
    done.sort();
    assert_eq!(done, ["order a", "order b", "order c"]);
    assert_eq!(shop.show(&run).await["outcome"]["result"], json!([3, 1250]));
}

/// The process that was paused is killed; the effect is made once all the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_agent_loses_nothing() {
    let shop = Shop::open().await;
    let mut agent = shop
        .command(&["mcp", "--tools", "tools.json"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
    }});
    let code = "await shop.price(); const { id } = await shop.order({ item: 'nuts' }); return id";
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "execute", "arguments": {"code": code},
    }});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut input = agent.stdin.take().unwrap();
    writeln!(input, "{hello}\n{initialized}\n{call}").unwrap();
    let run = until(|| {
        let listed: Ended = shop.command(&["runs", "list"]).output().unwrap().into();
        let runs: Value = serde_json::from_str(&listed.stdout).ok()?;
        let is_paused = runs[0]["state"] == "paused";
        is_paused.then(|| runs[0]["run"].as_str().unwrap().to_owned())
    })
    .await;
    kill(&mut agent);
    let ended = shop.approve(&run, &[]).await;
    assert_eq!(
        (ended.code, &ended.document()["result"]),
        (0, &json!(1)),
        "{ended:?}"
    );
    assert_eq!(shop.done(), ["order nuts"]);
}

/// A call during which the process is killed is not made again: the program is told that nobody knows.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_underway_is_not_made_again() {
    let shop = Shop::open().await;
    let run = shop
        .paused("try { await shop.order({ item: 'slow' }); } catch (error) { return error.code }")
        .await;
    let arguments = ["runs", "approve", &run, "--tools", "tools.json"];
    let mut approving = shop.command(&arguments).spawn().unwrap();
    until(|| (shop.done() == ["order slow"]).then_some(())).await;
    // Nobody else may go on while somebody is at it.
    let busy = shop
        .ended(&["runs", "resume", &run, "--tools", "tools.json"])
        .await;
    assert!(
        busy.code == 4 && busy.stderr.contains("another process is at the run"),
        "{busy:?}"
    );
    kill(&mut approving);
    let ended = loop {
        let ended = shop
            .ended(&["runs", "resume", &run, "--tools", "tools.json"])
            .await;
        match ended.stderr.contains("another process is at the run") {
            true => tokio::time::sleep(Duration::from_millis(500)).await,
            false => break ended,
        }
    };
    assert_eq!(
        (ended.code, &ended.document()["result"]),
        (0, &json!("outcome_unknown")),
        "{ended:?}"
    );
    assert_eq!(shop.done(), ["order slow"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_rejected_is_over_and_what_was_done_is_taken_back_once() {
    let shop = Shop::open().await;
    let program = "for (const item of ['a', 'b', 'c']) await shop.order({ item });";
    let run = shop.paused(program).await;
    for _ in 0..2 {
        let ended = shop.approve(&run, &[]).await;
        assert_eq!(ended.code, 5, "{ended:?}");
    }
    let rollback = ["runs", "rollback", &run, "--tools", "tools.json"];
    let early = shop.ended(&rollback).await;
    assert!(
        early.code == 2 && early.stderr.contains("reject it first"),
        "{early:?}"
    );
    let rejected = shop
        .ended(&["runs", "reject", &run, "--reason", "too much"])
        .await;
    assert_eq!(rejected.code, 0, "{rejected:?}");
    let shown = shop.show(&run).await;
    assert_eq!(
        (&shown["state"], &shown["outcome"]["rejected"]),
        (&json!("rejected"), &json!("too much"))
    );
    let late = shop.approve(&run, &[]).await;
    assert_eq!(
        (late.code, &late.document()["rejected"]),
        (0, &json!("too much")),
        "{late:?}"
    );
    for _ in 0..2 {
        let ended = shop.ended(&rollback).await;
        assert_eq!(ended.code, 0, "{ended:?}");
    }
    assert_eq!(shop.done(), ["order a", "order b", "cancel 2", "cancel 1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_run_is_said() {
    let shop = Shop::open().await;
    let missing = shop.ended(&["runs", "show", "r0"]).await;
    assert!(
        missing.code == 4 && missing.stderr.contains("there is no run r0"),
        "{missing:?}"
    );
    // A program that needs nobody ends at once, and is kept.
    let ended = shop.exec("return (await shop.price()).cents").await;
    assert_eq!((ended.code, ended.stdout.trim()), (0, "1250"), "{ended:?}");
    let run = shop.run().await;
    assert_eq!(shop.show(&run).await["state"], "ended");
    assert_eq!(shop.ended(&["runs", "delete", &run]).await.code, 0);
    assert_eq!(shop.ended(&["runs", "list"]).await.document(), json!([]));
    fs::write(shop.folder.path().join("runs.db"), "no file of SQLite").unwrap();
    for side in ["runs.db-wal", "runs.db-shm"] {
        let _ = fs::remove_file(Path::new(shop.folder.path()).join(side));
    }
    let broken = shop.ended(&["runs", "list"]).await;
    assert!(
        broken.code == 4 && broken.stderr.contains("not a database"),
        "{broken:?}"
    );
}

async fn until<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "it does not come"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// As `kill -9` does.
fn kill(child: &mut Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}
