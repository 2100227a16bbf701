//! Half-precision floats, which Rust has no stable type for.

/// The double with the value of this half-precision bit pattern.
pub(crate) fn f64_from_f16_bits(bits: u16) -> f64 {
    let exponent = i32::from((bits >> 10) & 0x1f);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_widen_exactly() {
        // RFC 8949, appendix A.
        for (bits, expected) in [
            (0x0000, 0.0),
            (0x8000, -0.0),
            (0x3c00, 1.0),
            (0x3e00, 1.5),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_477_539_063e-8),
            (0x0400, 0.000_061_035_156_25),
            (0xc400, -4.0),
            (0x7c00, f64::INFINITY),
            (0xfc00, f64::NEG_INFINITY),
        ] {
            assert_eq!(
                f64_from_f16_bits(bits).to_bits(),
                f64::to_bits(expected),
                "{bits:04x}"
            );
        }
        assert!(f64_from_f16_bits(0x7e00).is_nan());
    }
}
