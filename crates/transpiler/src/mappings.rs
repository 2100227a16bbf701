//! What says where the pieces of a text come from.

/// Where something is and where it was, from 1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) from_line: u32,
    pub(crate) from_column: u32,
}

/// The `mappings` of a source map.
pub(crate) fn mappings(tokens: &[Token]) -> String {
    let mut text = String::new();
    let (mut line, mut column) = (1, 1);
    let (mut from_line, mut from_column) = (1, 1);
    let mut is_first = true;
    for token in tokens {
        while line < token.line {
            text.push(';');
            line += 1;
            column = 1;
            is_first = true;
        }
        if !is_first {
            text.push(',');
        }
        is_first = false;
        for (new, old) in [
            (token.column, column),
            (0, 0),
            (token.from_line, from_line),
            (token.from_column, from_column),
        ] {
            push_number(&mut text, i64::from(new) - i64::from(old));
        }
        (column, from_line, from_column) = (token.column, token.from_line, token.from_column);
    }
    text
}

/// Five bits a digit, the sign in the lowest of all.
fn push_number(text: &mut String, number: i64) {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut rest = number.unsigned_abs() << 1 | u64::from(number < 0);
    loop {
        let digit = rest & 31;
        rest >>= 5;
        let more = if rest > 0 { 32 } else { 0 };
        text.push(char::from(DIGITS[(digit | more) as usize]));
        if rest == 0 {
            break;
        }
    }
}
