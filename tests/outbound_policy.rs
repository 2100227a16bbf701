//! Requests that leave by a policy: what is let out, what is put in, and what is told of it. The binary is the real one,
//! and so is the website that it talks to.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

mod support;

use coracle_client::{
    Coracle, Entrypoint, Narrowed, NarrowedBy, Outbound, Payload, Request, Target, Thrown, Value,
    args,
};
use futures::future::BoxFuture;
use serde_json::json;
use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    process::Command,
    sync::{Arc, Mutex},
};
use support::{Server, answer, class, client, eventually, module, value, website};
use tempfile::TempDir;
use website::Website;

const SECRET: &str = "canary-8f3d61b2c90ae475";

/// A server with that file.
struct Setup {
    server: Server,
    coracle: Coracle,
    folder: TempDir,
}

async fn start(outbound: &serde_json::Value) -> Setup {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("outbound.json");
    fs::write(&file, outbound.to_string()).unwrap();
    let server = Server::start_with(&[("outbound-file", file.to_str().unwrap())]);
    let coracle = client(server.address()).await;
    Setup {
        server,
        coracle,
        folder,
    }
}

/// A policy that lets requests to the website out, with a credential for `/echo`.
fn outbound(website: &Website, secret_file: &str) -> serde_json::Value {
    let origin = website.url("");
    json!({
        "default_policy": "site",
        "policies": {"site": {"rules": [
            {"name": "hidden", "deny": [origin], "paths": ["/hidden/**"]},
            {"allow": [origin], "paths": ["/echo"], "private": true, "credential": "site"},
            {"ask": [origin], "paths": ["/ask/**"], "private": true},
            {"allow": [origin], "private": true}
        ]}},
        "credentials": {"site": {
            "secret": {"file": secret_file}, "to": [origin], "as": "bearer", "plain_http": true
        }}
    })
}

fn secret_file(folder: &TempDir) -> String {
    use std::os::unix::fs::OpenOptionsExt;
    let path = folder.path().join("secret");
    let mut options = fs::OpenOptions::new();
    let mut file = options
        .create(true)
        .write(true)
        .mode(0o600)
        .open(&path)
        .unwrap();
    std::io::Write::write_all(&mut file, SECRET.as_bytes()).unwrap();
    path.to_str().unwrap().into()
}

fn worker(coracle: &Coracle, outbound: Outbound, methods: &str) -> Entrypoint {
    let code = coracle_client::WorkerCode {
        outbound,
        ..module(&class(methods))
    };
    coracle.load(code).entrypoint("default")
}

const TRY: &str = "
    async get(url, init) {
        try {
            const response = await fetch(url, init);
            return [response.status, await response.text(), response.url, response.redirected];
        } catch (error) { return [error.name, error.message, error.code ?? null]; }
    }
    async echo(url, body) {
        const response = await fetch(url, { method: 'POST', body, headers: { authorization: 'mine', host: 'evil.test' } });
        return [response.status, await response.text(), JSON.stringify([...response.headers])];
    }";

async fn get(entrypoint: &Entrypoint, url: &str) -> Value {
    value(answer(entrypoint, "get", args![url]).await)
}

#[track_caller]
fn denied(outcome: &Value) -> (&str, &str) {
    let [name, message, code] = outcome.as_array().unwrap() else {
        panic!("a refusal was expected, not {outcome:?}");
    };
    assert_eq!(name.as_str(), Some("Error"), "{outcome:?}");
    (message.as_str().unwrap(), code.as_str().unwrap())
}

