//! `Date.prototype.toISOString`, without a calendar library.

/// The date as `toISOString` prints it; none for the invalid date.
pub(super) fn iso_string(milliseconds: f64) -> Option<String> {
    let milliseconds = crate::walk::time_clip(milliseconds);
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

    #[test]
    fn the_invalid_date_has_no_text() {
        assert_eq!(iso_string(f64::NAN), None);
        assert_eq!(iso_string(8.64e15 + 1.0), None);
    }
}
