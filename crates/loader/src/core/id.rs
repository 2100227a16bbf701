//! Ids: small integers that the core hands out in ascending order and never again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        ///
        /// Allocated by the core in ascending order, never reused. It is no secret and no proof of
        /// anything.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl Next for $name {
            fn next(last: &mut u64) -> Self {
                *last += 1;
                Self(*last)
            }
        }
    )+};
}

/// Makes the next id of a kind out of the last one.
pub(super) trait Next {
    fn next(last: &mut u64) -> Self;
}

ids! {
    /// Who pays.
    TenantId,
    /// One login.
    SessionId,
    /// One loaded worker.
    WorkerId,
    /// One live instance of the guest.
    IsolateId,
    /// One call of an entrypoint, which is one invocation.
    CallId,
}

/// A map by ids.
///
/// Its hash is a multiplication: the keys are ours, so no stranger can choose them to collide, and
/// without a random seed the same events take the same path on every run.
pub(super) type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Fibonacci hashing of a single `u64`.
#[derive(Default)]
pub(super) struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids hash through `write_u64`; this is here because the trait asks for it.
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, id: u64) {
        self.0 = (self.0 ^ id).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}
