//! From values to expressions.
//!
//! Owns how each kind of value is written. Does not recurse. Nothing of the connection changes while it writes: what is to
//! be exported and which pipes are to be opened is listed, under the ids that they will have, and done by the caller when
//! the whole value could be written.

use crate::{
    Capability, Kind, Target, decimal,
    error::ConvertError,
    handle::Peer,
    limits::Limits,
    text::{bytes_length, class_of, push_bytes, push_number, push_str, push_text},
};
use coracle_value::{ErrorValue, Interface, Text, Value};
use std::slice;

/// An expression, and what has to be done before it is sent.
pub(crate) struct Written<T> {
    pub(crate) text: String,
    /// What is given out, under consecutive ids.
    pub(crate) given: Vec<(T, Kind)>,
    /// What is to be pumped to the client, through pipes with consecutive ids.
    pub(crate) pipes: Vec<Source<T>>,
}

/// Where the bytes of a pipe come from.
pub(crate) enum Source<T> {
    Host(T),
    Peer(Peer),
    Bytes(Vec<u8>),
}

/// Where ids go on from.
#[derive(Clone, Copy)]
pub(crate) struct Ids {
    /// The next export.
    pub(crate) export: i64,
    /// The next import.
    pub(crate) import: i64,
}

/// Writes a value as an expression.
pub(crate) fn write<T: Target>(
    value: &Value,
    externals: &[Capability<T>],
    ids: Ids,
    limits: &Limits,
) -> Result<Written<T>, ConvertError> {
    let mut writer = Writer {
        out: Written {
            text: String::new(),
            given: Vec::new(),
            pipes: Vec::new(),
        },
        externals,
        ids,
        limits,
        open: vec![Frame::One(value)],
    };
    writer.run()?;
    Ok(writer.out)
}

