//! Numbers as JavaScript prints them.
//!
//! Owns ECMAScript's `Number::toString`. The shortest digits that read back as the same double are Rust's; this
//! places the point.

use std::fmt::Write as _;

/// The number as JavaScript's `String(number)` prints it: `1e+21`, `5e-324`, `100000000000000000000`, `0` for -0.
pub fn number_to_string(number: f64) -> String {
    let mut out = String::new();
    push_number(&mut out, number);
    out
}

/// Appends the number as [`number_to_string`] prints it.
pub(crate) fn push_number(out: &mut String, number: f64) {
    if number.is_nan() {
        out.push_str("NaN");
        return;
    }
    if number == 0.0 {
        out.push('0');
        return;
    }
    if number < 0.0 {
        out.push('-');
    }
    if number.is_infinite() {
        out.push_str("Infinity");
        return;
    }
    if number.trunc() == number && number.abs() < 1e15 {
        // Writing to a string can't fail.
        let _ = write!(out, "{}", number.abs() as u64);
        return;
    }
    let scientific = shortest(number.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    // The number is 0.DIGITS times ten to the power of `point`.
    let point = exponent.parse::<i32>().unwrap_or(0) + 1;
    push_digits(out, &digits, point);
}

/// The fewest digits that read back as the same number, the closest of them, the even of two that are as close:
/// `1.5e-7`.
fn shortest(number: f64) -> String {
    let shortest = format!("{number:e}");
    let digits = shortest
        .bytes()
        .take_while(|byte| *byte != b'e')
        .filter(u8::is_ascii_digit)
        .count();
    // Rust's shortest digits round a tie up. Ties have 16 digits or 17, such as 1232862246219514.25 has; with the
    // count given, Rust rounds them to even.
    if digits >= 16 {
        let rounded = format!("{number:.0$e}", digits - 1);
        if rounded.parse() == Ok(number) {
            return rounded;
        }
    }
    shortest
}

fn push_digits(out: &mut String, digits: &str, point: i32) {
    let count = digits.len() as i32;
    match point {
        1..=21 if count <= point => {
            out.push_str(digits);
            push_zeros(out, point - count);
        }
        1..=21 => {
            let (integer, fraction) = digits.split_at(point as usize);
            out.extend([integer, ".", fraction]);
        }
        -5..=0 => {
            out.push_str("0.");
            push_zeros(out, -point);
            out.push_str(digits);
        }
        _ => {
            let (first, rest) = digits.split_at(1);
            out.push_str(first);
            if !rest.is_empty() {
                out.extend([".", rest]);
            }
            // Writing to a string can't fail.
            let _ = write!(out, "e{:+}", point - 1);
        }
    }
}

fn push_zeros(out: &mut String, count: i32) {
    out.extend(std::iter::repeat_n('0', count as usize));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_are_printed_as_javascript_prints_them() {
        // Each line as printed by V8.
        for (number, printed) in [
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (123.456, "123.456"),
            (1e20, "100000000000000000000"),
            (1e21, "1e+21"),
            (1.5e21, "1.5e+21"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
            (1.25e-6, "0.00000125"),
            (1.25e-7, "1.25e-7"),
            (5e-324, "5e-324"),
            (2.225_073_858_507_201_4e-308, "2.2250738585072014e-308"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_991.0, "9007199254740991"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (0.000_001_234_567_890_123_4, "0.0000012345678901234"),
            (4.35, "4.35"),
            (2e-44, "2e-44"),
            (f64::from(0.1_f32), "0.10000000149011612"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(number_to_string(number), printed);
        }
    }

    #[test]
    fn of_two_shortest_texts_that_are_as_close_the_even_one_is_printed() {
        for (integer, quarters, printed) in [
            (1_232_862_246_219_514.0, 0.25, "1232862246219514.2"),
            (1_448_511_028_817_129.0, 0.75, "1448511028817129.8"),
            (-633_865_898_837_073.0, -0.25, "-633865898837073.2"),
        ] {
            assert_eq!(number_to_string(integer + quarters), printed);
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back_as_the_same_number(bits: u64) {
            let number = f64::from_bits(bits);
            let read: f64 = number_to_string(number).parse().expect("a number");
            prop_assert!(read == number || (read.is_nan() && number.is_nan()));
        }
    }
}
