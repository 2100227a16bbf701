//! Lines and columns.

/// Where something is in a text, as editors count.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// From 1.
    pub(crate) line: u32,
    /// In UTF-16 code units, from 1.
    pub(crate) column: u32,
}

impl Place {
    /// Of a byte, which may be just behind the end. Lines end as JavaScript has it.
    pub(crate) fn of(text: &str, byte: u32) -> Self {
        let end = text.floor_char_boundary(byte as usize);
        let (mut line, mut start) = (1, 0);
        let mut characters = text[..end].char_indices().peekable();
        while let Some((at, character)) = characters.next() {
            let ends = match character {
                '\r' => characters.peek().is_none_or(|(_, next)| *next != '\n'),
                other => is_line_end(other),
            };
            if ends {
                line += 1;
                start = at + character.len_utf8();
            }
        }
        let column = text[start..end].encode_utf16().count() as u32 + 1;
        Self { line, column }
    }
}

/// Whether it ends a line in JavaScript.
pub(crate) fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