#[tokio::test]
async fn a_policy_lets_out_what_it_allows_and_says_what_it_does_not() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server, coracle, ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let entrypoint = worker(&coracle, Outbound::Policy, TRY);

    let url = website.url("/hello?a=1");
    let got = get(&entrypoint, &url).await;
    let expected = [
        Value::from(200),
        "this is /hello".into(),
        url.as_str().into(),
        false.into(),
    ];
    assert_eq!(got, Value::array(expected));

    let refused = get(&entrypoint, &website.url("/hidden/x?token=abc")).await;
    let (message, code) = denied(&refused);
    assert_eq!(code, "policy_denied");
    assert!(
        message.contains("rule 1 \"hidden\" of the policy \"site\" denies GET"),
        "{message}"
    );
    assert!(!message.contains("token"), "{message}");

    let refused = get(&entrypoint, "https://elsewhere.test/").await;
    let (message, _) = denied(&refused);
    assert!(
        message.contains(r#"{"allow": ["https://elsewhere.test"]}"#),
        "{message}"
    );

    assert_eq!(website.asked().len(), 1);
    assert_eq!(
        server
            .metric("coracle_outbound_requests_total{result=\"denied\"}")
            .await,
        2.0
    );
    assert_eq!(
        server
            .metric("coracle_outbound_requests_total{result=\"ok\"}")
            .await,
        1.0
    );
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_judged_again() {
    let (website, other) = (Website::start().await, Website::start().await);
    let secrets = TempDir::new().unwrap();
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let entrypoint = worker(&coracle, Outbound::Policy, TRY);
    let got = get(&entrypoint, &website.url("/to?/hello")).await;
    let expected = [
        Value::from(200),
        "this is /hello".into(),
        website.url("/hello").into(),
        true.into(),
    ];
    assert_eq!(got, Value::array(expected));
    for location in [
        other.url("/"),
        "http://169.254.169.254/latest".into(),
        website.url("/hidden/x"),
    ] {
        let refused = get(&entrypoint, &website.url(&format!("/to?{location}"))).await;
        assert_eq!(denied(&refused).1, "policy_denied", "{location}");
    }
    assert!(other.asked().is_empty());
}

/// The credential is put in outside, and nothing that the worker, its client, a log, a metric or a tail can see has it.
#[tokio::test]
async fn a_credential_is_used_and_never_seen() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server,
        coracle,
        folder,
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tail = coracle.serve(Tail(Arc::clone(&told)));
    let code = module(&class(&format!(
        "{TRY} async spin(url) {{ globalThis.kept = await this.echo(url, 'known-1c9e44'); await scheduler.wait(20_000); }}"
    )));
    let entrypoint = coracle.load(code.tail(tail)).entrypoint("default");
    let echoed = value(answer(&entrypoint, "echo", args![website.url("/echo"), "ahoy"]).await);
    let asked = website.asked();
    let seen = asked[0].headers.get("authorization").unwrap();
    assert_eq!(seen.to_str().unwrap(), format!("Bearer {SECRET}"));
    assert_eq!(
        asked[0].headers.get("host").unwrap(),
        &website.address().to_string()
    );
    // The website sends it back; the worker gets it redacted, in the header and in the body.
    assert_eq!(
        echoed.index(1).unwrap().as_str(),
        Some("ahoy Bearer [redacted]")
    );
    let headers = echoed.index(2).unwrap().as_str().unwrap();
    assert!(
        headers.contains(r#"["x-authorization","Bearer [redacted]"]"#),
        "{headers}"
    );
    let told = eventually("the tail is told", async || {
        let told = told.lock().unwrap();
        told.first().cloned().ok_or_else(|| "nothing".to_owned())
    })
    .await;
    let record = told.get("outbound").unwrap().index(0).unwrap();
    let field = |name: &str| {
        record
            .get(name)
            .unwrap_or_else(|| panic!("{name} of {record:?}"))
    };
    assert_eq!(field("credential"), &"site".into());
    assert_eq!(field("destination"), &website.url("/echo").as_str().into());
    assert_eq!(field("status"), &200.into());
    assert_eq!(field("redactions"), &2.into());
    assert_eq!(field("rule"), &"rule 2 of the policy \"site\"".into());
    assert!(!format!("{told:?}").contains(SECRET));

    // The memory of the sandbox while it lives: it has what the worker knows, and not the secret in any form.
    let spinning = tokio::spawn({
        let (entrypoint, url) = (entrypoint.clone(), website.url("/echo"));
        async move { drop(entrypoint.call("spin", args![url]).await) }
    });
    eventually("the request has left", async || {
        match website.asked().len() {
            0 => Err("it has not".into()),
            _ => Ok(()),
        }
    })
    .await;
    let memory = eventually("the worker has its answer", async || {
        let memory = guest_memory(server.pid());
        match has(&memory, b"known-1c9e44 Bearer [redacted]") {
            true => Ok(memory),
            false => Err(format!("{} bytes without it", memory.len())),
        }
    })
    .await;
    for form in [
        SECRET.to_owned(),
        base64(SECRET),
        base64(&format!("Bearer {SECRET}")),
    ] {
        assert!(!has(&memory, form.as_bytes()), "{form}");
    }
    spinning.abort();
    let log = server.log();
    assert!(log.contains("a request was let out"), "{log}");
    assert!(
        !log.contains(SECRET) && !log.contains(&base64(SECRET)),
        "{log}"
    );
    let metrics = support::get(server.admin(), "/metrics").await;
    assert!(!format!("{metrics:?}").contains(SECRET));
    drop(folder);
}

fn base64(text: &str) -> String {
    use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
    STANDARD_NO_PAD.encode(text)
}

fn has(memory: &[u8], text: &[u8]) -> bool {
    // By the first byte first: there are many megabytes.
    memory.windows(text.len()).any(|window| window == text)
}

/// The memories of the sandboxes of a process: each begins with the image that is mapped from a memfd.
fn guest_memory(pid: u32) -> Vec<u8> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut memory = fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let (mut found, mut end_last) = (Vec::new(), 0);
    for line in maps.lines() {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let number = |text| u64::from_str_radix(text, 16).unwrap();
        let (start, end) = (number(start), number(end));
        let is_image = line.contains("memfd:");
        if !rest.starts_with("rw") || !(is_image || start == end_last) {
            continue;
        }
        end_last = end;
        let before = found.len();
        found.resize(before + (end - start) as usize, 0);
        memory.seek(SeekFrom::Start(start)).unwrap();
        if memory.read_exact(&mut found[before..]).is_err() {
            found.truncate(before);
        }
    }
    found
}

