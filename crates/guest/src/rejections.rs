//! Rejected promises that nobody handles, reported on the console after each entry.

use crate::{
    engine::js::{Ctx, Persistent, Value},
    raw,
};

struct Rejection {
    /// Kept alive, so that its address stays its own.
    _promise: Persistent<Value<'static>>,
    identity: usize,
    reason: Persistent<Value<'static>>,
    reason_identity: usize,
}

pub(crate) struct Rejections(Vec<Rejection>);

/// More than this many at once are not kept: a flood of rejections must not double its own memory.
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
        is_handled: bool,
    ) {
        if is_handled {
            self.forget(promise);
        } else if self.0.len() < KEPT_MAX {
            self.0.push(Rejection {
                _promise: Persistent::save(ctx, promise.clone()),
                identity: raw::identity(promise),
                reason_identity: raw::identity(&reason),
                reason: Persistent::save(ctx, reason),
            });
        }
    }

    /// What a promise was rejected with is reported in another way.
    pub(crate) fn forget(&mut self, promise: &Value<'_>) {
        let identity = raw::identity(promise);
        let Some(at) = self.0.iter().position(|kept| kept.identity == identity) else {
            return;
        };
        let forgotten = self.0.remove(at);
        if cfg!(feature = "javy") {
            // Where a module throws, the older engine also rejects a promise that nobody but itself ever sees.
            let reason = forgotten.reason_identity;
            self.0.retain(|kept| kept.reason_identity != reason);
        }
    }

    /// The reasons of those that are still without a handler.
    pub(crate) fn take(&mut self) -> Vec<Persistent<Value<'static>>> {
        let kept = std::mem::take(&mut self.0);
        kept.into_iter().map(|kept| kept.reason).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
