//! Workers that turn the language against what stands between them and others: patched prototypes, getters and traps that
//! run in the middle of things, disposers that lie. Each gets an answer, and nothing that it was not given.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    Neighbour, PATIENCE, Server, answer, class, client, eventually, module, threw, value, within,
};
use coracle_client::{
    Coracle, Entrypoint, Limits, Outcome, Payload, Stub, Value, WorkerCode, args,
};

/// Runs beside a neighbour, who is not to notice, and leaves an empty server behind.
async fn beside(test: impl AsyncFnOnce(&Coracle)) {
    let server = Server::start();
    let neighbour = Neighbour::of(server.address()).await;
    let coracle = client(server.address()).await;
    test(&coracle).await;
    drop(coracle);
    neighbour.was_served().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
    server.is_empty().await;
}

/// A worker with helpers around its class.
fn code(before: &str, methods: &str) -> WorkerCode {
    module(&format!(
        "import {{ RpcTarget, RpcStub, env }} from 'cloudflare:workers'; {before}\n{}",
        class(methods)
    ))
}

/// What others give: a function of the client's, which returns 7, and a worker.
struct Given {
    function: Stub,
    other: Entrypoint,
}

impl Given {
    fn by(coracle: &Coracle) -> Self {
        let source = class(
            "async use(f) { return await f(1) }
            echo(x) { return x }
            make() { return { f: () => 5 } }
            slow(f) { return new Promise((done) => setTimeout(async () => done(await f()), 50)) }",
        );
        Self {
            function: coracle.function(|_| async { Ok(Payload::from(Value::from(7))) }),
            other: coracle.load(module(&source)).entrypoint("default"),
        }
    }

    fn arguments(&self) -> Payload {
        let mut args = Payload::default();
        let both = vec![
            args.external(&self.function),
            args.external(self.other.stub()),
        ];
        args.value = Value::Array(both);
        args
    }

    /// Calls a method with what is given.
    async fn to(&self, worker: &Entrypoint, method: &str) -> Outcome {
        let called = worker.call(method, self.arguments());
        within(PATIENCE, method, called).await.unwrap().outcome
    }

    /// Calls `run` twice, because the first may have left something behind.
    async fn runs_to(&self, coracle: &Coracle, code: WorkerCode, expected: impl Into<Value>) {
        let worker = coracle.load(code).entrypoint("default");
        let expected = expected.into();
        for round in 0..2 {
            let outcome = self.to(&worker, "run").await;
            assert_eq!(
                outcome,
                Outcome::Value(expected.clone()),
                "in round {round}"
            );
        }
    }
}

fn texts<const COUNT: usize>(texts: [&str; COUNT]) -> Value {
    Value::Array(texts.into_iter().map(Value::from).collect())
}

#[tokio::test]
async fn a_worker_that_breaks_every_prototype_still_calls_and_is_called() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let breakage = "
            const boom = () => { throw new Error('patched') };
            const { ownKeys, defineProperty } = Reflect;
            const broken = [];
            for (const of of [Map, WeakMap, Set, WeakSet, Promise, Array, Symbol, Function, FinalizationRegistry, Proxy,
                              String, Error, Object, Reflect]) {
                for (const [object, isStatic] of [[of.prototype, false], [of, true]]) {
                    if (object === undefined || (isStatic && of === Object)) continue;
                    for (const key of ownKeys(object)) {
                        const isKept = ['prototype', 'length', '__proto__', 'stack', 'stackTraceLimit'].includes(key)
                            || (key === 'constructor' && of !== Promise)
                            || (key === 'toString' && object === Object.prototype);
                        if (!isKept) broken.push([object, key]);
                    }
                }
            }
            for (let n = 0; n < broken.length; n++) {
                defineProperty(broken[n][0], broken[n][1], {
                    __proto__: null, value: boom, configurable: true, writable: true,
                });
            }";
        let methods = "
            local(g) { return g(1) }
            async run(f, other) {
                const made = await other.make();
                const answers = {
                    a: await f(1), b: await other.use(f), c: await made.f(),
                    d: await this.ctx.exports.default.local((x) => x + 1),
                };
                return answers;
            }";
        let answers = Value::object([("a", 7), ("b", 7), ("c", 5), ("d", 2)]);
        given.runs_to(coracle, code(breakage, methods), answers)
            .await;
    })
    .await;
}