struct Tail(Arc<Mutex<Vec<Value>>>);

impl Target for Tail {
    fn call(&self, _: Vec<String>, args: Payload) -> BoxFuture<'static, Result<Payload, Thrown>> {
        if let Some(Value::Array(events)) = args.value.index(0).cloned() {
            self.0.lock().unwrap().extend(events);
        }
        Box::pin(async { Ok(Payload::default()) })
    }
}

/// Says yes to paths that end in "yes", and why not to others.
struct Asker(Arc<Mutex<Vec<Request>>>);

impl Target for Asker {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        assert_eq!(path, ["ask"]);
        let request = args
            .value
            .index(0)
            .and_then(|value| Request::of(value, &args))
            .unwrap();
        let is_yes = request.url.ends_with("yes");
        self.0.lock().unwrap().push(request);
        Box::pin(async move {
            match is_yes {
                true => Ok(Payload::from(Value::from(true))),
                false => Err(Thrown::new("Error", "not today")),
            }
        })
    }
}

#[tokio::test]
async fn where_a_rule_says_ask_the_client_decides() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let questions = Arc::new(Mutex::new(Vec::new()));
    let asking = Outbound::Narrowed(Narrowed {
        by: NarrowedBy::Nothing,
        ask: Some(coracle.serve(Asker(Arc::clone(&questions)))),
    });
    let entrypoint = worker(&coracle, asking, TRY);
    let got = get(&entrypoint, &website.url("/ask/yes")).await;
    assert_eq!(got.index(0), Some(&200.into()));
    let refused = get(&entrypoint, &website.url("/ask/no")).await;
    let (message, code) = denied(&refused);
    assert_eq!(code, "ask_denied");
    assert!(
        message.ends_with("the answer was no: not today"),
        "{message}"
    );
    let shown = questions.lock().unwrap()[0].clone();
    assert_eq!(
        (&*shown.method, &*shown.url),
        ("GET", &*website.url("/ask/yes"))
    );
    let nobody = worker(&coracle, Outbound::Policy, TRY);
    let refused = get(&nobody, &website.url("/ask/yes")).await;
    assert!(denied(&refused).0.contains("nobody is there to be asked"));
    assert_eq!(website.asked().len(), 1);
}

