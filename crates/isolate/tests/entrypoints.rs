//! Entrypoints: what can be called from outside, by which rules, and what it is given.

use crate::support::{Bench, Source, thrown, thrown_text, value, worker_of};
use coracle_isolate::{Bytes, CallAccess, External, Form, Kind, Outcome, Report};
use coracle_value::{Value, encode};
use std::sync::Arc;

/// A worker under test.
struct Worker<'b> {
    bench: &'b Bench,
    isolate: u64,
}

impl<'b> Worker<'b> {
    fn new(bench: &'b Bench, source: &str) -> Self {
        Self::with_env(bench, source, Value::Object(vec![]))
    }

    fn with_env(bench: &'b Bench, source: &str, env: Value) -> Self {
        let source = format!(
            "import {{ WorkerEntrypoint, RpcTarget, env as moduleEnv, waitUntil }} from 'cloudflare:workers';\n{source}"
        );
        let modules = [Source {
            name: "main.js",
            kind: coracle_abi::ModuleKind::EsModule,
            body: source.as_bytes(),
        }];
        let isolate = bench.isolate(worker_of(&modules, &env));
        Self { bench, isolate }
    }

    fn report(
        &self,
        entrypoint: &str,
        path: &str,
        access: CallAccess,
        args: &[Value],
        props: Option<Value>,
    ) -> Report {
        let mut call = self.bench.call_of("", args);
        call.entrypoint = entrypoint.into();
        call.path = path.split('.').map(str::to_owned).collect();
        call.access = access;
        if let Some(props) = props {
            call.props = Arc::new(Bytes {
                form: Form::Cbor,
                bytes: encode(&props),
                externals: Vec::new(),
            });
        }
        self.bench.report(self.bench.send(self.isolate, call))
    }

    fn on(&self, entrypoint: &str, path: &str, args: &[Value]) -> Report {
        self.report(entrypoint, path, CallAccess::Call, args, None)
    }

    /// What the default entrypoint answers.
    fn call(&self, path: &str, args: &[Value]) -> Value {
        value(&self.on("default", path, args))
    }

    fn get(&self, path: &str) -> Report {
        self.report("default", path, CallAccess::Get, &[], None)
    }

    /// What a call of the default entrypoint throws.
    fn error(&self, path: &str, args: &[Value]) -> String {
        thrown_text(&self.on("default", path, args))
    }
}

fn not_implemented(name: &str) -> String {
    format!("TypeError: The RPC receiver does not implement the method \"{name}\".")
}

fn reserved(name: &str) -> String {
    format!("TypeError: '{name}' is a reserved method and cannot be called over RPC.")
}

#[test]
fn a_function_of_a_plain_object_is_given_one_argument_the_env_and_a_context() {
    let bench = Bench::new();
    let worker = Worker::with_env(
        &bench,
        "export default {
           echo(arg) { return arg; },
           both(arg, env) { return [arg, env.NAME]; },
           all(arg, env, ctx) { return [arg, env.NAME, Object.keys(ctx), ctx.props, arguments.length]; },
           self(arg) { return this === (globalThis.me ??= this) && typeof this.echo; },
           none() { return arguments.length; },
         };",
        Value::object([("NAME", "value")]),
    );
    assert_eq!(worker.call("echo", &[5.into()]), 5.into());
    assert_eq!(
        worker.call("both", &[5.into()]),
        Value::Array(vec![5.into(), "value".into()])
    );
    let keys = Value::array(["props", "exports"]);
    let expected = vec![
        5.into(),
        "value".into(),
        keys,
        Value::Object(vec![]),
        3.into(),
    ];
    assert_eq!(worker.call("all", &[5.into()]), Value::Array(expected));
    assert_eq!(worker.call("self", &[5.into()]), "function".into());
    assert_eq!(worker.call("none", &[5.into()]), 3.into());
}

