//! The exports that the host calls. Each takes a message, runs everything that is ready, and returns.

use crate::{
    decode::{self, DecodeError},
    encode,
    engine::js::{Array, Ctx, Error, Object, Persistent, Result, Value, promise::PromiseState},
    host, modules, prelude, state, thrown,
};
use coracle_abi::{Access, Invoke, Load, finish};
use std::cell::RefCell;

struct Namespace(RefCell<Option<Persistent<Object<'static>>>>);
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
    enter(|ctx| match evaluate(ctx, &load) {
        Ok(LoadOutcome::Loaded) => host::finish(0, finish::UNDEFINED, &[]),
        // Nothing is reported: the host sees a load that can't go on, and calls it hung.
        Ok(LoadOutcome::Pending) => {}
        Err(failure) => failure.report(ctx, 0, true),
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
                host::finish(invocation, finish::VALUE_TOO_DEEP, &[])
            }
            Self::Decode(DecodeError::Threw(error)) => {
                Self::Threw(error).report(ctx, invocation, during_load)
            }
            Self::Decode(DecodeError::Malformed(text)) => {
                thrown::finish_with_text(ctx, invocation, "TypeError", &text, during_load);
            }
        }
    }
}

fn evaluate(ctx: &Ctx<'_>, load: &Load<'_>) -> std::result::Result<LoadOutcome, Failure> {
    let hooks = &state::get().hooks;
    let env = decode::value(ctx, &load.env, load.value_depth_max as usize)?;
    hooks.fill_env(ctx)?.call::<_, ()>((env,))?;
    hooks.set_loading(ctx)?.call::<_, ()>((true,))?;
    let module = modules::declare_main(ctx, load.main_module)?;
    let (module, promise) = module.eval()?;
    run_jobs(ctx);
    match promise.state() {
        PromiseState::Pending => return Ok(LoadOutcome::Pending),
        PromiseState::Resolved => {}
        PromiseState::Rejected => promise.finish::<()>()?,
    }
    hooks.set_loading(ctx)?.call::<_, ()>((false,))?;
    *NAMESPACE.0.borrow_mut() = Some(Persistent::save(ctx, module.namespace()?));
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
    let depth_max = invoke.value_depth_max as usize;
    let args = decode::value(ctx, &invoke.args, depth_max)?;
    let args = if args.is_undefined() {
        Array::new(ctx.clone())?.into_value()
    } else {
        args
    };
    if !args.is_array() {
        return Err(
            DecodeError::Malformed("the arguments of a call must be an array".into()).into(),
        );
    }
    let props = decode::value(ctx, &invoke.props, depth_max)?;
    let path: Vec<Value<'js>> = invoke
        .path
        .iter()
        .map(|part| decode::string(ctx, part.as_bytes()))
        .collect();
    let namespace = NAMESPACE
        .0
        .borrow()
        .clone()
        .expect("the host loads before it invokes")
        .restore(ctx)?;
    let call = encode::InvokeArguments {
        invocation: invoke.invocation as f64,
        form: invoke.result_form,
        result_bytes_max: invoke.result_bytes_max,
        value_depth_max: invoke.value_depth_max,
    };
    state::get().hooks.invoke(ctx)?.call::<_, ()>((
        namespace,
        decode::string(ctx, invoke.entrypoint.as_bytes()),
        decode::array(ctx, path),
        invoke.access == Access::Get,
        args,
        props,
        call.into_array(ctx)?,
    ))?;
    Ok(())
}

/// Settles a host operation and runs what is ready.
///
/// # Safety
/// See [`take`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn settle(operation: u64, pointer: *mut u8, length: usize, now_ms: f64) {
    host::set_now(now_ms);
    // SAFETY: promised by the caller.
    let message = if length > 0 {
        unsafe { take(pointer, length) }
    } else {
        Vec::new()
    };
    enter(|ctx| {
        let argument = decode::string(ctx, &message);
        let outcome: Result<()> = state::get()
            .hooks
            .settle(ctx)
            .and_then(|settle| settle.call((operation as f64, argument)));
        if outcome.is_err() {
            ctx.catch();
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
    state::get().engine.context.with(|ctx| {
        run(&ctx);
        run_jobs(&ctx);
        report_rejections(&ctx);
    });
}

fn run_jobs(ctx: &Ctx<'_>) {
    while ctx.execute_pending_job() {}
}

fn report_rejections(ctx: &Ctx<'_>) {
    // A round at a time: reporting runs no worker code that could reject for ever, but inspects its values.
    while !state::rejections().borrow().is_empty() {
        let kept = state::rejections().borrow_mut().take();
        for (_, reason) in kept {
            let outcome: Result<()> = (|| {
                let reason = reason.restore(ctx)?;
                state::get().hooks.report_rejection(ctx)?.call((reason,))
            })();
            if outcome.is_err() {
                ctx.catch();
            }
        }
        run_jobs(ctx);
    }
}
