//! A JavaScript bigint as sign and magnitude.
//!
//! Owns the one canonical form (no leading zero bytes, no negative zero). Does no arithmetic beyond what CBOR's
//! `-1 - n` needs.

use std::fmt;

/// A JavaScript bigint of any size.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct BigInt {
    negative: bool,
    /// Big-endian, without leading zeros; empty for 0.
    magnitude: Box<[u8]>,
}

impl BigInt {
    /// The number with this sign and big-endian magnitude; leading zeros don't matter, and -0 is 0.
    pub fn new(negative: bool, magnitude: &[u8]) -> Self {
        let leading_zeros = magnitude.iter().take_while(|byte| **byte == 0).count();
        let magnitude = &magnitude[leading_zeros..];
        Self {
            negative: negative && !magnitude.is_empty(),
            magnitude: magnitude.into(),
        }
    }

    /// Whether it is below 0.
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The absolute value, big-endian and without leading zeros; empty for 0.
    pub fn magnitude(&self) -> &[u8] {
        &self.magnitude
    }

    /// The number, if it fits.
    pub fn to_i128(&self) -> Option<i128> {
        let magnitude = self.magnitude_u128()?;
        if self.negative {
            0_i128.checked_sub_unsigned(magnitude)
        } else {
            i128::try_from(magnitude).ok()
        }
    }

    fn magnitude_u128(&self) -> Option<u128> {
        let mut bytes = [0; 16];
        let start = bytes.len().checked_sub(self.magnitude.len())?;
        bytes[start..].copy_from_slice(&self.magnitude);
        Some(u128::from_be_bytes(bytes))
    }

    /// The number whose tag 3 content is `content`: -1 - content.
    pub(crate) fn from_tag_negative(content: &[u8]) -> Self {
        let mut magnitude = Vec::with_capacity(content.len() + 1);
        magnitude.push(0);
        magnitude.extend_from_slice(content);
        for byte in magnitude.iter_mut().rev() {
            let carry;
            (*byte, carry) = byte.overflowing_add(1);
            if !carry {
                break;
            }
        }
        Self::new(true, &magnitude)
    }

    /// The content of tag 3 for a negative number: -1 - self, without leading zeros.
    pub(crate) fn to_tag_negative(&self) -> Vec<u8> {
        let mut content = self.magnitude.to_vec();
        for byte in content.iter_mut().rev() {
            let borrow;
            (*byte, borrow) = byte.overflowing_sub(1);
            if !borrow {
                break;
            }
        }
        if content.first() == Some(&0) {
            content.remove(0);
        }
        content
    }
}

impl From<i128> for BigInt {
    fn from(number: i128) -> Self {
        Self::new(number < 0, &number.unsigned_abs().to_be_bytes())
    }
}

impl From<u128> for BigInt {
    fn from(number: u128) -> Self {
        Self::new(false, &number.to_be_bytes())
    }
}

impl From<i64> for BigInt {
    fn from(number: i64) -> Self {
        Self::from(i128::from(number))
    }
}

impl From<u64> for BigInt {
    fn from(number: u64) -> Self {
        Self::from(u128::from(number))
    }
}

/// Decimal up to 128 bits, hexadecimal with `0x` beyond.
///
/// Decimal digits of a hostile bigint would take time in the square of its size; this takes linear time.
impl fmt::Display for BigInt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            formatter.write_str("-")?;
        }
        if let Some(magnitude) = self.magnitude_u128() {
            return write!(formatter, "{magnitude}");
        }
        formatter.write_str("0x")?;
        self.magnitude
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

/// As in JavaScript source: `12n`.
impl fmt::Debug for BigInt {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_zeros_and_the_sign_of_zero_do_not_matter() {
        assert_eq!(BigInt::new(true, &[0, 0]), BigInt::from(0_u64));
        assert_eq!(BigInt::new(false, &[0, 7]), BigInt::from(7_u64));
    }

    #[test]
    fn the_content_of_tag_3_is_minus_one_minus_n() {
        for (number, content) in [
            (-1_i64, &[][..]),
            (-2, &[1]),
            (-256, &[255]),
            (-257, &[1, 0]),
            (-65536, &[255, 255]),
        ] {
            assert_eq!(BigInt::from(number).to_tag_negative(), content, "{number}");
            assert_eq!(
                BigInt::from_tag_negative(content),
                BigInt::from(number),
                "{number}"
            );
        }
        assert_eq!(BigInt::from_tag_negative(&[0, 0]), BigInt::from(-1_i64));
    }

    #[test]
    fn the_extremes_of_128_bits_fit() {
        for number in [i128::MIN, i128::MIN + 1, -1, 0, 1, i128::MAX] {
            assert_eq!(BigInt::from(number).to_i128(), Some(number));
            assert_eq!(BigInt::from(number).to_string(), number.to_string());
        }
        assert_eq!(BigInt::from(u128::MAX).to_i128(), None);
        assert_eq!(BigInt::new(true, &[1; 17]).to_i128(), None);
    }

    #[test]
    fn large_numbers_show_in_hexadecimal() {
        assert_eq!(
            format!("{:?}", BigInt::new(true, &[0xab; 17])),
            format!("-0x{}n", "ab".repeat(17))
        );
        assert_eq!(BigInt::from(u128::MAX).to_string(), u128::MAX.to_string());
    }
}
