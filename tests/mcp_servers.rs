//! Tools of other MCP servers in programs: the official Python SDK's server, over its stdin and over HTTP.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    os::unix::{fs::OpenOptionsExt, process::CommandExt},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

const TOKEN: &str = "canary-token-71b0c2d9";
const DEADLINE: Duration = Duration::from_secs(60);

fn script() -> PathBuf {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/run");
    run.canonicalize().unwrap()
}

/// A folder with a tools file whose namespace `far` is the server.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn over_stdio() -> Self {
        Self::with(json!({"server_connect_ms_max": 60_000}))
    }

    fn with(limits: Value) -> Self {
        let folder = Self::new();
        let count = folder.path("count");
        let far = json!({"command": script(), "args": ["server.py", "stdio", count], "env": {"GIVEN": "1"}});
        folder.write_tools(far, limits);
        folder
    }

    fn write_tools(&self, far: Value, limits: Value) {
        let tools = json!({
            "namespaces": {"far": {"mcp": far}},
            "policy": {"default": "allow", "rules": [{"deny": ["far.hidden"]}]},
            "limits": limits,
        });
        self.write("tools.json", &tools.to_string());
    }

    fn coracle(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        let cache = PathBuf::from(env::var_os("CORACLE_CACHE_DIR").unwrap());
        command
            .args(arguments)
            .args(["--tools", "tools.json"])
            .current_dir(self.0.path())
            .env("CORACLE_CACHE_DIR", std::path::absolute(cache).unwrap())
            .env("CORACLE_TEST_SECRET", TOKEN);
        command
    }

    fn document(&self, code: &str) -> Value {
        let output = self
            .coracle(&["exec", "--json", "-e", code])
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{output:?}"))
    }

    fn counted(&self) -> usize {
        fs::read_to_string(self.path("count")).map_or(0, |text| text.lines().count())
    }
}

/// A server that listens, with a token that the outbound policy puts in.
struct Listening {
    folder: Folder,
    child: Child,
    port: u16,
}

impl Listening {
    fn start() -> Self {
        let folder = Folder::new();
        // Free again at once.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
        let port = port.unwrap().port();
        let origin = format!("http://127.0.0.1:{port}");
        let mut file = fs::OpenOptions::new();
        let mut file = file
            .create_new(true)
            .write(true)
            .mode(0o600)
            .open(folder.path("secret"))
            .unwrap();
        file.write_all(TOKEN.as_bytes()).unwrap();
        let outbound = json!({
            "default_policy": "far",
            "policies": {"far": {"rules": [{"allow": [origin], "private": true, "credential": "far"}]}},
            "credentials": {"far": {
                "secret": {"file": folder.path("secret")}, "to": [origin], "as": "bearer", "plain_http": true,
            }},
        });
        folder.write("outbound.json", &outbound.to_string());
        let tools = json!({
            "namespaces": {"far": {"mcp": {"url": format!("{origin}/mcp")}}},
            "outbound": "outbound.json",
        });
        folder.write("tools.json", &tools.to_string());
        let child = Self::spawn(&folder, port);
        let listening = Self {
            folder,
            child,
            port,
        };
        listening.wait();
        listening
    }

    fn spawn(folder: &Folder, port: u16) -> Child {
        Command::new(script())
            .args(["server.py", "http"])
            .arg(folder.path("count"))
            .args([&port.to_string(), TOKEN])
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap()
    }

    fn wait(&self) {
        // Where nobody listens, a connection may become one to itself.
        let is_there =
            |stream: TcpStream| stream.local_addr().unwrap() != stream.peer_addr().unwrap();
        until(|| TcpStream::connect(("127.0.0.1", self.port)).is_ok_and(is_there));
    }

    fn restart(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.child = Self::spawn(&self.folder, self.port);
        self.wait();
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a test that waits for a process has nobody to answer"
)]
fn until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < DEADLINE, "it never was");
        thread::sleep(Duration::from_millis(50));
    }
}

fn is_alive(process: &Value) -> bool {
    // A process that has ended and is waited for by nobody is no longer alive.
    let status = fs::read_to_string(format!("/proc/{process}/stat"));
    status.is_ok_and(|status| !status.contains(") Z "))
}