#[test]
fn a_function_of_a_plain_object_must_be_sent_exactly_one_argument() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export default { a0() {}, a1(a) { return a; }, a3(a, env, ctx) {}, a4(a, b, c, d) {}, rest(...all) { return all.length; } };",
    );
    let wrong = |name: &str| {
        format!(
            "TypeError: Attempted to call RPC function \"{name}\" with the wrong number of arguments. When calling a \
             top-level handler function that is not declared as part of a class, you must always send exactly one \
             argument. In order to support variable numbers of arguments, the server must use class-based syntax \
             (extending WorkerEntrypoint) instead."
        )
    };
    for name in ["a0", "a1", "a3", "rest"] {
        assert_eq!(worker.error(name, &[]), wrong(name));
        assert_eq!(worker.error(name, &[1.into(), 2.into()]), wrong(name));
    }
    assert_eq!(worker.call("a0", &[1.into()]), Value::Undefined);
    assert_eq!(worker.call("rest", &[1.into()]), 3.into());
    let too_many = "TypeError: Cannot call handler function \"a4\" over RPC because it has the wrong number of arguments. A \
                    simple function handler can only be called over RPC if it has exactly the arguments (arg, env, ctx), \
                    where only the first argument comes from the client. To support multi-argument RPC functions, use \
                    class-based syntax (extending WorkerEntrypoint) instead.";
    assert_eq!(worker.error("a4", &[1.into()]), too_many);
    assert_eq!(worker.error("a4", &[]), too_many);
}

#[test]
fn of_a_plain_object_only_its_own_properties_are_visible() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "class Base { inherited() {} }
         export default Object.assign(Object.create(Base.prototype), {
           own(a) { return a; }, _private(a) { return a; }, value: 5, ['__proto__']: null, get computed() { return (a) => a * 2; } });",
    );
    assert_eq!(worker.call("own", &[1.into()]), 1.into());
    assert_eq!(worker.call("_private", &[1.into()]), 1.into());
    assert_eq!(worker.call("computed", &[2.into()]), 4.into());
    assert_eq!(
        worker.error("value", &[1.into()]),
        "TypeError: \"value\" is not a function."
    );
    for name in [
        "nope",
        "inherited",
        "toString",
        "hasOwnProperty",
        "__proto__",
        "valueOf",
        "then",
        "",
    ] {
        assert_eq!(worker.error(name, &[1.into()]), not_implemented(name));
    }
    assert_eq!(
        worker.error("constructor", &[1.into()]),
        reserved("constructor")
    );
}

#[test]
fn reserved_names_are_refused_on_every_entrypoint() {
    let bench = Bench::new();
    let names = [
        "alarm",
        "webSocketMessage",
        "webSocketClose",
        "webSocketError",
        "dup",
        "constructor",
    ];
    let methods: Vec<String> = names
        .iter()
        .filter(|name| **name != "constructor")
        .map(|name| format!("{name}(a) {{}}"))
        .collect();
    let ordinary = "tail(a) { return a; } scheduled(a) { return a; } get(a) { return a; }";
    let worker = Worker::new(
        &bench,
        &format!(
            "export default {{ {} }}; export class Named extends WorkerEntrypoint {{ {} {ordinary} }}",
            methods.join(", "),
            methods.join(" ")
        ),
    );
    for name in names {
        assert_eq!(worker.error(name, &[1.into()]), reserved(name));
        assert_eq!(
            thrown_text(&worker.on("Named", name, &[1.into()])),
            reserved(name)
        );
    }
    for name in ["tail", "scheduled", "get"] {
        assert_eq!(value(&worker.on("Named", name, &[1.into()])), 1.into());
    }
}

#[test]
fn a_class_gets_all_arguments_and_is_made_anew_for_every_call() {
    let bench = Bench::new();
    let worker = Worker::with_env(
        &bench,
        "let made = 0;
         export default class Default extends WorkerEntrypoint {
           n = 0;
           constructor(ctx, env) { super(ctx, env); made++; }
           count(...args) { return args.length; }
           sum(a, b, c = 100, d) { return a + b + c; }
           next() { return [++this.n, made]; }
           given() { return [this.env.NAME, this.ctx.props, this.env === moduleEnv, typeof this.ctx.waitUntil, arguments.length]; }
         }",
        Value::object([("NAME", "value")]),
    );
    assert_eq!(worker.call("count", &[]), 0.into());
    assert_eq!(
        worker.call("count", &[1.into(), Value::Undefined, 3.into()]),
        3.into()
    );
    assert_eq!(worker.call("sum", &[1.into(), 2.into()]), 103.into());
    assert_eq!(worker.call("next", &[]), Value::array([1, 4]));
    assert_eq!(worker.call("next", &[]), Value::array([1, 5]));
    let given = vec![
        "value".into(),
        Value::Object(vec![]),
        true.into(),
        "function".into(),
        0.into(),
    ];
    assert_eq!(worker.call("given", &[]), Value::Array(given));
}

