//! The exports that the host calls. Each takes a message, runs everything that is ready, and returns.
//!
//! Every way out of JavaScript is taken here: what an entry throws, what a job throws, and rejections that nobody
//! handles are reported, and no exception is left pending for the next entry to stumble over.

use crate::{
    decode::{self, DecodeError},
    engine::js::{Ctx, Error, Object, Persistent, Result, Value, promise::PromiseState},
    externals,
    finish::Reply,
    host,
    loader::{self, SizesMax},
    modules, prelude,
    raw::{self, Job},
    state, thrown,
};
use coracle_abi::{Access, Answer, Invoke, Load, Release, finish};
use std::cell::RefCell;

struct Namespace(RefCell<Option<Persistent<Value<'static>>>>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Namespace {}
/// The main module's exports, once it has been evaluated.
static NAMESPACE: Namespace = Namespace(RefCell::new(None));

/// Sets up engine and prelude before the snapshot is taken.
#[unsafe(export_name = "wizer-initialize")]
pub extern "C" fn initialize() {
    prelude::initialize();
}

/// A buffer of `length` bytes for the next message, or null where memory ran out. The entry that takes the message owns
/// and frees it.
#[unsafe(no_mangle)]
pub extern "C" fn allocate(length: usize) -> *mut u8 {
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    let pointer = buffer.as_mut_ptr();
    std::mem::forget(buffer);
    pointer
}

/// Takes a message that the host wrote.
///
/// # Safety
/// `pointer` comes from [`allocate`] with this `length`, and is given once.
unsafe fn take(pointer: *mut u8, length: usize) -> Vec<u8> {
    // SAFETY: promised by the caller.
    unsafe { Vec::from_raw_parts(pointer, length, length) }
}

/// Declares and evaluates the worker's modules, and reports the outcome as that of invocation 0.
///
/// # Safety
/// See [`take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn load(pointer: *mut u8, length: usize, now_ms: f64) {
    host::set_now(now_ms);
    // SAFETY: promised by the caller.
    let message = unsafe { take(pointer, length) };
    let load: Load<'_> = minicbor::decode(&message).expect("the host writes what it says");
    state::modules().borrow_mut().fill(&load);
    enter(|ctx| {
        // As in Workers: module scope may make code of text, nothing that comes after it.
        raw::allow_code_of_text(ctx, true);
        let outcome = evaluate(ctx, &load);
        raw::allow_code_of_text(ctx, false);
        match outcome {
            Ok(LoadOutcome::Loaded) => host::finish(0, finish::UNDEFINED, Vec::new()),
            // Nothing is reported: the host sees a load that can't go on, and calls it hung.
            Ok(LoadOutcome::Pending) => {}
            Err(failure) => failure.report(ctx, 0, true),
        }
    });
}

enum LoadOutcome {
    Loaded,
    Pending,
}

/// Why a load or call could not even start.
enum Failure {
    Threw(Error),
    Decode(DecodeError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Threw(error)
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}

impl Failure {
    fn report(self, ctx: &Ctx<'_>, invocation: u64, during_load: bool) {
        match self {
            Self::Threw(error) => {
                thrown::finish_with_engine_error(ctx, invocation, error, during_load)
            }
            Self::Decode(DecodeError::TooDeep) => {
                host::finish(invocation, finish::VALUE_TOO_DEEP, Vec::new())
            }
            Self::Decode(DecodeError::Threw(error)) => {
                Self::Threw(error).report(ctx, invocation, during_load)
            }
            Self::Decode(DecodeError::Malformed(text)) => {
                thrown::finish_with_text(invocation, "TypeError", &text, during_load);
            }
        }
    }
}

fn evaluate(ctx: &Ctx<'_>, load: &Load<'_>) -> std::result::Result<LoadOutcome, Failure> {
    let hooks = &state::get().hooks;
    loader::set_sizes_max(SizesMax {
        code: load.code_bytes_max,
        env: load.env_bytes_max,
    });
    let (env, stubs) = decode::with_stubs(ctx, &load.env, load.value_depth_max as usize)
        .map_err(|error| error.in_context("env"))?;
    let stubs = raw::array(ctx, &stubs)?;
    hooks.fill_env(ctx)?.call::<_, ()>((env, stubs))?;
    if load.log_arguments {
        hooks.set_log_arguments(ctx)?.call::<_, ()>((true,))?;
    }
    hooks.set_loading(ctx)?.call::<_, ()>((true,))?;
    let module = modules::declare_main(ctx, load.main_module)?;
    let promise = modules::evaluate(ctx, module)?;
    run_jobs(ctx);
    if let Some(promise) = promise.as_promise() {
        match promise.state() {
            PromiseState::Pending => return Ok(LoadOutcome::Pending),
            PromiseState::Resolved => {}
            PromiseState::Rejected => {
                // Reported as the load's outcome, and not on the console as well.
                state::rejections().borrow_mut().forget(promise.as_value());
                promise.finish::<()>()?;
            }
        }
    }
    hooks.set_loading(ctx)?.call::<_, ()>((false,))?;
    let namespace = modules::namespace(ctx, module)?;
    *NAMESPACE.0.borrow_mut() = Some(Persistent::save(ctx, namespace));
    Ok(LoadOutcome::Loaded)
}

/// Starts a call and runs what is ready. The outcome is reported through `finish`, now or in a later entry.
///
/// # Safety
/// See [`take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn invoke(pointer: *mut u8, length: usize, now_ms: f64) {
    host::set_now(now_ms);
    // SAFETY: promised by the caller.
    let message = unsafe { take(pointer, length) };
    let invoke: Invoke<'_> = minicbor::decode(&message).expect("the host writes what it says");
    enter(|ctx| {
        if let Err(failure) = start(ctx, &invoke) {
            failure.report(ctx, invoke.invocation, false);
        }
    });
}

