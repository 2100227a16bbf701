//! Connections of workers: by the same rules as requests, and no longer there than what they belong to.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    PATIENCE, answer, class, eventually, module,
    site::Site,
    value,
    website::{self, Lasting},
    within,
};
use coracle_client::{Entrypoint, Outbound, Payload, Value, args};
use serde_json::json;

#[tokio::test]
async fn connections_and_web_sockets_go_by_the_same_rules() {
    let (bytes, socket) = (website::echo().await, website::web_socket().await);
    let site = Site::with_file(&json!({
        "default_policy": "p",
        "policies": {"p": {"rules": [
            {"allow": [format!("tcp://{bytes}"), format!("ws://{socket}")], "private": true}
        ]}}
    }))
    .await;
    let entrypoint = site.worker(Outbound::Policy,
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
    drop((entrypoint, site.coracle));
    site.server.is_empty().await;
}

/// A site with a policy that lets out to that server, whatever the scheme, and a worker that leaves connections behind.
async fn leaver(lasting: &Lasting) -> (Site, Entrypoint) {
    let address = lasting.address;
    let site = Site::with_file(&json!({
        "default_policy": "p",
        "policies": {"p": {"rules": [
            {"allow": [format!("tcp://{address}"), format!("http://{address}")], "private": true}
        ]}}
    }))
    .await;
    let entrypoint = site.worker(Outbound::Policy, LEAVE);
    (site, entrypoint)
}

const LEAVE: &str = "
    async stay() { await scheduler.wait(25_000); }
    async socket(address) {
        const { connect } = await import('cloudflare:sockets');
        globalThis.socket = connect(address);
        await globalThis.socket.opened;
        await globalThis.socket.writable.getWriter().write(new TextEncoder().encode('hello'));
        globalThis.socket.readable.getReader().read().catch(() => {});
    }
    async idle(address) {
        const { connect } = await import('cloudflare:sockets');
        globalThis.socket = connect(address, { secureTransport: 'starttls' });
        await globalThis.socket.opened;
    }
    async body(address) {
        globalThis.reader = (await fetch('http://' + address)).body.getReader();
        await globalThis.reader.read();
    }
    async unread(address) { globalThis.response = await fetch('http://' + address); }
    async upload(address) {
        const body = new ReadableStream({ async pull(controller) {
            await scheduler.wait(5);
            controller.enqueue(new Uint8Array(10));
        } });
        globalThis.response = await fetch('http://' + address, { method: 'POST', body });
    }
    async wait(address) { await this.socket(address); await scheduler.wait(25_000); }
    async spin(address) { await this.socket(address); for (;;); }
    async held(address) {
        await this.socket(address);
        const { writable, readable } = await this.fresh(address);
        this.ctx.waitUntil((async () => {
            const { value } = await readable.getReader().read();
            await writable.getWriter().write(new TextEncoder().encode('got ' + new TextDecoder().decode(value)));
        })());
    }
    async fresh(address) {
        const { connect } = await import('cloudflare:sockets');
        const socket = connect(address);
        await socket.opened;
        return socket;
    }
    async again() {
        try { await globalThis.reader.read(); return 'read'; } catch (error) { return error.message; }
    }
    async kept(address) {
        const socket = await this.fresh(address);
        const reader = socket.readable.getReader();
        const { RpcTarget } = await import('cloudflare:workers');
        return new class extends RpcTarget {
            async next() { return new TextDecoder().decode((await reader.read()).value); }
        };
    }
    async through(address) {
        const { readable, writable } = new TransformStream();
        (await this.fresh(address)).readable.pipeTo(writable).catch(() => {});
        return readable;
    }
";

/// Something that stays in the isolate, so that only what is left of other calls ends.
fn stay(entrypoint: &Entrypoint) -> tokio::task::JoinHandle<()> {
    let entrypoint = entrypoint.clone();
    tokio::spawn(async move { drop(entrypoint.call("stay", args![]).await) })
}

/// As in Workers, what a call has opened is of that call: once it is over, and nothing holds it, it is closed.
#[tokio::test]
async fn what_a_call_has_opened_is_closed_when_it_is_over() {
    let lasting = Lasting::start().await;
    let (_site, entrypoint) = leaver(&lasting).await;
    let staying = stay(&entrypoint);
    for method in ["socket", "idle", "body", "unread"] {
        let address = lasting.address.to_string();
        value(answer(&entrypoint, method, args![address]).await);
        lasting.has_open(0).await;
    }
    assert!(lasting.received().contains("hello"));
    value(answer(&entrypoint, "body", args![lasting.address.to_string()]).await);
    let again = value(answer(&entrypoint, "again", args![]).await);
    assert!(
        again
            .as_str()
            .is_some_and(|text| text.starts_with("The call that opened this connection is over")),
        "{again:?}"
    );
    staying.abort();
}

/// A stream that a call has given out holds it, as everywhere; so does the body of an upload without end, until the call's
/// wall time is over, and its connection with it.
#[tokio::test]
async fn an_upload_without_end_is_closed_with_its_calls_wall_time() {
    let lasting = Lasting::start().await;
    let (site, _) = leaver(&lasting).await;
    let limits = coracle_client::Limits {
        wall_ms_max: 2_000,
        ..Default::default()
    };
    let code = module(&class(LEAVE)).limits(limits);
    let entrypoint = site.coracle.load(code).entrypoint("default");
    value(answer(&entrypoint, "upload", args![lasting.address.to_string()]).await);
    lasting.has_open(0).await;
}

/// `waitUntil` holds the call, and what it has opened: it can be used after the answer, and is closed then.
#[tokio::test]
async fn what_is_held_is_closed_when_the_promise_is_settled() {
    let lasting = Lasting::start().await;
    let (_site, entrypoint) = leaver(&lasting).await;
    let staying = stay(&entrypoint);
    value(answer(&entrypoint, "held", args![lasting.address.to_string()]).await);
    lasting.has_open(2).await;
    lasting.say(b"news");
    eventually("the news have been read", async || {
        match lasting.received() {
            text if text.contains("got news") => Ok(()),
            text => Err(text),
        }
    })
    .await;
    lasting.has_open(0).await;
    staying.abort();
}

/// What a call has given out may need what it has opened, which stays as long as somebody has it.
#[tokio::test]
async fn what_was_given_out_keeps_its_connection() {
    let lasting = Lasting::start().await;
    let (_site, entrypoint) = leaver(&lasting).await;
    let staying = stay(&entrypoint);
    let address = || args![lasting.address.to_string()];

    let kept = answer(&entrypoint, "kept", address()).await;
    let kept: Payload = kept.payload().unwrap();
    let stub = kept.stub(&kept.value).unwrap().clone();
    for news in ["one", "two"] {
        lasting.say(news.as_bytes());
        let next = within(PATIENCE, "the news are read", stub.call("next", args![])).await;
        assert_eq!(value(next.unwrap()), news.into());
    }
    assert_eq!(lasting.open(), 1);
    drop((kept, stub));
    lasting.has_open(0).await;

    let through = answer(&entrypoint, "through", address()).await;
    let through: Payload = through.payload().unwrap();
    let mut stream = through.byte_stream(&through.value).unwrap();
    for news in ["one", "two"] {
        lasting.say(news.as_bytes());
        let piece = within(PATIENCE, "a piece comes", stream.read(100)).await;
        assert_eq!(piece.unwrap().unwrap(), news.as_bytes());
    }
    drop((through, stream));
    lasting.has_open(0).await;
    staying.abort();
}

/// A call that is given up, or stopped by a limit, or whose session is dropped, leaves no connection behind.
#[tokio::test]
async fn nothing_stays_open_of_what_has_ended_otherwise() {
    let lasting = Lasting::start().await;
    let (site, entrypoint) = leaver(&lasting).await;
    let address = || args![lasting.address.to_string()];
    let begin = |method: &'static str| {
        let (entrypoint, args) = (entrypoint.clone(), address());
        tokio::spawn(async move { drop(entrypoint.call(method, args).await) })
    };

    let staying = stay(&entrypoint);
    let waiting = begin("wait");
    lasting.has_open(1).await;
    waiting.abort();
    lasting.has_open(0).await;

    let stopped = answer(&entrypoint, "spin", address()).await;
    assert!(
        matches!(stopped.outcome, coracle_client::Outcome::Verdict(_)),
        "{stopped:?}"
    );
    lasting.has_open(0).await;
    staying.abort();

    let waiting = begin("wait");
    lasting.has_open(1).await;
    drop((entrypoint, site.coracle));
    waiting.abort();
    lasting.has_open(0).await;
    site.server.is_empty().await;
}
