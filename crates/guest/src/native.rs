//! State of Rust's behind a JavaScript value: decoders, compressors, digests. It is freed with the value.
//!
//! The values stay inside the prelude.

use crate::engine::js::{
    Class, Ctx, JsLifetime, Result, Value,
    class::{JsClass, Trace, Tracer, Writable},
    function::Constructor,
};
use std::any::Any;

pub(crate) struct Native(Box<dyn Any>);

impl Native {
    pub(crate) fn wrap<'js>(ctx: &Ctx<'js>, state: impl Any) -> Result<Value<'js>> {
        Ok(Class::instance(ctx.clone(), Self(Box::new(state)))?.into_value())
    }

    /// Runs `access` over the state. `None`: it is of another kind, or none.
    pub(crate) fn with<T: Any, R>(
        value: &Value<'_>,
        access: impl FnOnce(&mut T) -> R,
    ) -> Option<R> {
        let class = Class::<Self>::from_value(value).ok()?;
        let mut native = class.try_borrow_mut().ok()?;
        native.0.downcast_mut().map(access)
    }
}

impl<'js> Trace<'js> for Native {
    fn trace<'a>(&self, _tracer: Tracer<'a, 'js>) {}
}

// SAFETY: it holds nothing of the engine's.
unsafe impl<'js> JsLifetime<'js> for Native {
    type Changed<'to> = Self;
}

impl<'js> JsClass<'js> for Native {
    const NAME: &'static str = "Native";
    type Mutable = Writable;

    fn constructor(_ctx: &Ctx<'js>) -> Result<Option<Constructor<'js>>> {
        Ok(None)
    }
}
