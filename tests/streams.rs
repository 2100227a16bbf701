//! Byte streams between clients and workers and between workers: order, pace, errors, cancelling, and that nothing is left.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]
#![allow(
    clippy::result_large_err,
    reason = "what a client throws is seldom, and no hot path"
)]

use crate::support::{PATIENCE, Server, class, client, eventually, load, module, value, within};
use coracle_client::{
    Body, ByteStream, Entrypoint, Error, Payload, Request, Target, Thrown, Value, args,
};
use futures::{StreamExt, future::BoxFuture, stream};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Arguments of one stub.
fn one(stub: &coracle_client::Stub) -> Payload {
    let mut args = Payload::default();
    args.value = Value::Array(vec![args.external(stub)]);
    args
}

/// The stream that a method returns.
async fn stream_of(worker: &Entrypoint, method: &str) -> ByteStream {
    let answer = worker.call(method, args![]).await.unwrap();
    let payload = answer.payload().unwrap();
    payload.byte_stream(&payload.value).unwrap()
}

#[tokio::test]
async fn a_client_reads_what_a_worker_makes_while_it_is_read() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "chunks() {
            let n = 0;
            const encoder = new TextEncoder();
            return new ReadableStream({
                async pull(c) {
                    await scheduler.wait(1);
                    if (++n > 3) c.close(); else c.enqueue(encoder.encode('c' + n));
                },
            });
        }
        broken() {
            return new ReadableStream({
                start(c) { c.enqueue(new Uint8Array(3)); },
                pull() { throw new RangeError('the well is dry'); },
            });
        }",
    );
    let mut stream = stream_of(&worker, "chunks").await;
    let all = within(PATIENCE, "the stream ends", stream.read_to_end(KIB)).await;
    assert_eq!(all.unwrap(), b"c1c2c3");
    assert_eq!(stream.read(8).await.unwrap(), None);

    let mut stream = stream_of(&worker, "broken").await;
    assert_eq!(stream.read(2).await.unwrap(), Some(vec![0, 0]));
    assert_eq!(stream.read(2).await.unwrap(), Some(vec![0]));
    match stream.read(2).await {
        Err(Error::Threw(thrown)) => {
            assert_eq!(
                (&thrown.name[..], &thrown.message[..]),
                ("RangeError", "the well is dry")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_long_stream_takes_no_more_memory_than_a_short_one_and_its_reader_sets_the_pace() {
    let server = Server::start_with(&[
        ("limit", "cpu_ms_max=30_000"),
        ("limit", "fuel_max=500_000_000_000"),
    ]);
    let coracle = client(server.address()).await;
    let made = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&made);
    // 300 MiB through a worker whose memory is 64 MiB.
    let source = coracle.byte_stream(stream::repeat_with(move || {
        count.fetch_add(1, Ordering::Relaxed);
        Ok(vec![7; MIB])
    }));
    let source_code = class(
        "async sum(stream, most) {
            let sum = 0;
            for await (const chunk of stream) {
                sum += chunk.byteLength;
                if (chunk[0] !== 7) return 'wrong';
                if (sum >= most) break;
            }
            return sum;
        }",
    );
    let worker = coracle.load(module(&source_code)).entrypoint("default");
    let mut args = Payload::default();
    args.value = Value::Array(vec![
        args.external(&source),
        Value::from((300 * MIB) as f64),
    ]);
    let answer = within(PATIENCE * 3, "the stream is read", worker.call("sum", args))
        .await
        .unwrap();
    assert_eq!(value(answer), Value::from((300 * MIB) as f64));
    // What was not asked for was not made: no more than the reader and one piece ahead.
    let pieces = made.load(Ordering::Relaxed);
    assert!((300..=302).contains(&pieces), "{pieces}");
}

#[tokio::test]
async fn a_reader_that_stops_cancels_whoever_feeds_the_stream() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "endless() {
            return new ReadableStream({
                type: 'bytes',
                pull(c) { c.enqueue(new Uint8Array(10)); },
                cancel(reason) { globalThis.cancelled = String(reason); },
            });
        }
        state() { return globalThis.cancelled ?? 'not cancelled'; }",
    );
    let mut stream = stream_of(&worker, "endless").await;
    assert_eq!(stream.read(10).await.unwrap().unwrap().len(), 10);
    stream.cancel("enough").await.unwrap();
    assert_eq!(
        value(worker.call("state", args![]).await.unwrap()),
        Value::from("enough")
    );

    // Dropped without a word.
    drop(stream_of(&worker, "endless").await);
    eventually("the stream is let go of", async || {
        match value(worker.call("state", args![]).await.unwrap()) {
            Value::String(text) if text == "Error: Nobody reads this stream any more." => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_cancels_a_stream_of_the_clients_that_has_nothing_at_the_moment() {
    struct Alive(Arc<AtomicBool>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "async first(stream) {
            const reader = stream.getReader();
            const { value } = await reader.read();
            const next = reader.read();
            await scheduler.wait(20);
            await reader.cancel('enough');
            return [value.length, (await next).done];
        }",
    );
    let dropped = Arc::new(AtomicBool::new(false));
    let alive = Alive(Arc::clone(&dropped));
    let once = stream::once(async { Ok(vec![1; 3]) });
    let never = stream::once(async move {
        let _alive = alive;
        std::future::pending().await
    });
    let mut args = Payload::default();
    let stream = args.external(&coracle.byte_stream(once.chain(never)));
    args.value = Value::Array(vec![stream]);
    let answer = within(PATIENCE, "the answer", worker.call("first", args)).await;
    assert_eq!(
        value(answer.unwrap()),
        Value::Array(vec![3.into(), true.into()])
    );
    eventually("the stream is dropped", async || {
        match dropped.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("it is there".into()),
        }
    })
    .await;
}

#[tokio::test]
async fn a_worker_writes_to_a_stream_of_another_worker_and_reads_from_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let upper = load(
        &coracle,
        "pair() {
            const { readable, writable } = new TransformStream({
                transform(chunk, c) { c.enqueue(chunk.map((byte) => byte - 32)); },
            });
            return { readable, writable };
        }",
    );
    let user = load(
        &coracle,
        "async shout(upper, words) {
            const { readable, writable } = await upper.pair();
            const writer = writable.getWriter();
            const written = (async () => {
                for (const word of words) await writer.write(new TextEncoder().encode(word));
                await writer.close();
            })();
            const text = await new Response(readable).text();
            await written;
            return text;
        }",
    );
    let mut args = one(upper.stub());
    if let Value::Array(args) = &mut args.value {
        args.push(Value::array(["ab", "cd", "e"]));
    }
    let answer = within(PATIENCE, "it is shouted", user.call("shout", args))
        .await
        .unwrap();
    assert_eq!(value(answer), Value::from("ABCDE"));
}

