//! Fuel of one entry: what host operations cost is taken from it at once, and slices end on time all the same.
//!
//! Wasmtime yields after a slice of Wasm instructions, counted from when the fuel was last set. Charging a price sets
//! the fuel, so a loop of host calls would begin its slice anew with every call and never yield. The meter therefore
//! keeps its own position in the slice and says when it is over.

#[derive(Clone, Copy, Debug)]
pub(super) struct Meter {
    /// What the store's fuel was last set to.
    level: u64,
    /// What this slice had burnt by then.
    carried: u64,
    /// What a slice may burn; at least 1.
    slice: u64,
}

/// What to do about a price.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Charge {
    /// Set the store's fuel to `left`; where `slice_over`, yield once the operation is done.
    Paid { left: u64, slice_over: bool },
    /// There is not enough left.
    TooMuch,
}

impl Meter {
    /// An entry begins with this much fuel.
    pub(super) fn begin(fuel: u64, slice: u64) -> Self {
        Self {
            level: fuel,
            carried: 0,
            slice: slice.max(1),
        }
    }

    /// Takes `price` from what the store says is left.
    pub(super) fn charge(&mut self, left: u64, price: u64) -> Charge {
        let Some(left_after) = left.checked_sub(price) else {
            return Charge::TooMuch;
        };
        let burnt = self.level.saturating_sub(left);
        // A slice or more since the fuel was set: the Wasm code has yielded by itself, the last time at a whole slice.
        let carried = if burnt >= self.slice { 0 } else { self.carried };
        let position = carried + burnt % self.slice + price;
        let slice_over = position >= self.slice;
        *self = Self {
            level: left_after,
            carried: if slice_over { 0 } else { position },
            slice: self.slice,
        };
        Charge::Paid {
            left: left_after,
            slice_over,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuel;

    const START: u64 = 100 * fuel::SLICE;

    /// Runs a loop that burns `wasm` fuel and then pays `price`; returns how often it yielded, and the fuel burnt.
    fn yields(rounds: u64, wasm: u64, price: u64) -> (u64, u64) {
        let mut meter = Meter::begin(START, fuel::SLICE);
        let (mut left, mut since_set, mut yields) = (START, 0, 0);
        for _ in 0..rounds {
            left -= wasm;
            since_set += wasm;
            // What Wasmtime does by itself.
            yields += since_set / fuel::SLICE;
            let Charge::Paid {
                left: after,
                slice_over,
            } = meter.charge(left, price)
            else {
                panic!("enough fuel")
            };
            (left, since_set) = (after, 0);
            yields += u64::from(slice_over);
        }
        (yields, START - left)
    }

    #[test]
    fn a_loop_of_host_calls_yields_about_once_a_slice_however_cheap_its_own_code_is() {
        for (wasm, price) in [
            (10, 1_500),
            (1_500, 1_500),
            (200_000, 1_000),
            (2_999_999, 1),
            (10, 525_788),
        ] {
            let rounds = 20 * fuel::SLICE / (wasm + price);
            let (yields, burnt) = yields(rounds, wasm, price);
            let slices = burnt / fuel::SLICE;
            assert!(
                (slices / 2..=slices + 1).contains(&yields),
                "{wasm} {price}: {yields} yields in {slices} slices"
            );
        }
    }

    #[test]
    fn the_price_is_taken_to_the_last_unit_and_never_more() {
        let mut meter = Meter::begin(10, fuel::SLICE);
        assert_eq!(
            meter.charge(10, 10),
            Charge::Paid {
                left: 0,
                slice_over: false
            }
        );
        assert_eq!(meter.charge(0, 1), Charge::TooMuch);
    }
}
