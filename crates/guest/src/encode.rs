//! JavaScript values to bytes, by `schema/value.md`, and the results that are reported in them.
//!
//! Encoding runs worker code (getters, proxies' traps), so it holds no borrow of our state while it does, and takes
//! nothing from prototypes that a worker can patch.

use crate::{
    engine::js::{
        Array, Ctx, Error, Exception, Result, TypedArray, Value, function::Function, qjs,
    },
    host, state, thrown,
};
use coracle_abi::{Form, finish};
use coracle_value::tag;
use minicbor::{Encoder, data::Tag};
use std::collections::BTreeMap;

/// Why a value did not become bytes.
pub(crate) enum EncodeError {
    /// Nested deeper than allowed.
    TooDeep,
    /// Larger than allowed; the size so far.
    TooLarge(usize),
    /// It can't be cloned, or a getter threw.
    Threw(Error),
}

impl From<Error> for EncodeError {
    fn from(error: Error) -> Self {
        Self::Threw(error)
    }
}

type Outcome<T> = std::result::Result<T, EncodeError>;

/// How a result is to be reported; travels through the prelude as an array.
pub(crate) struct InvokeArguments {
    pub(crate) invocation: f64,
    pub(crate) form: Form,
    pub(crate) result_bytes_max: u32,
    pub(crate) value_depth_max: u32,
}

impl InvokeArguments {
    pub(crate) fn into_array<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let number = |value: f64| Value::new_number(ctx.clone(), value);
        Ok(crate::decode::array(
            ctx,
            vec![
                number(self.invocation),
                number(if self.form == Form::Json { 1.0 } else { 0.0 }),
                number(f64::from(self.result_bytes_max)),
                number(f64::from(self.value_depth_max)),
            ],
        ))
    }
}

/// `host.finish(invocation, json, bytesMax, depthMax, value)`: encodes the result and reports it, or why it can't be.
pub(crate) fn finish_with_value<'js>(
    ctx: Ctx<'js>,
    invocation: f64,
    json: u32,
    bytes_max: u32,
    depth_max: u32,
    value: Value<'js>,
) {
    let invocation = invocation as u64;
    let outcome = if value.is_undefined() {
        return host::finish(invocation, finish::UNDEFINED, &[]);
    } else if json == 1 {
        json_text(&ctx, &value, bytes_max as usize).map(|bytes| match bytes {
            Some(bytes) => (finish::JSON, bytes),
            None => (finish::UNDEFINED, Vec::new()),
        })
    } else {
        cbor(&ctx, &value, bytes_max as usize, depth_max as usize)
            .map(|bytes| (finish::CBOR, bytes))
    };
    match outcome {
        Ok((kind, bytes)) => host::finish(invocation, kind, &bytes),
        Err(EncodeError::TooDeep) => host::finish(invocation, finish::VALUE_TOO_DEEP, &[1]),
        Err(EncodeError::TooLarge(size)) => {
            host::finish(
                invocation,
                finish::RESULT_TOO_LARGE,
                &(size as u64).to_le_bytes(),
            );
        }
        Err(EncodeError::Threw(error)) => {
            thrown::finish_with_engine_error(&ctx, invocation, error, false)
        }
    }
}

fn json_text<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    bytes_max: usize,
) -> Outcome<Option<Vec<u8>>> {
    let Some(text) = ctx.json_stringify(value.clone())? else {
        return Ok(None);
    };
    let bytes = with_text(text.as_value(), |bytes| bytes.to_vec())?;
    if bytes.len() > bytes_max {
        Err(EncodeError::TooLarge(bytes.len()))
    } else {
        Ok(Some(bytes))
    }
}

/// Encodes a value in CBOR.
pub(crate) fn cbor<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    bytes_max: usize,
    depth_max: usize,
) -> Outcome<Vec<u8>> {
    let mut encoding = Encoding {
        ctx,
        output: Encoder::new(Vec::with_capacity(64)),
        seen: BTreeMap::new(),
        references: Vec::new(),
        bytes_max,
        depth_max,
        path: Vec::new(),
    };
    encoding.item(value, 0)?;
    Ok(encoding.finished())
}

