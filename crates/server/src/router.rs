//! The addresses of everything that can be called.
//!
//! Only isolates are callable yet; objects of clients and services of the host join them with capabilities. An address
//! carries the session that owns it, and a session that is over is a flag on every address that came from it.

use coracle_loader::{SessionId, WorkerId};
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

/// Where a call goes.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) target: Target,
    pub(crate) owner: Owner,
}

/// What is at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// An export of a worker's main module, in whichever isolate runs the worker at the time.
    Entrypoint { worker: WorkerId, export: Arc<str> },
}

/// The session that an address came from.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) session: SessionId,
    revoked: Arc<AtomicBool>,
}

impl Owner {
    pub(crate) fn new(session: SessionId) -> Self {
        Self {
            session,
            revoked: Arc::default(),
        }
    }

    /// Makes every address of this owner useless. Returns whether it was the first to do so.
    pub(crate) fn revoke(&self) -> bool {
        !self.revoked.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn revoking_an_owner_reaches_every_copy_of_it() {
        let owner = Owner::new(SessionId(1));
        let address = Address {
            target: Target::Entrypoint {
                worker: WorkerId(1),
                export: "default".into(),
            },
            owner: owner.clone(),
        };
        assert!(owner.revoke());
        assert!(!address.owner.revoke());
        assert!(address.owner.is_revoked());
    }
}
