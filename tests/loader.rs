//! Workers that load workers: `env.LOADER`, over the real binary.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Gauges, Server, answer, client, eventually, threw, value, verdict};
use coracle_client::{Coracle, Entrypoint, Limits, Payload, Value, Worker, WorkerCode, args};

/// What the parents below have in front of them.
const PARENT: &str = r#"
    import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
    const code = (source, extra = {}) => ({
        compatibilityDate: "2026-06-01",
        mainModule: "main.js",
        modules: { "main.js": source },
        globalOutbound: null,
        ...extra,
    });
    const methods = (body) =>
        'import { RpcTarget, WorkerEntrypoint } from "cloudflare:workers";' +
        "export default class extends WorkerEntrypoint {" + body + "}";
    const failure = async (run) => {
        try {
            return ["no error", JSON.stringify(await run())];
        } catch (error) {
            return [error.name, error.message, error.remote === true];
        }
    };
"#;

fn code(coracle: &Coracle, methods: &str) -> WorkerCode {
    let mut env = Payload::default();
    let loader = env.external(&coracle.loader());
    env.value = Value::object([("LOADER", loader)]);
    let source = format!("{PARENT} export default class extends WorkerEntrypoint {{ {methods} }}");
    WorkerCode::new("main.js")
        .es_module("main.js", source)
        .env(env)
}

/// A worker with a loader in its env.
fn parent(coracle: &Coracle, methods: &str) -> Worker {
    coracle.load(code(coracle, methods))
}

/// Calls the method `run` of a new parent.
async fn run(coracle: &Coracle, body: &str) -> Value {
    let parent = parent(coracle, &format!("async run() {{ {body} }}"));
    let answer = answer(&parent.entrypoint("default"), "run", args![]).await;
    value(answer)
}

fn list<const N: usize>(values: [Value; N]) -> Value {
    Value::Array(values.into())
}

fn error(name: &str, message: &str) -> Value {
    list([name.into(), message.into(), false.into()])
}

#[tokio::test]
async fn a_worker_loads_another_and_calls_it() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const worker = this.env.LOADER.load(code(`
            import { WorkerEntrypoint } from "cloudflare:workers";
            export default { double(n) { return n * 2 } };
            export class Named extends WorkerEntrypoint {
                add(a, b) { return a + b + this.ctx.props.more }
                make() { return { inner: { times: (n) => n * 3 } } }
            }`));
        const named = worker.getEntrypoint("Named", { props: { more: 100 } });
        return [
            await worker.getEntrypoint().double(21),
            await worker.getEntrypoint("default").double(1),
            await worker.getEntrypoint(null).double(2),
            await named.add(1, 2),
            await named.make().inner.times(5),
        ];"#,
    )
    .await;
    assert_eq!(
        found,
        list([42.into(), 2.into(), 4.into(), 103.into(), 15.into()])
    );
}

#[tokio::test]
async fn a_child_gets_data_functions_objects_and_entrypoints_in_env_and_props() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = r#"
        async run() {
            class Counter extends RpcTarget { #n = 0; next() { return ++this.#n } }
            const env = {
                data: { when: new Date(7), list: [1, new Map([[1, 2]])] },
                double: (n) => n * 2,
                counter: new Counter(),
                echo: this.ctx.exports.Echo({ props: { who: "child" } }),
            };
            const worker = this.env.LOADER.load(code(methods(`
                async all() {
                    const { data, double, counter, echo } = this.env;
                    await counter.next();
                    const { more } = this.ctx.props;
                    return [data.when.getTime(), data.list[1].get(1), await double(4), await counter.next(), await echo.say("hi"), await more(1)];
                }`), { env }));
            env.data.when = null;
            return await worker.getEntrypoint(undefined, { props: { more: (n) => n + 1 } }).all();
        }"#;
    let mut code = code(&coracle, source);
    let echo = "export class Echo extends WorkerEntrypoint { say(text) { return this.ctx.props.who + ': ' + text } }";
    if let Some((_, coracle_client::ModuleBody::EsModule(source))) = code.modules.first_mut() {
        source.push_str(echo);
    }
    let parent = coracle.load(code);
    let found = value(answer(&parent.entrypoint("default"), "run", args![]).await);
    let expected = [
        7.into(),
        2.into(),
        8.into(),
        2.into(),
        "child: hi".into(),
        2.into(),
    ];
    assert_eq!(found, list(expected));
}

