//! What things cost in fuel.
//!
//! Wasm instructions are metered by Wasmtime. What the host does on a guest's behalf is priced here, by size, and
//! charged before it starts: otherwise a loop of host calls would be free work.

/// Version of these prices and of the guest's instruction mix. It stands in every usage; figures of different versions
/// are not to be compared.
pub const FUEL_SCHEDULE: u32 = 2;

/// Fuel that the guest burns in a microsecond, about: 13,000 to 20,000 on the machines that it was measured on, for
/// code of all kinds.
const PER_MICROSECOND: u64 = 15_000;

/// Fuel that a slice may burn: about a fifth of a millisecond. Shorter ones cost more in changing over, longer ones make
/// others wait.
pub const SLICE: u64 = 200 * PER_MICROSECOND;

/// Fuel that a slice may burn on a thread that has other things to do: about a tenth of a millisecond.
pub(crate) const SLICE_ASSISTED: u64 = 100 * PER_MICROSECOND;

/// Fuel for a collection of garbage that the host asked for; no invocation pays for it.
pub(crate) const COLLECTION: u64 = 1_000 * SLICE;

/// What the guest itself needs to take note of something, such as that an object is not held any more, about thirteen
/// microseconds: an invocation that has used all of its fuel is not the end of those beside it.
pub(crate) const HOUSEKEEPING: u64 = 200_000;

/// A host operation's price.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tariff {
    base: u64,
    per_byte: u64,
}

impl Tariff {
    /// A timer or a request: an alarm, its mail, and another entry when it is due.
    pub(crate) const OPERATION: Self = Self {
        base: 60_000,
        per_byte: 10,
    };
    pub(crate) const CANCEL: Self = Self {
        base: 10_000,
        per_byte: 0,
    };
    /// A worker that is loaded: its code is checked, and copied several times.
    pub(crate) const LOAD: Self = Self {
        base: 150_000,
        per_byte: 40,
    };
    pub(crate) const FINISH: Self = Self {
        base: 10_000,
        per_byte: 5,
    };
    pub(crate) const LOG: Self = Self {
        base: 5_000,
        per_byte: 10,
    };
    pub(crate) const RANDOM: Self = Self {
        base: 7_500,
        per_byte: 40,
    };

    pub(crate) fn price(self, bytes: usize) -> u64 {
        self.base + self.per_byte * bytes as u64
    }
}
