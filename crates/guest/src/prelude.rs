//! Sets up the prelude and keeps the functions in it that the Rust core calls.

use crate::{
    decode, encode,
    engine::{
        Engine,
        js::{
            Ctx, Function, Module, Object, Persistent, Result, TypedArray, Value, function::Func,
        },
    },
    host,
    modules::{WORKERS_MODULE, WorkerLoader, WorkerResolver},
    rejections,
    state::{self, State},
    thrown,
};
use coracle_abi::operation;
use std::cell::Cell;

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/prelude.js"));
/// The prelude's name in stack traces.
pub(crate) const SCRIPT_NAME: &str = "coracle:prelude";

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// Functions of the prelude, reached by the Rust core and by nobody else.
        pub(crate) struct Hooks {
            $($(#[$doc])* $name: Persistent<Function<'static>>,)*
            common_js: Persistent<Object<'static>>,
            samples: Samples,
        }

        impl Hooks {
            fn new<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Self> {
                Ok(Self {
                    $($name: Persistent::save(ctx, object.get::<_, Function>($key)?),)*
                    common_js: Persistent::save(ctx, object.get::<_, Object>("commonJsCache")?),
                    samples: Samples::new(object)?,
                })
            }

            $($(#[$doc])* pub(crate) fn $name<'js>(&self, ctx: &Ctx<'js>) -> Result<Function<'js>> {
                self.$name.clone().restore(ctx)
            })*
        }
    };
}

hooks! {
    /// `(invocation, namespace, entrypoint, path, isGet, args, props, form, bytesMax, depthMax)`
    invoke = "invoke",
    /// `(operation)`: a timer is due.
    settle = "settle",
    /// `(isLoading)`: module scope's rules hold while true.
    set_loading = "setLoading",
    /// `(bindings)`: copies them into the env object.
    fill_env = "fillEnv",
    /// `(error) -> [name, message, stack]`, never throws.
    describe = "describe",
    /// `(reason)`: writes an unhandled rejection to the console.
    report_rejection = "reportRejection",
    /// `(map) -> [key, value, key, value …]`
    map_entries = "mapEntries",
    /// `(set) -> [value …]`
    set_values = "setValues",
    /// `(regexp) -> [source, flags]`
    regexp_parts = "regexpParts",
    /// `(date) -> ms`
    date_value = "dateValue",
    /// `(boxed) -> primitive`
    unbox = "unbox",
    /// `(bigint) -> hexadecimal text`
    bigint_text = "bigintText",
    /// `(hexadecimal text) -> bigint`
    bigint = "bigint",
    /// `(map, [key, value, …])`
    map_fill = "mapFill",
    /// `(set, [value …])`
    set_fill = "setFill",
    /// `(kind) -> object` for the kinds of `values.js`.
    create = "create",
    /// `(source, flags) -> RegExp`
    regexp = "regexp",
    /// `(kind, buffer) -> view`
    view = "view",
    /// `(view) -> [buffer, byteOffset, byteLength]` of a DataView.
    view_parts = "viewParts",
    /// `(name, message) -> DOMException`
    dom_exception = "domException",
    /// `(error, name, message, stack, hasCause, cause, hasErrors, errors, props)`
    error_fill = "errorFill",
    /// `(error) -> [name, message, stack, hasCause, cause, hasErrors, errors, props]`
    error_parts = "errorParts",
}

impl Hooks {
    pub(crate) fn common_js_cache<'js>(&self, ctx: &Ctx<'js>) -> Result<Object<'js>> {
        self.common_js.clone().restore(ctx)
    }

    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }
}

/// What the engine's class ids are, learnt from one object of each class.
pub(crate) struct Samples {
    pub(crate) object: u32,
    pub(crate) error: u32,
    pub(crate) number: u32,
    pub(crate) string: u32,
    pub(crate) boolean: u32,
    pub(crate) bigint: u32,
    pub(crate) date: u32,
    pub(crate) regexp: u32,
    pub(crate) map: u32,
    pub(crate) set: u32,
    pub(crate) array_buffer: u32,
    pub(crate) data_view: u32,
    pub(crate) promise: u32,
    /// `Object.prototype`: what a plain object's prototype is.
    pub(crate) object_prototype: usize,
}