#[tokio::test]
async fn a_load_can_narrow_the_policy_and_never_widen_it() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let mut config = outbound(&website, &secret_file(&secrets));
    config["policies"]["echo"] =
        json!({"rules": [{"allow": [website.url("")], "paths": ["/echo"], "private": true}]});
    config["policies"]["other"] = json!({"rules": [{"allow": ["*"]}]});
    config["tenants"] = json!({"default": {"may_name": ["echo"]}});
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&config).await;
    let narrowed = |by| Outbound::Narrowed(Narrowed { by, ask: None });
    let rules = json!({"rules": [{"allow": ["*", "http://*:*"], "methods": ["GET"], "paths": ["/hello", "/hidden/**"]}]});
    let given = worker(
        &coracle,
        narrowed(NarrowedBy::Rules(rules.to_string())),
        TRY,
    );
    assert_eq!(
        get(&given, &website.url("/hello")).await.index(0),
        Some(&200.into())
    );
    for path in ["/other", "/hidden/x"] {
        assert_eq!(
            denied(&get(&given, &website.url(path)).await).1,
            "policy_denied",
            "{path}"
        );
    }
    // What the session does not allow is not allowed by what was given.
    assert_eq!(
        denied(&get(&given, "https://elsewhere.test/hello").await).1,
        "policy_denied"
    );
    let named = worker(&coracle, narrowed(NarrowedBy::Name("echo".into())), TRY);
    assert_eq!(
        get(&named, &website.url("/echo")).await.index(0),
        Some(&200.into())
    );
    denied(&get(&named, &website.url("/hello")).await);
    for (by, problem) in [
        (
            NarrowedBy::Name("other".into()),
            "the policy \"other\" is not one that the tenant \"default\" may name",
        ),
        (
            NarrowedBy::Name("none".into()),
            "the policy \"none\" is not one",
        ),
        (
            NarrowedBy::Rules("{\"rules\": [{\"allow\": [\"a b\"]}]}".into()),
            "rules[0].allow[0]",
        ),
        (NarrowedBy::Rules("[".into()), "outbound: "),
        (
            NarrowedBy::Rules(
                json!({"rules": [{"allow": ["a.test"], "credential": "site"}]}).to_string(),
            ),
            "credential",
        ),
    ] {
        let refused = worker(&coracle, narrowed(by), TRY)
            .call("get", args![""])
            .await;
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_worker_gives_its_children_at_most_its_own_way_out() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let mut env = Payload::default();
    let loader = env.external(&coracle.loader());
    env.value = Value::object([("LOADER", loader)]);
    let source = class(&format!(
        "async child(globalOutbound, url) {{
            const {{ readable }} = new TransformStream();
            const source = 'export default {{ async get(url) {{ try {{ return (await fetch(url)).status }} catch (e) {{ return e.message }} }} }}';
            const code = {{ mainModule: 'c.js', modules: {{ 'c.js': source }}, compatibilityDate: '2026-01-01' }};
            if (globalOutbound === null) code.globalOutbound = null;
            return await this.env.LOADER.load(code).getEntrypoint().get(url);
        }} {TRY}"
    ));
    let code = module(&source).env(env);
    let parent = coracle.load(code).entrypoint("default");
    let url = website.url("/hello");
    let inherits = answer(&parent, "child", args![Value::Undefined, url.as_str()]).await;
    assert_eq!(value(inherits), 200.into());
    let refused = answer(
        &parent,
        "child",
        args![Value::Undefined, website.url("/hidden/x")],
    )
    .await;
    assert!(value(refused).as_str().unwrap().contains("denies GET"));
    let nothing = answer(&parent, "child", args![Value::Null, url.as_str()]).await;
    assert!(
        value(nothing)
            .as_str()
            .unwrap()
            .starts_with("This worker is not permitted")
    );
    assert_eq!(website.asked().len(), 1);
}