#[tokio::test]
async fn setters_where_everything_inherits_from_see_nothing_of_the_prelude() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let traps = "
            let seen = '', disposed = 0;
            const note = (text) => { seen += text };
            for (let n = 0; n < 8; n++) {
                for (const of of [Object.prototype, Array.prototype]) {
                    Object.defineProperty(of, n, {
                        __proto__: null, set(value) { note(`${n}: ${typeof value} `) }, configurable: true,
                    });
                }
            }
            for (const key of ['hook', 'path', 'life', 'answer', 'token', 'id', 'then', 'done', 'made', 'isEntrypoint',
                               'isBinding', 'disposed', 'kind', 'references', 'run', 'timer', 'operation', 'stubs', 'state',
                               'reply']) {
                Object.defineProperty(Object.prototype, key, {
                    __proto__: null, set(value) { note(`${key}: ${typeof value} `) }, get() {}, configurable: true,
                });
            }";
        let methods = "
            local(g) { return { g: () => 1, [Symbol.dispose]() { disposed++ } } }
            async run(f, other) {
                const sum = await f(1) + await other.use(f);
                const local = await this.ctx.exports.default.local((x) => x + 1);
                local[Symbol.dispose]();
                await scheduler.wait(1);
                const made = await other.make();
                return `${sum} ${await made.f()} ${disposed > 0} ${seen}`;
            }";
        given.runs_to(coracle, code(traps, methods), "14 5 true ").await;
    })
    .await;
}

#[tokio::test]
async fn a_proxy_that_throws_at_whoever_looks_is_passed_by_reference() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            trap() { return new Proxy({}, { getPrototypeOf() { throw new Error('trap') } }) }
            async run() { return String(await this.ctx.exports.default.trap()) }
            endless() { const it = new Proxy({}, { getPrototypeOf() { return it } }); return it }";
        let worker = code("", methods);
        given
            .runs_to(coracle, worker.clone(), "[object RpcStub]")
            .await;
        // Fuel, because which other limit comes first depends on the machine.
        let limits = Limits {
            fuel_max: 200_000_000,
            ..Limits::default()
        };
        let worker = coracle.load(worker.limits(limits)).entrypoint("default");
        let trap = answer(&worker, "trap", args![]).await;
        assert_eq!(trap.outcome, Outcome::Value(Value::External(0)));
        let endless = answer(&worker, "endless", args![]).await;
        assert_eq!(crate::support::verdict(&endless), ("fuel", "fuel_max"));
    })
    .await;
}

#[tokio::test]
async fn getters_that_run_while_a_value_is_encoded_spoil_only_that_value() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            async run(f, other) {
                const said = [];
                const attempt = async (name, value) => {
                    try { said.push(`${name} ${JSON.stringify(await other.echo(value))}`) }
                    catch (error) { said.push(`${name} ${error.message}`) }
                };
                const first = f.dup(), second = f.dup(), third = f.dup();
                await attempt('before', [{ get x() { first[Symbol.dispose](); return 1 } }, first]);
                await attempt('after', [second, { get x() { second[Symbol.dispose](); return 1 } }]);
                await attempt('call', [third, { get x() { third(1); return other.echo(1) instanceof Object } }]);
                await attempt('clone', { get x() { return structuredClone({ y: [1] }) } });
                await attempt('grow', (() => { const all = [{ get x() { all.push(all); all.length = 3; return 1 } }, 2]; return all })());
                const buffer = new ArrayBuffer(8);
                await attempt('detach', [{ get x() { buffer.transfer(); return 1 } }, new Uint8Array(buffer)]);
                await attempt('throw', [() => 1, { get x() { throw new Error('getter') } }]);
                await attempt('deep', [() => 1, { get x() { const self = () => self() + 1; return self() } }]);
                await attempt('json', { toJSON() { return 'no' }, a: 1 });
                return said;
            }";
        let said = texts([
            "before RPC stub used after being disposed.",
            "after [null,{\"x\":1}]",
            "call [null,{\"x\":true}]",
            "clone {\"x\":{\"y\":[1]}}",
            "grow [{\"x\":1},2]",
            "detach A view of an ArrayBuffer could not be cloned: the buffer was detached or resized, and the view lies outside of \
             it (at arguments[0][1]).",
            "throw getter",
            "deep Maximum call stack size exceeded",
            "json undefined",
        ]);
        given.runs_to(coracle, code("", methods), said).await;
    })
    .await;
}