#[tokio::test]
async fn what_a_worker_is_made_of_is_checked_at_once_in_workerds_words() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const load = (code) => failure(() => this.env.LOADER.load(code));
        const good = code("export default {}");
        const module = (name, body) => load({ ...good, modules: { "main.js": "", [name]: body } });
        return [
            await load(undefined),
            await load("code"),
            await load({ ...good, modules: {} }),
            await load({ ...good, modules: undefined }),
            await load({ ...good, compatibilityDate: undefined }),
            await load({ ...good, compatibilityDate: "2026-02-30" }),
            await load({ ...good, compatibilityDate: "2030-01-01" }),
            await load({ ...good, compatibilityFlags: ["no_such_flag"] }),
            await module("a.txt", "text"),
            await module("a.js", { js: "", text: "" }),
            await module("a.js", {}),
            await module("a.py", "x = 1"),
            await load({ ...good, env: 5 }),
            await load({ ...good, globalOutbound: { fetch() {} } }),
            await load({ ...good, limits: { cpuMs: "abc" } }),
            await load({ ...good, limits: { subRequests: -1 } }),
            (await load({ ...good, env: { a: Symbol("q") } }))[0],
            await load({ ...good, env: { a: "x".repeat(1 << 20) } }),
            await load({ ...good, modules: { "main.js": "", "b.bin": { data: new Uint8Array(10485761) } } }),
            await failure(() => this.env.LOADER.get("x")),
            await failure(() => this.env.LOADER.load(good).getEntrypoint("a", { props: 5 })),
        ];"#,
    )
    .await;
    let expected = [
        error(
            "TypeError",
            "Cannot initialize WorkerCode with required members from an undefined or null value.",
        ),
        error(
            "TypeError",
            "Failed to execute 'load' on 'WorkerLoader': parameter 1 is not of type 'WorkerCode'.",
        ),
        error(
            "TypeError",
            "Dynamic Worker code must contain at least one module.",
        ),
        error(
            "TypeError",
            "Incorrect type for the 'modules' field on 'WorkerCode': the provided value is not of type 'object'.",
        ),
        error("Error", "Invalid compatibility date: undefined"),
        error("Error", "Invalid compatibility date: 2026-02-30"),
        error(
            "Error",
            "This Worker requires compatibility date \"2030-01-01\", but the newest date supported by this server binary is \"2026-11-24\".",
        ),
        error("Error", "No such compatibility flag: no_such_flag"),
        error(
            "TypeError",
            "Module name must end with '.js' or '.py' (or the content must be an object indicating the type explicitly). Got: a.txt",
        ),
        error(
            "TypeError",
            "Each module must contain exactly one of 'js', 'cjs', 'text', 'data', 'json', 'py', or 'wasm'. Module 'a.js' contained 2 properties.",
        ),
        error(
            "TypeError",
            "Each module must contain exactly one of 'js', 'cjs', 'text', 'data', 'json', 'py', or 'wasm'. Module 'a.js' contained 0 properties.",
        ),
        error(
            "TypeError",
            "Module \"a.py\" is a Python module, but the main module isn't a Python module.",
        ),
        error(
            "TypeError",
            "Incorrect type for the 'env' field on 'WorkerCode': the provided value is not of type 'Object'.",
        ),
        error(
            "TypeError",
            "Incorrect type for the 'globalOutbound' field on 'WorkerCode': the provided value is not of type 'Fetcher'.",
        ),
        error(
            "TypeError",
            "The value cannot be converted because it is not an integer.",
        ),
        error(
            "TypeError",
            "The value cannot be converted because it is negative and this API expects a positive number.",
        ),
        "DataCloneError".into(),
        error(
            "Error",
            "Dynamic Worker env size (1048584 bytes) exceeds the maximum allowed size of 1048576 bytes.",
        ),
        error(
            "Error",
            "Dynamic Worker code size (10485761 bytes) exceeds the maximum allowed size of 10485760 bytes.",
        ),
        error(
            "TypeError",
            "Failed to execute 'get' on 'WorkerLoader': parameter 2 is not of type 'function'.",
        ),
        error(
            "TypeError",
            "Incorrect type for the 'props' field on 'EntrypointOptions': the provided value is not of type 'Object'.",
        ),
    ];
    let Value::Array(found) = found else {
        panic!("{found:?}")
    };
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        assert_eq!(found, expected, "case {index}");
    }
    assert_eq!(found.len(), expected.len());
}