impl Samples {
    fn new(object: &Object<'_>) -> Result<Self> {
        let samples: Object = object.get("samples")?;
        let class =
            |name: &str| -> Result<u32> { Ok(encode::class_id(&samples.get::<_, Value>(name)?)) };
        Ok(Self {
            object: class("object")?,
            error: class("error")?,
            number: class("number")?,
            string: class("string")?,
            boolean: class("boolean")?,
            bigint: class("bigint")?,
            date: class("date")?,
            regexp: class("regexp")?,
            map: class("map")?,
            set: class("set")?,
            array_buffer: class("arrayBuffer")?,
            data_view: class("dataView")?,
            promise: class("promise")?,
            object_prototype: rejections::identity(&samples.get("objectPrototype")?),
        })
    }
}

struct Seed(Cell<u64>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Seed {}
static SEED: Seed = Seed(Cell::new(0x9e37_79b9_7f4a_7c15));

pub(crate) fn reseed(seed: u64) {
    SEED.0.set(seed | 1);
}

/// xorshift64*: `Math.random` promises no secrecy, `crypto` asks the host.
fn random() -> f64 {
    let mut state = SEED.0.get();
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    SEED.0.set(state);
    let value = state.wrapping_mul(0x2545_f491_4f6c_dd1d);
    (value >> 11) as f64 / (1u64 << 53) as f64
}

/// Creates engine and prelude. Runs once, before the snapshot; a failure here is a fault of the build.
pub(crate) fn initialize() {
    let engine = Engine::new();
    engine.runtime.set_loader(WorkerResolver, WorkerLoader);
    engine
        .runtime
        .set_host_promise_rejection_tracker(Some(Box::new(|ctx, promise, reason, handled| {
            state::rejections()
                .borrow_mut()
                .track(&ctx, &promise, reason, handled);
        })));
    let hooks = engine.context.with(|ctx| match set_up(&ctx) {
        Ok(hooks) => hooks,
        Err(error) => {
            let thrown = thrown::describe_plainly(&ctx, error);
            host::log(4, &thrown);
            panic!("the prelude failed");
        }
    });
    engine.runtime.run_gc();
    state::initialize(State { engine, hooks });
}

fn set_up(ctx: &Ctx<'_>) -> Result<Hooks> {
    let prelude: Function = decode::eval_script(ctx, SCRIPT_NAME, SCRIPT)?.get()?;
    let object: Object = prelude.call((host_object(ctx)?,))?;

    let workers = Module::declare(
        ctx.clone(),
        WORKERS_MODULE,
        object.get::<_, String>("workersModuleSource")?,
    )?;
    workers
        .meta()?
        .set("exports", object.get::<_, Value>("workersModuleExports")?)?;
    workers.eval()?.1.finish::<()>()?;

    Hooks::new(ctx, &object)
}

/// The prelude's `host`: every raw function there is. The prelude keeps it in a closure.
fn host_object<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set(
        "log",
        Func::from(|level: u32, text: Value<'js>| host::log(level, &encode::text_lossy(&text))),
    )?;
    object.set(
        "startTimer",
        Func::from(|ms: f64| host::start(operation::TIMER, &ms.to_le_bytes()) as f64),
    )?;
    object.set(
        "cancel",
        Func::from(|id: f64| {
            host::start(operation::CANCEL, &(id as u64).to_le_bytes());
        }),
    )?;
    object.set(
        "startFetch",
        Func::from(|url: Value<'js>| {
            host::start(operation::FETCH, encode::text_lossy(&url).as_bytes()) as f64
        }),
    )?;
    object.set("random", Func::from(random))?;
    object.set(
        "fillRandom",
        Func::from(|array: TypedArray<'js, u8>| {
            let mut bytes = vec![0; array.len()];
            host::random(&mut bytes);
            encode::overwrite(&array, &bytes);
        }),
    )?;
    object.set("finish", Func::from(encode::finish_with_value))?;
    object.set("finishThrown", Func::from(thrown::finish_with_error))?;
    object.set("clone", Func::from(decode::structured_clone))?;
    Ok(object)
}