#[tokio::test]
async fn thenables_and_disposers_that_lie_are_asked_once() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            one() { return { get then() { throw new Error('one') } } }
            two() { return { then() { throw new Error('two') } } }
            three() { return { then(ok, no) { ok(1); ok(2); no(3); throw new Error('three') } } }
            four() { return { n: 4, get [Symbol.dispose]() { throw new Error('four') } } }
            five() { let asked = 0; return { n: 5, get [Symbol.dispose]() { return asked++ ? undefined : () => {} } } }
            six() { return Object.freeze({ f: () => 1 }) }
            seven() { return { n: 7, [Symbol.dispose]() { throw new Error('seven') } } }
            async run() {
                const said = [];
                for (const name of ['one', 'two', 'three', 'four', 'five', 'six', 'seven']) {
                    try {
                        const value = await this.ctx.exports.default[name]();
                        said.push(JSON.stringify(value));
                        value?.[Symbol.dispose]?.();
                    } catch (error) { said.push(error.message) }
                }
                return said;
            }";
        let said = texts(["one", "two", "1", "{\"n\":4}", "{\"n\":5}", "{}", "{\"n\":7}"]);
        given.runs_to(coracle, code("", methods), said).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_in_env_or_exports_may_be_returned_and_stays() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            async run() { return [await this.env.TOOL(), await this.ctx.exports.default.hi()] }
            hi() { return 'hi' }
            tool() { return this.env.TOOL }
            own() { return { own: this.ctx.exports.default } }
            async local() { return typeof await this.ctx.exports.default.tool() }";
        let mut env = Payload::default();
        let tool = env.external(&given.function);
        env.value = Value::object([("TOOL", tool)]);
        let worker = coracle
            .load(code("", methods).env(env))
            .entrypoint("default");
        let there = Value::Array(vec![7.into(), "hi".into()]);
        for method in ["tool", "own", "local"] {
            value(answer(&worker, method, args![]).await);
            assert_eq!(
                value(answer(&worker, "run", args![]).await),
                there,
                "after {method}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn a_stub_of_a_part_is_no_stub_of_the_whole() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            async run(f, other) {
                const whole = new RpcStub({ secret() { return 's' }, open: { hi() { return 'hi' } } });
                const said = [];
                for (const part of [whole.open, other.make(), other.make().f]) {
                    try { said.push(typeof new RpcStub(part)) } catch (error) { said.push(error.name) }
                }
                said.push(await new RpcStub(await whole.open).hi(), await new RpcStub(whole).secret());
                return said;
            }";
        let said = texts(["TypeError", "TypeError", "TypeError", "hi", "s"]);
        given.runs_to(coracle, code("", methods), said).await;
    })
    .await;
}

#[tokio::test]
async fn who_holds_the_disposer_of_a_result_sees_nothing_of_the_result() {
    beside(async |coracle| {
        let methods = "
            make() {
                const made = { n: 1, [Symbol.dispose]() { count++ } };
                return Object.defineProperty(made, 'secret', { value: () => 's' });
            }
            count() { return count }";
        let worker = coracle
            .load(code("let count = 0;", methods))
            .entrypoint("default");
        let made = answer(&worker, "make", args![]).await.payload().unwrap();
        assert_eq!(made.value, Value::object([("n", 1)]));
        let disposer = made.externals[0].clone();
        let secret = disposer.call("secret", args![]).await.unwrap();
        let expected = "The RPC receiver does not implement the method \"secret\".";
        assert_eq!(threw(&secret), ("TypeError", expected));
        assert_eq!(threw(&disposer.get("n").await.unwrap()).0, "TypeError");
        drop((made, disposer));
        eventually("it runs", async || {
            match value(answer(&worker, "count", args![]).await) {
                Value::Number(1.0) => Ok(()),
                count => Err(format!("{count:?}")),
            }
        })
        .await;
    })
    .await;
}