#[tokio::test]
async fn what_is_wrong_with_the_code_shows_at_the_first_call() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const call = (source, extra) => failure(() => this.env.LOADER.load(code(source, extra)).getEntrypoint().run());
        return [
            await call("export default { run( {"),
            await call('throw new RangeError("boom at top");'),
            await call('import "./nope.js"; export default {}'),
            await call("export default {}", { mainModule: "nope.js" }),
            await call("", { mainModule: "m.txt", modules: { "m.txt": { text: "hi" } } }),
            await failure(() => this.env.LOADER.load(code("export default {}")).getEntrypoint("Nope").run()),
            await failure(() => this.env.LOADER.load(code("export default {}")).getEntrypoint("").run()),
        ];"#,
    )
    .await;
    let Value::Array(found) = found else {
        panic!("{found:?}")
    };
    let text = |index: usize| match &found[index] {
        Value::Array(parts) => format!(
            "{}: {}",
            parts[0].as_str().unwrap(),
            parts[1].as_str().unwrap()
        ),
        other => panic!("{other:?}"),
    };
    assert!(
        text(0).starts_with("Error: Failed to start Worker:\nUncaught SyntaxError: "),
        "{}",
        text(0)
    );
    assert!(text(0).contains("\n  at main.js:1:"), "{}", text(0));
    // (Of `throw new RangeError(…)` in the first column.)
    let place = text(1)
        .rsplit_once(':')
        .map(|(text, column)| (text.to_owned(), column.to_owned()));
    assert_eq!(
        place.unwrap().0,
        "Error: Failed to start Worker:\nUncaught RangeError: boom at top\n  at main.js:1"
    );
    assert!(text(2).starts_with("Error: Failed to start Worker:\nUncaught Error: No such module \"./nope.js\".\n  imported from \"main.js\""), "{}", text(2));
    assert_eq!(
        text(3),
        "Error: Failed to start Worker:\nUncaught Error: No such module: nope.js"
    );
    assert_eq!(
        text(4),
        "Error: Failed to start Worker:\nUncaught TypeError: Main module must be an ES module."
    );
    assert_eq!(text(5), "Error: Worker has no such entrypoint: Nope");
    assert_eq!(text(6), "Error: Worker has no such entrypoint: ");
}

#[tokio::test]
async fn two_loads_share_nothing_and_one_load_keeps_its_state() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const source = "let n = 0; export default { next(_) { Array.prototype.spoilt = 1; return ++n } }";
        const a = this.env.LOADER.load(code(source)), b = this.env.LOADER.load(code(source));
        return [
            await a.getEntrypoint().next(0), await a.getEntrypoint().next(0), await b.getEntrypoint().next(0),
            [].spoilt ?? "clean",
        ];"#,
    )
    .await;
    assert_eq!(found, list([1.into(), 2.into(), 1.into(), "clean".into()]));
}

#[tokio::test]
async fn a_child_that_a_limit_stops_is_an_error_with_a_verdict_for_its_parent() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const worker = this.env.LOADER.load(code(methods("run() { for (;;); } fine() { return 1 }"), { limits: { cpuMs: 30 } }));
        let verdict;
        try { await worker.getEntrypoint().run() } catch (error) { verdict = error.verdict }
        return [verdict.kind, verdict.limitName, verdict.limit, await worker.getEntrypoint().fine()];"#,
    )
    .await;
    assert_eq!(
        found,
        list(["cpu".into(), "cpu_ms_max".into(), 30.into(), 1.into()])
    );
}