#[test]
fn of_an_instance_only_what_its_classes_define_is_visible() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "class Base extends WorkerEntrypoint { inherited() { return 'base'; } overridden() { return 'base'; } }
         export default class extends Base {
           own = () => 1; shadowed = () => 'own'; #secret = 7;
           shadowed() { return 'class'; }
           overridden() { return super.overridden() + '+'; }
           get computed() { return () => this.#secret; }
           get value() { return 5; }
           set onlySet(x) {}
           #hidden() {} static fixed() {} _visible() { return 1; } ['with-dash']() { return 2; }
         }",
    );
    assert_eq!(worker.call("inherited", &[]), "base".into());
    assert_eq!(worker.call("overridden", &[]), "base+".into());
    assert_eq!(worker.call("computed", &[]), 7.into());
    assert_eq!(worker.call("_visible", &[]), 1.into());
    assert_eq!(worker.call("with-dash", &[]), 2.into());
    assert_eq!(
        worker.error("value", &[]),
        "TypeError: \"value\" is not a function."
    );
    assert_eq!(
        worker.error("onlySet", &[]),
        "TypeError: The RPC receiver does not implement the method \"onlySet\"."
    );
    for name in [
        "own",
        "shadowed",
        "env",
        "ctx",
        "#secret",
        "#hidden",
        "fixed",
        "toString",
        "hasOwnProperty",
        "valueOf",
        "__proto__",
        "isPrototypeOf",
        "nope",
        "then",
        "name",
        "prototype",
    ] {
        assert_eq!(worker.error(name, &[]), not_implemented(name), "{name}");
    }
}

#[test]
fn named_exports_are_entrypoints_of_their_own() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export class A extends WorkerEntrypoint { who() { return 'A'; } }
         export const b = { who(_) { return 'b'; } };
         export { A as 'not an identifier' };
         export { A as default };",
    );
    assert_eq!(value(&worker.on("A", "who", &[])), "A".into());
    assert_eq!(value(&worker.on("b", "who", &[Value::Null])), "b".into());
    assert_eq!(
        value(&worker.on("not an identifier", "who", &[])),
        "A".into()
    );
    assert_eq!(value(&worker.on("default", "who", &[])), "A".into());
    for name in [
        "Nope",
        "",
        "a",
        "toString",
        "__proto__",
        "Symbol(Symbol.toStringTag)",
    ] {
        let expected = format!("Error: Worker has no such entrypoint: {name}");
        assert_eq!(thrown_text(&worker.on(name, "who", &[])), expected);
    }
}

#[test]
fn an_export_that_is_no_entrypoint_says_what_it_is() {
    let bench = Bench::new();
    let text = |source: &str| Worker::new(&bench, source).error("run", &[Value::Null]);
    assert_eq!(
        text("export const other = {};"),
        "Error: Worker has no default entrypoint: the main module has no default export."
    );
    let rest = "Export an object with methods, or a class that extends WorkerEntrypoint from \"cloudflare:workers\".";
    let function = "a function or a class that does not extend WorkerEntrypoint";
    for (source, kind) in [
        ("export default function run() {}", function),
        ("export default () => 1;", function),
        ("export default class {}", function),
        ("export default class extends RpcTarget {}", function),
        ("export default 5;", "number"),
        ("export default 'text';", "string"),
        ("export default null;", "null"),
        ("export default undefined;", "undefined"),
        ("export default Symbol();", "symbol"),
    ] {
        let expected = format!(
            "TypeError: The export \"default\" can't be an entrypoint: it is {kind}. {rest}"
        );
        assert_eq!(text(source), expected, "{source}");
    }
}

#[test]
fn a_constructor_that_throws_or_changes_its_prototype_is_the_workers_affair() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export default class extends WorkerEntrypoint { constructor(ctx, env) { throw new RangeError('no'); } run() {} }
         export class Other extends WorkerEntrypoint { constructor(ctx, env) { super(ctx, env); return { run() { return 1; } }; } }
         export class Accessors extends WorkerEntrypoint { get env() { return 'mine'; } run() { return [typeof this.env, typeof this.ctx]; } }
         export class Fixed extends WorkerEntrypoint { constructor() { super(1, 2); } run() { return [this.ctx, this.env]; } }",
    );
    assert_eq!(worker.error("run", &[]), "RangeError: no");
    assert_eq!(
        thrown_text(&worker.on("Other", "run", &[])),
        not_implemented("run")
    );
    assert_eq!(
        value(&worker.on("Accessors", "run", &[])),
        Value::array(["object", "object"])
    );
    assert_eq!(value(&worker.on("Fixed", "run", &[])), Value::array([1, 2]));
}