#[tokio::test]
async fn bodies_stream_both_ways_and_stop_when_nobody_wants_them() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server, coracle, ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let entrypoint = worker(
        &coracle,
        Outbound::Policy,
        "async up(url) {
            let left = 40;
            const body = new ReadableStream({ pull(controller) {
                if (left-- === 0) controller.close(); else controller.enqueue(new Uint8Array(65_536).fill(97));
            } });
            const response = await fetch(url, { method: 'POST', body });
            return (await response.arrayBuffer()).byteLength;
        }
        async first(url) {
            const reader = (await fetch(url)).body.getReader();
            const { value } = await reader.read();
            await reader.cancel();
            return new TextDecoder().decode(value);
        }
        async aborted(url) {
            const controller = new AbortController();
            const response = await fetch(url, { signal: controller.signal });
            const reader = response.body.getReader();
            await reader.read();
            controller.abort(new Error('enough'));
            return await reader.read().catch((error) => error.message);
        }",
    );
    let up = answer(&entrypoint, "up", args![website.url("/echo")]).await;
    assert_eq!(
        value(up),
        (40 * 65_536 + 1 + "Bearer ".len() as u32 + "[redacted]".len() as u32).into()
    );
    let first = value(answer(&entrypoint, "first", args![website.url("/stream")]).await);
    assert!(
        first.as_str().unwrap().starts_with("piece 0\n"),
        "{first:?}"
    );
    let aborted = answer(&entrypoint, "aborted", args![website.url("/stream")]).await;
    assert_eq!(value(aborted), "enough".into());
    // While the worker is there.
    eventually("all requests are over", async || {
        match server
            .metric("coracle_outbound_requests_total{result=\"ok\"}")
            .await
        {
            3.0 => Ok(()),
            count => Err(format!("{count}")),
        }
    })
    .await;
    drop((entrypoint, coracle));
    server.is_empty().await;
}

