//! Bigints as decimal text and back.
//!
//! Both directions take time that is the square of the digits, so callers bound those.

use coracle_value::BigInt;

/// What a limb holds: nine digits.
const LIMB: u64 = 1_000_000_000;
const LIMB_DIGITS: usize = 9;

/// The bigint that a text of digits, with a `-` before it or not, stands for.
pub(crate) fn parse(text: &str) -> Option<BigInt> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    // Little-endian limbs of 32 bits.
    let mut limbs: Vec<u32> = Vec::with_capacity(digits.len() / LIMB_DIGITS + 1);
    let first = match digits.len() % LIMB_DIGITS {
        0 => LIMB_DIGITS,
        rest => rest,
    };
    let (mut group, mut rest) = digits.split_at(first);
    loop {
        let mut carry: u64 = group.parse().ok()?;
        for limb in &mut limbs {
            let product = u64::from(*limb) * LIMB + carry;
            *limb = product as u32;
            carry = product >> 32;
        }
        if carry > 0 {
            limbs.push(carry as u32);
        }
        if rest.is_empty() {
            break;
        }
        (group, rest) = rest.split_at(LIMB_DIGITS);
    }
    let bytes: Vec<u8> = limbs
        .iter()
        .rev()
        .flat_map(|limb| limb.to_be_bytes())
        .collect();
    Some(BigInt::new(negative, &bytes))
}

/// How many digits a number has at most.
pub(crate) fn digits_at_most(number: &BigInt) -> usize {
    // log10(256) is less than 2.4083.
    number.magnitude().len().saturating_mul(24_083) / 10_000 + 1
}

/// The digits of a bigint, with a `-` before them if it is below 0.
pub(crate) fn write(number: &BigInt) -> String {
    let mut limbs: Vec<u32> = number
        .magnitude()
        .rchunks(4)
        .rev()
        .map(|chunk| {
            chunk
                .iter()
                .fold(0, |limb, byte| limb << 8 | u32::from(*byte))
        })
        .collect();
    let mut groups = Vec::new();
    while !limbs.is_empty() {
        let mut remainder = 0_u64;
        for limb in &mut limbs {
            let dividend = remainder << 32 | u64::from(*limb);
            *limb = (dividend / LIMB) as u32;
            remainder = dividend % LIMB;
        }
        groups.push(remainder);
        let zeros = limbs.iter().take_while(|limb| **limb == 0).count();
        limbs.drain(..zeros);
    }
    let mut text = String::from(if number.is_negative() { "-" } else { "" });
    match groups.pop() {
        None => text.push('0'),
        Some(first) => text.push_str(&first.to_string()),
    }
    for group in groups.iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_numbers_are_read_and_written() {
        for (text, magnitude) in [
            ("0", &[][..]),
            ("255", &[255]),
            ("-256", &[1, 0]),
            ("1000000000", &[0x3b, 0x9a, 0xca, 0]),
            ("18446744073709551616", &[1, 0, 0, 0, 0, 0, 0, 0, 0]),
        ] {
            let number = BigInt::new(text.starts_with('-'), magnitude);
            assert_eq!(parse(text), Some(number.clone()), "{text}");
            assert_eq!(write(&number), text);
        }
        assert_eq!(parse("-0").map(|zero| write(&zero)).as_deref(), Some("0"));
        assert_eq!(
            parse("007").map(|seven| write(&seven)).as_deref(),
            Some("7")
        );
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "-", "+1", "1.5", "0x10", "1n", " 1", "--1", "١"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    proptest! {
        /// What the standard library says about every 128-bit number is what these say.
        #[test]
        fn numbers_are_those_of_the_standard_library(number: i128) {
            let read = parse(&number.to_string()).expect("digits");
            prop_assert_eq!(read.to_i128(), Some(number));
            prop_assert_eq!(write(&read), number.to_string());
        }

        /// Reading what was written gives the number back, and the bound on its digits holds.
        #[test]
        fn long_numbers_round_trip(negative: bool, magnitude in prop::collection::vec(any::<u8>(), 0..300)) {
            let number = BigInt::new(negative, &magnitude);
            let text = write(&number);
            prop_assert!(text.trim_start_matches('-').len() <= digits_at_most(&number));
            prop_assert_eq!(parse(&text), Some(number));
        }
    }
}
