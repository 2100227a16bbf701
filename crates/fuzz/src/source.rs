//! Choices made from bytes.

/// Where generators take their choices from. Eight bytes are a seed, from which all numbers follow. More bytes are choices
/// themselves, one after the other, and numbers follow from them when they are used up: so a short seed leads as far as a
/// long input, and a fuzzer that mutates a long one changes one choice at a time.
#[derive(Clone)]
pub struct Source<'a> {
    bytes: &'a [u8],
    /// The state of the generator of numbers (SplitMix64).
    state: u64,
}

impl<'a> Source<'a> {
    /// The choices that these bytes stand for.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        if let Ok(seed) = bytes.try_into() {
            return Self {
                bytes: &[],
                state: u64::from_le_bytes(seed),
            };
        }
        // FNV-1a; any function of all bytes will do.
        let state = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        Self { bytes, state }
    }

    /// Choices for something else, which do not depend on how many are made here: half of the bytes that are left.
    #[must_use]
    pub fn split(&mut self) -> Self {
        let (own, other) = self.bytes.split_at(self.bytes.len() / 2);
        self.bytes = own;
        Self {
            bytes: other,
            state: self.state ^ 0x5eed,
        }
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        match self.bytes.split_first_chunk() {
            Some((number, rest)) => {
                self.bytes = rest;
                u64::from_le_bytes(*number)
            }
            None => {
                self.bytes = &[];
                self.next()
            }
        }
    }

    /// A number below `end`, which is not 0.
    pub fn below(&mut self, end: usize) -> usize {
        let number = match self.bytes {
            [number, rest @ ..] if end <= 256 => {
                self.bytes = rest;
                u64::from(*number)
            }
            _ => self.number(),
        };
        (number % end as u64) as usize
    }

    /// True once in so many times.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these, of which there is at least one.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// An id or a count: usually one that is in use, sometimes one that can't be.
    pub fn small(&mut self) -> u32 {
        match self.below(8) {
            0 => self.pick(&[
                u32::MAX,
                u32::MAX - 1,
                1 << 31,
                1 << 29,
                0x7fff_ffff,
                65_536,
            ]),
            _ => self.below(12) as u32,
        }
    }

    /// Up to so many bytes.
    pub fn bytes(&mut self, count_max: usize) -> Vec<u8> {
        let count = self.below(count_max + 1);
        (0..count).map(|_| self.below(256) as u8).collect()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kept seed must stay what it is: the same bytes are the same choices, and other bytes are others.
    #[test]
    fn choices_follow_from_the_bytes_alone() {
        let choices = |bytes: &[u8]| -> Vec<usize> {
            let mut source = Source::new(bytes);
            (0..100).map(|_| source.below(1_000)).collect()
        };
        assert_eq!(choices(b"seed"), choices(b"seed"));
        assert_ne!(choices(b"seed"), choices(b"sees"));
        assert_ne!(choices(b""), vec![0; 100]);
    }

    #[test]
    fn the_bytes_are_chosen_from_first() {
        let mut source = Source::new(&[7, 3, 1, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((source.below(10), source.below(256)), (7, 3));
        assert_eq!(source.below(1_000), 1);
    }
}