#[tokio::test]
async fn no_child_has_a_limit_that_is_higher_than_its_parents() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let mut code = code(
        &coracle,
        r#"
        async run() {
            const worker = this.env.LOADER.load(code(methods("run() { for (;;); }"), { limits: { cpuMs: 4000000000 } }));
            const stub = worker.getEntrypoint(null, { limits: { cpuMs: 4000000000 } });
            try { await stub.run() } catch (error) { return [error.verdict.kind, error.verdict.limit] }
        }"#,
    );
    code.limits = Limits {
        cpu_ms_max: 40,
        ..Limits::default()
    };
    let worker = coracle.load(code);
    let found = value(answer(&worker.entrypoint("default"), "run", args![]).await);
    assert_eq!(found, list(["cpu".into(), 40.into()]));

    // An entrypoint with lower limits gives its children no more than it has itself.
    let options = coracle_client::EntrypointOptions {
        limits: Limits {
            cpu_ms_max: 20,
            ..Limits::default()
        },
        ..coracle_client::EntrypointOptions::default()
    };
    let lower = worker.entrypoint_with("default", options);
    let found = value(answer(&lower, "run", args![]).await);
    assert_eq!(found, list(["cpu".into(), 20.into()]));
}

#[tokio::test]
async fn a_loader_can_be_passed_on_to_children_and_to_nobody_else() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const grandchild = methods("run(n) { return n + 1 }");
        const child = methods(`
            async run(source, code) {
                const worker = this.env.LOADER.load({ ...code, modules: { "main.js": source } });
                return await worker.getEntrypoint().run(41);
            }
            take(loader) { return typeof loader }`);
        const worker = this.env.LOADER.load(code(child, { env: { LOADER: this.env.LOADER } }));
        const { modules, ...rest } = code("");
        return [
            Object.getOwnPropertyNames(Object.getPrototypeOf(this.env.LOADER)).sort().join(),
            await worker.getEntrypoint().run(grandchild, rest),
            (await failure(() => worker.getEntrypoint().take(this.env.LOADER)))[0],
            (await failure(() => worker.getEntrypoint(null, { props: { LOADER: this.env.LOADER } }).take()))[0],
            (await failure(() => this.env.LOADER.load(code("", { env: { worker } }))))[0],
        ];"#,
    )
    .await;
    let refused = || Value::from("DataCloneError");
    assert_eq!(
        found,
        list([
            "constructor,get,load".into(),
            42.into(),
            refused(),
            refused(),
            refused()
        ])
    );
}

#[tokio::test]
async fn loading_and_calls_of_children_count_as_subrequests() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let mut code = code(
        &coracle,
        "run(count) { for (let i = 0; i < count; i++) this.env.LOADER.load(code('')); return count }",
    );
    code.limits = Limits {
        subrequests_max: 5,
        ..Limits::default()
    };
    let entrypoint = coracle.load(code).entrypoint("default");
    assert_eq!(
        value(answer(&entrypoint, "run", args![5]).await),
        Value::from(5)
    );
    let stopped = answer(&entrypoint, "run", args![6]).await;
    assert_eq!(verdict(&stopped), ("subrequests", "subrequests_max"));
}

#[tokio::test]
async fn children_count_for_the_session_and_those_that_are_too_many_are_refused() {
    let server = Server::start_with(&[("workers-per-session-max", "4")]);
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const workers = [];
        for (let i = 0; i < 5; i++) workers.push(this.env.LOADER.load(code(methods("run() { return 1 }"))));
        const results = [];
        for (const worker of workers) results.push((await failure(() => worker.getEntrypoint().run()))[0]);
        const again = async () => (await failure(() => this.env.LOADER.load(code(methods("run() { return 1 }"))).getEntrypoint().run()))[1];
        results.push(await again());
        for (const worker of workers) worker[Symbol.dispose]();
        return results;"#,
    )
    .await;
    let Value::Array(found) = found else {
        panic!("{found:?}")
    };
    let names: Vec<&str> = found
        .iter()
        .take(5)
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["no error", "no error", "no error", "Error", "Error"]
    );
    assert!(found[5].as_str().unwrap().contains("workers"), "{found:?}");
}

fn gauges(workers: u64, isolates: u64) -> Gauges {
    Gauges {
        connections: 1,
        sessions: 1,
        workers,
        isolates,
        calls: 0,
    }
}

