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

pub(crate) struct Rejections {
    /// In order.
    kept: Vec<Rejection>,
    /// How many of them there were when an invocation ended.
    marked: usize,
}

/// More than this many at once are not kept: a flood of rejections must not double its own memory.
const KEPT_MAX: usize = 100;

impl Rejections {
    pub(crate) const fn new() -> Self {
        Self {
            kept: Vec::new(),
            marked: 0,
        }
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
        } else if self.kept.len() < KEPT_MAX {
            self.kept.push(Rejection {
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
        let position = self.kept.iter().position(|kept| kept.identity == identity);
        let Some(at) = position else {
            return;
        };
        let forgotten = self.remove(at);
        if cfg!(feature = "javy") {
            // Where a module throws, the older engine also rejects a promise that nobody but itself ever sees.
            let of_reason = |kept: &Rejection| kept.reason_identity == forgotten.reason_identity;
            while let Some(at) = self.kept.iter().position(of_reason) {
                self.remove(at);
            }
        }
    }

    fn remove(&mut self, at: usize) -> Rejection {
        self.marked -= usize::from(at < self.marked);
        self.kept.remove(at)
    }

    /// An invocation has ended.
    pub(crate) fn mark(&mut self) {
        self.marked = self.kept.len();
    }

    /// The reasons of those that are still without a handler, of before the mark.
    pub(crate) fn take_marked(&mut self) -> Vec<Persistent<Value<'static>>> {
        let marked = self.kept.drain(..std::mem::take(&mut self.marked));
        marked.map(|kept| kept.reason).collect()
    }

    /// The reasons of those that are still without a handler.
    pub(crate) fn take(&mut self) -> Vec<Persistent<Value<'static>>> {
        self.marked = 0;
        let kept = std::mem::take(&mut self.kept);
        kept.into_iter().map(|kept| kept.reason).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }
}
