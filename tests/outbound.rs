//! Where the requests of workers go: nowhere, or to a gateway, and nowhere else.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, client, eventually, module, value};
use coracle_client::{
    Body, Coracle, Entrypoint, Outbound, Response, Thrown, Value, WorkerCode, args,
};
use std::sync::{Arc, Mutex};

fn worker(coracle: &Coracle, outbound: Outbound, methods: &str) -> Entrypoint {
    let code = WorkerCode {
        outbound,
        ..module(&crate::support::class(methods))
    };
    coracle.load(code).entrypoint("default")
}

async fn text(entrypoint: &Entrypoint, method: &str) -> Value {
    value(entrypoint.call(method, args![]).await.unwrap())
}

const TRY: &str = "async run() {
        try { return await (await fetch('https://api.example/v1?q=1', { method: 'POST', body: 'ahoy', headers: { a: 'b' } })).text(); }
        catch (error) { return error.name + ': ' + error.message; }
    }
    async socket() {
        const { connect } = await import('cloudflare:sockets');
        try { await connect('db.example:5432').opened; return 'opened'; }
        catch (error) { return error.name + ': ' + error.message; }
    }";

#[tokio::test]
async fn without_a_gateway_nothing_leaves_and_the_error_says_why() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let none = worker(&coracle, Outbound::None, TRY);
    let refused = Value::from(
        "Error: This worker is not permitted to access the internet via global functions like fetch(). It must use \
         capabilities (such as bindings in 'env') to talk to the outside world.",
    );
    assert_eq!(text(&none, "run").await, refused);
    assert_eq!(text(&none, "socket").await, refused);
    let policy = worker(&coracle, Outbound::Policy, TRY);
    let refused = text(&policy, "run").await;
    assert!(
        refused.as_str().unwrap().contains(
            "no outbound policy, which denies every request. Start it with --outbound-file FILE"
        ),
        "{refused:?}"
    );
}

/// A response that was fetched says so, and its body can't be read any more when its request was aborted.
#[tokio::test]
async fn a_fetched_response_is_of_type_basic_and_ends_with_its_signal() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let gateway = coracle.gateway(|_| async { Ok(Response::new(200, "all of it".to_owned())) });
    let methods = "async run() {
            const controller = new AbortController();
            const response = await fetch('https://a.example/', { signal: controller.signal });
            const other = await fetch('https://a.example/', { signal: controller.signal });
            const text = await other.text();
            controller.abort();
            const ended = await response.text().catch((error) => error.name);
            return [response.type, new Response().type, text, ended].join();
        }";
    let worker = worker(&coracle, Outbound::Gateway(gateway), methods);
    let expected = Value::from("basic,default,all of it,AbortError");
    assert_eq!(text(&worker, "run").await, expected);
}

#[tokio::test]
async fn a_gateway_gets_every_request_and_answers_or_refuses() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let note = Arc::clone(&seen);
    let gateway = coracle.gateway(move |request| {
        let note = Arc::clone(&note);
        async move {
            let (url, method, headers) = (request.url, request.method, request.headers);
            let Body::Bytes(body) = request.body else {
                return Err(Thrown::new("TypeError", "a body was expected"));
            };
            note.lock()
                .unwrap()
                .push((url.clone(), method, headers, body));
            if url.contains("forbidden") {
                return Err(Thrown::new(
                    "PolicyError",
                    "forbidden.example is not on the list",
                ));
            }
            Ok(Response::new(200, "aye"))
        }
    });
    let granted = worker(&coracle, Outbound::Gateway(gateway.clone()), TRY);
    assert_eq!(text(&granted, "run").await, Value::from("aye"));
    {
        let seen = seen.lock().unwrap();
        let (url, method, headers, body) = &seen[0];
        assert_eq!(url, "https://api.example/v1?q=1");
        assert_eq!(method, "POST");
        assert!(headers.contains(&("a".into(), "b".into())), "{headers:?}");
        assert_eq!(body, b"ahoy");
    }
    let refused = worker(
        &coracle,
        Outbound::Gateway(gateway),
        "async run() {
            try { await fetch('https://forbidden.example/', { method: 'POST', body: 'x' }); return 'sent'; }
            catch (error) { return error.name + ': ' + error.message + ' ' + error.remote; }
        }",
    );
    assert_eq!(
        text(&refused, "run").await,
        Value::from("PolicyError: forbidden.example is not on the list true")
    );
    // Two workers, one gateway, and one that was given none: only what was given is used.
    let alone = worker(&coracle, Outbound::None, TRY);
    assert!(
        text(&alone, "run")
            .await
            .as_str()
            .unwrap()
            .starts_with("Error: This worker")
    );
    assert_eq!(seen.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn another_workers_entrypoint_is_a_gateway_with_requests_and_connections() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let gateway = worker(
        &coracle,
        Outbound::None,
        "async fetch(request) {
            const { hostname } = new URL(request.url);
            if (hostname !== 'api.example') return new Response('no', { status: 403 });
            const headers = new Headers(request.headers);
            headers.set('authorization', 'Bearer ' + this.ctx.props?.token);
            return Response.json([hostname, request.method, headers.get('authorization'), await request.text()]);
        }
        async connect(socket) {
            const writer = socket.writable.getWriter();
            for await (const chunk of socket.readable) await writer.write(chunk.map((byte) => byte + 1));
            await writer.close();
        }",
    );
    let outbound = Outbound::Gateway(gateway.stub().clone());
    let child = worker(
        &coracle,
        outbound,
        "async run() {
            const allowed = await fetch('https://api.example/', { method: 'POST', body: 'x' });
            const denied = await fetch('https://evil.example/');
            return [await allowed.text(), denied.status];
        }
        async talk() {
            const { connect } = await import('cloudflare:sockets');
            const socket = connect({ hostname: 'db.example', port: 5432 });
            const writer = socket.writable.getWriter();
            await writer.write(new TextEncoder().encode('HAL'));
            await writer.close();
            return await new Response(socket.readable).text();
        }",
    );
    let answer = child.call("run", args![]).await.unwrap();
    let expected = r#"["api.example","POST","Bearer undefined","x"]"#;
    assert_eq!(
        value(answer),
        Value::Array(vec![expected.into(), 403.into()])
    );
    let answer = child.call("talk", args![]).await.unwrap();
    assert_eq!(value(answer), Value::from("IBM"));
}

#[tokio::test]
async fn a_request_that_is_refused_lets_its_body_go() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = "let cancelled = 0;
        export default {
            async run(count) {
                for (let request = 0; request < count; request++) {
                    const body = new ReadableStream({
                        pull: (controller) => controller.enqueue(new Uint8Array(10)),
                        cancel: () => { cancelled++ },
                    });
                    await fetch('http://nowhere.test/', { method: 'POST', body }).catch(() => {});
                }
            },
            cancelled: (_) => cancelled,
        }";
    let code = WorkerCode {
        outbound: Outbound::None,
        ..WorkerCode::new("main.js").es_module("main.js", source)
    };
    let entrypoint = coracle.load(code).entrypoint("default");
    for _ in 0..3 {
        // More than may wait at once, so that some are held first.
        value(answer(&entrypoint, "run", args![100]).await);
    }
    eventually("the bodies are cancelled", async || {
        match value(answer(&entrypoint, "cancelled", args![0]).await) {
            count if count == 300.into() => Ok(()),
            count => Err(format!("{count:?}")),
        }
    })
    .await;
    drop((entrypoint, coracle));
    server.is_empty().await;
}