/// All that both transports have alike.
fn tools_are_called(folder: &Folder) {
    let document = folder.document(
        "const catching = (promise) => promise.catch((error) => [error.code, error.message]);
         console.log(await far.count());
         ({
            sum: await far.add_numbers({ a: 2, b: 3 }),
            many: (await Promise.all(Array.from({ length: 40 }, (_, a) => far.add_numbers({ a, b: 1 })))).length,
            wrong: await catching(far.add_numbers({ a: 'two', b: 3 })),
            text: await far.text(),
            json: (await far.json()).of,
            picture: await far.picture(),
            failed: await catching(far.fail()),
            large: await catching(far.large()),
            then: await far.then_(),
            twins: Object.keys(far).filter((name) => name.startsWith('get_x')).length,
        })",
    );
    let result = &document["result"];
    assert_eq!(document["error"], Value::Null, "{document}");
    assert_eq!(result["sum"], json!({"sum": 5}), "{document}");
    assert_eq!(result["many"], 40);
    assert_eq!(result["wrong"][0], "arguments_invalid");
    assert_eq!(result["text"], "plain words");
    assert_eq!(result["json"], "text");
    let picture = json!({"type": "image", "data": "iVBORw==", "mimeType": "image/png"});
    assert_eq!(result["picture"], picture);
    assert_eq!(
        result["failed"],
        json!(["tool_failed", "fail: no luck"]),
        "{document}"
    );
    assert_eq!(result["large"][0], "limit", "{document}");
    assert_eq!(result["then"], "this is then");
    assert_eq!(result["twins"], 2);
    assert_eq!(folder.counted(), 1);
}

fn tools_are_described(folder: &Folder) {
    let found = folder.coracle(&["tools", "search", "--json"]).output();
    let found: Value = serde_json::from_slice(&found.unwrap().stdout).unwrap();
    assert_eq!(found["total"], 15, "three pages: {found}");
    let declared = folder.coracle(&["tools", "describe", "far.add_numbers"]);
    let declared = { declared }.output().unwrap();
    let declared = String::from_utf8(declared.stdout).unwrap();
    assert!(
        declared.contains("sum: number") && declared.contains("a: number"),
        "{declared}"
    );
    // A description does not leave its comment.
    let outside = declared.split("*/").nth(1).unwrap();
    assert!(!outside.contains("evil"), "{declared}");
}

#[test]
fn a_server_over_stdio_has_tools() {
    let folder = Folder::over_stdio();
    tools_are_called(&folder);
    tools_are_described(&folder);
    let asked = folder.document("await far.ask()");
    assert_eq!(asked["error"]["toolCode"], "tool_failed", "{asked}");
    let message = asked["error"]["message"].as_str().unwrap();
    assert!(message.contains("there is nobody to ask"), "{message}");
}

#[test]
fn a_server_over_http_has_tools_and_a_credential_that_nobody_sees() {
    let listening = Listening::start();
    tools_are_called(&listening.folder);
    tools_are_described(&listening.folder);
    // Without the policy that puts it in, the server is not reached, and the error says how it would be.
    let tools = fs::read_to_string(listening.folder.path("tools.json")).unwrap();
    let mut tools: Value = serde_json::from_str(&tools).unwrap();
    tools.as_object_mut().unwrap().remove("outbound");
    listening.folder.write("tools.json", &tools.to_string());
    let ended = listening.folder.coracle(&["exec", "-e", "1"]).output();
    let ended = ended.unwrap();
    let told = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(4), "{told}");
    assert!(told.contains("the MCP server of \"far\""), "{told}");
}