fn start<'js>(ctx: &Ctx<'js>, invoke: &Invoke<'_>) -> std::result::Result<(), Failure> {
    let hooks = &state::get().hooks;
    for operation in &invoke.forgotten {
        hooks.forget(ctx)?.call::<_, ()>((*operation as f64,))?;
    }
    let depth_max = invoke.value_depth_max as usize;
    let (args, mut stubs) = decode::with_stubs(ctx, &invoke.args, depth_max)
        .map_err(|error| error.in_context("the arguments"))?;
    let args = if args.is_undefined() {
        raw::array(ctx, &[])?
    } else {
        args
    };
    if !args.is_array() {
        let text = "the arguments of a call must be an array";
        return Err(DecodeError::Malformed(text.into()).into());
    }
    let (props, of_props) = decode::with_stubs(ctx, &invoke.props, depth_max)
        .map_err(|error| error.in_context("the props"))?;
    stubs.extend(of_props);
    let path = invoke
        .path
        .iter()
        .map(|name| raw::string(ctx, name.as_bytes()));
    let path: Vec<Value> = path.collect::<Result<_>>()?;
    let namespace = NAMESPACE
        .0
        .borrow()
        .clone()
        .expect("the host loads before it invokes")
        .restore(ctx)?;
    let reply = Reply {
        invocation: invoke.invocation as f64,
        form: invoke.result_form,
        result_bytes_max: invoke.result_bytes_max,
        value_depth_max: invoke.value_depth_max,
    };
    let target = [
        raw::string(ctx, invoke.entrypoint.as_bytes())?,
        raw::number(ctx, invoke.export.unwrap_or_default() as f64),
    ];
    let target = raw::array(ctx, &target)?;
    let stubs = raw::array(ctx, &stubs)?;
    let given = raw::array(ctx, &[args, props, stubs])?;
    hooks.invoke(ctx)?.call::<_, ()>((
        namespace,
        target,
        raw::array(ctx, &path)?,
        invoke.access == Access::Get,
        given,
        reply.into_array(ctx)?,
    ))?;
    Ok(())
}

/// Settles a host operation, with an [`Answer`] unless it is a timer, and runs what is ready.
///
/// # Safety
/// See [`take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn settle(operation: u64, pointer: *mut u8, length: usize, now_ms: f64) {
    host::set_now(now_ms);
    let message = if length > 0 {
        // SAFETY: promised by the caller.
        unsafe { take(pointer, length) }
    } else {
        Vec::new()
    };
    enter(|ctx| {
        if answer(ctx, operation as f64, &message).is_err() {
            raw::forget_exception(ctx);
        }
    });
}

/// Kinds of answers, as `stubs.js` has them.
const ANSWER_NONE: u32 = 0;
const ANSWER_VALUE: u32 = 1;
const ANSWER_THREW: u32 = 2;
const ANSWER_VERDICT: u32 = 3;
const ANSWER_FAILED: u32 = 4;
const ANSWER_WORKER: u32 = 5;
const ANSWER_PROVIDE: u32 = 6;

