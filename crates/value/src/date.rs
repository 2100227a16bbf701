//! Dates: milliseconds to seconds and back, and `Date.prototype.toISOString` without a calendar library.

/// The milliseconds of a date that is written as this many seconds.
///
/// The fraction is rounded by itself: the product of the whole number is rounded once already, which moves one date
/// in four between the years 141,338 and 144,684 by a millisecond.
pub(crate) fn from_seconds(seconds: f64) -> f64 {
    let whole = seconds.trunc();
    time_clip(whole * 1000.0 + ((seconds - whole) * 1000.0).round())
}

/// The seconds that stand for a date: those of every date that JavaScript has give back its milliseconds.
pub(crate) fn to_seconds(milliseconds: f64) -> f64 {
    time_clip(milliseconds) / 1000.0
}

/// ECMAScript's TimeClip: what a `Date` makes of a number of milliseconds.
fn time_clip(milliseconds: f64) -> f64 {
    if milliseconds.abs() <= 8.64e15 {
        milliseconds.trunc() + 0.0 // -0 becomes 0
    } else {
        f64::NAN
    }
}

/// The date as `toISOString` prints it; none for the invalid date.
#[cfg(feature = "json")]
pub(crate) fn iso_string(milliseconds: f64) -> Option<String> {
    let milliseconds = time_clip(milliseconds);
    if milliseconds.is_nan() {
        return None;
    }
    let milliseconds = milliseconds as i64;
    let (days, in_day) = (
        milliseconds.div_euclid(86_400_000),
        milliseconds.rem_euclid(86_400_000),
    );
    let (year, month, day) = civil_from_days(days);
    let year = match year {
        0..=9999 => format!("{year:04}"),
        _ => format!("{year:+07}"),
    };
    let (hour, minute, second) = (
        in_day / 3_600_000,
        in_day / 60_000 % 60,
        in_day / 1_000 % 60,
    );
    Some(format!(
        "{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z",
        in_day % 1_000
    ))
}

/// The proleptic Gregorian date of a day counted from 1970-01-01 (Howard Hinnant's algorithm: years begin in March,
/// so that the leap day is the last).
#[cfg(feature = "json")]
fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "json")]
    #[test]
    fn dates_are_printed_as_javascript_prints_them() {
        // Each line as printed by V8.
        for (milliseconds, printed) in [
            (0.0, "1970-01-01T00:00:00.000Z"),
            (-1.0, "1969-12-31T23:59:59.999Z"),
            (1_709_210_096_789.0, "2024-02-29T12:34:56.789Z"),
            (951_782_400_000.0, "2000-02-29T00:00:00.000Z"),
            (253_402_300_799_999.0, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000.0, "+010000-01-01T00:00:00.000Z"),
            (-62_167_219_200_000.0, "0000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001.0, "-000001-12-31T23:59:59.999Z"),
            (8.64e15, "+275760-09-13T00:00:00.000Z"),
            (-8.64e15, "-271821-04-20T00:00:00.000Z"),
        ] {
            assert_eq!(iso_string(milliseconds).as_deref(), Some(printed));
        }
    }

    #[cfg(feature = "json")]
    #[test]
    fn the_invalid_date_has_no_text() {
        assert_eq!(iso_string(f64::NAN), None);
        assert_eq!(iso_string(8.64e15 + 1.0), None);
    }

    #[test]
    fn milliseconds_survive_the_way_over_seconds() {
        for end in [
            -8.64e15,
            -4.4e15,
            -2.2e15,
            -1e12,
            0.0,
            1e12,
            2.2e15,
            4.4e15,
            8.64e15 - 2000.0,
        ] {
            for milliseconds in (0..2000).map(|offset| end + f64::from(offset)) {
                assert_eq!(from_seconds(to_seconds(milliseconds)), milliseconds);
            }
        }
    }

    #[test]
    fn what_no_date_can_hold_is_the_invalid_date() {
        for seconds in [
            8_640_000_000_000.001,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            1e300,
        ] {
            assert!(from_seconds(seconds).is_nan(), "{seconds}");
        }
    }
}