/// Keeps a child in module scope.
const KEEPER: &str = r#"
    async keep() {
        this.constructor.worker = this.env.LOADER.load(code(methods("run() { return 1 }")));
        this.constructor.stub = this.constructor.worker.getEntrypoint();
        return await this.constructor.stub.run();
    }
    dispose() {
        this.constructor.worker[Symbol.dispose]();
        this.constructor.stub[Symbol.dispose]();
    }
    forget() {
        this.constructor.worker = undefined;
        this.constructor.stub = undefined;
    }
"#;

/// Ends the isolate by an endless loop, whichever limit is the first that it comes to.
async fn spin(entrypoint: &Entrypoint) {
    let stopped = answer(entrypoint, "spin", args![]).await;
    assert!(
        matches!(verdict(&stopped).0, "cpu" | "fuel"),
        "{:?}",
        verdict(&stopped)
    );
}

async fn called(entrypoint: &Entrypoint, method: &str) -> Value {
    value(answer(entrypoint, method, args![]).await)
}

#[tokio::test]
async fn a_child_goes_when_it_is_disposed_of_when_it_is_forgotten_and_with_its_parent() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(&coracle, KEEPER);
    let entrypoint = worker.entrypoint("default");
    called(&entrypoint, "keep").await;
    server.settles_at(gauges(2, 2)).await;
    called(&entrypoint, "dispose").await;
    server.settles_at(gauges(1, 1)).await;

    called(&entrypoint, "keep").await;
    server.settles_at(gauges(2, 2)).await;
    drop((worker, entrypoint));
    server.settles_at(gauges(0, 0)).await;
}

#[tokio::test]
async fn children_that_are_forgotten_do_not_pile_up() {
    let server = Server::start_with(&[("workers-per-session-max", "300")]);
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"async run(count) {
            let sum = 0;
            for (let i = 0; i < count; i++) sum += await this.env.LOADER.load(code(methods("run() { return 1 }"))).getEntrypoint().run();
            return sum;
        }"#,
    );
    let entrypoint = worker.entrypoint("default");
    for _ in 0..10 {
        assert_eq!(
            value(answer(&entrypoint, "run", args![100]).await),
            Value::from(100)
        );
    }
}

#[tokio::test]
async fn families_that_hold_each_other_go_when_their_parent_goes() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"
        // Each child keeps a function of its parent's, a stub of its sibling, and a function of its sibling's.
        async run() {
            const source = methods(`
                keep(...stubs) { (globalThis.kept ??= []).push(...stubs.map((stub) => stub.dup())); return kept.length }
                give() { return () => 1 }
                async load(source) {
                    globalThis.child = this.env.LOADER.load(source);
                    return await child.getEntrypoint().keep(() => 2, this.ctx.exports.default);
                }`);
            const env = { LOADER: this.env.LOADER, call: () => 3, self: this.ctx.exports.default({}) };
            const a = this.env.LOADER.load(code(source, { env })).getEntrypoint();
            const b = this.env.LOADER.load(code(source, { env })).getEntrypoint();
            const [ofA, ofB] = [await a.give(), await b.give()];
            await a.keep(b, ofB, () => 4);
            await b.keep(a, ofA, () => 5);
            globalThis.kept = [a, b, ofA, ofB];
            return await a.load(code(source));
        }"#,
    );
    let entrypoint = worker.entrypoint("default");
    assert_eq!(called(&entrypoint, "run").await, Value::from(2));
    server.settles_at(gauges(4, 4)).await;
    drop((worker, entrypoint));
    server.settles_at(gauges(0, 0)).await;
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn a_child_that_outlives_its_parents_isolate_is_lost() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"
        async give() { return this.env.LOADER.load(code(methods("run() { return 1 }"))).getEntrypoint() }
        spin() { for (;;); }"#,
    );
    let entrypoint = worker.entrypoint("default");
    let given = answer(&entrypoint, "give", args![]).await;
    let stub = given.externals[0].clone();
    assert_eq!(
        value(stub.call("run", args![]).await.unwrap()),
        Value::from(1)
    );
    spin(&entrypoint).await;
    eventually("the child is gone", async || {
        match stub.call("run", args![]).await.unwrap().outcome {
            coracle_client::Outcome::Verdict(verdict) if verdict.kind == "isolate_lost" => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test]
async fn the_dropped_connection_of_a_family_leaves_nothing_behind() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"
        async run() {
            const source = methods("nap() { return new Promise((done) => setTimeout(done, 25_000)) }");
            const naps = [];
            for (let i = 0; i < 5; i++) naps.push(this.env.LOADER.load(code(source)).getEntrypoint().nap());
            await Promise.all(naps);
        }"#,
    );
    let entrypoint = worker.entrypoint("default");
    let nap = tokio::spawn(async move { entrypoint.call("run", args![]).await });
    server
        .settles_at(Gauges {
            calls: 1,
            ..gauges(6, 6)
        })
        .await;
    nap.abort();
    drop((worker, coracle));
    server.is_empty().await;
    assert_eq!(server.metric("coracle_panics_total").await, 0.0);
}

