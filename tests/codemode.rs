//! Code Mode from outside: `coracle exec`, `tools` and `mcp`, with tools that are a shop's API on the loopback address.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use axum::{
    Router,
    extract::{Path as Part, RawQuery, State},
    http::{HeaderMap, StatusCode},
    routing::{delete, get},
};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    sync::{Arc, Mutex},
};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// What is put into requests, and nobody is to see.
const SECRET: &str = "canary-5d0c7e91aa42f6b3";

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Shop, version: "1" }
paths:
  /pets:
    get:
      operationId: listPets
      summary: Lists the pets.
      parameters:
        - { name: limit, in: query, schema: { type: integer, minimum: 1 } }
      responses:
        "200":
          content:
            application/json:
              schema: { type: array, items: { type: object, properties: { name: { type: string } }, required: [name] } }
  /pets/{id}:
    delete:
      operationId: deletePet
      summary: Removes a pet for good.
      parameters:
        - { name: id, in: path, required: true, schema: { type: integer } }
      responses: { "204": {} }
  /echo:
    get:
      operationId: echo
      summary: Says what it was asked with.
      responses: { "200": { content: { application/json: { schema: {} } } } }
  /hidden:
    get:
      operationId: hidden
      responses: { "200": {} }
  /broken:
    get:
      operationId: broken
      responses: { "200": {} }
  /answers/{kind}:
    get:
      operationId: answers
      parameters:
        - { name: kind, in: path, required: true, schema: { type: string } }
      responses: { "200": {} }
"#;

/// A shop, the files that make tools of it, and what it has been asked with.
struct Shop {
    folder: TempDir,
    authorizations: Arc<Mutex<Vec<String>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Shop {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shop {
    async fn open() -> Self {
        let authorizations: Arc<Mutex<Vec<String>>> = Arc::default();
        let app = Router::new()
            .route("/pets", get(pets))
            .route(
                "/pets/{id}",
                delete(|Part(_): Part<u32>| async { StatusCode::NO_CONTENT }),
            )
            .route("/echo", get(echo))
            .route(
                "/broken",
                get(|| async { (StatusCode::BAD_GATEWAY, "no luck") }),
            )
            .route("/answers/{kind}", get(answers))
            .with_state(Arc::clone(&authorizations));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        let folder = TempDir::new().unwrap();
        let secret = folder.path().join("secret");
        let mut file = fs::OpenOptions::new()
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(&secret)
            .unwrap();
        file.write_all(SECRET.as_bytes()).unwrap();
        let shop = Self {
            folder,
            authorizations,
            task,
        };
        shop.write("shop.yaml", DOCUMENT);
        let outbound = json!({
            "default_policy": "shop",
            "policies": {"shop": {"rules": [
                {"name": "hidden", "deny": [origin], "paths": ["/hidden"]},
                {"allow": [origin], "private": true, "credential": "shop"},
            ]}},
            "credentials": {"shop": {
                "secret": {"file": secret}, "to": [origin], "as": "bearer", "plain_http": true,
            }},
        });
        shop.write("outbound.json", &outbound.to_string());
        let tools = json!({
            "namespaces": {"shop": {"openapi": "shop.yaml", "server": origin}},
            "policy": {"default": "allow", "rules": [{"deny": ["shop.delete*"]}]},
            "outbound": "outbound.json",
        });
        shop.write("tools.json", &tools.to_string());
        shop
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path().join(name), text).unwrap();
    }

    async fn run(&self, arguments: &[&str]) -> Ended {
        self.run_with(arguments, "").await
    }

    async fn run_with(&self, arguments: &[&str], input: &str) -> Ended {
        let mut command = coracle();
        command.args(arguments).current_dir(self.path());
        let input = input.to_owned();
        ended(command, input).await
    }

    async fn document(&self, code: &str) -> Value {
        let ended = self
            .run(&["exec", "--tools", "tools.json", "--json", "-e", code])
            .await;
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}"))
    }
}