#[test]
fn a_path_leads_through_objects_functions_targets_and_promises() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "class Counter extends RpcTarget { n = 0; add(by) { return this.n += by; } get twice() { return { of: (x) => 2 * x }; } }
         const fn = Object.assign((a) => a, { sub: (a, b) => [a, b], data: { deep: () => 'deep' } });
         export default {
           obj: { f(...args) { return [args.length, this.mark]; }, mark: 7, deeper: { g: () => 'g' } },
           counter: new Counter(), fn, nul: null, n: 5, arr: [{ f: () => 1 }], map: new Map(), bare: Object.assign(Object.create(null), { f: () => 'bare' }),
           later: Promise.resolve({ f: (a, b) => a + b }), thenable: { then(resolve) { resolve({ f: () => 'then' }); } },
           failing: Promise.reject(new RangeError('no')), get made() { return Promise.resolve(new Counter()); },
           plain: new (class Plain { f() { return 1; } own = () => 2; })(),
         };",
    );
    assert_eq!(
        worker.call("obj.f", &[1.into(), 2.into()]),
        Value::array([2, 7])
    );
    assert_eq!(worker.call("obj.f", &[]), Value::array([0, 7]));
    assert_eq!(worker.call("obj.deeper.g", &[]), "g".into());
    assert_eq!(worker.call("counter.add", &[2.into()]), 2.into());
    assert_eq!(worker.call("counter.add", &[3.into()]), 5.into());
    assert_eq!(worker.call("counter.twice.of", &[4.into()]), 8.into());
    assert_eq!(
        worker.call("fn.sub", &[1.into(), 2.into()]),
        Value::array([1, 2])
    );
    assert_eq!(worker.call("fn.data.deep", &[]), "deep".into());
    assert_eq!(worker.call("bare.f", &[]), "bare".into());
    assert_eq!(worker.call("later.f", &[1.into(), 2.into()]), 3.into());
    assert_eq!(worker.call("thenable.f", &[]), "then".into());
    assert_eq!(worker.call("made.add", &[1.into()]), 1.into());
    assert_eq!(worker.error("failing.f", &[]), "RangeError: no");
    for (path, name) in [
        ("obj.nope", "nope"),
        ("obj.toString", "toString"),
        ("obj.deeper.nope.x", "nope"),
        ("nul.f", "f"),
        ("n.toFixed", "toFixed"),
        ("arr.0", "0"),
        ("arr.length", "length"),
        ("map.get", "get"),
        ("plain.f", "f"),
        ("plain.own", "own"),
        ("counter.n", "n"),
        ("counter.nope", "nope"),
        ("counter.toString", "toString"),
        ("fn.call", "call"),
        ("fn.apply", "apply"),
        ("later.nope", "nope"),
        ("later.then", "then"),
    ] {
        assert_eq!(worker.error(path, &[]), not_implemented(name), "{path}");
    }
    assert_eq!(worker.error("counter.dup", &[]), reserved("dup"));
    assert_eq!(
        worker.error("counter.constructor", &[]),
        reserved("constructor")
    );
    assert_eq!(
        worker.error("obj.mark", &[]),
        "TypeError: \"obj.mark\" is not a function."
    );
    let deep = vec!["a"; 65].join(".");
    assert_eq!(
        worker.error(&deep, &[]),
        "TypeError: RPC pipelined property path is too deep (max 64)."
    );
}

#[test]
fn a_target_may_have_methods_that_entrypoints_may_not() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "class Target extends RpcTarget { fetch(x) { return ['fetched', x]; } connect() { return 1; } }
         export default class extends WorkerEntrypoint { get target() { return new Target(); } }",
    );
    assert_eq!(
        worker.call("target.fetch", &[1.into()]),
        Value::Array(vec!["fetched".into(), 1.into()])
    );
    assert_eq!(worker.call("target.connect", &[]), 1.into());
}