#[tokio::test]
async fn the_loader_of_another_session_is_refused() {
    let server = Server::start();
    let (one, other) = (
        client(server.address()).await,
        client(server.address()).await,
    );
    let worker = other.load(code(&one, "run() { return 1 }"));
    let refused = worker.entrypoint("default").call("run", args![]).await;
    assert!(refused.is_err(), "{refused:?}");
}

#[tokio::test]
async fn module_scope_loads_nothing() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let mut code = code(&coracle, "run() { return 1 }");
    code.modules.clear();
    let code = code.es_module(
        "main.js",
        r#"import { env } from "cloudflare:workers"; env.LOADER.load({}); export default {}"#,
    );
    let failed = answer(&coracle.load(code).entrypoint("default"), "run", args![1]).await;
    let (name, message) = threw(&failed);
    assert_eq!(name, "Error");
    assert!(
        message.starts_with("Disallowed operation called within global scope."),
        "{message}"
    );
}

// --- get ---

#[tokio::test]
async fn a_worker_that_is_got_by_an_id_is_the_same_every_time() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        let asked = 0;
        const counter = () => { asked++; return code("let n = 0; export default { next(_) { return ++n } }") };
        const next = (id, callback = counter) => this.env.LOADER.get(id, callback).getEntrypoint().next(0);
        const other = () => code('export default { next(_) { return "other" } }');
        const results = [await next("a"), await next("a"), await next("a", other), asked];
        results.push(await next(77), await next("77"), await next(""), await next(""), asked);
        results.push(await next(null), await next(undefined), await next(null), asked);
        results.push(await Promise.all([next("b"), next("b"), next("b")]), asked);
        return results;"#,
    )
    .await;
    let together = list([1.into(), 2.into(), 3.into()]);
    let expected = [1, 2, 3, 1, 1, 2, 1, 2, 3, 1, 1, 1, 6].map(Value::from);
    let mut expected = Vec::from(expected);
    expected.extend([together, 7.into()]);
    assert_eq!(found, Value::Array(expected));
}

#[tokio::test]
async fn the_callback_runs_later_and_also_when_nobody_calls() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const order = [];
        const worker = this.env.LOADER.get("a", async () => { order.push("callback"); return code(methods("run() { return 7 }")) });
        order.push("got");
        const entrypoint = worker.getEntrypoint(undefined, { props: { a: 1 } });
        order.push("entrypoint");
        order.push(await entrypoint.run());
        this.env.LOADER.get("b", () => { order.push("unused"); return code("") });
        this.env.LOADER.get(null, () => { order.push("fresh"); return code("") });
        await new Promise((done) => setTimeout(done, 50));
        return order.join();"#,
    )
    .await;
    assert_eq!(found, Value::from("got,entrypoint,callback,7,fresh,unused"));
}

