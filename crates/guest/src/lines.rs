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
        // Every byte but those that continue a character begins one, and those of four bytes count twice.
        let begins = |byte: u8| usize::from(byte & 0xc0 != 0x80) + usize::from(byte >= 0xf0);
        1 + before.iter().map(|byte| begins(*byte)).sum::<usize>() as u32
    }
}
