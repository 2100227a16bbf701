//! JSON text to a value, as `JSON.parse` reads it.
//!
//! Does not recurse; its stack is bounded by the depth that the caller allows. Accepts RFC 8259 and nothing more.

use super::JsonError;
use super::keys::{has_repeated_key, keep_last};
use crate::bounds::Bounds;
use crate::text::Text;
use crate::value::Value;

/// The value that JSON text stands for, as `JSON.parse` reads it.
///
/// Of a repeated key the last value counts, in the place of the first. `__proto__` is a key like any other. Lone
/// surrogates written as `\u` escapes are kept. Numbers are doubles, so large ones lose digits and `1e400` is
/// infinite. Properties stay in the order of the text; JavaScript would put integer keys first.
pub fn from_json(json: &str, bounds: &Bounds) -> Result<Value, JsonError> {
    if json.len() > bounds.bytes_max {
        return Err(JsonError::SizeExceeded {
            bytes_max: bounds.bytes_max,
        });
    }
    let mut parser = Parser {
        json,
        at: 0,
        depth_max: bounds.depth_effective(),
        open: Vec::new(),
    };
    let value = parser.document()?;
    parser.skip_whitespace();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.unexpected()),
    }
}

struct Parser<'a> {
    json: &'a str,
    at: usize,
    depth_max: usize,
    open: Vec<Open>,
}

/// An array or object whose members are still coming.
enum Open {
    Array(Vec<Value>),
    Object(Vec<(Text, Value)>, Text),
}

impl<'a> Parser<'a> {
    fn document(&mut self) -> Result<Value, JsonError> {
        loop {
            let Some(mut value) = self.value()? else {
                continue;
            };
            // A finished value may finish what is around it.
            loop {
                match self.open.last_mut() {
                    None => return Ok(value),
                    Some(Open::Array(elements)) => elements.push(value),
                    Some(Open::Object(properties, key)) => {
                        properties.push((std::mem::take(key), value))
                    }
                }
                match self.separator()? {
                    None => break,
                    Some(finished) => value = finished,
                }
            }
        }
    }

    /// Reads a value. None: an array or object has begun, and its first member is due.
    fn value(&mut self) -> Result<Option<Value>, JsonError> {
        self.skip_whitespace();
        match self.peek() {
            Some(b'[') => self.begin_array(),
            Some(b'{') => self.begin_object(),
            Some(b'"') => self.string().map(|text| Some(Value::String(text))),
            Some(b't') => self.literal("true", Value::Bool(true)),
            Some(b'f') => self.literal("false", Value::Bool(false)),
            Some(b'n') => self.literal("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number().map(Some),
            _ => Err(self.unexpected()),
        }
    }

    fn begin_array(&mut self) -> Result<Option<Value>, JsonError> {
        self.enter()?;
        if self.take_if(b']') {
            return Ok(Some(Value::Array(Vec::new())));
        }
        self.open.push(Open::Array(Vec::new()));
        Ok(None)
    }

    fn begin_object(&mut self) -> Result<Option<Value>, JsonError> {
        self.enter()?;
        if self.take_if(b'}') {
            return Ok(Some(Value::Object(Vec::new())));
        }
        let key = self.key()?;
        self.open.push(Open::Object(Vec::new(), key));
        Ok(None)
    }

    /// Takes the bracket, if one more level is allowed, and the whitespace behind it.
    fn enter(&mut self) -> Result<(), JsonError> {
        if self.open.len() >= self.depth_max {
            return Err(JsonError::DepthExceeded {
                depth_max: self.depth_max,
            });
        }
        self.at += 1;
        self.skip_whitespace();
        Ok(())
    }

    /// Reads what follows a member. Some: the array or object that it finished.
    fn separator(&mut self) -> Result<Option<Value>, JsonError> {
        self.skip_whitespace();
        let is_array = matches!(self.open.last(), Some(Open::Array(_)));
        if self.take_if(b',') {
            if !is_array {
                self.skip_whitespace();
                let next = self.key()?;
                if let Some(Open::Object(_, key)) = self.open.last_mut() {
                    *key = next;
                }
            }
            return Ok(None);
        }
        if !self.take_if(if is_array { b']' } else { b'}' }) {
            return Err(self.unexpected());
        }
        Ok(self.open.pop().map(|open| match open {
            Open::Array(elements) => Value::Array(elements),
            Open::Object(properties, _) if has_repeated_key(&properties) => {
                Value::Object(keep_last(properties, |(key, _)| key))
            }
            Open::Object(properties, _) => Value::Object(properties),
        }))
    }

    fn key(&mut self) -> Result<Text, JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.unexpected());
        }
        let key = self.string()?;
        self.skip_whitespace();
        if !self.take_if(b':') {
            return Err(self.unexpected());
        }
        Ok(key)
    }

    fn string(&mut self) -> Result<Text, JsonError> {
        self.at += 1;
        let plain = self.plain();
        if self.take_if(b'"') {
            return Ok(Text::from(plain));
        }
        let mut wtf8 = plain.as_bytes().to_vec();
        while !self.take_if(b'"') {
            if !self.take_if(b'\\') {
                return Err(self.unexpected()); // a control character, or the end
            }
            self.escape(&mut wtf8)?;
            wtf8.extend_from_slice(self.plain().as_bytes());
        }
        Ok(Text::from_wtf8_checked(wtf8))
    }

    /// Takes what stands for itself.
    fn plain(&mut self) -> &'a str {
        let rest = &self.json[self.at..];
        let special = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
        let length = rest.bytes().position(special).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn escape(&mut self, wtf8: &mut Vec<u8>) -> Result<(), JsonError> {
        let byte = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => return self.unicode_escapes(wtf8),
            _ => return Err(self.unexpected()),
        };
        self.at += 1;
        wtf8.push(byte);
        Ok(())
    }

    /// Reads a run of `\u` escapes, of which the first backslash is taken; two may make one character.
    fn unicode_escapes(&mut self, wtf8: &mut Vec<u8>) -> Result<(), JsonError> {
        let mut units = Vec::new();
        loop {
            self.at += 1;
            units.push(self.hex_digits()?);
            if !self.json[self.at..].starts_with("\\u") {
                break;
            }
            self.at += 1;
        }
        wtf8.extend_from_slice(Text::from_utf16(&units).as_bytes());
        Ok(())
    }

    fn hex_digits(&mut self) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self
                .peek()
                .and_then(|byte| char::from(byte).to_digit(16))
                .ok_or_else(|| self.unexpected())?;
            unit = (unit << 4) | digit as u16;
            self.at += 1;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        self.take_if(b'-');
        if !self.take_if(b'0') {
            self.digits()?;
        }
        if self.take_if(b'.') {
            self.digits()?;
        }
        if self.take_if(b'e') || self.take_if(b'E') {
            let _ = self.take_if(b'+') || self.take_if(b'-');
            self.digits()?;
        }
        // The grammar above is a part of Rust's.
        self.json[start..self.at]
            .parse()
            .map(Value::Number)
            .map_err(|_| self.unexpected())
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            return Err(self.unexpected());
        }
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        Ok(())
    }

    fn literal(&mut self, word: &str, value: Value) -> Result<Option<Value>, JsonError> {
        for byte in word.bytes() {
            if !self.take_if(byte) {
                return Err(self.unexpected());
            }
        }
        Ok(Some(value))
    }

    fn skip_whitespace(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn take_if(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn unexpected(&self) -> JsonError {
        match self
            .json
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
        {
            Some(character) => JsonError::UnexpectedCharacter {
                character,
                at: self.at,
            },
            None => JsonError::UnexpectedEnd { at: self.at },
        }
    }
}