#[tokio::test]
async fn requests_and_responses_have_streamed_bodies_both_ways() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "async fetch(request) {
            const { pathname } = new URL(request.url);
            if (pathname === '/echo') {
                return new Response(request.body, {
                    status: 201,
                    headers: { 'x-method': request.method, 'x-from': request.headers.get('x-from') },
                });
            }
            return Response.json({ text: await request.text(), type: request.headers.get('content-type') });
        }",
    );
    let pieces = ["one ", "two ", "three"].map(|text| Ok::<_, Thrown>(text.as_bytes().to_vec()));
    let body = coracle.byte_stream(stream::iter(pieces));
    let request = Request {
        method: "POST".into(),
        url: "https://worker.example/echo".into(),
        headers: vec![("x-from".into(), "a client".into())],
        body: Body::Stream(body),
    };
    let response = worker.fetch(request).await.unwrap();
    assert_eq!(response.status, 201);
    let header = |name: &str| {
        let found = response.headers.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.clone())
    };
    assert_eq!(header("x-method").as_deref(), Some("POST"));
    assert_eq!(header("x-from").as_deref(), Some("a client"));
    assert_eq!(response.body.bytes(KIB).await.unwrap(), b"one two three");

    let request = Request {
        method: "PUT".into(),
        body: Body::Bytes(b"short".to_vec()),
        headers: vec![("content-type".into(), "text/odd".into())],
        ..Request::get("https://worker.example/")
    };
    let response = worker.fetch(request).await.unwrap();
    let text = response.body.bytes(KIB).await.unwrap();
    assert_eq!(text, br#"{"text":"short","type":"text/odd"}"#);
}

