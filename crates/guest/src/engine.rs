//! The JavaScript engine, behind one name for both builds.
//!
//! Everything else in the guest says `crate::engine::js` and does not know which build it is in.

#[cfg(all(feature = "quickjs", feature = "javy"))]
compile_error!("choose one engine: build with --no-default-features --features javy");

#[cfg(feature = "quickjs")]
pub(crate) use rquickjs as js;
#[cfg(feature = "javy")]
pub(crate) use rquickjs_of_javy as js;

use js::{Context, Runtime};
use std::mem::ManuallyDrop;

/// JavaScript stack in bytes. The host gives the Wasm stack at least 24 times as much, so that deep recursion ends in a
/// `RangeError` here and not in a trap there.
const STACK_BYTES: usize = 256 * 1024;
/// Collect when this much was allocated since the last collection.
const GC_THRESHOLD_BYTES: usize = 1024 * 1024;

/// Runtime and context, which live as long as the instance: dropping them would only cost time.
pub(crate) struct Engine {
    pub(crate) runtime: ManuallyDrop<Runtime>,
    pub(crate) context: ManuallyDrop<Context>,
}

#[cfg(feature = "quickjs")]
impl Engine {
    pub(crate) fn new() -> Self {
        let runtime = Runtime::new().expect("a runtime at build time");
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_gc_threshold(GC_THRESHOLD_BYTES);
        let context = Context::full(&runtime).expect("a context at build time");
        Self {
            runtime: ManuallyDrop::new(runtime),
            context: ManuallyDrop::new(context),
        }
    }
}

#[cfg(feature = "javy")]
impl Engine {
    pub(crate) fn new() -> Self {
        let mut config = javy::Config::default();
        config
            .gc_threshold(GC_THRESHOLD_BYTES)
            .max_stack_size(STACK_BYTES);
        // What the other build's context has, and javy's default leaves out.
        config.weak_ref(true).performance(true);
        // Its console and Math.random can't be left out; the prelude replaces them.
        config
            .log_stream(Box::new(std::io::sink()))
            .err_stream(Box::new(std::io::sink()));
        let javy = ManuallyDrop::new(javy::Runtime::new(config).expect("a runtime at build time"));
        let context = javy.context().clone();
        context.with(|ctx| {
            // DOMException, atob and btoa, for which javy has no switch.
            // SAFETY: the context is alive and locked.
            let outcome = unsafe { js::qjs::JS_AddIntrinsicAToB(ctx.as_raw().as_ptr()) };
            assert!(outcome == 0, "no memory at build time");
        });
        Self {
            runtime: ManuallyDrop::new(context.runtime().clone()),
            context: ManuallyDrop::new(context),
        }
    }
}