#[tokio::test]
async fn connections_and_web_sockets_go_by_the_same_rules() {
    let (bytes, socket) = (website::echo().await, website::web_socket().await);
    let Setup {
        server, coracle, ..
    } = start(&json!({
        "default_policy": "p",
        "policies": {"p": {"rules": [
            {"allow": [format!("tcp://{bytes}"), format!("ws://{socket}")], "private": true}
        ]}}
    }))
    .await;
    let entrypoint = worker(
        &coracle,
        Outbound::Policy,
        "async talk(address) {
            const { connect } = await import('cloudflare:sockets');
            const socket = connect(address);
            try { await socket.opened; } catch (error) { return [error.message, error.code]; }
            const writer = socket.writable.getWriter();
            await writer.write(new TextEncoder().encode('hello'));
            const { value } = await socket.readable.getReader().read();
            await socket.close();
            return new TextDecoder().decode(value);
        }
        async chat(url, protocols) {
            const socket = new WebSocket(url, protocols);
            const events = [];
            const closed = new Promise((resolve) => {
                socket.onerror = (event) => events.push('error: ' + event.message);
                socket.onclose = (event) => { events.push([event.code, event.wasClean]); resolve(); };
            });
            let waiting = [];
            socket.onmessage = ({ data }) => {
                events.push(typeof data === 'string' ? data.length > 99 ? data.length : data : [...new Uint8Array(data)]);
                if (events.length === 4) socket.close(1000, 'done');
            };
            socket.onopen = () => {
                events.push(socket.protocol);
                socket.send('aye'); socket.send(new Uint8Array([1, 2, 3])); socket.send('x'.repeat(200_000));
            };
            await closed;
            return events;
        }
        async upgrade(url) {
            const response = await fetch(url, { headers: { Upgrade: 'websocket' } });
            const { webSocket } = response;
            webSocket.accept();
            const answered = new Promise((resolve) => { webSocket.addEventListener('message', (event) => resolve(event.data)); });
            webSocket.send('by fetch');
            const data = await answered;
            webSocket.close();
            return [response.status, data];
        }",
    );
    let call =
        async |method: &str, args: Vec<Value>| value(answer(&entrypoint, method, args).await);
    assert_eq!(call("talk", args![bytes.to_string()]).await, "hello".into());
    let refused = call("talk", args![socket.to_string()]).await;
    assert_eq!(
        refused.index(1),
        Some(&"policy_denied".into()),
        "{refused:?}"
    );

    let chat = call(
        "chat",
        args![format!("ws://{socket}/"), Value::array(["first", "second"])],
    )
    .await;
    let expected = Value::Array(vec![
        "second".into(),
        "aye".into(),
        Value::array([1, 2, 3]),
        200_000.into(),
        Value::Array(vec![1_000.into(), true.into()]),
    ]);
    assert_eq!(chat, expected);
    let refused = call(
        "chat",
        args!["wss://elsewhere.test/", Value::Array(Vec::new())],
    )
    .await;
    let message = refused.index(0).unwrap().as_str().unwrap();
    assert!(
        message.contains("no rule of the policy \"p\" allows GET https://elsewhere.test/"),
        "{message}"
    );
    let upgraded = call("upgrade", args![format!("http://{socket}/")]).await;
    assert_eq!(upgraded, Value::Array(vec![101.into(), "by fetch".into()]));
    drop((entrypoint, coracle));
    server.is_empty().await;
}

/// N19: neither the RPC listener nor the admin endpoint is reached from inside, though a rule names it.
#[tokio::test]
async fn the_server_itself_is_never_reached() {
    let Setup { server, coracle, .. } = start(&json!({
        "default_policy": "p",
        "policies": {"p": {"rules": [{"allow": [
            "http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*", "http://[::ffff:7f00:1]:*", "tcp://127.0.0.1:*"
        ], "private": true}]}}
    }))
    .await;
    let entrypoint = worker(&coracle, Outbound::Policy, TRY);
    let (admin, rpc) = (
        server.admin().port(),
        server.address().rsplit_once(':').unwrap().1.to_owned(),
    );
    for port in [admin.to_string(), rpc] {
        for host in ["127.0.0.1", "localhost", "[::ffff:7f00:1]", "0x7f.1"] {
            let refused = get(&entrypoint, &format!("http://{host}:{port}/metrics")).await;
            // Another address of that name is tried, where nobody listens.
            if host == "localhost" && refused.index(2) == Some(&"connect_failed".into()) {
                continue;
            }
            let (message, code) = denied(&refused);
            assert_eq!(code, "address_denied", "{host} {message}");
            assert!(message.contains("this server itself"), "{message}");
        }
    }
}

/// N23: the sixth request is not sent, and the verdict says how many were.
#[tokio::test]
async fn requests_count_as_subrequests() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let code = module(&class(
        "async run(url) { for (;;) await (await fetch(url)).text(); }",
    ));
    let limits = coracle_client::Limits {
        subrequests_max: 5,
        ..Default::default()
    };
    let entrypoint = coracle.load(code.limits(limits)).entrypoint("default");
    let stopped = answer(&entrypoint, "run", args![website.url("/hello")]).await;
    assert_eq!(
        support::verdict(&stopped),
        ("subrequests", "subrequests_max")
    );
    let coracle_client::Outcome::Verdict(verdict) = &stopped.outcome else {
        unreachable!()
    };
    assert_eq!(verdict.subrequests_sent, 5);
    assert_eq!(website.asked().len(), 5);
}

