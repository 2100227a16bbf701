//! Where the lines of a source begin, to turn the engine's columns into everybody else's.
//!
//! A stack has many frames in few modules, and a module may be one line of megabytes: lines are looked for once a module,
//! and not at all where every character is a byte.

pub(crate) struct Lines {
    /// Empty where the source is ASCII.
    starts: Vec<usize>,
}

impl Lines {
    pub(crate) fn of(source: &[u8]) -> Self {
        let mut starts = Vec::new();
        if source.is_ascii() {
            return Self { starts };
        }
        starts.push(0);
        let mut at = 0;
        while let Some(byte) = source.get(at) {
            // As the engine counts lines.
            let separator = match byte {
                b'\n' => 1,
                b'\r' if source.get(at + 1) == Some(&b'\n') => 2,
                b'\r' => 1,
                0xe2 if matches!(source.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])) => 3,
                _ => 0,
            };
            at += separator.max(1);
            if separator > 0 {
                starts.push(at);
            }
        }
        Self { starts }
    }

    /// The column in UTF-16 code units, from 1, of a column in bytes, from 1, of a line, from 1.
    pub(crate) fn utf16_column(&self, source: &[u8], line: u32, column: u32) -> u32 {
        let index = (line as usize).wrapping_sub(1);
        let Some(start) = self.starts.get(index) else {
            return column;
        };
        let end = start.saturating_add(column.saturating_sub(1) as usize);
        let before = &source[*start..end.min(source.len())];
        1 + utf16_length(before) as u32
    }
}

/// UTF-16 code units of UTF-8. Every byte but those that continue a character begins one; those of four bytes count
/// twice.
fn utf16_length(text: &[u8]) -> usize {
    const EACH: u64 = 0x0101_0101_0101_0101;
    // Eight bytes at a time: bit 0 of each says yes, and the multiplication adds them up.
    let count = |yes: u64| ((yes & EACH).wrapping_mul(EACH) >> 56) as usize;
    let (words, rest) = text.as_chunks::<8>();
    let of_words = words.iter().map(|word| {
        let word = u64::from_le_bytes(*word);
        let begins = (!word >> 7) | (word >> 6);
        let has_four_bytes = (word & (word << 1) & (word << 2) & (word << 3)) >> 7;
        count(begins) + count(has_four_bytes)
    });
    let of_rest = rest
        .iter()
        .map(|byte| usize::from(byte & 0xc0 != 0x80) + usize::from(*byte >= 0xf0));
    of_words.sum::<usize>() + of_rest.sum::<usize>()
}