#[test]
fn properties_can_be_read() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export default class extends WorkerEntrypoint {
           static n = 0; own = 1;
           get value() { return { a: 1 }; } get later() { return Promise.resolve(2); } get failing() { throw new RangeError('no'); }
           get nested() { return { deep: { x: 3 }, later: Promise.resolve({ y: 4 }) }; } method() {}
         }",
    );
    assert_eq!(value(&worker.get("value")), Value::object([("a", 1)]));
    assert_eq!(value(&worker.get("later")), 2.into());
    assert_eq!(value(&worker.get("nested.deep.x")), 3.into());
    assert_eq!(value(&worker.get("nested.later.y")), 4.into());
    assert_eq!(thrown_text(&worker.get("failing")), "RangeError: no");
    assert_eq!(thrown_text(&worker.get("own")), not_implemented("own"));
    assert_eq!(thrown_text(&worker.get("fetch")), reserved("fetch"));
    let Outcome::Value(method) = worker.get("method").outcome else {
        panic!("a method is passed by reference");
    };
    assert_eq!(method.externals, [External::Export(1, Kind::Target)]);
}

#[test]
fn an_entrypoint_is_not_a_function_itself() {
    let bench = Bench::new();
    let worker = Worker::new(&bench, "export default { run() {} };");
    let mut call = bench.call_of("", &[]);
    call.path.clear();
    let report = bench.report(bench.send(worker.isolate, call));
    let expected =
        "TypeError: The entrypoint \"default\" is not a function: name the method to call.";
    assert_eq!(thrown_text(&report), expected);
}

#[test]
fn results_may_be_promises_of_any_make() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "class Later extends Promise { then(...args) { return super.then(...args); } }
         export default {
           sync: (_) => 1, async: async (_) => 2, nested: async (_) => Promise.resolve(Promise.resolve(3)),
           thenable: (_) => ({ then(resolve) { resolve({ then(again) { again(4); } }); } }),
           getter: (_) => ({ get then() { return (resolve) => resolve(5); } }),
           subclass: (_) => Later.resolve(6), notThenable: (_) => ({ then: 7 }),
           rejects: async (_) => { throw new RangeError('a'); }, throwingThen: (_) => ({ then() { throw new RangeError('b'); } }),
           throwingGetter: (_) => ({ get then() { throw new RangeError('c'); } }),
           twice: (_) => ({ then(resolve, reject) { resolve(8); reject(new Error('late')); throw 1; } }),
           timer: (_) => new Promise((resolve) => setTimeout(resolve, 1, 9)),
         };",
    );
    for (name, expected) in [
        ("sync", 1),
        ("async", 2),
        ("nested", 3),
        ("thenable", 4),
        ("getter", 5),
        ("subclass", 6),
        ("twice", 8),
        ("timer", 9),
    ] {
        assert_eq!(worker.call(name, &[Value::Null]), expected.into(), "{name}");
    }
    assert_eq!(
        worker.call("notThenable", &[Value::Null]),
        Value::object([("then", 7)])
    );
    for (name, text) in [
        ("rejects", "a"),
        ("throwingThen", "b"),
        ("throwingGetter", "c"),
    ] {
        assert_eq!(
            worker.error(name, &[Value::Null]),
            format!("RangeError: {text}"),
            "{name}"
        );
    }
}

#[test]
fn props_belong_to_the_call_and_env_to_the_worker() {
    let bench = Bench::new();
    let worker = Worker::with_env(
        &bench,
        "export default { props(_, env, ctx) { const before = { ...ctx.props }; ctx.props.added = 1; return before; },
           env(_, env) { env.count = (env.count ?? 0) + 1; return [env.count, env === moduleEnv, Object.keys(env)]; } };
         export class Named extends WorkerEntrypoint { props() { return this.ctx.props; } }",
        Value::object([("data", Value::Map(vec![(1.into(), Value::Date(5.0))]))]),
    );
    let with = |entrypoint: &str, props: Option<Value>| {
        worker.report(entrypoint, "props", CallAccess::Call, &[Value::Null], props)
    };
    let props = Value::object([
        ("user", Value::Set(vec![1.into()])),
        ("__proto__", 2.into()),
    ]);
    assert_eq!(value(&with("Named", Some(props.clone()))), props);
    assert_eq!(
        value(&with("default", Some(Value::object([("a", 1)])))),
        Value::object([("a", 1)])
    );
    assert_eq!(
        value(&with("default", Some(Value::object([("a", 1)])))),
        Value::object([("a", 1)])
    );
    assert_eq!(value(&with("default", None)), Value::Object(vec![]));
    let keys = Value::array(["data", "count"]);
    assert_eq!(
        worker.call("env", &[Value::Null]),
        Value::Array(vec![1.into(), true.into(), keys.clone()])
    );
    assert_eq!(
        worker.call("env", &[Value::Null]),
        Value::Array(vec![2.into(), true.into(), keys])
    );
}

