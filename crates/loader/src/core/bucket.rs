//! How much there is left of what a tenant may use in a time.
//!
//! A bucket that fills at an even pace up to what one period allows, and that what is used is taken from. What is known only
//! afterwards (CPU time, bytes sent) may take more than is there: the debt is waited off before anything else begins. All in
//! whole numbers, so that nothing is lost to rounding and the same events give the same waits.

/// A quota per period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    /// Units that a period allows, and that the bucket holds when it is full.
    max: u64,
    period_ms: u64,
    /// In units times `period_ms`: a millisecond brings `max` of these.
    level: i128,
    filled_at_ms: u64,
}

impl Bucket {
    /// A full one. `max` is at least 1: one that never fills would make its tenant wait for ever.
    pub(super) fn new(max: u64, period_ms: u64) -> Self {
        let max = max.max(1);
        Self {
            max,
            period_ms,
            level: i128::from(max) * i128::from(period_ms),
            filled_at_ms: 0,
        }
    }

    /// Takes units, if need be more than there are.
    pub(super) fn take(&mut self, units: u64, now_ms: u64) {
        self.level = self.level_at(now_ms) - self.scaled(units);
        self.filled_at_ms = now_ms;
    }

    /// Whole units that are there.
    pub(super) fn left(&self, now_ms: u64) -> u64 {
        let left = self.level_at(now_ms).max(0) / i128::from(self.period_ms);
        u64::try_from(left).unwrap_or(u64::MAX)
    }

    /// Units that were used and have not come back, rounded up; more than a period allows while there is a debt.
    pub(super) fn used(&self, now_ms: u64) -> u64 {
        let missing = self.scaled(self.max) - self.level_at(now_ms);
        u64::try_from(div_up(missing, self.period_ms)).unwrap_or(u64::MAX)
    }

    /// Milliseconds until `units` are there; 0 if they are now.
    pub(super) fn wait_ms(&self, units: u64, now_ms: u64) -> u64 {
        let missing = self.scaled(units) - self.level_at(now_ms);
        u64::try_from(div_up(missing.max(0), self.max)).unwrap_or(u64::MAX)
    }

    fn level_at(&self, now_ms: u64) -> i128 {
        let passed = now_ms.saturating_sub(self.filled_at_ms);
        let brought = i128::from(passed) * i128::from(self.max);
        (self.level + brought).min(self.scaled(self.max))
    }

    fn scaled(&self, units: u64) -> i128 {
        i128::from(units) * i128::from(self.period_ms)
    }
}

fn div_up(amount: i128, by: u64) -> i128 {
    let by = i128::from(by);
    (amount + by - 1).div_euclid(by)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is taken comes back at an even pace, and who waits as long as is said has waited long enough and not too long.
    #[test]
    fn a_wait_is_as_long_as_it_has_to_be() {
        for (max, period_ms) in [(1, 1_000), (3, 1_000), (7, 60_000), (30_000_000, 60_000)] {
            let mut bucket = Bucket::new(max, period_ms);
            assert_eq!((bucket.left(0), bucket.used(0)), (max, 0));
            bucket.take(max, 5);
            assert_eq!((bucket.left(5), bucket.used(5)), (0, max));
            let wait = bucket.wait_ms(1, 5);
            assert_eq!(bucket.left(5 + wait), 1.max(max / period_ms));
            assert_eq!(bucket.left(5 + wait - 1), 0);
            assert_eq!(bucket.wait_ms(max, 5), period_ms);
        }
    }

    #[test]
    fn a_debt_is_waited_off_and_a_full_bucket_gets_no_fuller() {
        let mut bucket = Bucket::new(10, 1_000);
        bucket.take(25, 0);
        assert_eq!((bucket.left(0), bucket.used(0)), (0, 25));
        assert_eq!(bucket.wait_ms(1, 0), 1_600);
        assert_eq!(bucket.left(1_600), 1);
        assert_eq!((bucket.left(900_000), bucket.used(900_000)), (10, 0));
        // A clock that goes back brings nothing and takes nothing.
        bucket.take(10, 900_000);
        assert_eq!(bucket.left(1_000), 0);
    }
}
