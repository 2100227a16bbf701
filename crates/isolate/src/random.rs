//! Randomness: the kernel's, or for runs that must repeat themselves a small generator.

/// Fills `bytes` from the kernel.
pub(crate) fn fill(bytes: &mut [u8]) {
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => {
                unreachable!("getrandom without flags fails only on kernels that lack it: {error}")
            }
        }
    }
}

/// A number from the kernel.
pub(crate) fn number() -> u64 {
    let mut bytes = [0; 8];
    fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Fills `bytes` from `seed` by xorshift64*, for isolates that must repeat themselves.
pub(crate) fn fill_from(seed: &mut u64, bytes: &mut [u8]) {
    for byte in bytes {
        let mut state = *seed | 1;
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        *seed = state;
        *byte = (state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_the_kernel_does_not() {
        let (mut first, mut second) = ([0; 32], [0; 32]);
        fill_from(&mut 7, &mut first);
        fill_from(&mut 7, &mut second);
        assert_eq!(first, second);
        fill_from(&mut 8, &mut second);
        assert_ne!(first, second);
        assert_ne!(number(), number());
    }
}