/// What follows the value that is being written.
enum Frame<'v> {
    One(&'v Value),
    Body(Option<&'v Value>),
    Elements(slice::Iter<'v, Value>, usize),
    Properties(slice::Iter<'v, (Text, Value)>, Option<&'v Text>),
    Error(Box<ErrorFrame<'v>>),
    Close(String),
}

struct ErrorFrame<'v> {
    rest: std::vec::IntoIter<(Text, &'v Value)>,
    key: Text,
    stack: Option<&'v Text>,
    /// Of the text before the further fields.
    head: usize,
    /// Where the last property began.
    mark: Mark,
    written: usize,
}

#[derive(Clone, Copy)]
struct Mark {
    text: usize,
    given: usize,
    pipes: usize,
}

struct Writer<'v, 'a, T> {
    out: Written<T>,
    externals: &'v [Capability<T>],
    ids: Ids,
    limits: &'a Limits,
    /// Innermost last.
    open: Vec<Frame<'v>>,
}

impl<'v, T: Target> Writer<'v, '_, T> {
    fn run(&mut self) -> Result<(), ConvertError> {
        while let Some(frame) = self.open.pop() {
            if let Err(error) = self.step(frame).and_then(|()| self.check_size(0)) {
                self.give_up(error)?;
            }
        }
        Ok(())
    }

    /// An error always gets through, without the property that can't be written.
    fn give_up(&mut self, error: ConvertError) -> Result<(), ConvertError> {
        while let Some(frame) = self.open.pop() {
            if let Frame::Error(mut frame) = frame
                && frame.written > 0
            {
                let Mark { text, given, pipes } = frame.mark;
                self.out.text.truncate(text);
                self.out.given.truncate(given);
                self.out.pipes.truncate(pipes);
                frame.written -= 1;
                self.open.push(Frame::Error(frame));
                return Ok(());
            }
        }
        Err(error)
    }

    fn step(&mut self, frame: Frame<'v>) -> Result<(), ConvertError> {
        match frame {
            Frame::One(value) => self.value(value)?,
            Frame::Body(body) => self.body(body)?,
            Frame::Close(text) => self.out.text.push_str(&text),
            Frame::Elements(mut rest, index) => match rest.next() {
                None => self.out.text.push_str("]]"),
                Some(value) => {
                    self.comma(index);
                    self.open.push(Frame::Elements(rest, index + 1));
                    self.value(value)?;
                }
            },
            Frame::Properties(mut rest, last) => match rest.next() {
                None => self.out.text.push('}'),
                Some((key, value)) => {
                    self.comma(usize::from(last.is_some()));
                    self.key(key);
                    self.open.push(Frame::Properties(rest, Some(key)));
                    self.value(value)?;
                }
            },
            Frame::Error(mut frame) => match frame.rest.next() {
                None => self.close_error(&frame),
                Some((key, value)) => {
                    frame.mark = self.mark();
                    self.comma(frame.written);
                    self.key(&key);
                    (frame.key, frame.written) = (key, frame.written + 1);
                    self.open.push(Frame::Error(frame));
                    self.value(value)?;
                }
            },
        }
        Ok(())
    }

    fn comma(&mut self, before: usize) {
        if before > 0 {
            self.out.text.push(',');
        }
    }

    fn key(&mut self, key: &Text) {
        push_text(&mut self.out.text, key);
        self.out.text.push(':');
    }

    fn mark(&self) -> Mark {
        Mark {
            text: self.out.text.len(),
            given: self.out.given.len(),
            pipes: self.out.pipes.len(),
        }
    }

    fn value(&mut self, value: &'v Value) -> Result<(), ConvertError> {
        let text = &mut self.out.text;
        match value {
            Value::Null => text.push_str("null"),
            Value::Bool(true) => text.push_str("true"),
            Value::Bool(false) => text.push_str("false"),
            // A hole reads as undefined.
            Value::Undefined | Value::Hole => text.push_str("[\"undefined\"]"),
            Value::Number(number) => push_number(text, *number),
            Value::String(string) => {
                self.check_size(string.as_bytes().len())?;
                push_text(&mut self.out.text, string);
            }
            Value::BigInt(number) => {
                let digits_max = self.limits.bigint_digits_max;
                if decimal::digits_at_most(number) > digits_max + 1 {
                    return Err(self.digits(digits_max));
                }
                let digits = decimal::write(number);
                if digits.trim_start_matches('-').len() > digits_max {
                    return Err(self.digits(digits_max));
                }
                self.out
                    .text
                    .push_str(&format!("[\"bigint\",\"{digits}\"]"));
            }
            Value::Date(milliseconds) if milliseconds.is_nan() => text.push_str("[\"date\",null]"),
            Value::Date(milliseconds) => {
                text.push_str("[\"date\",");
                push_number(text, *milliseconds);
                text.push(']');
            }
            Value::ArrayBuffer(bytes) => self.bytes(bytes, Some("ArrayBuffer"))?,
            Value::DataView(bytes) => self.bytes(bytes, Some("DataView"))?,
            Value::TypedArray { kind, bytes } => match class_of(*kind) {
                Ok(class) => self.bytes(bytes, class)?,
                Err(what) => return Err(self.unsupported(what)),
            },
            Value::Array(elements) => {
                text.push_str("[[");
                self.open.push(Frame::Elements(elements.iter(), 0));
            }
            Value::Object(properties) => {
                text.push('{');
                self.open.push(Frame::Properties(properties.iter(), None));
            }
            Value::Error(error) => self.error(error),
            Value::Interface(interface, content) => self.interface(*interface, content)?,
            Value::External(index) => self.external(*index)?,
            Value::Shared(inside) => self.open.push(Frame::One(inside)),
            Value::Map(_) => return Err(self.unsupported("a Map")),
            Value::Set(_) => return Err(self.unsupported("a Set")),
            Value::RegExp { .. } => return Err(self.unsupported("a RegExp")),
            Value::Boxed(_) => return Err(self.unsupported("a boxed primitive")),
            Value::Reference(_) => return Err(self.unsupported("a reference")),
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: &[u8], class: Option<&str>) -> Result<(), ConvertError> {
        self.check_size(bytes_length(bytes.len()))?;
        push_bytes(&mut self.out.text, bytes, class);
        Ok(())
    }

    fn check_size(&self, added: usize) -> Result<(), ConvertError> {
        let bytes_max = self.limits.message_bytes_max;
        match self.out.text.len().saturating_add(added) > bytes_max {
            true => Err(ConvertError::BytesExceeded { bytes_max }),
            false => Ok(()),
        }
    }

    fn error(&mut self, error: &'v ErrorValue) {
        self.out.text.push_str("[\"error\",");
        push_text(&mut self.out.text, &error.name);
        self.out.text.push(',');
        push_text(&mut self.out.text, &error.message);
        let head = self.out.text.len();
        let mut fields: Vec<(Text, &Value)> = Vec::new();
        fields.extend(error.cause.iter().map(|cause| (Text::from("cause"), cause)));
        fields.extend(
            error
                .errors
                .iter()
                .map(|errors| (Text::from("errors"), errors)),
        );
        fields.extend(error.props.iter().map(|(key, value)| (key.clone(), value)));
        self.out.text.push(',');
        match &error.stack {
            Some(stack) => push_text(&mut self.out.text, stack),
            None => self.out.text.push_str("null"),
        }
        self.out.text.push_str(",{");
        self.open.push(Frame::Error(Box::new(ErrorFrame {
            rest: fields.into_iter(),
            key: Text::new(),
            stack: error.stack.as_ref(),
            head,
            mark: self.mark(),
            written: 0,
        })));
    }

    /// Without properties the form is shorter, so that peers of before 0.10 read it.
    fn close_error(&mut self, frame: &ErrorFrame<'v>) {
        if frame.written > 0 {
            return self.out.text.push_str("}]");
        }
        self.out.text.truncate(frame.head);
        if let Some(stack) = frame.stack {
            self.out.text.push(',');
            push_text(&mut self.out.text, stack);
        }
        self.out.text.push(']');
    }

    fn external(&mut self, index: u32) -> Result<(), ConvertError> {
        let externals = self.externals;
        let Some(capability) = externals.get(index as usize) else {
            return Err(self.unsupported("a reference"));
        };
        let expression = match capability {
            Capability::Peer {
                peer,
                kind: Kind::Source,
            } => self.pipe(Source::Peer(peer.clone())),
            Capability::Peer { peer, .. } => format!("[\"import\",{}]", peer.id()),
            Capability::Host {
                target,
                kind: Kind::Source,
            } => self.pipe(Source::Host(target.clone())),
            Capability::Host { target, kind } => {
                let id = self.give(target, *kind);
                match kind {
                    Kind::Sink => format!("[\"writable\",{id}]"),
                    _ => format!("[\"export\",{id}]"),
                }
            }
        };
        self.out.text.push_str(&expression);
        Ok(())
    }

    fn pipe(&mut self, source: Source<T>) -> String {
        let id = self.ids.import + self.out.pipes.len() as i64;
        self.out.pipes.push(source);
        format!("[\"readable\",{id}]")
    }

    /// Each time under an id of its own: the package releases an id once, however often it was given.
    fn give(&mut self, target: &T, kind: Kind) -> i64 {
        self.out.given.push((target.clone(), kind));
        self.ids.export + 1 - self.out.given.len() as i64
    }

    fn interface(&mut self, interface: Interface, content: &'v Value) -> Result<(), ConvertError> {
        match interface {
            Interface::Headers => {
                self.out.text.push_str("[\"headers\",");
                self.headers(content)?;
                self.out.text.push(']');
            }
            Interface::Request => {
                let Some(url) = content.get("url").and_then(Value::as_text) else {
                    return Err(self.unsupported("a Request without a URL"));
                };
                self.out.text.push_str("[\"request\",");
                push_text(&mut self.out.text, url);
                self.out.text.push_str(",{");
                let mut written = 0;
                for name in ["method", "redirect"] {
                    if let Some(text) = content.get(name).and_then(Value::as_text) {
                        self.comma(written);
                        self.key(&name.into());
                        push_text(&mut self.out.text, text);
                        written += 1;
                    }
                }
                self.init(content, written)?;
            }
            Interface::Response => {
                if content.get("webSocket").is_some() {
                    return Err(self.unsupported("a Response with a webSocket"));
                }
                let mut init = String::from(",{");
                if let Some(status) = content.get("status").and_then(Value::as_f64) {
                    init.push_str("\"status\":");
                    push_number(&mut init, status);
                }
                if let Some(text) = content.get("statusText").and_then(Value::as_text) {
                    init.push_str(if init.ends_with('{') {
                        "\"statusText\":"
                    } else {
                        ",\"statusText\":"
                    });
                    push_text(&mut init, text);
                }
                // Headers come after the body in the text, so they are written apart.
                if let Some(headers) = content.get("headers") {
                    let before = std::mem::take(&mut self.out.text);
                    let outcome = self.headers(headers);
                    let headers = std::mem::replace(&mut self.out.text, before);
                    outcome?;
                    init.push_str(if init.ends_with('{') {
                        "\"headers\":"
                    } else {
                        ",\"headers\":"
                    });
                    init.push_str(&headers);
                }
                init.push_str("}]");
                self.out.text.push_str("[\"response\",");
                self.open.push(Frame::Close(init));
                self.open.push(Frame::Body(content.get("body")));
            }
            Interface::Blob => {
                if content.get("name").is_some() {
                    return Err(self.unsupported("a File"));
                }
                let bytes = content
                    .get("bytes")
                    .and_then(Value::as_bytes)
                    .unwrap_or_default();
                let readable = self.pipe(Source::Bytes(bytes.to_vec()));
                let empty = Text::new();
                let kind = content
                    .get("type")
                    .and_then(Value::as_text)
                    .unwrap_or(&empty);
                self.out.text.push_str("[\"blob\",");
                push_text(&mut self.out.text, kind);
                self.out.text.push_str(&format!(",{readable}]"));
            }
        }
        Ok(())
    }

    /// The headers and the body of a request.
    fn init(&mut self, content: &'v Value, written: usize) -> Result<(), ConvertError> {
        let mut written = written;
        if let Some(headers) = content.get("headers") {
            self.comma(written);
            self.key(&"headers".into());
            self.headers(headers)?;
            written += 1;
        }
        match content.get("body") {
            None | Some(Value::Null | Value::Undefined) => self.out.text.push_str("}]"),
            body => {
                self.comma(written);
                self.key(&"body".into());
                self.open
                    .push(Frame::Close(",\"duplex\":\"half\"}]".into()));
                self.open.push(Frame::Body(body));
            }
        }
        Ok(())
    }

    fn body(&mut self, body: Option<&'v Value>) -> Result<(), ConvertError> {
        match body {
            None | Some(Value::Null | Value::Undefined) => self.out.text.push_str("null"),
            // The package wants a Uint8Array there.
            Some(Value::ArrayBuffer(bytes)) => self.bytes(bytes, None)?,
            Some(Value::External(index)) => self.external(*index)?,
            Some(_) => return Err(self.unsupported("a body that is neither bytes nor a stream")),
        }
        Ok(())
    }

    fn headers(&mut self, headers: &Value) -> Result<(), ConvertError> {
        let pairs = headers.as_array().unwrap_or_default();
        self.out.text.push('[');
        for (index, pair) in pairs.iter().enumerate() {
            let text = |at| pair.index(at).and_then(Value::as_text);
            let (Some(name), Some(value)) = (text(0), text(1)) else {
                return Err(self.unsupported("a header that is not two strings"));
            };
            self.comma(index);
            self.out.text.push('[');
            push_text(&mut self.out.text, name);
            self.out.text.push(',');
            push_text(&mut self.out.text, value);
            self.out.text.push(']');
        }
        self.out.text.push(']');
        Ok(())
    }

    fn unsupported(&self, what: &'static str) -> ConvertError {
        let at = self.at();
        ConvertError::Unsupported { what, at }
    }

    fn digits(&self, digits_max: usize) -> ConvertError {
        let at = self.at();
        ConvertError::DigitsExceeded { digits_max, at }
    }

    /// Where the value is that is being written.
    fn at(&self) -> String {
        let mut at = String::from("$");
        for frame in &self.open {
            match frame {
                Frame::Elements(_, index) => at.push_str(&format!("[{}]", index.saturating_sub(1))),
                Frame::Properties(_, Some(key)) => at.push_str(&format!(".{key}")),
                Frame::Error(frame) => at.push_str(&format!(".{}", frame.key)),
                _ => {}
            }
        }
        at
    }
}

/// The text of an array of strings.
pub(crate) fn push_path(json: &mut String, path: &[String]) {
    json.push('[');
    for (index, name) in path.iter().enumerate() {
        if index > 0 {
            json.push(',');
        }
        push_str(json, name);
    }
    json.push(']');
}