/// Answers every call with the same.
struct Always(Value);

impl Target for Always {
    fn call(&self, _: Vec<String>, _: Payload) -> BoxFuture<'static, Result<Payload, Thrown>> {
        Box::pin(std::future::ready(Ok(self.0.clone().into())))
    }
}

#[tokio::test]
async fn what_a_stranger_sends_in_a_streams_place_is_an_error_of_the_stream() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "async read(stream) {
            try { for await (const chunk of stream); return 'all'; }
            catch (error) { return error.name + ': ' + error.message; }
        }",
    );
    // A source that answers with something else than bytes, or with too many.
    for (answer, what) in [
        (Value::from("text"), "a text"),
        (Value::uint8_array(vec![]), "no bytes"),
        (Value::uint8_array(vec![0; 2 * MIB]), "too many bytes"),
    ] {
        let stub = coracle.serve_source(Always(answer));
        let read = worker.call("read", one(&stub)).await.unwrap();
        assert_eq!(
            value(read),
            Value::from(
                "TypeError: ReadableStream received over RPC sent something else than the bytes it was asked for."
            ),
            "{what}"
        );
    }
    // A stream that breaks.
    let broken = stream::iter([Ok(vec![1]), Err(Thrown::new("RangeError", "broken pipe"))]);
    let stub = coracle.byte_stream(broken.chain(stream::pending()));
    let read = worker.call("read", one(&stub)).await.unwrap();
    assert_eq!(value(read), Value::from("RangeError: broken pipe"));
}

/// Notes what is written to it.
#[derive(Clone, Default)]
struct Noted(Arc<Mutex<Vec<String>>>);

impl Target for Noted {
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        let argument = args.value.index(0);
        let text = match (argument.and_then(Value::as_bytes), argument) {
            (Some(bytes), _) => String::from_utf8_lossy(bytes).into_owned(),
            (None, Some(value)) => value.as_str().unwrap_or_default().to_owned(),
            (None, None) => String::new(),
        };
        self.0
            .lock()
            .unwrap()
            .push(format!("{}({text})", path.join(".")));
        Box::pin(std::future::ready(Ok(Value::Undefined.into())))
    }
}

#[tokio::test]
async fn a_worker_writes_to_a_stream_of_the_clients_in_order_and_closes_or_aborts_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = load(
        &coracle,
        "async write(sink) {
            const writer = sink.getWriter();
            for (const word of ['one', 'two']) await writer.write(new TextEncoder().encode(word));
            await writer.close();
            return 'closed';
        }
        async abort(sink) {
            await sink.abort('no more');
            return 'aborted';
        }",
    );
    for (method, answer, expected) in [
        (
            "write",
            "closed",
            &["write(one)", "write(two)", "close()"][..],
        ),
        ("abort", "aborted", &["abort(no more)"]),
    ] {
        let noted = Noted::default();
        let sink = coracle.serve_sink(noted.clone());
        let outcome = within(PATIENCE, method, worker.call(method, one(&sink))).await;
        assert_eq!(value(outcome.unwrap()), Value::from(answer));
        assert_eq!(*noted.0.lock().unwrap(), expected);
    }
}
