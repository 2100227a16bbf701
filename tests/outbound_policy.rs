//! Requests that leave by a policy: what is let out, what is put in, and what is told of it. The binary is the real one,
//! and so is the website that it talks to.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    answer, class, eventually, module,
    site::{SECRET, Site, TRY, Tail, denied, get, outbound, secret_file},
    value,
    website::Website,
};
use coracle_client::{
    Narrowed, NarrowedBy, Outbound, Payload, Request, Target, Thrown, Value, args,
};
use futures::future::BoxFuture;
use serde_json::json;
use std::{
    fs,
    io::{Read, Seek, SeekFrom},
    process::Command,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

#[tokio::test]
async fn a_policy_lets_out_what_it_allows_and_says_what_it_does_not() {
    let site = Site::start().await;
    let entrypoint = site.worker(Outbound::Policy, TRY);

    let url = site.website.url("/hello?a=1");
    let got = get(&entrypoint, &url).await;
    let expected = [
        Value::from(200),
        "this is /hello".into(),
        url.as_str().into(),
        false.into(),
    ];
    assert_eq!(got, Value::array(expected));

    let refused = get(&entrypoint, &site.website.url("/hidden/x?token=abc")).await;
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

    assert_eq!(site.website.asked().len(), 1);
    assert_eq!(
        site.server
            .metric("coracle_outbound_requests_total{result=\"denied\"}")
            .await,
        2.0
    );
    assert_eq!(
        site.server
            .metric("coracle_outbound_requests_total{result=\"ok\"}")
            .await,
        1.0
    );
}

#[tokio::test]
async fn each_hop_of_a_redirect_is_judged_again() {
    let (site, other) = (Site::start().await, Website::start().await);
    let website = &site.website;
    let entrypoint = site.worker(Outbound::Policy, TRY);
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

/// The credential is put in outside, and nothing that the worker, its client, a log, a metric or a tail can see has it. The
/// log has all that any part of the server says of itself.
#[tokio::test]
async fn a_credential_is_used_and_never_seen() {
    let site = Site::start_with(|_| {}, &[("log", "trace")]).await;
    let told = Arc::new(Mutex::new(Vec::new()));
    let tail = site.coracle.serve(Tail(Arc::clone(&told)));
    let code = module(&class(&format!(
        "{TRY} async spin(url) {{ globalThis.kept = await this.echo(url, 'known-1c9e44'); await scheduler.wait(20_000); }}"
    )));
    let entrypoint = site.coracle.load(code.tail(tail)).entrypoint("default");
    let echoed = value(
        answer(
            &entrypoint,
            "echo",
            args![site.website.url("/echo"), "ahoy"],
        )
        .await,
    );
    let asked = site.website.asked();
    let seen = asked[0].headers.get("authorization").unwrap();
    assert_eq!(seen.to_str().unwrap(), format!("Bearer {SECRET}"));
    assert_eq!(
        asked[0].headers.get("host").unwrap(),
        &site.website.address().to_string()
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
    let url = site.website.url("/echo/query?key=mine&other=1");
    let echoed_query = value(answer(&entrypoint, "echo", args![url, "ahoy"]).await);
    let asked = site.website.asked();
    assert!(
        asked[0].path.ends_with(&format!("?other=1&key={SECRET}")),
        "{asked:?}"
    );
    let text = echoed_query.index(1).unwrap().as_str().unwrap();
    assert_eq!(text, "ahoy mineother=1&key=[redacted]");
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
    assert_eq!(
        field("destination"),
        &site.website.url("/echo").as_str().into()
    );
    assert_eq!(field("status"), &200.into());
    assert_eq!(field("redactions"), &2.into());
    assert_eq!(field("rule"), &"rule 2 of the policy \"site\"".into());
    assert!(!format!("{told:?}").contains(SECRET));

    // The memory of the sandbox while it lives: it has what the worker knows, and not the secret in any form.
    let spinning = tokio::spawn({
        let (entrypoint, url) = (entrypoint.clone(), site.website.url("/echo"));
        async move { drop(entrypoint.call("spin", args![url]).await) }
    });
    eventually("the request has left", async || {
        match site.website.asked().len() {
            0 => Err("it has not".into()),
            _ => Ok(()),
        }
    })
    .await;
    let memory = eventually("the worker has its answer", async || {
        let cordons = crate::support::cordons(site.server.pid());
        let memory: Vec<u8> = cordons.into_iter().flat_map(guest_memory).collect();
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
    let log = site.server.log();
    assert!(log.contains("a request was let out") && log.contains("TRACE"));
    for form in [
        SECRET.to_owned(),
        base64(SECRET),
        base64(&format!("Bearer {SECRET}")),
    ] {
        let line = log.lines().find(|line| line.contains(&form));
        assert_eq!(line, None);
    }
    let plain = "coracle_outbound_credentials_plain_http_total";
    assert_eq!(site.server.metric(plain).await, 3.0);
    let metrics = crate::support::get(site.server.admin(), "/metrics").await;
    assert!(!format!("{metrics:?}").contains(SECRET));
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
    let site = Site::start().await;
    let questions = Arc::new(Mutex::new(Vec::new()));
    let asking = Outbound::Narrowed(Narrowed {
        by: NarrowedBy::Nothing,
        ask: Some(site.coracle.serve(Asker(Arc::clone(&questions)))),
    });
    let entrypoint = site.worker(asking, TRY);
    let got = get(&entrypoint, &site.website.url("/ask/yes")).await;
    assert_eq!(got.index(0), Some(&200.into()));
    let refused = get(&entrypoint, &site.website.url("/ask/no")).await;
    let (message, code) = denied(&refused);
    assert_eq!(code, "ask_denied");
    assert!(
        message.ends_with("the answer was no: not today"),
        "{message}"
    );
    let shown = questions.lock().unwrap()[0].clone();
    assert_eq!(
        (&*shown.method, &*shown.url),
        ("GET", &*site.website.url("/ask/yes"))
    );
    let nobody = site.worker(Outbound::Policy, TRY);
    let refused = get(&nobody, &site.website.url("/ask/yes")).await;
    assert!(denied(&refused).0.contains("nobody is there to be asked"));
    assert_eq!(site.website.asked().len(), 1);
}

#[tokio::test]
async fn a_load_can_narrow_the_policy_and_never_widen_it() {
    let site = Site::start_with(
        |config| {
            let origin = config["credentials"]["site"]["to"][0].clone();
            config["policies"]["echo"] =
                json!({"rules": [{"allow": [origin], "paths": ["/echo"], "private": true}]});
            config["policies"]["other"] = json!({"rules": [{"allow": ["*"]}]});
            config["tenants"] = json!({"default": {"may_name": ["echo"]}});
        },
        &[],
    )
    .await;
    let website = &site.website;
    let narrowed = |by| Outbound::Narrowed(Narrowed { by, ask: None });
    let rules = json!({"rules": [{"allow": ["*", "http://*:*"], "methods": ["GET"], "paths": ["/hello", "/hidden/**"]}]});
    let given = site.worker(narrowed(NarrowedBy::Rules(rules.to_string())), TRY);
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
    let named = site.worker(narrowed(NarrowedBy::Name("echo".into())), TRY);
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
        let refused = site.worker(narrowed(by), TRY).call("get", args![""]).await;
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_worker_gives_its_children_at_most_its_own_way_out() {
    let site = Site::start().await;
    let mut env = Payload::default();
    let loader = env.external(&site.coracle.loader());
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
    let parent = site.coracle.load(code).entrypoint("default");
    let url = site.website.url("/hello");
    let inherits = answer(&parent, "child", args![Value::Undefined, url.as_str()]).await;
    assert_eq!(value(inherits), 200.into());
    let refused = answer(
        &parent,
        "child",
        args![Value::Undefined, site.website.url("/hidden/x")],
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
    assert_eq!(site.website.asked().len(), 1);
}

#[tokio::test]
async fn bodies_stream_both_ways_and_stop_when_nobody_wants_them() {
    let site = Site::start().await;
    let entrypoint = site.worker(Outbound::Policy,
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
    let up = answer(&entrypoint, "up", args![site.website.url("/echo")]).await;
    assert_eq!(
        value(up),
        (40 * 65_536 + 1 + "Bearer ".len() as u32 + "[redacted]".len() as u32).into()
    );
    let first = value(answer(&entrypoint, "first", args![site.website.url("/stream")]).await);
    assert!(
        first.as_str().unwrap().starts_with("piece 0\n"),
        "{first:?}"
    );
    let aborted = answer(&entrypoint, "aborted", args![site.website.url("/stream")]).await;
    assert_eq!(value(aborted), "enough".into());
    // While the worker is there.
    eventually("all requests are over", async || {
        match site
            .server
            .metric("coracle_outbound_requests_total{result=\"ok\"}")
            .await
        {
            3.0 => Ok(()),
            count => Err(format!("{count}")),
        }
    })
    .await;
    drop((entrypoint, site.coracle));
    site.server.is_empty().await;
}

/// N19: neither the RPC listener nor the admin endpoint is reached from inside, though a rule names it.
#[tokio::test]
async fn the_server_itself_is_never_reached() {
    let site = Site::with_file(&json!({
        "default_policy": "p",
        "policies": {"p": {"rules": [{"allow": [
            "http://127.0.0.1:*", "http://localhost:*", "http://[::1]:*", "http://[::ffff:7f00:1]:*", "tcp://127.0.0.1:*"
        ], "private": true}]}}
    }))
    .await;
    let entrypoint = site.worker(Outbound::Policy, TRY);
    let (admin, rpc) = (
        site.server.admin().port(),
        site.server.address().rsplit_once(':').unwrap().1.to_owned(),
    );
    for port in [admin.to_string(), rpc] {
        for host in ["127.0.0.1", "localhost", "[::ffff:7f00:1]", "0x7f.1"] {
            let refused = get(&entrypoint, &format!("http://{host}:{port}/metrics")).await;
            let (message, code) = denied(&refused);
            assert_eq!(code, "address_denied", "{host} {message}");
            assert!(message.contains("this server itself"), "{message}");
        }
    }
}

/// N23: the sixth request is not sent, and the verdict says how many were.
#[tokio::test]
async fn requests_count_as_subrequests() {
    let site = Site::start().await;
    let code = module(&class(
        "async run(url) { for (;;) await (await fetch(url)).text(); }
        async together(url) { await Promise.all(Array.from({ length: 10_001 }, () => fetch(url))); }",
    ));
    let limits = coracle_client::Limits {
        subrequests_max: 5,
        ..Default::default()
    };
    let entrypoint = site.coracle.load(code.limits(limits)).entrypoint("default");
    for method in ["run", "together"] {
        let stopped = answer(&entrypoint, method, args![site.website.url("/hello")]).await;
        assert_eq!(
            crate::support::verdict(&stopped),
            ("subrequests", "subrequests_max")
        );
        let coracle_client::Outcome::Verdict(verdict) = &stopped.outcome else {
            unreachable!()
        };
        let sent = verdict.subrequests_sent as usize;
        let asked = site.website.asked().len();
        match method {
            "run" => assert_eq!((sent, asked), (5, 5)),
            // All of them begin at once, and end with the isolate: none is more than was allowed.
            _ => assert!(sent <= 5 && asked <= 5, "{sent} {asked}"),
        }
    }
}

#[tokio::test]
async fn what_is_no_url_or_header_is_an_error_and_nothing_is_sent() {
    let site = Site::start().await;
    let entrypoint = site.worker(Outbound::Policy, TRY);
    for url in [
        "ftp://a.test/",
        "file:///etc/passwd",
        "data:text/plain,x",
        "blob:https://a.test/x",
    ] {
        let refused = get(&entrypoint, url).await;
        assert_eq!(refused.index(0), Some(&"TypeError".into()), "{url}");
        assert_eq!(refused.index(2), Some(&"url_refused".into()), "{url}");
    }
    let thrown = answer(
        &entrypoint,
        "get",
        args![
            site.website.url("/"),
            Value::object([("headers", Value::object([("x", "a\r\nY: y")]))])
        ],
    )
    .await;
    assert_eq!(value(thrown).index(0), Some(&"TypeError".into()));
    assert!(site.website.asked().is_empty());
    let none = site.worker(Outbound::None, TRY);
    let refused = value(answer(&none, "get", args![site.website.url("/")]).await);
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
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("outbound.json");
    fs::write(
        &file,
        outbound(&website, &secret_file(folder.path())).to_string(),
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
        text.contains("\nallowed: rule 5 of the policy \"site\" allows GET"),
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