/// A process has what it is given, and goes with the command, as does what it has started.
#[test]
fn a_process_has_a_clean_environment_and_ends_with_us() {
    let folder = Folder::over_stdio();
    let document = folder.document("await far.environment()");
    let result = &document["result"];
    let names: Vec<&str> = result["names"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    assert!(
        names.contains(&"GIVEN") && names.contains(&"PATH"),
        "{names:?}"
    );
    assert!(!names.contains(&"CORACLE_TEST_SECRET"), "{names:?}");
    assert!(!names.contains(&"HOME"), "{names:?}");
    until(|| !is_alive(&result["process"]) && !is_alive(&result["child"]));
    // Neither does a signal leave anything behind.
    let code = "const { process, child } = await far.environment(); console.log(process, child); await far.slow()";
    let mut command = folder.coracle(&["exec", "--wall-ms", "60000", "-e", code]);
    let run = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn();
    let mut run = run.unwrap();
    let mut children = Vec::new();
    until(|| {
        children = descendants(run.id());
        children.iter().any(|child| is_called(*child, "sleep"))
    });
    let pid = rustix::process::Pid::from_raw(run.id() as i32).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(run.wait().unwrap().code(), Some(128 + 15));
    until(|| children.iter().all(|child| !is_alive(&json!(child))));
}

fn is_called(process: u32, name: &str) -> bool {
    let own = fs::read_to_string(format!("/proc/{process}/comm"));
    own.is_ok_and(|own| own.trim_end() == name)
}

/// Processes below a process, at any depth.
fn descendants(of: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut waiting = vec![of];
    while let Some(parent) = waiting.pop() {
        let Ok(tasks) = fs::read_dir(format!("/proc/{parent}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            let children = children.split_whitespace().flat_map(str::parse::<u32>);
            for child in children {
                found.push(child);
                waiting.push(child);
            }
        }
    }
    found
}

/// A call underway when a server dies is not made again; the next one reaches a new server.
#[test]
fn a_server_that_has_gone_is_reached_again() {
    let folder = Folder::over_stdio();
    let document = folder.document(
        "const died = await far.die().catch((error) => error.code);
         await new Promise((resolve) => setTimeout(resolve, 100));
         [died, await far.text()]",
    );
    assert_eq!(
        document["result"],
        json!(["server_disconnected", "plain words"]),
        "{document}"
    );
    let mut listening = Listening::start();
    let mut agent = Agent::start(&listening.folder);
    assert_eq!(agent.execute("await far.count()"), json!("counted"));
    listening.restart();
    // A session that the new server does not know is made anew.
    assert_eq!(agent.execute("await far.count()"), json!("counted"));
    assert_eq!(listening.folder.counted(), 2);
}

#[test]
fn what_takes_too_long_or_is_no_server_is_an_error_that_says_so() {
    let folder = Folder::with(json!({"server_call_ms_max": 300, "server_connect_ms_max": 60_000}));
    let document = folder.document("await far.slow()");
    assert_eq!(document["error"]["toolCode"], "timeout", "{document}");
    let message = document["error"]["message"].as_str().unwrap();
    assert!(message.contains("server_call_ms_max"), "{message}");
    let run = script();
    for (far, limits, code, says) in [
        (
            json!({"command": run, "args": ["server.py", "silent", "x"]}),
            json!({"server_connect_ms_max": 500}),
            4,
            "server_connect_ms_max",
        ),
        (
            json!({"command": run, "args": ["server.py", "mute", "x"]}),
            json!({}),
            4,
            "there is nothing to serve",
        ),
        (
            json!({"command": run, "args": ["server.py", "stdio", "x"]}),
            json!({"server_pages_max": 2}),
            4,
            "server_pages_max",
        ),
        (
            json!({"command": run, "args": ["server.py", "stdio", "x"]}),
            json!({"server_list_bytes_max": 100}),
            4,
            "server_list_bytes_max",
        ),
        (
            json!({"command": "no-such-program"}),
            json!({}),
            4,
            "can't be started",
        ),
        (
            json!({"command": "a", "url": "http://127.0.0.1/"}),
            json!({}),
            2,
            "either command or url",
        ),
        (
            json!({"command": "a", "env_from": ["NO_SUCH_VARIABLE"]}),
            json!({}),
            2,
            "wants NO_SUCH_VARIABLE",
        ),
        (
            json!({"command": "a", "arguments": []}),
            json!({}),
            2,
            "unknown field",
        ),
    ] {
        folder.write_tools(far.clone(), limits);
        let ended = folder.coracle(&["exec", "-e", "1"]).output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr);
        assert_eq!(ended.status.code(), Some(code), "{far}: {told}");
        assert!(told.contains(says), "{far}: {told}");
    }
}

/// Where a list changes, the next program has the tools that there are then.
#[test]
fn a_list_that_changes_is_read_again() {
    for listening in [None, Some(Listening::start())] {
        let stdio = Folder::over_stdio();
        let folder = listening.as_ref().map_or(&stdio, |it| &it.folder);
        let mut agent = Agent::start(folder);
        let grown = "Object.keys(far).filter((name) => name.startsWith('grown'))";
        assert_eq!(agent.execute(grown), json!([]));
        assert_eq!(agent.execute("await far.grow()"), json!("grown"));
        until(|| agent.execute(grown) == json!(["grown_5"]));
        assert_eq!(
            agent.execute("await far.grown_5()"),
            json!("this is grown-5")
        );
    }
}

/// An agent that speaks to `coracle mcp`.
struct Agent {
    child: Child,
    answers: BufReader<std::process::ChildStdout>,
    calls: u64,
}

impl Agent {
    fn start(folder: &Folder) -> Self {
        let mut command = folder.coracle(&["mcp"]);
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap());
        let mut agent = Self {
            child,
            answers,
            calls: 0,
        };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}});
        agent.ask("initialize", &hello);
        agent.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        agent
    }

    fn say(&mut self, message: &Value) {
        let stdin = self.child.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(
                self.answers.read_line(&mut line).unwrap() > 0,
                "it has ended"
            );
            let answer: Value = serde_json::from_str(&line).unwrap();
            if answer["id"] == id {
                return answer["result"].clone();
            }
        }
    }

    fn execute(&mut self, code: &str) -> Value {
        let arguments = json!({"name": "execute", "arguments": {"code": code}});
        let answer = self.ask("tools/call", &arguments);
        let told = &answer["structuredContent"];
        assert_eq!(told["error"], Value::Null, "{code}: {answer}");
        told["result"].clone()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}
