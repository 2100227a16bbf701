//! From expressions to values.
//!
//! Owns what each expression means. Does not recurse: expressions that are open are on a stack of its own, as deep as the
//! JSON was allowed to be. What an expression does with tables, calls and streams is the context's.

use crate::{
    Capability, Kind, decimal,
    error::{ConvertError, Violation},
    handle::{Ledger, Promise},
    limits::Limits,
    parcel::{Draft, Slot},
    text::{kind_of, read_base64},
};
use coracle_value::{ErrorValue, Interface, Text, Value};
use std::slice;

/// What expressions refer to.
pub(crate) trait Context<T> {
    /// An entry that `import` or `pipeline` names.
    type Subject;

    /// An expression is about to be evaluated.
    fn step(&mut self) -> Result<(), Violation>;
    fn subject(&mut self, id: i64) -> Result<Self::Subject, Violation>;
    /// The subject itself, as a value.
    fn reference(&mut self, subject: Self::Subject) -> Result<Slot<T>, Violation>;
    /// What the path leads to: with arguments its result.
    fn access(
        &mut self,
        subject: Self::Subject,
        path: Vec<String>,
        args: Option<Draft<T>>,
    ) -> Result<Promise, Violation>;
    fn remap(
        &mut self,
        subject: Self::Subject,
        path: Vec<String>,
        captures: &[Value],
        instructions: &[Value],
    ) -> Result<Promise, Violation>;
    /// An object of the client's.
    fn export(&mut self, id: i64, kind: Kind) -> Result<Capability<T>, Violation>;
    fn promise(&mut self, id: i64) -> Result<Promise, Violation>;
    fn readable(&mut self, id: i64) -> Result<Capability<T>, Violation>;
    /// All bytes of a stream as a `Blob`.
    fn blob(&mut self, kind: Text, stream: Capability<T>) -> Result<Promise, Violation>;
}

/// Evaluates an expression.
pub(crate) fn evaluate<T: Clone, C: Context<T>>(
    expression: &Value,
    context: &mut C,
    ledger: &Ledger,
    limits: &Limits,
) -> Result<Draft<T>, Violation> {
    let mut reader = Reader {
        context,
        ledger,
        limits,
        open: Vec::new(),
        slots: vec![Vec::new()],
    };
    let value = reader.run(expression)?;
    let slots = reader.slots.pop().unwrap_or_default();
    Ok(Draft::new(value, slots, ledger, limits)?)
}

/// An expression whose parts are being evaluated.
struct Frame<'v, S> {
    build: Build<S>,
    rest: Parts<'v>,
    keys: Vec<Text>,
    done: Vec<Value>,
}

/// The parts that are still to come.
enum Parts<'v> {
    Elements(slice::Iter<'v, Value>),
    Properties(slice::Iter<'v, (Text, Value)>),
}

/// What becomes of the parts.
enum Build<S> {
    Array,
    Object,
    Error(Box<ErrorValue>),
    Call(S, Vec<String>),
    Request(Vec<(Text, Value)>),
    Response(Vec<(Text, Value)>),
    Blob(Text),
}

struct Reader<'v, 'c, T, C: Context<T>> {
    context: &'c mut C,
    ledger: &'c Ledger,
    limits: &'c Limits,
    /// Innermost last.
    open: Vec<Frame<'v, C::Subject>>,
    /// Of the expression, and of the arguments of each call that is open in it.
    slots: Vec<Vec<Slot<T>>>,
}

impl<S> Frame<'_, S> {
    fn elements<'v>(build: Build<S>, parts: &'v [Value]) -> Frame<'v, S> {
        Frame {
            build,
            rest: Parts::Elements(parts.iter()),
            keys: Vec::new(),
            done: Vec::new(),
        }
    }

    fn properties<'v>(build: Build<S>, parts: &'v [(Text, Value)]) -> Frame<'v, S> {
        Frame {
            build,
            rest: Parts::Properties(parts.iter()),
            keys: Vec::new(),
            done: Vec::new(),
        }
    }
}