#[tokio::test]
async fn a_child_that_aborts_itself_is_an_error_and_a_named_one_starts_anew() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const source = "let n = 0;" + methods("next() { return ++n } die() { this.ctx.abort(new Error('enough')); return new Promise(() => {}) }")
            .replace("import", "\nimport");
        const results = [];
        for (const get of [() => this.env.LOADER.get("named", () => code(source)), () => this.env.LOADER.load(code(source))]) {
            const child = get().getEntrypoint();
            results.push(await child.next(), await child.next(), (await failure(() => child.die()))[1]);
            results.push(await get().getEntrypoint().next());
        }
        return results.join();"#,
    )
    .await;
    assert_eq!(found, Value::from("1,2,enough,1,1,2,enough,1"));
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn code_that_comes_too_late_harms_nobody() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"
        start() {
            const promised = Promise.withResolvers();
            globalThis.provide = () => promised.resolve(code(methods("run() { return 'late' }")));
            globalThis.child = this.env.LOADER.get("late", () => promised.promise);
            const answer = globalThis.child.getEntrypoint().run();
            this.ctx.waitUntil(answer.then((text) => { globalThis.answer = text }, (error) => { globalThis.answer = error.message }));
        }
        provide() { globalThis.provide() }
        async again() { return await globalThis.child.getEntrypoint().run() }
        answer() { return globalThis.answer }"#,
    );
    let entrypoint = worker.entrypoint("default");
    // The call that asked is over when another provides the code: nothing of its own was under way that it could wait for.
    called(&entrypoint, "start").await;
    assert_eq!(called(&entrypoint, "answer").await, Value::Undefined);
    called(&entrypoint, "provide").await;
    assert_eq!(called(&entrypoint, "again").await, "late".into());
    assert_eq!(called(&entrypoint, "answer").await, Value::Undefined);
    // And nobody is there any more.
    called(&entrypoint, "start").await;
    drop((entrypoint, worker, coracle));
    server.is_empty().await;
}

#[tokio::test]
async fn a_call_of_a_worker_that_is_still_provided_goes_on_though_the_entrypoint_is_disposed_of() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const entrypoint = this.env.LOADER.get("a", async () => code(methods("run() { return 7 }"))).getEntrypoint();
        const answer = entrypoint.run();
        entrypoint[Symbol.dispose]();
        return [await answer, (await failure(() => entrypoint.run()))[1]].join();"#,
    )
    .await;
    let expected = "7,RPC stub used after being disposed.";
    assert_eq!(found, Value::from(expected));
    drop(coracle);
    server.is_empty().await;
}

#[tokio::test]
async fn more_entrypoints_than_there_may_be_say_so_and_leave_room_when_they_are_disposed_of() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const worker = this.env.LOADER.load(code(methods("run() { return 7 }")));
        const kept = [];
        for (let count = 0; count < 10_000; count++) kept.push(worker.getEntrypoint());
        const last = kept.pop();
        const refused = (await failure(() => last.run()))[1];
        const before = await kept[0].run();
        kept.pop()[Symbol.dispose]();
        await scheduler.wait(1);
        return [before, refused, await worker.getEntrypoint().run()].join("; ");"#,
    )
    .await;
    let expected = "7; Too many workers and entrypoints of workers are held at once: 10,000 are allowed. \
                    Dispose of some.; 7";
    assert_eq!(found, Value::from(expected));
}

#[tokio::test]
async fn what_is_done_to_the_code_after_the_load_changes_nothing() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const buffer = new ArrayBuffer(4, { maxByteLength: 64 });
        new Uint8Array(buffer).set([1, 2, 3, 4]);
        const loaded = code("import data from 'data.bin'; " + methods("run() { return [...new Uint8Array(data)].join('') + this.env.a.join('') }"));
        loaded.modules["data.bin"] = { data: buffer };
        loaded.env = { a: [5, 6] };
        const worker = this.env.LOADER.load(loaded);
        buffer.resize(64);
        new Uint8Array(buffer).fill(9);
        loaded.env.a.push(7);
        loaded.modules["main.js"] = "throw new Error('changed')";
        const results = [await worker.getEntrypoint().run()];
        const later = this.env.LOADER.get("resized", async () => {
            const small = new ArrayBuffer(8, { maxByteLength: 8 });
            loaded.modules["main.js"] = "import data from 'data.bin'; " + methods("run() { return data.byteLength }");
            loaded.modules["data.bin"] = { data: small };
            small.resize(2);
            return loaded;
        });
        results.push(await later.getEntrypoint().run());
        return results.join();"#,
    )
    .await;
    assert_eq!(found, Value::from("123456,2"));
}