async fn pets(
    State(seen): State<Arc<Mutex<Vec<String>>>>,
    headers: HeaderMap,
    RawQuery(query): RawQuery,
) -> Answer {
    seen.lock()
        .unwrap()
        .push(headers["authorization"].to_str().unwrap().into());
    let limit = query.as_deref().unwrap_or("limit=3");
    let limit: usize = limit.strip_prefix("limit=").unwrap().parse().unwrap();
    let names = ["Ada", "Bob", "Cy"];
    let pets = names.iter().take(limit).map(|name| json!({"name": name}));
    (JSON, Value::from_iter(pets).to_string().into_bytes())
}

/// A media type and a body.
type Answer = ([(&'static str, &'static str); 1], Vec<u8>);
const JSON: [(&str, &str); 1] = [("content-type", "application/json; charset=utf-8")];

/// Answers of all kinds, some of them hostile.
async fn answers(Part(kind): Part<String>) -> Answer {
    match &kind[..] {
        "large" => (JSON, vec![b' '; 5 << 20]),
        "deep" => (JSON, "[".repeat(1 << 20).into_bytes()),
        "wrong" => (JSON, b"{\"a\": ".to_vec()),
        "empty" => (JSON, Vec::new()),
        "text" => ([("content-type", "text/plain")], b"hello".to_vec()),
        _ => ([("content-type", "application/octet-stream")], vec![0, 255]),
    }
}

/// A server that sends its secret back.
async fn echo(headers: HeaderMap) -> Answer {
    let said = json!({"authorization": headers["authorization"].to_str().unwrap()});
    (JSON, said.to_string().into_bytes())
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
            code: output.status.code().unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn coracle() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
    command.env_remove("CORACLE_TOKEN");
    let cache = env::var_os("CORACLE_CACHE_DIR").expect(".cargo/config.toml sets it");
    command.env(
        "CORACLE_CACHE_DIR",
        std::path::absolute(PathBuf::from(cache)).unwrap(),
    );
    command
}

async fn ended(mut command: Command, input: String) -> Ended {
    let run = move || {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child
            .stdin
            .take()
            .unwrap()
            .write_all(input.as_bytes())
            .unwrap();
        child.wait_with_output().unwrap().into()
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_from_anywhere_is_run_and_its_result_is_json() {
    let shop = Shop::open().await;
    shop.write("agent.ts", "const pets = await shop.listPets({ limit: 2 });\nconsole.log('got', pets.length);\npets.map((pet: { name: string }) => pet.name)\n");
    let ended = shop
        .run(&["exec", "agent.ts", "--tools", "tools.json"])
        .await;
    assert_eq!(
        (ended.code, &ended.stdout[..]),
        (0, "[\"Ada\",\"Bob\"]\n"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("[log] got 2"), "{ended:?}");
    let ended = shop.run(&["exec", "-e", "6 * 7"]).await;
    assert_eq!((ended.code, &ended.stdout[..]), (0, "42\n"), "{ended:?}");
    for arguments in [&["exec"][..], &["exec", "-"]] {
        let ended = shop
            .run_with(
                arguments,
                "Here:\n```js\nasync () => ({ ok: true });\n```\n",
            )
            .await;
        assert_eq!(
            (ended.code, &ended.stdout[..]),
            (0, "{\"ok\":true}\n"),
            "{ended:?}"
        );
    }
    let document = shop
        .document("console.log(1); await shop.listPets({})")
        .await;
    assert_eq!(document["result"].as_array().unwrap().len(), 3);
    assert_eq!(document["calls"][0]["tool"], "shop.listPets");
    assert_eq!(document["logs"][0]["message"], "1");
    assert!(document["usage"]["cpuMicros"].as_u64().unwrap() > 0);
}

/// Requests go where the outbound policy lets them, with a credential that nobody sees.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_tools_leave_by_the_outbound_policy() {
    let shop = Shop::open().await;
    let document = shop.document("await shop.listPets()").await;
    assert_eq!(document["error"], Value::Null, "{document}");
    assert_eq!(
        shop.authorizations.lock().unwrap()[..],
        [format!("Bearer {SECRET}")]
    );
    let document = shop
        .document("console.log(await shop.echo()); await shop.echo()")
        .await;
    assert_eq!(document["result"]["authorization"], "Bearer [redacted]");
    assert!(!document.to_string().contains(SECRET), "{document}");
    let document = shop.document("await shop.hidden()").await;
    assert_eq!(document["error"]["toolCode"], "policy_denied", "{document}");
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("\"hidden\""), "{message}");
    let document = shop.document("await shop.broken()").await;
    assert_eq!(document["error"]["toolCode"], "http_status");
    assert!(
        document["error"]["message"]
            .as_str()
            .unwrap()
            .contains("502 Bad Gateway: no luck"),
        "{document}"
    );
    // The program itself has no way out.
    let document = shop.document("await fetch('http://127.0.0.1:1/')").await;
    assert!(document["error"]["message"].is_string(), "{document}");
    // Without the file, nothing leaves.
    let tools = fs::read_to_string(shop.path().join("tools.json")).unwrap();
    let mut tools: Value = serde_json::from_str(&tools).unwrap();
    tools.as_object_mut().unwrap().remove("outbound");
    shop.write("tools.json", &tools.to_string());
    let document = shop.document("await shop.listPets()").await;
    assert_eq!(document["error"]["toolCode"], "policy_denied", "{document}");
}

/// The same on a server: the program runs there, the tools stay here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_runs_on_a_server_with_tools_of_the_command() {
    let server = support::Server::start();
    let shop = Shop::open().await;
    let address = server.address().to_owned();
    let tools = ["--tools", "tools.json", "--connect", &address];
    let code = "const pets: any[] = await shop.listPets({ limit: 1 }); pets[0].name";
    let arguments = [&["exec", "-e", code][..], &tools].concat();
    let ended = shop.run(&arguments).await;
    assert_eq!(
        (ended.code, &ended.stdout[..]),
        (0, "\"Ada\"\n"),
        "{ended:?}"
    );
    let arguments = [
        &["exec", "-e", "while (true) {}", "--cpu-ms", "50"][..],
        &tools,
    ]
    .concat();
    let ended = shop.run(&arguments).await;
    assert_eq!(ended.code, 3, "{ended:?}");
    server.is_empty().await;
    let nowhere = ["exec", "-e", "1", "--connect", "127.0.0.1:1"];
    assert_eq!(shop.run(&nowhere).await.code, 4);
}

