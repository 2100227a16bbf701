//! Compatibility date and flags, by the rules and in the words of Workers.
//!
//! Nothing here behaves differently by date or flag yet. Both are checked all the same, so that
//! code which asks for a behaviour that we don't have is told so at once.

use super::problem::{ProblemCode, Problems, pointer, shown};
pub use coracle_abi::{COMPATIBILITY_DATE_NEWEST, COMPATIBILITY_FLAGS};

pub(super) fn check_date(date: &str, problems: &mut Problems) {
    const PATH: &str = "/compatibilityDate";
    if date.is_empty() {
        return;
    }
    if !is_calendar_date(date) {
        problems.push(
            PATH.to_owned(),
            ProblemCode::CompatibilityDateInvalid,
            format!("Invalid compatibility date: {}", shown(date)),
            "write YYYY-MM-DD, or leave it empty for the newest".to_owned(),
        );
    // Dates of this form sort as text.
    } else if date > COMPATIBILITY_DATE_NEWEST {
        problems.push(
            PATH.to_owned(),
            ProblemCode::CompatibilityDateTooNew,
            format!(
                "This Worker requires compatibility date \"{date}\", but the newest date supported by this server \
                 binary is \"{COMPATIBILITY_DATE_NEWEST}\"."
            ),
            String::new(),
        );
    }
}

pub(super) fn check_flags(flags: &[String], problems: &mut Problems) {
    let mut seen = [false; COMPATIBILITY_FLAGS.len()];
    for (index, flag) in flags.iter().enumerate() {
        let path = || pointer("/compatibilityFlags", &index.to_string());
        match COMPATIBILITY_FLAGS.iter().position(|known| known == flag) {
            None => problems.push(
                path(),
                ProblemCode::CompatibilityFlagUnknown,
                format!("No such compatibility flag: {}", shown(flag)),
                String::new(),
            ),
            Some(known) if seen[known] => problems.push(
                path(),
                ProblemCode::CompatibilityFlagRepeated,
                format!("Compatibility flag specified multiple times: {flag}"),
                String::new(),
            ),
            Some(known) => seen[known] = true,
        }
    }
}

/// Whether `date` is a day of the Gregorian calendar, in the years 2000 to 2999 as in workerd.
fn is_calendar_date(date: &str) -> bool {
    let &[b'2', y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = date.as_bytes() else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) = (
        number(&[b'2', y1, y2, y3]),
        number(&[m0, m1]),
        number(&[d0, d1]),
    ) else {
        return false;
    };
    let leap_year = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap_year => 29,
        2 => 28,
        _ => return false,
    };
    (1..=days).contains(&day)
}

fn number(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |value, digit| {
        digit
            .is_ascii_digit()
            .then(|| value * 10 + u32::from(digit - b'0'))
    })
}