#[tokio::test]
async fn what_a_call_needs_that_waits_is_there_when_it_leaves() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        // More than may be in flight at once.
        let methods = "
            async run(f, other) {
                const stubs = [];
                for (let n = 0; n < 80; n++) stubs.push((await other.make()).f);
                const callees = stubs.splice(40);
                const calls = [...stubs.map((stub) => other.slow(stub)), ...callees.map((stub) => stub())];
                for (const stub of [...stubs, ...callees]) stub[Symbol.dispose]();
                const answers = await Promise.allSettled(calls);
                return [...new Set(answers.map(({ value, reason }) => `${value ?? reason}`))];
            }
            async forgets(f, other) {
                const calls = [];
                for (let n = 0; n < 40; n++) calls.push(other.slow((await other.make()).f));
                for (let n = 0; n < 40; n++) await other.echo(n);
                return [...new Set((await Promise.allSettled(calls)).map(({ value, reason }) => `${value ?? reason}`))];
            }";
        let worker = code("", methods);
        given.runs_to(coracle, worker.clone(), texts(["5"])).await;
        let worker = coracle.load(worker).entrypoint("default");
        let forgotten = given.to(&worker, "forgets").await;
        assert_eq!(forgotten, Outcome::Value(texts(["5"])));
    })
    .await;
}

#[tokio::test]
async fn registries_that_throw_and_stubs_that_come_back_do_no_harm() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let before = "
            let told = 0;
            const registry = new FinalizationRegistry(() => { told++; throw new Error('told') });
            const weak = [];";
        let methods = "
            async run(f, other) {
                for (let n = 0; n < 50; n++) {
                    const made = await other.make();
                    registry.register(made, 1); registry.register(made.f, 2);
                    weak.push(new WeakRef(made.f));
                }
                let wrong = 0;
                for (const reference of weak) {
                    const stub = reference.deref();
                    if (stub !== undefined && (await stub()) !== 5) wrong++;
                }
                return [told > 0, wrong];
            }";
        given
            .runs_to(
                coracle,
                code(before, methods),
                Value::Array(vec![true.into(), 0.into()]),
            )
            .await;
    })
    .await;
}

#[tokio::test]
async fn what_is_done_to_a_stub_itself_changes_that_stub_alone() {
    beside(async |coracle| {
        let given = Given::by(coracle);
        let methods = "
            async run(f, other) {
                const said = [];
                const attempt = async (act) => {
                    try { said.push(String(await act())) } catch (error) { said.push(error.message) }
                };
                await attempt(() => { const s = other.dup(); Object.setPrototypeOf(s, null); return s.echo(1) });
                await attempt(() => Object.freeze(other.dup()).echo(2));
                await attempt(() => Object.create(other.dup()).echo(3));
                await attempt(() => { const s = other.dup(); s[Symbol.dispose](); s[Symbol.dispose](); return other.echo(4) });
                await attempt(() => { const s = other.dup(); s.anything[Symbol.dispose](); return s.echo(5) });
                await attempt(() => { const s = other.dup(); s[Symbol.dispose](); return other.use(s) });
                await attempt(() => { const p = other.make(); const q = p.f; p[Symbol.dispose](); return q() });
                await attempt(() => new (other.dup())());
                await attempt(() => { let p = other; for (let n = 0; n < 65; n++) p = p.x; return p() });
                await attempt(() => other['y'.repeat(1 << 20)]());
                await attempt(() => f['y'.repeat(1 << 20)]);
                return said;
            }";
        let disposed = "RPC stub used after being disposed.";
        let long = "The names of an RPC property path have more than 65536 bytes.";
        let said = texts([
            "1",
            "2",
            "3",
            "4",
            disposed,
            disposed,
            "RPC promise used after being disposed.",
            "not a constructor",
            "RPC pipelined property path is too deep (max 64).",
            long,
            long,
        ]);
        given.runs_to(coracle, code("", methods), said).await;
    })
    .await;
}
