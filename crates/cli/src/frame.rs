//! Code frames: the lines around a place in a source text, with a caret below the place.
//!
//! The caret is where the character shows on a terminal and not where its byte is: tabs are
//! expanded, wide characters take two columns, and what would act on the terminal is escaped. A
//! minified line is cut to the part around the caret.

use crate::{
    terminal::{Colour, Paint},
    text::escape_of,
};
use std::fmt::Write;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lines before and after the one with the caret.
const CONTEXT_LINES: usize = 2;
const TAB_COLUMNS: usize = 4;
/// A terminal's width, less what the gutter may take. Longer lines are cut.
const COLUMNS_MAX: usize = 100;
/// How much of a cut line stands before the caret.
const COLUMNS_BEFORE_CARET: usize = 60;

/// A place in a source text.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    /// What the text is called, for the first line of the frame; empty for none.
    pub(crate) file: &'a str,
    pub(crate) source: &'a str,
    /// From 1.
    pub(crate) line: u32,
    /// From 1, in UTF-16 code units, as editors and JavaScript count.
    pub(crate) column: u32,
}

/// The frame, with a line feed at its end; none where the text has no such line.
pub(crate) fn code_frame(place: &Place<'_>, paint: Paint) -> Option<String> {
    let marked = (place.line as usize).checked_sub(1)?;
    let first = marked.saturating_sub(CONTEXT_LINES);
    let last = marked + CONTEXT_LINES;
    let lines: Vec<(usize, &str)> = place
        .source
        .split('\n')
        .enumerate()
        .take(last + 1)
        .skip(first)
        .collect();
    lines.get(marked - first)?;

    let gutter_columns = (lines.last()?.0 + 1).to_string().len();
    let bar = paint.apply(Colour::Blue, "|");
    let mut frame = String::new();
    // Writing to a string can't fail.
    if !place.file.is_empty() {
        let arrow = paint.apply(Colour::Blue, "-->");
        let Place {
            file, line, column, ..
        } = place;
        let _ = writeln!(
            frame,
            "{:gutter_columns$}{arrow} {file}:{line}:{column}",
            ""
        );
    }
    let _ = writeln!(frame, "{:gutter_columns$} {bar}", "");
    for (index, line) in lines {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let caret = if index == marked {
            place.column as usize
        } else {
            1
        };
        let shown = Shown::new(line, caret.saturating_sub(1));
        let number = paint.apply(Colour::Blue, &format!("{:>gutter_columns$}", index + 1));
        let _ = writeln!(
            frame,
            "{}",
            format!("{number} {bar} {}", shown.text).trim_end()
        );
        if index == marked {
            let caret = paint.apply(Colour::Red, "^");
            let _ = writeln!(
                frame,
                "{:gutter_columns$} {bar} {:caret_at$}{caret}",
                "",
                "",
                caret_at = shown.caret
            );
        }
    }
    Some(frame)
}

/// A line as a terminal shows it.
struct Shown {
    text: String,
    /// The column of the caret, from 0.
    caret: usize,
}

impl Shown {
    /// `caret` is in UTF-16 code units from 0; at most right behind the line.
    fn new(line: &str, caret: usize) -> Self {
        let mut units = 0;
        let cut = line.char_indices().find(|(_, character)| {
            units += character.len_utf16();
            units > caret
        });
        let cut = cut.map_or(line.len(), |(byte, _)| byte);
        let before = printable(&line[..cut], 0);
        let caret = before.width();
        let text = before + &printable(&line[cut..], caret);
        Self { text, caret }.clipped()
    }

    fn clipped(self) -> Self {
        if self.text.width() <= COLUMNS_MAX {
            return self;
        }
        let start = match self.caret + (COLUMNS_MAX - COLUMNS_BEFORE_CARET) > COLUMNS_MAX {
            true => self.caret.saturating_sub(COLUMNS_BEFORE_CARET),
            false => 0,
        };
        let mut text = String::new();
        let mut column = 0;
        let mut skipped = 0;
        for character in self.text.chars() {
            let columns = character.width().unwrap_or(0);
            if column < start {
                skipped = column + columns;
            } else if column + columns > start + COLUMNS_MAX {
                text.push('…');
                break;
            } else {
                text.push(character);
            }
            column += columns;
        }
        if start == 0 {
            return Self {
                text,
                caret: self.caret,
            };
        }
        Self {
            text: format!("…{text}"),
            caret: self.caret - skipped + 1,
        }
    }
}