fn answer(ctx: &Ctx<'_>, operation: f64, message: &[u8]) -> Result<()> {
    let settle = state::get().hooks.settle(ctx)?;
    if message.is_empty() {
        return settle.call((operation, ANSWER_NONE));
    }
    let answer: Answer<'_> = minicbor::decode(message).expect("the host writes what it says");
    match answer {
        Answer::Value(value) => match decode::with_stubs(ctx, &value, ANSWER_DEPTH_MAX) {
            Ok((value, stubs)) => {
                let stubs = raw::array(ctx, &stubs)?;
                settle.call((operation, ANSWER_VALUE, value, stubs))
            }
            Err(error) => {
                let error = decode::thrown(ctx, error.in_context("the result"));
                let error = if error.is_exception() {
                    ctx.catch()
                } else {
                    raw::string(ctx, error.to_string().as_bytes())?
                };
                settle.call((operation, ANSWER_THREW, error))
            }
        },
        Answer::Threw(thrown) if thrown.during_load => {
            let message = raw::string(ctx, thrown::failed_to_start(&thrown).as_bytes())?;
            settle.call((operation, ANSWER_FAILED, "", "", message))
        }
        Answer::Threw(thrown) => {
            let value = match thrown.value.is_empty() {
                false => decode::cbor(ctx, &thrown.value, ANSWER_DEPTH_MAX, &[]).ok(),
                true => None,
            };
            if value.is_none() {
                raw::forget_exception(ctx);
            }
            let value = value.unwrap_or_else(|| Value::new_undefined(ctx.clone()));
            let name = raw::string(ctx, thrown.name.as_bytes())?;
            let message = raw::string(ctx, thrown.message.as_bytes())?;
            settle.call((operation, ANSWER_THREW, value, name, message))
        }
        Answer::Verdict {
            kind,
            limit_name,
            used,
            limit,
            message,
        } => {
            let verdict = Object::new(ctx.clone())?;
            verdict.set("kind", kind)?;
            verdict.set("limitName", limit_name)?;
            verdict.set("used", used as f64)?;
            verdict.set("limit", limit as f64)?;
            settle.call((operation, ANSWER_VERDICT, verdict, "", message))
        }
        Answer::Failed(message) => settle.call((operation, ANSWER_FAILED, "", "", message)),
        Answer::Worker(import) => settle.call((operation, ANSWER_WORKER, import as f64)),
        Answer::Provide => settle.call((operation, ANSWER_PROVIDE)),
    }
}

/// Nesting of what comes back from a call; whoever answered was bound by a limit of its own.
const ANSWER_DEPTH_MAX: usize = 512;

/// Drops what nobody outside holds any more, tells the signal of a call that was given up, and runs what is ready.
///
/// # Safety
/// See [`take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn release(pointer: *mut u8, length: usize, now_ms: f64) {
    host::set_now(now_ms);
    // SAFETY: promised by the caller.
    let message = unsafe { take(pointer, length) };
    let release: Release = minicbor::decode(&message).expect("the host writes what it says");
    enter(|ctx| {
        for export in release.exports {
            externals::release_export(ctx, export);
        }
        if let Some(invocation) = release.cancelled {
            let cancel = state::get().hooks.cancel_call(ctx);
            let told: Result<()> = cancel.and_then(|cancel| cancel.call((invocation as f64,)));
            if told.is_err() {
                raw::forget_exception(ctx);
            }
        }
    });
}

/// Collects garbage.
#[unsafe(no_mangle)]
pub extern "C" fn collect() {
    state::get().engine.runtime.run_gc();
}

/// Reseeds `Math.random`: two isolates of one snapshot must not agree.
#[unsafe(no_mangle)]
pub extern "C" fn reseed(seed: u64) {
    prelude::reseed(seed);
}

fn enter(run: impl FnOnce(&Ctx<'_>)) {
    state::modules().borrow_mut().graph.begin_entry();
    state::get().engine.context.with(|ctx| {
        run(&ctx);
        run_jobs(&ctx);
        report_rejections(&ctx);
    });
    host::report_finished();
}

/// Runs what is ready. A job that throws is one of `queueMicrotask`'s; promises keep what their jobs throw.
fn run_jobs(ctx: &Ctx<'_>) {
    loop {
        match raw::run_job(ctx) {
            Job::None => return,
            Job::Done => {}
            Job::Threw(error) => report_uncaught(ctx, error, false),
        }
    }
}

fn report_rejections(ctx: &Ctx<'_>) {
    // A round at a time: reporting runs no worker code that could reject for ever, but inspects its values.
    while !state::rejections().borrow().is_empty() {
        let reasons = state::rejections().borrow_mut().take();
        report_all_uncaught(ctx, reasons);
        run_jobs(ctx);
    }
}

/// `host.reportFinished()`: a job that is queued when an invocation ends. Everything that was ready by then has run, and
/// rejections of before have had their chance of being handled; the rest may run without end.
pub(crate) fn report_finished(ctx: Ctx<'_>) {
    let reasons = state::rejections().borrow_mut().take_marked();
    report_all_uncaught(&ctx, reasons);
    host::report_finished();
}

fn report_all_uncaught(ctx: &Ctx<'_>, reasons: Vec<Persistent<Value<'static>>>) {
    for reason in reasons {
        if let Ok(reason) = reason.restore(ctx) {
            report_uncaught(ctx, reason, true);
        }
    }
}

fn report_uncaught<'js>(ctx: &Ctx<'js>, error: Value<'js>, in_promise: bool) {
    let report = state::get().hooks.report_uncaught(ctx);
    let outcome: Result<()> = report.and_then(|report| report.call((error, in_promise)));
    if outcome.is_err() {
        raw::forget_exception(ctx);
    }
}
