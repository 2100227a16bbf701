//! Source maps: where the pieces of a module come from that something has generated.
//!
//! A map is read when the first frame of its module is shown, and charged to whoever shows it. It is a stranger's text: it
//! is read without recursion, and what can't be read is no map.

use crate::modules;
use coracle_abi::ModuleKind;
use std::rc::Rc;

/// A place in a source, both from 1.
pub(crate) struct Place {
    pub(crate) source: Rc<str>,
    pub(crate) line: u32,
    pub(crate) column: u32,
}

/// A map that has been read.
pub(crate) struct SourceMap {
    sources: Vec<Rc<str>>,
    /// By line and column.
    segments: Vec<Segment>,
    /// Every piece comes from a source, also where nothing says from where.
    is_complete: bool,
}

/// From here on, until the next one. Lines and columns from 0.
#[derive(Clone, Copy)]
struct Segment {
    line: u32,
    column: u32,
    /// None for what was made up.
    from: Option<Origin>,
}

#[derive(Clone, Copy)]
struct Origin {
    source: u32,
    line: u32,
    column: u32,
}

impl SourceMap {
    /// The transpiler's, of a module that is its own source.
    pub(crate) fn of_transpiled(module: Rc<str>, mappings: &str) -> Self {
        Self {
            sources: vec![module],
            segments: segments(mappings).unwrap_or_default(),
            is_complete: true,
        }
    }

    /// The one that a module names in its last line: in the comment itself, or another module of the worker.
    pub(crate) fn named_by(module: &str, body: &[u8]) -> Option<Self> {
        let url = url_of(body)?;
        let (base, text) = match url.strip_prefix("data:") {
            Some(data) => (module.to_owned(), decoded(data)?),
            None => {
                let name = relative_to(module, url);
                let map = modules::body(&name)?;
                let is_text = matches!(
                    map.kind,
                    ModuleKind::Json | ModuleKind::Text | ModuleKind::Data
                );
                (name, is_text.then(|| map.bytes.to_vec())?)
            }
        };
        let fields = Fields::read(std::str::from_utf8(&text).ok()?)?;
        let root = fields.root.trim_end_matches('/');
        let sources = fields.sources.iter().map(|source| {
            let source = match root {
                "" => source.clone(),
                root => format!("{root}/{source}"),
            };
            Rc::from(relative_to(&base, &source))
        });
        Some(Self {
            sources: sources.collect(),
            segments: segments(&fields.mappings)?,
            is_complete: false,
        })
    }

    /// Where a place, from 1, comes from.
    pub(crate) fn find(&self, line: u32, column: u32) -> Option<Place> {
        let (line, column) = (line.checked_sub(1)?, column.saturating_sub(1));
        let behind = self
            .segments
            .partition_point(|segment| (segment.line, segment.column) <= (line, column));
        let mut before = self.segments[..behind].iter().rev();
        let origin = if self.is_complete {
            before.find_map(|segment| segment.from)?
        } else {
            before.next().filter(|segment| segment.line == line)?.from?
        };
        Some(Place {
            source: Rc::clone(self.sources.get(origin.source as usize)?),
            line: origin.line.saturating_add(1),
            column: origin.column.saturating_add(1),
        })
    }

    /// Whether a source is called so.
    pub(crate) fn has_source(&self, name: &str) -> bool {
        self.sources.iter().any(|source| &**source == name)
    }
}

/// What the comment in the last line says.
fn url_of(body: &[u8]) -> Option<&str> {
    let body = body.trim_ascii_end();
    let start = body.iter().rposition(|byte| matches!(byte, b'\n' | b'\r'));
    let line = body[start.map_or(0, |at| at + 1)..].trim_ascii_start();
    let comment = line
        .strip_prefix(b"//")
        .or_else(|| line.strip_prefix(b"/*"))?;
    let url = comment
        .strip_prefix(b"# sourceMappingURL=")
        .or_else(|| comment.strip_prefix(b"@ sourceMappingURL="))?;
    let url = url.strip_suffix(b"*/").unwrap_or(url);
    std::str::from_utf8(url.trim_ascii()).ok()
}

/// The name that a URL means in a module. One with a scheme, or from a root, stays as it is.
fn relative_to(base: &str, url: &str) -> String {
    if url.contains("://") || url.starts_with('/') {
        return url.to_owned();
    }
    modules::resolve(base, &format!("./{url}"))
}

/// What a data URL holds, without its scheme.
fn decoded(data: &str) -> Option<Vec<u8>> {
    let (head, body) = data.split_once(',')?;
    if head.ends_with(";base64") {
        return base64(body);
    }
    let mut bytes = Vec::with_capacity(body.len());
    let mut rest = body.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let escaped = (*first == b'%')
            .then(|| behind.split_at_checked(2))
            .flatten();
        let digits = escaped.and_then(|(digits, _)| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &behind[2..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    Some(bytes)
}

fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    let (mut bits, mut count) = (0_u32, 0);
    for digit in text.trim_end_matches('=').bytes() {
        bits = bits << 6 | digit_of(digit)?;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count) as u8);
        }
    }
    Some(bytes)
}