/// The class id of an object; 0 for primitives.
pub(crate) fn class_id(value: &Value<'_>) -> u32 {
    // SAFETY: only reads the value.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// Runs `read` over the UTF-8 (WTF-8 where there are lone surrogates) of a string.
pub(crate) fn with_text<T>(value: &Value<'_>, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
    let ctx = value.ctx().as_raw().as_ptr();
    let mut length = 0;
    // SAFETY: the engine's copy is read before it is freed.
    unsafe {
        let text = qjs::JS_ToCStringLen2(ctx, &raw mut length, value.as_raw(), false.into());
        if text.is_null() {
            return Err(Error::Exception);
        }
        let outcome = read(std::slice::from_raw_parts(text.cast(), length as usize));
        qjs::JS_FreeCString(ctx, text);
        Ok(outcome)
    }
}

/// A string's text with lone surrogates replaced; empty for what is not a string.
pub(crate) fn text_lossy(value: &Value<'_>) -> String {
    if !value.is_string() {
        return String::new();
    }
    with_text(value, |bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

/// Overwrites the contents of a byte array.
pub(crate) fn overwrite(array: &TypedArray<'_, u8>, bytes: &[u8]) {
    let ctx = array.ctx().as_raw().as_ptr();
    let (mut offset, mut length, mut width, mut size) = (0, 0, 0, 0);
    // SAFETY: the range is checked against the buffer's size as the engine reports it now.
    unsafe {
        let buffer = qjs::JS_GetTypedArrayBuffer(
            ctx,
            array.as_value().as_raw(),
            &raw mut offset,
            &raw mut length,
            &raw mut width,
        );
        let start = qjs::JS_GetArrayBuffer(ctx, &raw mut size, buffer);
        if !start.is_null() && offset + length <= size && bytes.len() <= length as usize {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), start.add(offset as usize), bytes.len());
        }
        qjs::JS_FreeValue(ctx, buffer);
    }
}

/// `(kind, element width, big-endian)` of a typed array's tag. The kinds are the engine's.
pub(crate) fn view_kind_of_tag(tag: u64) -> Option<(i32, usize, bool)> {
    Some(match tag {
        68 => (0, 1, false),
        72 => (1, 1, false),
        64 => (2, 1, false),
        77 => (3, 2, false),
        73 => (3, 2, true),
        69 => (4, 2, false),
        65 => (4, 2, true),
        78 => (5, 4, false),
        74 => (5, 4, true),
        70 => (6, 4, false),
        66 => (6, 4, true),
        79 => (7, 8, false),
        75 => (7, 8, true),
        71 => (8, 8, false),
        67 => (8, 8, true),
        84 => (9, 2, false),
        80 => (9, 2, true),
        85 => (10, 4, false),
        81 => (10, 4, true),
        86 => (11, 8, false),
        82 => (11, 8, true),
        _ => return None,
    })
}

/// Tags of typed arrays by the engine's kind.
const VIEW_TAGS: [u64; 12] = [68, 72, 64, 77, 69, 78, 70, 79, 71, 84, 85, 86];

/// One step of the path to a value, for errors.
enum Step {
    Key(Vec<u8>),
    Index(u32),
    Part(&'static str),
}

struct Encoding<'a, 'js> {
    ctx: &'a Ctx<'js>,
    output: Encoder<Vec<u8>>,
    /// Object to where its bytes start, and whether something refers to it.
    seen: BTreeMap<usize, Seen<'js>>,
    /// Where a reference stands and the start of the item that it means.
    references: Vec<(usize, usize)>,
    bytes_max: usize,
    depth_max: usize,
    path: Vec<Step>,
}

struct Seen<'js> {
    start: usize,
    referred: bool,
    /// Keeps the object alive, so that its address is not used again during the encoding.
    _alive: Value<'js>,
}

/// Bytes of a reference: tag 29 and a 32-bit index, filled in at the end.
const REFERENCE_BYTES: usize = 7;

impl<'js> Encoding<'_, 'js> {
    /// The bytes, with shared items marked and references numbered.
    fn finished(self) -> Vec<u8> {
        let bytes = self.output.into_writer();
        if self.references.is_empty() {
            return bytes;
        }
        let mut starts: Vec<usize> = self
            .seen
            .values()
            .filter(|seen| seen.referred)
            .map(|seen| seen.start)
            .collect();
        starts.sort_unstable();
        let mut finished = Vec::with_capacity(bytes.len() + 2 * starts.len());
        let mut references = self.references;
        references.sort_unstable();
        let (mut references, mut marks) =
            (references.into_iter().peekable(), starts.iter().peekable());
        let mut position = 0;
        while position < bytes.len() {
            let next_reference = references.peek().map_or(bytes.len(), |(at, _)| *at);
            let next_mark = marks.peek().map_or(bytes.len(), |at| **at);
            let next = next_reference.min(next_mark);
            finished.extend_from_slice(&bytes[position..next]);
            position = next;
            if next < bytes.len() && next == next_mark {
                finished.extend_from_slice(&[0xd8, tag::SHARED as u8]);
                marks.next();
            } else if next < bytes.len() {
                let (_, start) = references.next().unwrap_or_default();
                let number = starts.binary_search(&start).unwrap_or_default() as u32;
                finished.extend_from_slice(&[0xd8, tag::REFERENCE as u8, 0x1a]);
                finished.extend_from_slice(&number.to_be_bytes());
                position += REFERENCE_BYTES;
            }
        }
        finished
    }

    fn tag(&mut self, tag: u64) {
        let _ = self.output.tag(Tag::new(tag));
    }

    fn bytes(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.reserve(bytes.len())?;
        let _ = self.output.bytes(bytes);
        Ok(())
    }

    /// Refuses before memory is taken for what is too large anyway.
    fn reserve(&self, more: usize) -> Outcome<()> {
        let size = self.output.writer().len() + more;
        if size > self.bytes_max {
            Err(EncodeError::TooLarge(size))
        } else {
            Ok(())
        }
    }

    fn string(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.reserve(bytes.len() + 9)?;
        match std::str::from_utf8(bytes) {
            Ok(text) => drop(self.output.str(text)),
            Err(_) => {
                self.tag(tag::WTF8);
                let _ = self.output.bytes(bytes);
            }
        }
        Ok(())
    }

    fn number(&mut self, number: f64) {
        let whole = number as i64;
        let integral = whole as f64 == number && number.abs() <= 9_007_199_254_740_991.0;
        if integral && !(number == 0.0 && number.is_sign_negative()) {
            let _ = self.output.i64(whole);
        } else {
            let _ = self.output.f64(number);
        }
    }

    /// Encodes one value; `depth` counts the containers around it.
    fn item(&mut self, value: &Value<'js>, depth: usize) -> Outcome<()> {
        if depth > self.depth_max {
            return Err(EncodeError::TooDeep);
        }
        self.reserve(1)?;
        if let Some(int) = value.as_int() {
            let _ = self.output.i32(int);
        } else if let Some(float) = value.as_float() {
            self.number(float);
        } else if value.is_string() {
            // The bytes are copied once: they may not be held while the encoder grows.
            let ctx = value.ctx().clone();
            let outcome = with_text(value, |bytes| self.string(bytes));
            drop(ctx);
            outcome??;
        } else if let Some(bool) = value.as_bool() {
            let _ = self.output.bool(bool);
        } else if value.is_null() {
            let _ = self.output.null();
        } else if value.is_undefined() {
            let _ = self.output.undefined();
        } else if value.is_big_int() {
            self.bigint(value)?;
        } else if value.is_object() {
            self.object(value, depth)?;
        } else {
            return Err(self.refuse(value, "a symbol can't be cloned"));
        }
        Ok(())
    }

    fn bigint(&mut self, value: &Value<'js>) -> Outcome<()> {
        let text: String = state::get()
            .hooks
            .bigint_text(self.ctx)?
            .call((value.clone(),))?;
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, &text[..]),
        };
        let padded = if digits.len() % 2 == 0 {
            digits.to_owned()
        } else {
            format!("0{digits}")
        };
        let mut bytes: Vec<u8> = (0..padded.len() / 2)
            .map(|index| {
                u8::from_str_radix(&padded[2 * index..2 * index + 2], 16).unwrap_or_default()
            })
            .collect();
        if negative {
            // Tag 3 holds -1 - n.
            for byte in bytes.iter_mut().rev() {
                let (less, borrow) = byte.overflowing_sub(1);
                *byte = less;
                if !borrow {
                    break;
                }
            }
        }
        let first = bytes
            .iter()
            .position(|byte| *byte != 0)
            .unwrap_or(bytes.len());
        self.tag(if negative {
            tag::BIGINT_NEGATIVE
        } else {
            tag::BIGINT_POSITIVE
        });
        self.bytes(&bytes[first..])
    }

    fn object(&mut self, value: &Value<'js>, depth: usize) -> Outcome<()> {
        let identity = crate::rejections::identity(value);
        let start = self.output.writer().len();
        if let Some(seen) = self.seen.get_mut(&identity) {
            seen.referred = true;
            self.references.push((start, seen.start));
            self.reserve(REFERENCE_BYTES)?;
            self.output
                .writer_mut()
                .extend_from_slice(&[0; REFERENCE_BYTES]);
            return Ok(());
        }
        self.seen.insert(
            identity,
            Seen {
                start,
                referred: false,
                _alive: value.clone(),
            },
        );
        let samples = state::get().hooks.samples();
        let class = class_id(value);
        if value.is_function() {
            return Err(self.refuse(value, "a function can't be passed yet"));
        }
        if value.is_array() {
            return self.array(value, depth);
        }
        if class == samples.object {
            return self.plain_object(value, depth);
        }
        // SAFETY: only reads the value.
        let view = unsafe { qjs::JS_GetTypedArrayType(value.as_raw()) };
        if let Some(tag) = usize::try_from(view)
            .ok()
            .and_then(|view| VIEW_TAGS.get(view))
        {
            return self.view(value, *tag);
        }
        let hooks = &state::get().hooks;
        if class == samples.date {
            let ms: f64 = hooks.date_value(self.ctx)?.call((value.clone(),))?;
            self.tag(tag::DATE);
            self.number(ms / 1000.0);
            Ok(())
        } else if class == samples.map {
            let entries: Array = hooks.map_entries(self.ctx)?.call((value.clone(),))?;
            self.tag(tag::MAP);
            let _ = self.output.map(entries.len() as u64 / 2);
            self.list(&entries, "map entry", depth)
        } else if class == samples.set {
            let values: Array = hooks.set_values(self.ctx)?.call((value.clone(),))?;
            self.tag(tag::SET);
            let _ = self.output.array(values.len() as u64);
            self.list(&values, "set value", depth)
        } else if class == samples.error {
            self.error(value, depth)
        } else if class == samples.regexp {
            let parts: Array = hooks.regexp_parts(self.ctx)?.call((value.clone(),))?;
            self.tag(tag::REGEXP);
            let _ = self.output.array(2);
            self.list(&parts, "regexp", depth)
        } else if class == samples.array_buffer {
            self.array_buffer(value)
        } else if class == samples.number
            || class == samples.string
            || class == samples.boolean
            || class == samples.bigint
        {
            let primitive: Value = hooks.unbox(self.ctx)?.call((value.clone(),))?;
            self.tag(tag::BOXED);
            self.item(&primitive, depth + 1)
        } else if class == samples.data_view {
            let parts: Array = hooks.view_parts(self.ctx)?.call((value.clone(),))?;
            let (buffer, offset, length): (Value, usize, usize) =
                (parts.get(0)?, parts.get(1)?, parts.get(2)?);
            self.tag(tag::DATA_VIEW);
            self.buffer_bytes(&buffer, offset, length)
        } else if class == samples.promise {
            Err(self.refuse(value, "a promise can't be cloned; await it first"))
        } else {
            Err(self.refuse(value, "it is of a class that can't be cloned"))
        }
    }

    fn list(&mut self, items: &Array<'js>, part: &'static str, depth: usize) -> Outcome<()> {
        self.path.push(Step::Part(part));
        for index in 0..items.len() {
            let item: Value = items.get(index)?;
            self.item(&item, depth + 1)?;
        }
        self.path.pop();
        Ok(())
    }

    fn array(&mut self, value: &Value<'js>, depth: usize) -> Outcome<()> {
        let ctx = self.ctx.as_raw().as_ptr();
        let mut length = 0;
        // SAFETY: only reads the value.
        if unsafe { qjs::JS_GetLength(ctx, value.as_raw(), &raw mut length) } < 0 {
            return Err(Error::Exception.into());
        }
        // An item takes a byte at least: refuse `new Array(4e9)` without walking it.
        self.reserve(length as usize)?;
        let _ = self.output.array(length as u64);
        for index in 0..length as u32 {
            // SAFETY: answers with an owned value.
            let item = unsafe {
                Value::from_raw(
                    self.ctx.clone(),
                    qjs::JS_GetPropertyUint32(ctx, value.as_raw(), index),
                )
            };
            let item = crate::decode::checked(item)?;
            if item.is_undefined() && self.is_hole(value, index)? {
                self.reserve(6)?;
                self.tag(tag::HOLE);
                let _ = self.output.null();
                continue;
            }
            self.path.push(Step::Index(index));
            self.item(&item, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }

    fn is_hole(&self, array: &Value<'js>, index: u32) -> Outcome<bool> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: the atom is freed after its use.
        let outcome = unsafe {
            let atom = qjs::JS_NewAtomUInt32(ctx, index);
            let outcome = qjs::JS_GetOwnProperty(ctx, std::ptr::null_mut(), array.as_raw(), atom);
            qjs::JS_FreeAtom(ctx, atom);
            outcome
        };
        if outcome < 0 {
            Err(Error::Exception.into())
        } else {
            Ok(outcome == 0)
        }
    }

    fn plain_object(&mut self, value: &Value<'js>, depth: usize) -> Outcome<()> {
        // SAFETY: answers with an owned value.
        let prototype = unsafe {
            let raw = qjs::JS_GetPrototype(self.ctx.as_raw().as_ptr(), value.as_raw());
            Value::from_raw(self.ctx.clone(), raw)
        };
        let prototype = crate::decode::checked(prototype)?;
        if crate::rejections::identity(&prototype) != state::get().hooks.samples().object_prototype
        {
            return Err(self.refuse(
                value,
                "only plain objects can be cloned, and this is an instance of a class",
            ));
        }
        let names = PropertyNames::of(self.ctx, value)?;
        let _ = self.output.map(names.len() as u64);
        for name in names.iter() {
            self.key(name)?;
            // SAFETY: the atom lives as long as `names`; answers with an owned value.
            let property = unsafe {
                let raw = qjs::JS_GetProperty(self.ctx.as_raw().as_ptr(), value.as_raw(), name);
                Value::from_raw(self.ctx.clone(), raw)
            };
            let property = crate::decode::checked(property)?;
            self.item(&property, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }

    /// Writes a key and pushes it on the path.
    fn key(&mut self, name: qjs::JSAtom) -> Outcome<()> {
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: answers with an owned value.
        let text = unsafe { Value::from_raw(self.ctx.clone(), qjs::JS_AtomToString(ctx, name)) };
        let bytes = with_text(&text, <[u8]>::to_vec)?;
        self.string(&bytes)?;
        self.path.push(Step::Key(bytes));
        Ok(())
    }

    fn view(&mut self, value: &Value<'js>, tag: u64) -> Outcome<()> {
        let ctx = self.ctx.as_raw().as_ptr();
        let (mut offset, mut length, mut width) = (0, 0, 0);
        // SAFETY: answers with an owned value.
        let buffer = unsafe {
            let raw = qjs::JS_GetTypedArrayBuffer(
                ctx,
                value.as_raw(),
                &raw mut offset,
                &raw mut length,
                &raw mut width,
            );
            Value::from_raw(self.ctx.clone(), raw)
        };
        let buffer = crate::decode::checked(buffer)?;
        self.tag(tag);
        self.buffer_bytes(&buffer, offset as usize, length as usize)
    }

    fn array_buffer(&mut self, value: &Value<'js>) -> Outcome<()> {
        let mut size = 0;
        // SAFETY: only reads the value; a detached buffer answers null with an exception.
        let start = unsafe {
            qjs::JS_GetArrayBuffer(self.ctx.as_raw().as_ptr(), &raw mut size, value.as_raw())
        };
        if start.is_null() && size > 0 {
            return Err(Error::Exception.into());
        }
        self.buffer_bytes(value, 0, size as usize)
    }

    fn buffer_bytes(&mut self, buffer: &Value<'js>, offset: usize, length: usize) -> Outcome<()> {
        self.reserve(length + 9)?;
        let mut size = 0;
        // SAFETY: only reads the value.
        let start = unsafe {
            qjs::JS_GetArrayBuffer(self.ctx.as_raw().as_ptr(), &raw mut size, buffer.as_raw())
        };
        if start.is_null() || length == 0 {
            self.ctx.catch();
            return self.bytes(&[]);
        }
        if offset + length > size as usize {
            return Err(self.refuse(buffer, "its buffer was resized"));
        }
        // SAFETY: the range was checked against the buffer, and nothing runs before the bytes are copied.
        let bytes = unsafe { std::slice::from_raw_parts(start.add(offset), length) };
        self.bytes(bytes)
    }

    fn error(&mut self, value: &Value<'js>, depth: usize) -> Outcome<()> {
        let parts: Array = state::get()
            .hooks
            .error_parts(self.ctx)?
            .call((value.clone(),))?;
        // Pairs of key and value, as `values.js` lists them.
        self.tag(tag::ERROR);
        let _ = self.output.map(parts.len() as u64 / 2);
        for pair in 0..parts.len() / 2 {
            let key: Value = parts.get(2 * pair)?;
            let part: Value = parts.get(2 * pair + 1)?;
            let bytes = with_text(&key, <[u8]>::to_vec)?;
            self.string(&bytes)?;
            self.path.push(Step::Key(bytes));
            self.item(&part, depth + 1)?;
            self.path.pop();
        }
        Ok(())
    }

    /// A DataCloneError that names the path to the value and what can be done.
    fn refuse(&self, value: &Value<'js>, reason: &str) -> EncodeError {
        let mut path = String::from("result");
        for step in &self.path {
            match step {
                Step::Index(index) => path += &format!("[{index}]"),
                Step::Part(part) => path += &format!(" {part}"),
                Step::Key(key) => match std::str::from_utf8(key) {
                    Ok(key) if is_identifier(key) => path += &format!(".{key}"),
                    _ => path += &format!("[{:?}]", String::from_utf8_lossy(key)),
                },
            }
        }
        let message = format!(
            "{} could not be cloned: {reason} (at {path})",
            kind_of(value)
        );
        EncodeError::Threw(data_clone_error(self.ctx, &message))
    }
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|first: char| first.is_ascii_digit())
        && text
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_' || letter == '$')
}

fn kind_of(value: &Value<'_>) -> &'static str {
    if value.is_function() {
        "A function"
    } else if value.is_symbol() {
        "A symbol"
    } else if value.is_promise() {
        "A promise"
    } else {
        "An object"
    }
}

fn data_clone_error(ctx: &Ctx<'_>, message: &str) -> Error {
    let error: Result<Value> = state::get()
        .hooks
        .dom_exception(ctx)
        .and_then(|create: Function| create.call((message, "DataCloneError")));
    match error {
        Ok(error) => ctx.throw(error),
        Err(_) => Exception::throw_type(ctx, message),
    }
}

/// The own enumerable string keys of an object.
struct PropertyNames<'a, 'js> {
    ctx: &'a Ctx<'js>,
    table: *mut qjs::JSPropertyEnum,
    length: u32,
}

impl<'a, 'js> PropertyNames<'a, 'js> {
    fn of(ctx: &'a Ctx<'js>, value: &Value<'js>) -> Result<Self> {
        let (mut table, mut length) = (std::ptr::null_mut(), 0);
        let flags = qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY;
        // SAFETY: table and length are out parameters; the table is freed on drop.
        let outcome = unsafe {
            qjs::JS_GetOwnPropertyNames(
                ctx.as_raw().as_ptr(),
                &raw mut table,
                &raw mut length,
                value.as_raw(),
                flags as _,
            )
        };
        if outcome < 0 {
            Err(Error::Exception)
        } else {
            Ok(Self { ctx, table, length })
        }
    }

    fn len(&self) -> u32 {
        self.length
    }

    fn iter(&self) -> impl Iterator<Item = qjs::JSAtom> {
        // SAFETY: every index is below the length that came with the table.
        (0..self.length as usize).map(|index| unsafe { (*self.table.add(index)).atom })
    }
}

impl Drop for PropertyNames<'_, '_> {
    fn drop(&mut self) {
        // SAFETY: the table came from the engine and is freed once.
        unsafe { qjs::JS_FreePropertyEnum(self.ctx.as_raw().as_ptr(), self.table, self.length) }
    }
}