impl<'v, T: Clone, C: Context<T>> Reader<'v, '_, T, C> {
    fn run(&mut self, root: &'v Value) -> Result<Value, Violation> {
        let mut finished = self.begin(root)?;
        loop {
            if let Some(value) = finished.take() {
                match self.open.last_mut() {
                    None => return Ok(value),
                    Some(frame) => frame.done.push(value),
                }
            }
            let next = match self.open.last_mut() {
                None => return Err(self.invalid("it is empty")),
                Some(frame) => match &mut frame.rest {
                    Parts::Elements(rest) => rest.next(),
                    Parts::Properties(rest) => rest.next().map(|(key, value)| {
                        frame.keys.push(key.clone());
                        value
                    }),
                },
            };
            finished = match next {
                Some(part) => self.begin(part)?,
                None => self.close()?,
            };
        }
    }

    /// The value, or none where an expression with parts was opened.
    fn begin(&mut self, expression: &'v Value) -> Result<Option<Value>, Violation> {
        self.context.step()?;
        match expression {
            Value::Array(parts) => match &parts[..] {
                [Value::Array(elements)] => {
                    self.open.push(Frame::elements(Build::Array, elements));
                    Ok(None)
                }
                [Value::String(name), rest @ ..] => self.special(name.as_str().unwrap_or(""), rest),
                _ => Err(self.invalid("unknown special value")),
            },
            Value::Object(properties) => {
                self.open.push(Frame::properties(Build::Object, properties));
                Ok(None)
            }
            plain => Ok(Some(plain.clone())),
        }
    }

    fn special(&mut self, name: &str, rest: &'v [Value]) -> Result<Option<Value>, Violation> {
        let value = match (name, rest) {
            ("undefined", []) => Value::Undefined,
            ("inf", _) => Value::Number(f64::INFINITY),
            ("-inf", _) => Value::Number(f64::NEG_INFINITY),
            ("nan", _) => Value::Number(f64::NAN),
            ("date", [Value::Null, ..]) => Value::Date(f64::NAN),
            ("date", [Value::Number(number), ..]) => Value::Date(time_clip(*number)),
            ("bigint", [Value::String(digits), ..]) => self.bigint(digits)?,
            ("bytes", [Value::String(text)]) => self.bytes(text, None)?,
            ("bytes", [Value::String(text), Value::String(class), ..]) => {
                self.bytes(text, class.as_str())?
            }
            // The form of values has no URLs.
            ("url", [Value::String(href)]) => Value::String(href.clone()),
            ("headers", [Value::Array(pairs)]) => {
                Value::Interface(Interface::Headers, Box::new(self.headers(pairs)?))
            }
            ("error", [Value::String(name), Value::String(message), rest @ ..]) => {
                return self.error(name, message, rest);
            }
            ("request", [Value::String(url), Value::Object(init)]) => {
                return self.request(url, init);
            }
            ("response", [body, Value::Object(init)]) => return self.response(body, init),
            ("blob", [Value::String(kind), content]) => {
                let parts = slice::from_ref(content);
                self.open
                    .push(Frame::elements(Build::Blob(kind.clone()), parts));
                return Ok(None);
            }
            ("import" | "pipeline", [id, rest @ ..]) => return self.reference(id, rest),
            ("remap", [id, path, Value::Array(captures), Value::Array(instructions)]) => {
                let subject = self.context.subject(self.id(id)?)?;
                let path = self.path(path)?;
                let promise = self.context.remap(subject, path, captures, instructions)?;
                self.slot(Slot::Promise(promise))
            }
            ("export", [id, ..]) => {
                let capability = self.context.export(self.id(id)?, Kind::Target)?;
                self.slot(Slot::Capability(capability))
            }
            ("writable", [id, ..]) => {
                let capability = self.context.export(self.id(id)?, Kind::Sink)?;
                self.slot(Slot::Capability(capability))
            }
            ("promise", [id, ..]) => {
                let promise = self.context.promise(self.id(id)?)?;
                self.slot(Slot::Promise(promise))
            }
            ("readable", [id, ..]) => {
                let capability = self.context.readable(self.id(id)?)?;
                self.slot(Slot::Capability(capability))
            }
            _ => return Err(self.invalid("unknown special value")),
        };
        Ok(Some(value))
    }

    /// `import` and `pipeline`.
    fn reference(&mut self, id: &Value, rest: &'v [Value]) -> Result<Option<Value>, Violation> {
        let subject = self.context.subject(self.id(id)?)?;
        match rest {
            [] => {
                let slot = self.context.reference(subject)?;
                Ok(Some(self.slot(slot)))
            }
            [path] => {
                let path = self.path(path)?;
                let slot = match path.is_empty() {
                    true => self.context.reference(subject)?,
                    false => Slot::Promise(self.context.access(subject, path, None)?),
                };
                Ok(Some(self.slot(slot)))
            }
            [path, Value::Array(args)] => {
                let path = self.path(path)?;
                self.slots.push(Vec::new());
                self.open
                    .push(Frame::elements(Build::Call(subject, path), args));
                Ok(None)
            }
            _ => Err(self.invalid("unknown special value")),
        }
    }

    fn close(&mut self) -> Result<Option<Value>, Violation> {
        let Some(frame) = self.open.pop() else {
            return Err(self.invalid("it is empty"));
        };
        let Frame {
            build,
            keys,
            mut done,
            ..
        } = frame;
        let value = match build {
            Build::Array => Value::Array(done),
            Build::Object => Value::Object(keys.into_iter().zip(done).collect()),
            Build::Error(mut error) => {
                for (key, value) in keys.into_iter().zip(done) {
                    match key.as_str() {
                        Some("cause") => error.cause = Some(value),
                        Some("errors") => error.errors = Some(value),
                        Some("name" | "message" | "stack") => {}
                        _ => error.props.push((key, value)),
                    }
                }
                Value::Error(error)
            }
            Build::Call(subject, path) => {
                let slots = self.slots.pop().unwrap_or_default();
                let args = Draft::new(Value::Array(done), slots, self.ledger, self.limits)?;
                let promise = self.context.access(subject, path, Some(args))?;
                self.slot(Slot::Promise(promise))
            }
            Build::Request(mut fields) => {
                let body = self.body(done.pop())?;
                fields.push(("body".into(), body));
                Value::Interface(Interface::Request, Box::new(Value::Object(fields)))
            }
            Build::Response(mut fields) => {
                let body = self.body(done.pop())?;
                fields.push(("body".into(), body));
                Value::Interface(Interface::Response, Box::new(Value::Object(fields)))
            }
            Build::Blob(kind) => {
                let stream = match done.pop() {
                    Some(Value::External(index)) => self.stream(index),
                    _ => None,
                };
                let Some(stream) = stream else {
                    return Err(self.invalid("the content of a blob is not a stream"));
                };
                let promise = self.context.blob(kind, stream)?;
                self.slot(Slot::Promise(promise))
            }
        };
        Ok(Some(value))
    }

    fn bigint(&self, digits: &Text) -> Result<Value, Violation> {
        let digits_max = self.limits.bigint_digits_max;
        let text = digits.as_str().unwrap_or("");
        if text.len() > digits_max + 1 {
            let at = self.at();
            return Err(ConvertError::DigitsExceeded { digits_max, at }.into());
        }
        let number = decimal::parse(text);
        number
            .map(Value::BigInt)
            .ok_or_else(|| self.invalid("not a bigint"))
    }

    fn bytes(&self, text: &Text, class: Option<&str>) -> Result<Value, Violation> {
        let Some(bytes) = text.as_str().and_then(read_base64) else {
            return Err(self.invalid("not base64"));
        };
        Ok(match class {
            None => Value::uint8_array(bytes),
            Some("ArrayBuffer") => Value::ArrayBuffer(bytes),
            Some("DataView") => Value::DataView(bytes),
            Some(class) => match kind_of(class) {
                None => return Err(self.invalid("unknown bytes type marker")),
                Some((_, size)) if bytes.len() % size != 0 => {
                    return Err(self.invalid("the bytes are not whole elements"));
                }
                Some((kind, _)) => Value::TypedArray { kind, bytes },
            },
        })
    }

    fn error(
        &mut self,
        name: &Text,
        message: &Text,
        rest: &'v [Value],
    ) -> Result<Option<Value>, Violation> {
        let mut error = Box::new(ErrorValue::new(name.clone(), message.clone()));
        if let Some(Value::String(stack)) = rest.first() {
            error.stack = Some(stack.clone());
        }
        match rest.get(1) {
            None => Ok(Some(Value::Error(error))),
            Some(Value::Object(props)) => {
                self.open
                    .push(Frame::properties(Build::Error(error), props));
                Ok(None)
            }
            Some(_) => Err(self.invalid("unknown special value")),
        }
    }

    fn request(
        &mut self,
        url: &Text,
        init: &'v [(Text, Value)],
    ) -> Result<Option<Value>, Violation> {
        let mut fields = vec![("url".into(), Value::String(url.clone()))];
        let mut body = None;
        for (key, value) in init {
            match (key.as_str(), value) {
                (Some("method" | "redirect"), Value::String(_)) => {
                    fields.push((key.clone(), value.clone()));
                }
                (Some("headers"), Value::Array(pairs)) => {
                    fields.push((key.clone(), self.headers(pairs)?));
                }
                (Some("body"), _) => body = Some(value),
                (Some("method" | "redirect" | "headers"), _) => {
                    return Err(self.invalid("a request with an init that is none"));
                }
                (Some("signal"), value) if !value.is_null() => {
                    return Err(self.invalid("a request with a signal"));
                }
                // What else `fetch` has is the browser's.
                _ => {}
            }
        }
        let parts = body.map(slice::from_ref).unwrap_or_default();
        self.open
            .push(Frame::elements(Build::Request(fields), parts));
        Ok(None)
    }

    fn response(
        &mut self,
        body: &'v Value,
        init: &'v [(Text, Value)],
    ) -> Result<Option<Value>, Violation> {
        let mut fields = Vec::new();
        for (key, value) in init {
            match (key.as_str(), value) {
                (Some("status"), Value::Number(_)) | (Some("statusText"), Value::String(_)) => {
                    fields.push((key.clone(), value.clone()));
                }
                (Some("headers"), Value::Array(pairs)) => {
                    fields.push((key.clone(), self.headers(pairs)?));
                }
                (Some("status" | "statusText" | "headers"), _) => {
                    return Err(self.invalid("a response with an init that is none"));
                }
                (Some("webSocket"), value) if !value.is_null() => {
                    return Err(self.invalid("a response with a webSocket"));
                }
                _ => {}
            }
        }
        let parts = slice::from_ref(body);
        self.open
            .push(Frame::elements(Build::Response(fields), parts));
        Ok(None)
    }

    fn body(&self, body: Option<Value>) -> Result<Value, Violation> {
        match body {
            None | Some(Value::Null) => Ok(Value::Null),
            Some(Value::String(text)) => {
                Ok(Value::ArrayBuffer(text.into_string_lossy().into_bytes()))
            }
            Some(Value::TypedArray { bytes, .. }) => Ok(Value::ArrayBuffer(bytes)),
            Some(Value::External(index)) if self.stream(index).is_some() => {
                Ok(Value::External(index))
            }
            Some(_) => {
                Err(self.invalid("a body that is neither null, a string, bytes nor a stream"))
            }
        }
    }

    fn headers(&self, pairs: &[Value]) -> Result<Value, Violation> {
        for pair in pairs {
            let is_pair = matches!(pair, Value::Array(pair)
                if matches!(&pair[..], [Value::String(_), Value::String(_)]));
            if !is_pair {
                return Err(self.invalid("a header that is not two strings"));
            }
        }
        Ok(Value::Array(pairs.to_vec()))
    }

    /// The stream to be read that a slot holds.
    fn stream(&self, index: u32) -> Option<Capability<T>> {
        match self.slots.last()?.get(index as usize)? {
            Slot::Capability(capability) if capability.kind() == Kind::Source => {
                Some(capability.clone())
            }
            _ => None,
        }
    }

    fn slot(&mut self, slot: Slot<T>) -> Value {
        match self.slots.last_mut() {
            Some(slots) => {
                slots.push(slot);
                Value::External(slots.len() as u32 - 1)
            }
            None => Value::Undefined,
        }
    }

    fn id(&self, id: &Value) -> Result<i64, Violation> {
        integer(id).ok_or_else(|| self.invalid("an id that is no integer"))
    }

    fn path(&self, path: &Value) -> Result<Vec<String>, Violation> {
        let Value::Array(names) = path else {
            return Err(self.invalid("a path that is no array"));
        };
        let Limits {
            path_length_max: length_max,
            path_bytes_max: bytes_max,
            ..
        } = *self.limits;
        let name_bytes = |name: &Value| name.as_text().map_or(8, |text| text.as_bytes().len());
        let (length, bytes) = (names.len(), names.iter().map(name_bytes).sum());
        if length > length_max || bytes > bytes_max {
            return Err(Violation::PathTooLong {
                length,
                bytes,
                length_max,
                bytes_max,
            });
        }
        let names = names.iter().map(|name| match name {
            Value::String(name) => Ok(name.to_string_lossy().into_owned()),
            Value::Number(number) => Ok(coracle_value::number_to_string(*number)),
            _ => Err(self.invalid("a path with what is neither string nor number")),
        });
        names.collect()
    }

    fn invalid(&self, reason: &'static str) -> Violation {
        let at = self.at();
        Violation::ExpressionInvalid { reason, at }
    }

    /// Where the expression is that is being evaluated.
    fn at(&self) -> String {
        let mut at = String::from("$");
        for frame in &self.open {
            match (&frame.rest, frame.keys.last()) {
                (Parts::Properties(_), Some(key)) => at.push_str(&format!(".{key}")),
                _ => at.push_str(&format!("[{}]", frame.done.len())),
            }
        }
        at
    }
}

/// An id or a count.
pub(crate) fn integer(value: &Value) -> Option<i64> {
    let number = value.as_f64()?;
    let is_safe =
        number.trunc() == number && number.abs() <= coracle_value::SAFE_INTEGER_MAX as f64;
    is_safe.then_some(number as i64)
}

/// What a `Date` makes of a number.
fn time_clip(milliseconds: f64) -> f64 {
    match milliseconds.abs() <= 8.64e15 {
        true => milliseconds.trunc() + 0.0,
        false => f64::NAN,
    }
}
