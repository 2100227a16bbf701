//! A text made of pieces of another one, and what was put between them.

use crate::{
    mappings::Token,
    place::{Place, is_line_end},
};
use oxc::span::Span;

/// See the module.
pub(crate) struct Pieces<'s> {
    source: &'s str,
    text: String,
    pieces: Vec<Piece>,
}

struct Piece {
    /// Where it begins in the new text.
    start: u32,
    /// Where it was in the source. Of what was put in, the place that it belongs to.
    from: u32,
    is_kept: bool,
}

impl<'s> Pieces<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        Self {
            source,
            text: String::new(),
            pieces: Vec::new(),
        }
    }

    /// A part of the source and nothing else.
    pub(crate) fn part_of(source: &'s str, span: Span) -> Self {
        let mut pieces = Self::new(source);
        pieces.keep(span.start, span.end);
        pieces
    }

    /// Appends a part of the source.
    pub(crate) fn keep(&mut self, start: u32, end: u32) {
        if start < end {
            self.begin(start, true);
            self.text
                .push_str(&self.source[start as usize..end as usize]);
        }
    }

    /// Appends a text that belongs to a place of the source.
    pub(crate) fn insert(&mut self, at: u32, text: &str) {
        self.begin(at, false);
        self.text.push_str(text);
    }

    fn begin(&mut self, from: u32, is_kept: bool) {
        self.pieces.push(Piece {
            start: self.text.len() as u32,
            from,
            is_kept,
        });
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Where a byte of the new text was.
    pub(crate) fn origin(&self, at: u32) -> u32 {
        let behind = self.pieces.partition_point(|piece| piece.start <= at);
        match self.pieces[..behind].last() {
            Some(piece) if piece.is_kept => piece.from + (at - piece.start),
            Some(piece) => piece.from,
            None => 0,
        }
    }

    /// Where the tokens were in the source that come from places of the new text; those of that text itself where nothing has
    /// become of it.
    pub(crate) fn trace(&self, tokens: Vec<Token>) -> Vec<Token> {
        if self.text == self.source {
            return tokens;
        }
        let ours = self.tokens();
        if tokens.is_empty() {
            return ours;
        }
        let traced = tokens.into_iter().filter_map(|token| {
            let place = (token.from_line, token.from_column);
            let behind = ours.partition_point(|it| (it.line, it.column) <= place);
            ours[..behind].last().map(|from| Token {
                from_line: from.from_line,
                from_column: from.from_column,
                ..token
            })
        });
        traced.collect()
    }

    /// The places of the source that every token of the new text comes from, in its order.
    fn tokens(&self) -> Vec<Token> {
        let mut tokens = Vec::new();
        let mut new = Cursor::new(1, 1);
        for (index, piece) in self.pieces.iter().enumerate() {
            let end = self.pieces.get(index + 1);
            let end = end.map_or(self.text.len(), |next| next.start as usize);
            let Place { line, column } = Place::of(self.source, piece.from);
            let mut old = Cursor::new(line, column);
            let mut was_word = false;
            for (at, character) in self.text[piece.start as usize..end].char_indices() {
                let is_word = character.is_alphanumeric() || matches!(character, '_' | '$');
                if at == 0 || new.column == 1 || !(is_word && was_word || character == ' ') {
                    tokens.push(Token {
                        line: new.line,
                        column: new.column,
                        from_line: old.line,
                        from_column: old.column,
                    });
                }
                was_word = is_word;
                new.pass(character);
                if piece.is_kept {
                    old.pass(character);
                }
            }
        }
        tokens
    }
}

struct Cursor {
    line: u32,
    column: u32,
    was_return: bool,
}

impl Cursor {
    fn new(line: u32, column: u32) -> Self {
        Self {
            line,
            column,
            was_return: false,
        }
    }

    fn pass(&mut self, character: char) {
        if character == '\n' && self.was_return {
            // The line has ended already.
        } else if is_line_end(character) {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += character.len_utf16() as u32;
        }
        self.was_return = character == '\r';
    }
}