/// What an API answers is read as what it says it is, within bounds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_of_apis_are_bounded() {
    let shop = Shop::open().await;
    let code = "const told = {};
                for (const kind of ['large', 'deep', 'wrong', 'empty', 'text', 'bytes']) {
                    told[kind] = await shop.answers({ kind }).catch((error) => error.message);
                }
                told";
    let document = shop.document(code).await;
    let told = &document["result"];
    let says = |kind: &str, what: &str| {
        let text = told[kind].as_str().unwrap_or_else(|| panic!("{document}"));
        assert!(text.contains(what), "{kind}: {text}");
    };
    says("large", "call_result_bytes_max");
    says("deep", "recursion limit exceeded");
    says("wrong", "what is no JSON");
    says("text", "hello");
    assert_eq!(
        (&told["empty"], &told["bytes"]),
        (&Value::Null, &json!({"$bytes": "AP8="}))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_point_into_the_program_and_the_exit_code_says_whose_they_are() {
    let shop = Shop::open().await;
    shop.write(
        "agent.ts",
        "const a = 1;\nconst b: string = null!;\nb.length;\n",
    );
    let ended = shop.run(&["exec", "agent.ts"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("agent.ts:3:") && ended.stderr.contains("3 | b.length;"),
        "{ended:?}"
    );
    shop.write("broken.ts", "const a = 1;\nconst b = ;\n");
    let ended = shop.run(&["exec", "broken.ts"]).await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("SyntaxError") && ended.stderr.contains("2 | const b = ;"),
        "{ended:?}"
    );
    let ended = shop
        .run(&["exec", "--cpu-ms", "50", "-e", "while (true) {}"])
        .await;
    assert_eq!(ended.code, 3, "{ended:?}");
    assert!(ended.stderr.contains("cpu_ms_max"), "{ended:?}");
    let ended = shop
        .run(&[
            "exec",
            "--tools",
            "tools.json",
            "-e",
            "await shop.listPets({ limit: 0, nope: 1 })",
        ])
        .await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("input.limit is 0")
            && ended.stderr.contains("input.nope is not known"),
        "{ended:?}"
    );
    let long = " ".repeat(20_001) + "1";
    let ended = shop.run_with(&["exec", "--preset", "article"], &long).await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.stderr.contains("program_chars_max"), "{ended:?}");
    shop.write("wrong.json", r#"{"namespace": {}}"#);
    let ended = shop
        .run(&["exec", "--tools", "wrong.json", "-e", "1"])
        .await;
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(
        ended.stderr.contains("unknown field `namespace`"),
        "{ended:?}"
    );
    let ended = shop.run(&["exec", "-e", "'x'.repeat(30000)"]).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.stdout.len() < 25_000 && ended.stderr.contains("--whole shows all"),
        "{}",
        ended.stderr
    );
    let ended = shop
        .run(&["exec", "--whole", "-e", "'x'.repeat(30000)"])
        .await;
    assert_eq!(ended.stdout.len(), 30_003);
    let ended = shop
        .run(&["exec", "--tools", "tools.json", "-e", "shop.listPets(); 1"])
        .await;
    assert!(
        ended.stderr.contains("did not wait for shop.listPets"),
        "{ended:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_are_found_and_declared() {
    let shop = Shop::open().await;
    let ended = shop
        .run(&["tools", "search", "list", "pets", "--tools", "tools.json"])
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended
            .stdout
            .starts_with("shop.listPets (limit)  Lists the pets.\n"),
        "{ended:?}"
    );
    assert!(!ended.stdout.contains("deletePet"), "{ended:?}");
    let ended = shop
        .run(&["tools", "search", "--json", "--tools", "tools.json"])
        .await;
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(found["total"], 5, "{found}");
    let ended = shop
        .run(&["tools", "search", "xylophone", "--tools", "tools.json"])
        .await;
    assert_eq!(
        (ended.code, &ended.stdout[..]),
        (1, "nothing found\n"),
        "{ended:?}"
    );
    let ended = shop
        .run(&[
            "tools",
            "describe",
            "shop.listPets",
            "--tools",
            "tools.json",
        ])
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(
        ended.stdout.contains("function listPets(input?: {")
            && ended.stdout.contains("}): Promise<"),
        "{ended:?}"
    );
    let ended = shop
        .run(&[
            "tools",
            "describe",
            "shop.listPats",
            "--tools",
            "tools.json",
        ])
        .await;
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(
        ended.stderr.contains("did you mean shop.listPets?"),
        "{ended:?}"
    );
    let ended = shop.run(&["tools", "types", "--tools", "tools.json"]).await;
    assert!(
        ended.stdout.contains("declare namespace shop") && !ended.stdout.contains("deletePet"),
        "{ended:?}"
    );
}

