//! Reading a limit from the command line or a configuration file.
//!
//! Strict on purpose: a limit that was read as something else than what its writer meant is worse
//! than none.

use super::LimitName;

/// A text that is no value for a limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitValueInvalid {
    /// Not written in digits: a sign, a unit, a fraction, an exponent, `NaN`, nothing at all.
    #[error("{limit}: {text:?} is not a whole number; write {} in digits, such as {}", limit.unit(), limit.default_value())]
    NotWholeNumber {
        /// The limit that was to be set.
        limit: LimitName,
        /// What was given, shortened.
        text: String,
    },
    /// Zero, which means "the default" on the wire and would mean "nothing may run" here.
    #[error("{limit}: the value must be at least 1; leave it out to get the default of {}", limit.default_value())]
    Zero {
        /// The limit that was to be set.
        limit: LimitName,
    },
    /// More than the ceiling.
    #[error("{limit}: {text} is more than the ceiling of {} {}", limit.ceiling(), limit.unit())]
    AboveCeiling {
        /// The limit that was to be set.
        limit: LimitName,
        /// What was given, shortened.
        text: String,
    },
}

impl LimitName {
    /// Reads a value for this limit: digits, with single `_` between them where they help the eye.
    ///
    /// Values of the machine's own (a ceiling, a default) always read back.
    pub fn parse_value(self, text: &str) -> Result<u64, LimitValueInvalid> {
        let mut value: u64 = 0;
        let mut digit_before = false;
        let not_whole_number = || LimitValueInvalid::NotWholeNumber {
            limit: self,
            text: shortened(text),
        };
        for byte in text.bytes() {
            match byte {
                b'0'..=b'9' => {
                    // Saturating: whatever has more digits than a u64 is above every ceiling.
                    value = value
                        .saturating_mul(10)
                        .saturating_add(u64::from(byte - b'0'));
                    digit_before = true;
                }
                b'_' if digit_before => digit_before = false,
                _ => return Err(not_whole_number()),
            }
        }
        if !digit_before {
            return Err(not_whole_number());
        }
        if value == 0 {
            return Err(LimitValueInvalid::Zero { limit: self });
        }
        if value > self.ceiling() {
            return Err(LimitValueInvalid::AboveCeiling {
                limit: self,
                text: shortened(text),
            });
        }
        Ok(value)
    }
}

/// Enough of a text to recognise it by; an error must not repeat a megabyte.
fn shortened(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    match text.char_indices().nth(CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text.to_owned(),
    }
}