/// The text with tabs expanded and with escapes for what would act on a terminal; it starts at
/// `column` of its line.
fn printable(text: &str, column: usize) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut columns = column;
    for character in text.chars() {
        let piece = match character {
            '\t' => " ".repeat(TAB_COLUMNS - columns % TAB_COLUMNS),
            character => escape_of(character).unwrap_or_else(|| character.to_string()),
        };
        columns += piece.width();
        shown.push_str(&piece);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(source: &str, line: u32, column: u32) -> String {
        let place = Place {
            file: "main.js",
            source,
            line,
            column,
        };
        code_frame(&place, Paint::OFF).expect("the line is there")
    }

    /// The column of `byte` of line 2, as the engine counts.
    fn column_of(source: &str, needle: &str) -> u32 {
        let line = source.split('\n').nth(1).expect("two lines");
        let byte = line.find(needle).expect("it is there");
        line[..byte].encode_utf16().count() as u32 + 1
    }

    #[test]
    fn a_frame_shows_two_lines_before_and_after() {
        let source = "one\ntwo\nthree\nfour\nfive\nsix\nseven";
        let expected = " --> main.js:4:3
  |
2 | two
3 | three
4 | four
  |   ^
5 | five
6 | six
";
        assert_eq!(frame(source, 4, 3), expected);
    }

    #[test]
    fn the_gutter_is_as_wide_as_its_longest_number() {
        let source = "\n".repeat(8) + "nine\nten\neleven";
        let expected = "  --> main.js:9:1
   |
 7 |
 8 |
 9 | nine
   | ^
10 | ten
11 | eleven
";
        assert_eq!(frame(&source, 9, 1), expected);
    }

    #[test]
    fn the_caret_stands_below_a_character_behind_tabs_and_wide_ones() {
        let source = "{\n\trun() { /* 漢字😀é */ null.x; }\n}";
        let expected = " --> main.js:2:22
  |
1 | {
2 |     run() { /* 漢字😀é */ null.x; }
  |                           ^
3 | }
";
        assert_eq!(frame(source, 2, column_of(source, "null")), expected);
    }

    #[test]
    fn a_tab_in_the_middle_goes_to_the_next_stop() {
        let source = "\nab\tc\td";
        assert!(frame(source, 2, column_of(source, "c")).contains("2 | ab  c   d\n  |     ^\n"));
    }

    #[test]
    fn a_column_behind_the_line_or_inside_a_character_still_has_a_place() {
        assert!(frame("ab", 1, 3).contains("1 | ab\n  |   ^\n"));
        assert!(frame("ab", 1, 99).contains("1 | ab\n  |   ^\n"));
        assert!(frame("😀a", 1, 2).contains("1 | 😀a\n  | ^\n"));
        assert!(frame("😀a", 1, 3).contains("1 | 😀a\n  |   ^\n"));
        assert!(frame("ab\n", 2, 1).contains("2 |\n  | ^\n"));
        assert!(frame("ab", 1, 0).contains("1 | ab\n  | ^\n"));
    }

    #[test]
    fn a_line_that_is_not_there_has_no_frame() {
        for line in [0, 3] {
            let place = Place {
                file: "",
                source: "a\nb",
                line,
                column: 1,
            };
            assert_eq!(code_frame(&place, Paint::OFF), None);
        }
    }

    #[test]
    fn a_minified_line_is_cut_around_the_caret() {
        let source = format!("{}HERE{}", "a".repeat(5_000), "漢".repeat(5_000));
        let shown = frame(&source, 1, 5_001);
        let line = shown.lines().nth(2).expect("the line");
        assert!(line.width() <= COLUMNS_MAX + 8, "{line}");
        let caret = shown
            .lines()
            .nth(3)
            .and_then(|line| line.find('^'))
            .expect("a caret");
        let here = line.find("HERE").expect("shown");
        assert_eq!(line[..here].width(), caret, "\n{shown}");

        let start = frame(&"b".repeat(300), 1, 5);
        assert!(
            start.contains("1 | bbbb") && start.contains("…\n  |     ^"),
            "{start}"
        );
    }

    #[test]
    fn what_would_act_on_a_terminal_is_escaped_and_counted() {
        let source = "a\x1b[31m\u{202e}b\r\nnext";
        let column = "a.[31m.b".len() as u32;
        let shown = frame(source, 1, column);
        assert!(
            shown.contains("1 | a\\x1b[31m\\u202eb\n  |                ^\n"),
            "{shown}"
        );
    }

    #[test]
    fn colour_does_not_move_the_caret() {
        let place = Place {
            file: "",
            source: "ab",
            line: 1,
            column: 2,
        };
        let painted = code_frame(&place, Paint::ON).expect("a frame");
        assert!(
            painted.ends_with("\x1b[34m|\x1b[0m  \x1b[1;31m^\x1b[0m\n"),
            "{painted:?}"
        );
    }
}