/// The official client of PyPI finds, describes and executes, and sees no secret.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_speaks_to_it_by_the_model_context_protocol() {
    let shop = Shop::open().await;
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/run");
    let mut command = Command::new(run);
    command
        .arg("client_test.py")
        .arg(env!("CARGO_BIN_EXE_coracle"))
        .arg(shop.path().join("tools.json"));
    command.env(
        "CORACLE_CACHE_DIR",
        std::path::absolute(PathBuf::from(env::var_os("CORACLE_CACHE_DIR").unwrap())).unwrap(),
    );
    command.env("CORACLE_TEST_SECRET", SECRET);
    let ended = ended(command, String::new()).await;
    assert_eq!(ended.code, 0, "{}\n{}", ended.stdout, ended.stderr);
    assert!(ended.stdout.contains("all is well"), "{ended:?}");
    assert!(!ended.stdout.contains(SECRET) && !ended.stderr.contains(SECRET));
}

/// What is no message, or far too long, is answered or dropped, and the session goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_misbehaves_harms_nobody() {
    let shop = Shop::open().await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"},
    }});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let nested = "[".repeat(100_000);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let input = format!(
        "{hello}\n{initialized}\nnonsense\n{nested}\n{}\n{list}\n",
        "x".repeat(5 << 20)
    );
    let ended = shop
        .run_with(&["mcp", "--tools", "tools.json"], &input)
        .await;
    assert_eq!(ended.code, 0, "{ended:?}");
    let answers = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let listed = answers
        .into_iter()
        .find(|answer| answer["id"] == 2)
        .expect("an answer");
    assert_eq!(
        listed["result"]["tools"].as_array().unwrap().len(),
        2,
        "{listed}"
    );
}