#[test]
fn env_is_there_in_module_scope() {
    let bench = Bench::new();
    let env = Value::object([
        ("A", Value::from(1)),
        ("__proto__", Value::object([("x", 2)])),
        ("then", 3.into()),
    ]);
    let worker = Worker::with_env(
        &bench,
        "const seen = [moduleEnv.A, Object.hasOwn(moduleEnv, '__proto__'), moduleEnv.x, moduleEnv.then];
         export default { run(_) { return seen; } };",
        env,
    );
    let expected = Value::Array(vec![1.into(), true.into(), Value::Undefined, 3.into()]);
    assert_eq!(worker.call("run", &[Value::Null]), expected);
}

#[test]
fn wait_until_runs_on_and_says_what_fails() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "globalThis.done = 0;
         export default {
           run(_, env, ctx) { ctx.waitUntil((async () => { await null; done++; })()); waitUntil(Promise.resolve()); ctx.waitUntil(5); return done; },
           fail(_, env, ctx) { ctx.waitUntil(Promise.reject(new RangeError('no'))); ctx.passThroughOnException(); },
           done: (_) => done,
         };",
    );
    assert_eq!(worker.call("run", &[Value::Null]), 0.into());
    assert_eq!(worker.call("done", &[Value::Null]), 1.into());
    let report = worker.on("default", "fail", &[Value::Null]);
    assert_eq!(value(&report), Value::Undefined);
    assert_eq!(report.logs.len(), 1);
    assert!(
        report.logs[0]
            .message
            .starts_with("Uncaught (in promise) RangeError: no\n    at fail (main.js:"),
        "{:?}",
        report.logs
    );
}

#[test]
fn arguments_that_are_left_out_are_none() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export default class extends WorkerEntrypoint { run() { return arguments.length; } }",
    );
    let mut call = bench.call_of("run", &[]);
    call.args = Bytes::UNDEFINED;
    assert_eq!(
        value(&bench.report(bench.send(worker.isolate, call))),
        0.into()
    );
}

#[test]
fn calls_interleave_and_each_gets_its_own_result() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        // The timer keeps a call that the isolate is idle in from being hung before the last one releases it.
        "const waiting = []; export default { wait: (n) => new Promise((resolve) => {
             const timer = setTimeout(() => {}, 20_000);
             waiting.push(() => { clearTimeout(timer); resolve(n * 10); });
           }),
           release: (_) => { while (waiting.length) waiting.pop()(); } };",
    );
    let ids: Vec<u64> = (0..5)
        .map(|n| bench.send(worker.isolate, bench.call_of("wait", &[n.into()])))
        .collect();
    let release = bench.send(worker.isolate, bench.call_of("release", &[Value::Null]));
    let mut reports = std::collections::HashMap::new();
    while reports.len() < 6 {
        if let coracle_isolate::Event::Finished {
            invocation, report, ..
        } = bench.event()
        {
            reports.insert(invocation, report);
        }
    }
    for (n, id) in ids.iter().enumerate() {
        assert!(
            matches!(&reports[id].outcome, Outcome::Value(_)),
            "{n}: {:?}",
            reports[id].outcome
        );
        assert_eq!(value(&reports[id]), ((n * 10) as u32).into());
    }
    assert_eq!(value(&reports[&release]), Value::Undefined);
}

#[test]
fn an_export_may_change_while_the_worker_lives() {
    let bench = Bench::new();
    let worker = Worker::new(
        &bench,
        "export let api = { run: (_) => 1 }; export default { swap: (_) => { api = { run: (_) => 2 }; } };",
    );
    assert_eq!(value(&worker.on("api", "run", &[Value::Null])), 1.into());
    worker.call("swap", &[Value::Null]);
    assert_eq!(value(&worker.on("api", "run", &[Value::Null])), 2.into());
}

#[test]
fn what_fails_before_the_workers_code_runs_is_no_failure_of_the_load() {
    let bench = Bench::new();
    let worker = Worker::new(&bench, "export default {};");
    let error = thrown(&worker.on("default", "nope", &[Value::Null]));
    assert!(!error.during_load);
    assert_eq!(
        (error.module.as_str(), error.line, error.stack.as_str()),
        ("", 0, "")
    );
}
