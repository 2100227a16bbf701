//! Sets up the prelude and keeps the functions in it that the Rust core calls.

use crate::{
    common_js,
    engine::{
        Engine,
        js::{Ctx, Function, Module, Object, Persistent, Result, Value, function::Func},
    },
    export, finish, heap, host, loader,
    modules::{self, BUILT_IN},
    raw, stack,
    state::{self, State},
    thrown, web,
};
use coracle_abi::{COMPATIBILITY_DATE_NEWEST, COMPATIBILITY_FLAGS, operation};
use std::cell::Cell;

const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/prelude.js"));
/// The prelude's name in stack traces.
pub(crate) const SCRIPT_NAME: &str = "coracle:prelude";

macro_rules! hooks {
    ($($(#[$doc:meta])* $name:ident = $key:literal,)*) => {
        /// Functions of the prelude, reached by the Rust core and by nobody else.
        pub(crate) struct Hooks {
            $($(#[$doc])* $name: Persistent<Function<'static>>,)*
            samples: Samples,
        }

        impl Hooks {
            fn new<'js>(ctx: &Ctx<'js>, object: &Object<'js>) -> Result<Self> {
                Ok(Self {
                    $($name: Persistent::save(ctx, object.get::<_, Function>($key)?),)*
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
    /// `(namespace, [entrypoint, export], path, isGet, [args, props, stubs], reply)`; an export of 0 is none
    invoke = "invoke",
    /// `(operation, kind, …)`: a timer is due, or a call has an answer.
    settle = "settle",
    /// `(value, isProxy) -> [whose, …] or undefined`: what an object that can't be copied is outside.
    external_of = "externalOf",
    /// `(whose, id, kind) -> stub`: what an entry of a table of externals is here.
    stub_of = "stubOf",
    /// `(object, isClone) -> [number, content] or undefined`: what an object of the web platform is copied by.
    interface_content = "interfaceContent",
    /// `(number, content) -> object`
    new_interface = "newInterface",
    /// `(value, isProxy) -> stub or undefined`: a stub of its own for what can't be copied.
    copy_stub = "copyStub",
    /// `(id)`: nobody outside holds an export any more.
    release_export = "releaseExport",
    cancel_call = "cancelCall",
    /// `(stubs)`
    dispose_all = "disposeAll",
    /// `(stubs)`: what a result refers to.
    dispose_returned = "disposeReturned",
    /// `(operation)`: it will not be settled.
    forget = "forget",
    /// `(isLoading)`: module scope's rules hold while true.
    set_loading = "setLoading",
    /// `(isWanted)`: whether the console gives values, too.
    set_log_arguments = "setLogArguments",
    /// `(bindings)`: copies them into the env object.
    fill_env = "fillEnv",
    /// `(value) -> text`, never throws.
    inspect = "inspect",
    /// `(error, inPromise)`: writes it to the console.
    report_uncaught = "reportUncaught",
    /// `(name) -> exports`
    require_common_js = "requireCommonJs",
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
    /// `(hexadecimal text, isNegative) -> bigint`
    bigint = "bigint",
    /// `() -> Map`
    map = "newMap",
    /// `(map, [key, value, …])`
    map_fill = "mapFill",
    /// `() -> Set`
    set = "newSet",
    /// `(set, [value …])`
    set_fill = "setFill",
    /// `(primitive) -> object`
    boxed = "box",
    /// `(source, flags) -> RegExp`
    regexp = "newRegExp",
    /// `(buffer) -> DataView`
    data_view = "newDataView",
    /// `(view) -> [buffer, byteOffset, byteLength]` of a typed array or DataView
    view_window = "viewWindow",
    /// `(message, name) -> DOMException`
    dom_exception = "newDOMException",
    /// `(name) -> [prototype, isOfThatName, isDOMException]`
    error_prototype = "errorPrototype",
    /// `(error) -> [the engine's stack, its own stack, its classes' names]`; the stacks are strings or not there
    stacks = "stacks",
}

impl Hooks {
    pub(crate) fn samples(&self) -> &Samples {
        &self.samples
    }
}

/// What the engine's class ids are, learnt from one object of each class.
pub(crate) struct Samples {
    pub(crate) object: u32,
    pub(crate) array: u32,
    pub(crate) error: u32,
    pub(crate) dom_exception: u32,
    pub(crate) date: u32,
    pub(crate) regexp: u32,
    pub(crate) map: u32,
    pub(crate) set: u32,
    pub(crate) array_buffer: u32,
    pub(crate) data_view: u32,
    pub(crate) promise: u32,
    /// Of numbers, strings, booleans and bigints.
    pub(crate) boxed: [u32; 4],
    /// `Object.prototype`: what a plain object's prototype is.
    pub(crate) object_prototype: usize,
}

impl Samples {
    fn new(object: &Object<'_>) -> Result<Self> {
        let samples: Object = object.get("samples")?;
        let class =
            |name: &str| -> Result<u32> { Ok(raw::class_id(&samples.get::<_, Value>(name)?)) };
        Ok(Self {
            object: class("object")?,
            array: class("array")?,
            error: class("error")?,
            dom_exception: class("domException")?,
            date: class("date")?,
            regexp: class("regexp")?,
            map: class("map")?,
            set: class("set")?,
            array_buffer: class("arrayBuffer")?,
            data_view: class("dataView")?,
            promise: class("promise")?,
            boxed: [
                class("number")?,
                class("string")?,
                class("boolean")?,
                class("bigint")?,
            ],
            object_prototype: raw::identity(&samples.get("objectPrototype")?),
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
    host::is_of_the_moment();
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
    engine.context.with(|ctx| {
        raw::make_immortal(&ctx);
        raw::fill_arenas(&ctx);
    });
    heap::make_room();
    state::initialize(State { engine, hooks });
}

fn set_up(ctx: &Ctx<'_>) -> Result<Hooks> {
    modules::install_loader(ctx);
    let prelude: Function = raw::eval_without_source(ctx, SCRIPT_NAME, SCRIPT)?.get()?;
    let object: Object = prelude.call((host_object(ctx)?,))?;

    let built_in: Object = object.get("builtInModules")?;
    for name in BUILT_IN {
        let parts: Object = built_in.get(name)?;
        let source: String = parts.get("source")?;
        let module = Module::declare(ctx.clone(), name, source)?;
        module
            .meta()?
            .set("exports", parts.get::<_, Value>("exports")?)?;
        module.eval()?.1.finish::<()>()?;
    }

    Hooks::new(ctx, &object)
}

/// The prelude's `host`: every raw function there is. The prelude keeps it in a closure.
fn host_object<'js>(ctx: &Ctx<'js>) -> Result<Object<'js>> {
    let object = Object::new(ctx.clone())?;
    object.set(
        "log",
        Func::from(|level: u32, text: Value<'js>| host::log(level, &raw::text_lossy(&text))),
    )?;
    object.set("logArguments", Func::from(finish::log_arguments))?;
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
        "startHold",
        Func::from(|invocation: f64| {
            host::start(operation::HOLD, &(invocation as u64).to_le_bytes()) as f64
        }),
    )?;
    object.set("abort", Func::from(thrown::abort))?;
    object.set("random", Func::from(random))?;
    object.set(
        "fillRandom",
        Func::from(|buffer: Value<'js>, offset: usize, length: usize| {
            fill_random(&buffer, offset, length);
        }),
    )?;
    object.set("finish", Func::from(finish::finish_with_value))?;
    object.set("finishThrown", Func::from(thrown::finish_with_error))?;
    object.set("reportFinished", Func::from(export::report_finished))?;
    object.set("clone", Func::from(finish::structured_clone))?;
    object.set("copyReferences", Func::from(finish::copy_references))?;
    object.set("startCall", Func::from(finish::start_call))?;
    object.set("startLoad", Func::from(loader::start_load))?;
    object.set("startEntrypoint", Func::from(loader::start_entrypoint))?;
    object.set("startGet", Func::from(loader::start_get))?;
    object.set("notProvided", Func::from(loader::not_provided))?;
    object.set("compatibilityDateNewest", COMPATIBILITY_DATE_NEWEST)?;
    object.set("compatibilityFlags", COMPATIBILITY_FLAGS.to_vec())?;
    object.set(
        "releaseImport",
        Func::from(|id: f64| {
            host::start(operation::RELEASE, &(id as u64).to_le_bytes());
        }),
    )?;
    object.set(
        "isPromise",
        Func::from(|value: Value<'js>| is_promise(&value)),
    )?;
    object.set("cleanStack", Func::from(stack::clean_stack))?;
    object.set("compileCommonJs", Func::from(common_js::compile))?;
    object.set("require", Func::from(common_js::require))?;
    web::install(&object)?;
    Ok(object)
}

fn is_promise(value: &Value<'_>) -> bool {
    value.is_object() && raw::class_id(value) == state::get().hooks.samples().promise
}

/// `host.fillRandom(buffer, offset, length)`
fn fill_random(buffer: &Value<'_>, offset: usize, length: usize) {
    raw::with_buffer(buffer, |bytes| {
        if let Some(bytes) = bytes.get_mut(offset..offset.saturating_add(length)) {
            host::random(bytes);
        }
    });
}
