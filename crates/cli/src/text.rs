//! Text for people: a stranger's made visible, numbers and times that can be read.
//!
//! Whatever a sandbox wrote passes through [`visible`] on its way to a terminal, so that it can't
//! move the cursor, recolour what others wrote, or turn the direction of writing.

use coracle_loader::limits::grouped;

/// The escape that stands for a character that would act on a terminal instead of showing there.
pub(crate) fn escape_of(character: char) -> Option<String> {
    let acts = character.is_control()
        || matches!(character, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}');
    acts.then(|| match u8::try_from(character) {
        Ok(byte) => format!("\\x{byte:02x}"),
        Err(_) => format!("\\u{:04x}", u32::from(character)),
    })
}

/// A stranger's text, line feeds and tabs left as they are.
pub(crate) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match escape_of(character) {
            Some(escape) if !matches!(character, '\n' | '\t') => shown.push_str(&escape),
            _ => shown.push(character),
        }
    }
    shown
}

/// Microseconds as milliseconds.
pub(crate) fn milliseconds(micros: u64) -> String {
    format!("{}.{:02} ms", grouped(micros / 1000), micros % 1000 / 10)
}

/// Bytes as mebibytes.
pub(crate) fn mebibytes(bytes: u64) -> String {
    format!("{:.2} MiB", bytes as f64 / f64::from(1 << 20))
}

/// `1 module`, `2 modules`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {noun}{plural}", grouped(count as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_act_on_a_terminal_is_shown_instead() {
        assert_eq!(visible("a\x1b[2Jb\r\n\tc"), "a\\x1b[2Jb\\x0d\n\tc");
        assert_eq!(
            visible("\u{9b}31m \u{202e}evil\u{2066}"),
            "\\x9b31m \\u202eevil\\u2066"
        );
        assert_eq!(visible("漢字 é 😀"), "漢字 é 😀");
    }

    #[test]
    fn numbers_can_be_read() {
        assert_eq!(milliseconds(1_234_567), "1,234.56 ms");
        assert_eq!(mebibytes(1_572_864), "1.50 MiB");
        assert_eq!(
            (counted(1, "module"), counted(0, "module")),
            ("1 module".into(), "0 modules".into())
        );
    }
}
