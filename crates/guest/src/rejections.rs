//! Rejected promises that nobody handles, reported on the console after each entry.

use crate::engine::js::{Ctx, Persistent, Value, qjs};

pub(crate) struct Rejections(Vec<(usize, Persistent<Value<'static>>)>);

/// More than this many at once are counted, not kept: a rejection flood must not double its own memory.
const KEPT_MAX: usize = 100;

impl Rejections {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    /// The engine's callback: a promise was rejected without a handler, or got one later.
    pub(crate) fn track<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        promise: &Value<'js>,
        reason: Value<'js>,
        handled: bool,
    ) {
        let identity = identity(promise);
        if handled {
            self.0.retain(|(kept, _)| *kept != identity);
        } else if self.0.len() < KEPT_MAX {
            self.0.push((identity, Persistent::save(ctx, reason)));
        }
    }

    pub(crate) fn take(&mut self) -> Vec<(usize, Persistent<Value<'static>>)> {
        std::mem::take(&mut self.0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where a value lives. Only compared, never followed.
pub(crate) fn identity(value: &Value<'_>) -> usize {
    // SAFETY: reads the pointer field of an object value without following it.
    unsafe { qjs::JS_VALUE_GET_PTR(value.as_raw()) as usize }
}
