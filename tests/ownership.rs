//! Who holds what was passed by reference, and when it is let go of.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, client, eventually, value};
use coracle_client::{Coracle, Entrypoint, Payload, Stub, Value, WorkerCode, args};
use std::sync::Arc;

fn load(coracle: &Coracle, methods: &str) -> Entrypoint {
    let source = format!(
        "import {{ WorkerEntrypoint, RpcTarget }} from 'cloudflare:workers';
        let count = 0, kept;
        export default class extends WorkerEntrypoint {{ count() {{ return count }} {methods} }}"
    );
    coracle
        .load(WorkerCode::new("main.js").es_module("main.js", &source))
        .entrypoint("default")
}

async fn call(entrypoint: &Entrypoint, method: &str) -> Value {
    value(answer(entrypoint, method, args![]).await)
}

async fn comes_to(entrypoint: &Entrypoint, count: i32) {
    eventually("the count", async || {
        match call(entrypoint, "count").await {
            found if found == count.into() => Ok(()),
            found => Err(format!("{found:?}")),
        }
    })
    .await;
}

/// A function of the client's, and what is alive as long as somebody holds it.
fn held(coracle: &Coracle) -> (Stub, Arc<()>) {
    let alive = Arc::new(());
    let held = Arc::clone(&alive);
    let stub = coracle.function(move |_| {
        let _held = &held;
        async { Ok(Payload::from(Value::from(7))) }
    });
    (stub, alive)
}

async fn is_let_go(alive: &Arc<()>) {
    eventually(
        "the function is let go of",
        async || match Arc::strong_count(alive) {
            1 => Ok(()),
            count => Err(format!("{count} hold it")),
        },
    )
    .await;
}

fn argument(stub: &Stub) -> Payload {
    let mut payload = Payload::default();
    let stub = payload.external(stub);
    payload.value = Value::Array(vec![stub]);
    payload
}

#[tokio::test]
async fn the_disposer_of_a_result_runs_when_the_caller_has_disposed_of_the_result() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "make() { return { n: 1, [Symbol.dispose]() { count++ } } }
        async local() {
            const made = await this.ctx.exports.default.make();
            const before = count;
            made[Symbol.dispose]();
            await scheduler.wait(1);
            return [made.n, before, count];
        }
        broken() { return { get [Symbol.dispose]() { throw new Error('no') } } }
        refused() { return { bad: Symbol(), [Symbol.dispose]() { count += 10 } } }",
    );
    let made = entrypoint.call("make", args![]).await.unwrap();
    assert_eq!(call(&entrypoint, "count").await, 0.into());
    drop(made);
    comes_to(&entrypoint, 1).await;
    let local = Value::Array(vec![1.into(), 1.into(), 2.into()]);
    assert_eq!(call(&entrypoint, "local").await, local);
    assert_eq!(
        call(&entrypoint, "broken").await,
        Value::object::<&str, Value>([]),
        "a disposer that can't be read is none"
    );
    // What can't be passed is disposed of at once.
    entrypoint.call("refused", args![]).await.unwrap();
    comes_to(&entrypoint, 12).await;
    drop((entrypoint, coracle));
    server.is_empty().await;
}

#[tokio::test]
async fn stubs_in_a_result_go_to_whoever_called() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "give(f) { kept = f.dup(); return { deep: [kept] } }
        async use() { return await kept().catch(error => error.message) }
        async local(f) {
            const given = await this.ctx.exports.default.give(f);
            return [await given.deep[0](), await this.use()];
        }",
    );
    let (stub, alive) = held(&coracle);
    let given = entrypoint.call("give", argument(&stub)).await.unwrap();
    let disposed = Value::from("RPC stub used after being disposed.");
    assert_eq!(call(&entrypoint, "use").await, disposed);
    let local = value(entrypoint.call("local", argument(&stub)).await.unwrap());
    assert_eq!(local, Value::Array(vec![7.into(), disposed]));
    drop((given, stub));
    is_let_go(&alive).await;
}

#[tokio::test]
async fn what_is_called_through_a_promise_goes_on_though_the_promise_is_disposed_of() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "make() { return { f: () => 42, own: { g: () => 43 }, [Symbol.dispose]() { count++ } } }
        async local() {
            const promise = this.ctx.exports.default.make();
            const calls = [promise.f(), promise.own.g()];
            promise[Symbol.dispose]();
            return [...await Promise.all(calls), await promise.f().catch(error => error.message)];
        }
        async remote(make) {
            const promise = make();
            const calls = [promise.f(), promise.own.g()];
            promise[Symbol.dispose]();
            return await Promise.all(calls);
        }
        async failing() {
            const promise = this.ctx.exports.default.nowhere();
            const call = promise.f();
            promise[Symbol.dispose]();
            return await call.catch(error => error.message);
        }",
    );
    let refused = Value::from("RPC promise used after being disposed.");
    assert_eq!(
        call(&entrypoint, "local").await,
        Value::Array(vec![42.into(), 43.into(), refused])
    );
    comes_to(&entrypoint, 1).await;
    let made = entrypoint.call("make", args![]).await.unwrap();
    let made = made.payload().unwrap();
    let make = coracle.function(move |_| {
        let made = made.clone();
        async move { Ok(made) }
    });
    let remote = entrypoint.call("remote", argument(&make)).await.unwrap();
    assert_eq!(value(remote), Value::Array(vec![42.into(), 43.into()]));
    let missing = Value::from("The RPC receiver does not implement the method \"nowhere\".");
    assert_eq!(call(&entrypoint, "failing").await, missing);
}

#[tokio::test]
async fn a_stub_that_a_worker_has_forgotten_is_let_go_of() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let entrypoint = load(
        &coracle,
        "keep(f) { kept = f.dup() }
        forget() { kept = undefined }
        async last() { const it = kept; kept = undefined; const answer = it(); return await answer }",
    );
    let (stub, alive) = held(&coracle);
    entrypoint.call("keep", argument(&stub)).await.unwrap();
    drop(stub);
    call(&entrypoint, "count").await;
    assert_eq!(Arc::strong_count(&alive), 2);
    call(&entrypoint, "forget").await;
    is_let_go(&alive).await;

    let (stub, alive) = held(&coracle);
    entrypoint.call("keep", argument(&stub)).await.unwrap();
    drop(stub);
    assert_eq!(call(&entrypoint, "last").await, 7.into());
    is_let_go(&alive).await;
}