fn digit_of(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}

/// Reads `mappings`: lines between `;`, segments between `,`, each of up to five numbers that count on from the ones before.
fn segments(mappings: &str) -> Option<Vec<Segment>> {
    let mut segments = Vec::new();
    let (mut source, mut source_line, mut source_column) = (0_i64, 0_i64, 0_i64);
    for (line, text) in (0_u32..).zip(mappings.split(';')) {
        let mut column = 0_i64;
        let first = segments.len();
        let mut is_sorted = true;
        for text in text.split(',').filter(|text| !text.is_empty()) {
            let mut numbers = Numbers(text.bytes());
            let more = numbers.next()??;
            column += more;
            is_sorted &= more >= 0;
            let from = match numbers.next() {
                None => None,
                Some(number) => {
                    source += number?;
                    source_line += numbers.next()??;
                    source_column += numbers.next()??;
                    Some(Origin {
                        source: u32::try_from(source).ok()?,
                        line: u32::try_from(source_line).ok()?,
                        column: u32::try_from(source_column).ok()?,
                    })
                }
            };
            segments.push(Segment {
                line,
                column: u32::try_from(column).ok()?,
                from,
            });
        }
        if !is_sorted {
            segments[first..].sort_by_key(|segment| segment.column);
        }
    }
    Some(segments)
}

/// Numbers of variable length, five bits a digit, the lowest bit of all is the sign. The inner `None`: it is none.
struct Numbers<'a>(std::str::Bytes<'a>);

impl Iterator for Numbers<'_> {
    type Item = Option<i64>;

    fn next(&mut self) -> Option<Option<i64>> {
        let (mut value, mut shift) = (0_i64, 0);
        loop {
            let Some(byte) = self.0.next() else {
                return (shift > 0).then_some(None);
            };
            let Some(digit) = digit_of(byte).filter(|_| shift < 40) else {
                return Some(None);
            };
            value |= i64::from(digit & 31) << shift;
            shift += 5;
            if digit & 32 == 0 {
                let magnitude = value >> 1;
                let is_negative = value & 1 == 1;
                return Some(Some(if is_negative { -magnitude } else { magnitude }));
            }
        }
    }
}

/// What counts in the JSON of a map.
#[derive(Default)]
struct Fields {
    root: String,
    sources: Vec<String>,
    mappings: String,
}

impl Fields {
    fn read(text: &str) -> Option<Self> {
        let mut fields = Self::default();
        let mut json = Json(text);
        json.take('{')?;
        if json.take('}').is_some() {
            return Some(fields);
        }
        loop {
            let key = json.string()?;
            json.take(':')?;
            match &key[..] {
                "mappings" => fields.mappings = json.string()?,
                "sourceRoot" => fields.root = json.string_or_null()?,
                "sources" => fields.sources = json.strings()?,
                _ => json.skip_value()?,
            }
            if json.take(',').is_none() {
                return json.take('}').map(|()| fields);
            }
        }
    }
}

/// What is left of a JSON text.
struct Json<'a>(&'a str);

impl Json<'_> {
    fn take(&mut self, expected: char) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(expected)?;
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        self.take('"')?;
        let mut text = String::new();
        loop {
            let end = self.0.find(['"', '\\'])?;
            text.push_str(&self.0[..end]);
            let is_end = self.0.as_bytes()[end] == b'"';
            self.0 = &self.0[end + 1..];
            if is_end {
                return Some(text);
            }
            let escape = self.0.chars().next()?;
            self.0 = &self.0[escape.len_utf8()..];
            text.push(match escape {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'b' => '\u{8}',
                'f' => '\u{c}',
                'u' => {
                    let digits = self.0.get(..4)?;
                    let code = u32::from_str_radix(digits, 16).ok()?;
                    self.0 = &self.0[4..];
                    // Halves of pairs are in no name that matters.
                    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
                }
                other => other,
            });
        }
    }

    fn string_or_null(&mut self) -> Option<String> {
        match self.0.trim_start().strip_prefix("null") {
            Some(rest) => {
                self.0 = rest;
                Some(String::new())
            }
            None => self.string(),
        }
    }

    fn strings(&mut self) -> Option<Vec<String>> {
        let mut strings = Vec::new();
        self.take('[')?;
        if self.take(']').is_some() {
            return Some(strings);
        }
        loop {
            strings.push(self.string_or_null()?);
            if self.take(',').is_none() {
                return self.take(']').map(|()| strings);
            }
        }
    }

    /// Passes over a value, which nobody looks into.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            self.0 = self.0.trim_start();
            match self.0.bytes().next()? {
                b'"' => drop(self.string()?),
                b'{' | b'[' => {
                    depth += 1;
                    self.0 = &self.0[1..];
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.0 = &self.0[1..];
                }
                b',' | b':' => {
                    self.0 = &self.0[1..];
                    continue;
                }
                _ => {
                    let end = self.0.find([',', ':', '}', ']', '{', '[', '"']);
                    self.0 = &self.0[end.filter(|end| *end > 0)?..];
                }
            }
            if depth == 0 {
                return Some(());
            }
        }
    }
}