#[tokio::test]
async fn what_could_not_be_provided_or_started_is_provided_anew() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let found = run(
        &coracle,
        r#"
        const get = (id, callback) => failure(() => this.env.LOADER.get(id, callback).getEntrypoint().run());
        let asked = 0;
        const thrower = () => {
            if (++asked < 3) throw new RangeError("not yet " + asked);
            return code(methods("run() { return 'at last' }"));
        };
        const results = [await get("a", thrower), await get("a", thrower), await get("a", thrower), await get("a", thrower), asked];
        let started = 0;
        const starter = () => code(++started < 2 ? "throw new Error('startup')" : methods("run() { return 'started' }"));
        results.push(await get("b", starter), await get("b", starter), started);
        results.push(await get("c", () => undefined), await get("c", () => code("", { modules: {} })));
        results.push(await get("c", () => Promise.reject(new TypeError("rejected"))), await get(null, () => { throw new SyntaxError("s") }));
        const both = await Promise.all([get("d", () => { throw new Error("first") }), get("d", () => { throw new Error("second") })]);
        results.push(both[0][1], both[1][1]);
        return results;"#,
    )
    .await;
    let Value::Array(found) = found else {
        panic!("{found:?}")
    };
    let expected = [
        error("RangeError", "not yet 1"),
        error("RangeError", "not yet 2"),
        list(["no error".into(), "\"at last\"".into()]),
        list(["no error".into(), "\"at last\"".into()]),
        3.into(),
        Value::Undefined,
        list(["no error".into(), "\"started\"".into()]),
        2.into(),
        error(
            "TypeError",
            "Cannot initialize WorkerCode with required members from an undefined or null value.",
        ),
        error(
            "TypeError",
            "Dynamic Worker code must contain at least one module.",
        ),
        error("TypeError", "rejected"),
        error("SyntaxError", "s"),
        "first".into(),
        "first".into(),
    ];
    for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
        if *expected != Value::Undefined {
            assert_eq!(found, expected, "case {index}");
        }
    }
    assert_eq!(found.len(), expected.len());
    let startup = found[5].index(1).and_then(Value::as_str).unwrap();
    assert!(
        startup.starts_with("Failed to start Worker:\nUncaught Error: startup\n  at main.js:1:"),
        "{startup}"
    );
}

#[tokio::test]
async fn a_name_is_known_to_one_worker_only() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source = r#"
        async get(who) {
            const callback = () => code('export default { who(_) { return "' + who + '" } }');
            return await this.env.LOADER.get("shared", callback).getEntrypoint().who(0);
        }
        // What a child finds under a name is not what its parent does.
        async plant() {
            const child = this.env.LOADER.load(code(methods(`
                async plant(code) { return await this.env.LOADER.get("planted", () => code).getEntrypoint().who(0) }`),
                { env: { LOADER: this.env.LOADER } }));
            const evil = code("export default { who(_) { return 'evil' } }");
            const good = code("export default { who(_) { return 'good' } }");
            return [
                await child.getEntrypoint().plant(evil),
                await this.env.LOADER.get("planted", () => good).getEntrypoint().who(0),
            ].join();
        }"#;
    let (one, other) = (parent(&coracle, source), parent(&coracle, source));
    let one = one.entrypoint("default");
    let other = other.entrypoint("default");
    assert_eq!(value(answer(&one, "get", args!["one"]).await), "one".into());
    assert_eq!(
        value(answer(&other, "get", args!["other"]).await),
        "other".into()
    );
    assert_eq!(
        value(answer(&one, "get", args!["late"]).await),
        "one".into()
    );
    assert_eq!(called(&one, "plant").await, "evil,good".into());
}

#[tokio::test]
async fn a_name_outlives_the_isolate_that_provided_it_unless_what_it_was_given_does_not() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let worker = parent(
        &coracle,
        r#"
        async next(id, env) {
            const source = methods("next() { return globalThis.n = (globalThis.n ?? 0) + 1 }");
            return await this.env.LOADER.get(id, () => code(source, { env })).getEntrypoint().next();
        }
        async both() { return [await this.next("data", { a: 1 }), await this.next("function", { call: () => 1 })].join() }
        spin() { for (;;); }"#,
    );
    let entrypoint = worker.entrypoint("default");
    assert_eq!(called(&entrypoint, "both").await, "1,1".into());
    assert_eq!(called(&entrypoint, "both").await, "2,2".into());
    spin(&entrypoint).await;
    assert_eq!(called(&entrypoint, "both").await, "3,1".into());
    server.settles_at(gauges(3, 3)).await;
    drop((worker, entrypoint));
    server.settles_at(gauges(0, 0)).await;
}
