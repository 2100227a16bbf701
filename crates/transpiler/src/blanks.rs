//! A text with parts of it replaced by blanks, of which every line and every column stays where it was.

use crate::place::is_line_end;
use oxc::span::Span;

/// What is to be taken out of a text.
#[derive(Default)]
pub(crate) struct Blanks {
    spans: Vec<Span>,
    /// What stands in the place of a blank.
    marks: Vec<(u32, char)>,
}

impl Blanks {
    /// Takes a part out. Parts may overlap.
    pub(crate) fn add(&mut self, span: Span) {
        if !span.is_empty() {
            self.spans.push(span);
        }
    }

    /// Puts an ASCII character in the place of the one at `at`, which is taken out too.
    pub(crate) fn mark(&mut self, at: u32, mark: char) {
        self.marks.push((at, mark));
    }

    /// The text without its parts.
    pub(crate) fn apply(mut self, source: &str) -> String {
        self.spans.sort_unstable_by_key(|span| span.start);
        self.marks.sort_unstable();
        let mut marks = self.marks.into_iter().peekable();
        let mut text = String::with_capacity(source.len());
        let mut done = 0;
        for span in self.spans {
            let (start, end) = (done.max(span.start as usize), span.end as usize);
            if end <= start {
                continue;
            }
            text.push_str(&source[done..start]);
            done = end;
            for (at, character) in source[start..end].char_indices() {
                let mark = marks.next_if(|(place, _)| *place as usize == start + at);
                match mark {
                    _ if is_line_end(character) => text.push(character),
                    Some((_, mark)) => {
                        text.push(mark);
                        text.extend((1..character.len_utf16()).map(|_| ' '));
                    }
                    None => text.extend((0..character.len_utf16()).map(|_| ' ')),
                }
                // Two marks in one place are one.
                while marks
                    .next_if(|(place, _)| *place as usize <= start + at)
                    .is_some()
                {}
            }
        }
        text.push_str(&source[done..]);
        text
    }
}