#[tokio::test]
async fn what_is_no_url_or_header_is_an_error_and_nothing_is_sent() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let Setup {
        server: _server,
        coracle,
        ..
    } = start(&outbound(&website, &secret_file(&secrets))).await;
    let entrypoint = worker(&coracle, Outbound::Policy, TRY);
    for url in [
        "ftp://a.test/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "blob:https://a.test/x",
    ] {
        let refused = get(&entrypoint, url).await;
        assert_eq!(denied(&refused).1, "url_refused", "{url}");
    }
    let thrown = answer(
        &entrypoint,
        "get",
        args![
            website.url("/"),
            Value::object([("headers", Value::object([("x", "a\r\nY: y")]))])
        ],
    )
    .await;
    assert_eq!(value(thrown).index(0), Some(&"TypeError".into()));
    assert!(website.asked().is_empty());
    let none = worker(&coracle, Outbound::None, TRY);
    let refused = value(answer(&none, "get", args![website.url("/")]).await);
    assert!(
        refused
            .index(1)
            .unwrap()
            .as_str()
            .unwrap()
            .starts_with("This worker is not permitted")
    );
}

fn coracle() -> Command {
    Command::new(env!("CARGO_BIN_EXE_coracle"))
}

#[tokio::test]
async fn the_command_line_explains_and_uses_the_file() {
    let website = Website::start().await;
    let secrets = TempDir::new().unwrap();
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("outbound.json");
    fs::write(
        &file,
        outbound(&website, &secret_file(&secrets)).to_string(),
    )
    .unwrap();
    let check = |url: &str, more: &[&str]| {
        let output = coracle()
            .args(["policy", "check"])
            .arg(&file)
            .arg(url)
            .args(more)
            .output()
            .unwrap();
        (
            output.status.code(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let (code, text) = check(&website.url("/hello"), &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(
        text.contains("\nallowed: rule 4 of the policy \"site\" allows GET"),
        "{text}"
    );
    let (code, text) = check(&website.url("/hidden/a?secret"), &["--method", "POST"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("denied: rule 1 \"hidden\"") && !text.contains("secret"),
        "{text}"
    );
    let (code, text) = check("http://u:p@a.test/", &[]);
    assert_eq!(
        (code, text.starts_with("denied: ")),
        (Some(1), true),
        "{text}"
    );
    let (code, _) = check("https://a.test/", &["--policy", "nope"]);
    assert_eq!(code, Some(2));

    let agent = folder.path().join("agent.js");
    fs::write(
        &agent,
        "export default { run: async (url) => (await fetch(url)).text() };",
    )
    .unwrap();
    let url = serde_json::to_string(&[website.url("/from-run")]).unwrap();
    let run = tokio::task::spawn_blocking(move || {
        let mut run = coracle();
        run.arg("run")
            .arg(&agent)
            .args(["--args", &url])
            .arg("--outbound-file")
            .arg(&file);
        run.output().unwrap()
    });
    let output = run.await.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(
        stdout.trim(),
        "\"this is /from-run\"",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    // Everything that is wrong is said, and the server does not start.
    let wrong = folder.path().join("wrong.json");
    fs::write(&wrong, json!({"default_policy": "a", "policies": {"b": {"rules": [{"allow": ["x y"], "credential": "c"}]}}}).to_string()).unwrap();
    let output = coracle()
        .args(["serve", "--listen", "127.0.0.1:0", "--outbound-file"])
        .arg(&wrong)
        .output()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    for problem in ["there is no policy \"a\"", "rules[0].allow[0]"] {
        assert!(stderr.contains(problem), "{stderr}");
    }
}
