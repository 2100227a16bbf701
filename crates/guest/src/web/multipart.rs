//! `multipart/form-data` (RFC 7578): where its parts begin and end. The content stays where it is.

use super::{undefined, with_window};
use crate::{
    engine::js::{Ctx, Object, Result, Value, function::Func},
    raw,
};
use std::ops::Range;

pub(super) fn install(object: &Object<'_>) -> Result<()> {
    object.set("multipartParse", Func::from(parse))
}

struct Part {
    name: Vec<u8>,
    file_name: Option<Vec<u8>>,
    content_type: Vec<u8>,
    content: Range<usize>,
}

/// `host.multipartParse(buffer, offset, length, boundary) -> [name, file name or undefined, type, start, end, …]`, which
/// inherits nothing; undefined where it is no such form.
fn parse<'js>(
    ctx: Ctx<'js>,
    buffer: Value<'js>,
    offset: usize,
    length: usize,
    boundary: Value<'js>,
) -> Result<Value<'js>> {
    let boundary = raw::text_lossy(&boundary);
    let parts = with_window(&buffer, offset, length, |bytes| {
        parts(bytes, boundary.as_bytes())
    });
    let Some(parts) = parts else {
        return Ok(undefined(&ctx));
    };
    let mut flat = Vec::with_capacity(parts.len() * 5);
    for part in parts {
        let text = |bytes: &[u8]| raw::string(&ctx, String::from_utf8_lossy(bytes).as_bytes());
        flat.push(text(&part.name)?);
        flat.push(match &part.file_name {
            Some(name) => text(name)?,
            None => undefined(&ctx),
        });
        flat.push(text(&part.content_type)?);
        flat.push(raw::number(&ctx, part.content.start as f64));
        flat.push(raw::number(&ctx, part.content.end as f64));
    }
    let list = raw::array(&ctx, &flat)?;
    if let Some(list) = list.as_object() {
        list.set_prototype(None)?;
    }
    Ok(list)
}

fn parts(bytes: &[u8], boundary: &[u8]) -> Option<Vec<Part>> {
    let dashed = [b"--", boundary].concat();
    let ending = [b"\r\n", &dashed[..]].concat();
    let mut parts = Vec::new();
    // What comes before the first boundary means nothing.
    let mut at = find(bytes, &dashed, 0)? + dashed.len();
    loop {
        let rest = &bytes[at..];
        if rest.starts_with(b"--") {
            return Some(parts);
        }
        at += blanks(rest);
        at += bytes[at..].starts_with(b"\r\n").then_some(2)?;
        let (mut part, start) = head(bytes, at)?;
        let end = find(bytes, &ending, start.checked_sub(2)?)?;
        part.content = start..end.max(start);
        parts.push(part);
        at = end + ending.len();
    }
}

fn blanks(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'))
        .count()
}

/// The headers of a part, and where its content begins.
fn head(bytes: &[u8], mut at: usize) -> Option<(Part, usize)> {
    let mut name = None;
    let mut file_name = None;
    let mut content_type = b"text/plain".to_vec();
    loop {
        let end = find(bytes, b"\r\n", at)?;
        let line = &bytes[at..end];
        at = end + 2;
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|byte| *byte == b':')?;
        let value = line[colon + 1..].trim_ascii();
        match line[..colon].to_ascii_lowercase().as_slice() {
            b"content-disposition" => (name, file_name) = disposition(value)?,
            b"content-type" => content_type = value.to_vec(),
            _ => {}
        }
    }
    let part = Part {
        name: name?,
        file_name,
        content_type,
        content: 0..0,
    };
    Some((part, at))
}

type Names = (Option<Vec<u8>>, Option<Vec<u8>>);

/// The name and the file name in `form-data; name="…"; filename="…"`.
fn disposition(value: &[u8]) -> Option<Names> {
    let mut rest = value.strip_prefix(b"form-data")?;
    let (mut name, mut file_name) = (None, None);
    loop {
        rest = rest.trim_ascii_start();
        let Some(parameter) = rest.strip_prefix(b";") else {
            return rest.is_empty().then_some((name, file_name));
        };
        let parameter = parameter.trim_ascii_start();
        let equals = parameter.iter().position(|byte| *byte == b'=')?;
        let key = parameter[..equals].trim_ascii().to_ascii_lowercase();
        let value = &parameter[equals + 1..];
        let (text, after) = match value.strip_prefix(b"\"") {
            Some(quoted) => {
                let end = quoted.iter().position(|byte| *byte == b'"')?;
                (&quoted[..end], &quoted[end + 1..])
            }
            None => {
                let end = value.iter().position(|byte| *byte == b';');
                value.split_at(end.unwrap_or(value.len()))
            }
        };
        match key.as_slice() {
            b"name" => name = Some(unescape(text)),
            b"filename" => file_name = Some(unescape(text)),
            _ => {}
        }
        rest = after;
    }
}

/// Undoes what names can't have in quotes.
fn unescape(text: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let (byte, length) = match text[at..] {
            [b'%', b'2', b'2', ..] => (b'"', 3),
            [b'%', b'0', b'A' | b'a', ..] => (b'\n', 3),
            [b'%', b'0', b'D' | b'd', ..] => (b'\r', 3),
            _ => (text[at], 1),
        };
        result.push(byte);
        at += length;
    }
    result
}

/// Where `wanted` is at or after `from`.
fn find(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let first = *wanted.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == first)?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}
