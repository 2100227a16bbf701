//! Bytes to JavaScript values, by `schema/value.md`.
//!
//! The bytes come from a client through the host, which has not looked into them: everything is checked here. Objects
//! are built with define, never with set, so that no setter or prototype of the worker's takes part.

use crate::{
    encode,
    engine::js::{self, Ctx, Error, Object, Result, Value, qjs},
    state,
};
use coracle_abi::{Encoded, Form};
use coracle_value::tag;
use minicbor::{Decoder, data::Type};

/// Why bytes did not become a value.
pub(crate) enum DecodeError {
    /// Nested deeper than allowed.
    TooDeep,
    /// Not what `schema/value.md` describes; the text is for the client.
    Malformed(String),
    /// The engine threw: out of memory, or JSON that does not parse.
    Threw(Error),
}

impl From<Error> for DecodeError {
    fn from(error: Error) -> Self {
        Self::Threw(error)
    }
}

impl From<minicbor::decode::Error> for DecodeError {
    fn from(error: minicbor::decode::Error) -> Self {
        Self::Malformed(format!("the value is not well-formed CBOR: {error}"))
    }
}

type Outcome<T> = std::result::Result<T, DecodeError>;

/// Decodes a value in any form.
pub(crate) fn value<'js>(
    ctx: &Ctx<'js>,
    encoded: &Encoded<'_>,
    depth_max: usize,
) -> Outcome<Value<'js>> {
    match encoded.form {
        Form::Undefined => Ok(Value::new_undefined(ctx.clone())),
        Form::Json => Ok(ctx.json_parse(&encoded.bytes[..])?),
        Form::Cbor => {
            let mut decoding = Decoding {
                ctx,
                input: Decoder::new(encoded.bytes),
                shared: Vec::new(),
                depth_max,
            };
            let value = decoding.item(0, None)?;
            if decoding.input.position() != encoded.bytes.len() {
                return Err(DecodeError::Malformed(format!(
                    "bytes are left after the value, at {}",
                    decoding.input.position()
                )));
            }
            Ok(value)
        }
    }
}

/// A JavaScript string from UTF-8 or WTF-8.
pub(crate) fn string<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Value<'js> {
    // SAFETY: the engine copies `bytes` and answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewStringLen(
            ctx.as_raw().as_ptr(),
            bytes.as_ptr().cast(),
            bytes.len() as _,
        );
        Value::from_raw(ctx.clone(), raw)
    }
}

/// An array of `values`.
pub(crate) fn array<'js>(ctx: &Ctx<'js>, values: Vec<Value<'js>>) -> Value<'js> {
    // The engine takes the references over.
    let raw: Vec<qjs::JSValue> = values.iter().map(Value::as_raw).collect();
    std::mem::forget(values);
    // SAFETY: `raw` holds owned references, of which the call takes possession.
    unsafe {
        let array = qjs::JS_NewArrayFrom(ctx.as_raw().as_ptr(), raw.len() as _, raw.as_ptr());
        Value::from_raw(ctx.clone(), array)
    }
}

/// Evaluates a script of ours under `name`, outside of any module.
pub(crate) fn eval_script<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    source: impl Into<Vec<u8>>,
) -> Result<Value<'js>> {
    let mut source: Vec<u8> = source.into();
    let length = source.len();
    source.push(0);
    let name = std::ffi::CString::new(name)?;
    // SAFETY: both strings end in NUL and outlive the call, which answers with an owned value.
    let value = unsafe {
        let flags = qjs::JS_EVAL_TYPE_GLOBAL;
        let raw = qjs::JS_Eval(
            ctx.as_raw().as_ptr(),
            source.as_ptr().cast(),
            length as _,
            name.as_ptr(),
            flags as _,
        );
        Value::from_raw(ctx.clone(), raw)
    };
    checked(value)
}

/// Turns the engine's exception marker into an error.
pub(crate) fn checked(value: Value<'_>) -> Result<Value<'_>> {
    if value.is_exception() {
        Err(Error::Exception)
    } else {
        Ok(value)
    }
}

/// Defines an own data property, writable, enumerable and configurable.
pub(crate) fn define<'js>(object: &Value<'js>, key: &[u8], value: Value<'js>) -> Result<()> {
    let ctx = object.ctx();
    let raw_ctx = ctx.as_raw().as_ptr();
    // SAFETY: the atom is freed after its last use; the call takes the reference of `value` over.
    let outcome = unsafe {
        let atom = qjs::JS_NewAtomLen(raw_ctx, key.as_ptr().cast(), key.len() as _);
        let raw = value.as_raw();
        std::mem::forget(value);
        let outcome = qjs::JS_DefinePropertyValue(
            raw_ctx,
            object.as_raw(),
            atom,
            raw,
            qjs::JS_PROP_C_W_E as _,
        );
        qjs::JS_FreeAtom(raw_ctx, atom);
        outcome
    };
    if outcome < 0 {
        Err(Error::Exception)
    } else {
        Ok(())
    }
}

/// `structuredClone`: through the codec, so that both agree.
pub(crate) fn structured_clone<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<Value<'js>> {
    let bytes = match encode::cbor(&ctx, &value, usize::MAX, STRUCTURED_CLONE_DEPTH_MAX) {
        Ok(bytes) => bytes,
        Err(encode::EncodeError::TooDeep | encode::EncodeError::TooLarge(_)) => {
            return Err(js::Exception::throw_range(
                &ctx,
                "the value is nested too deeply to be cloned",
            ));
        }
        Err(encode::EncodeError::Threw(error)) => return Err(error),
    };
    let encoded = Encoded {
        form: Form::Cbor,
        bytes: bytes[..].into(),
    };
    value_or_throw(
        &ctx,
        self::value(&ctx, &encoded, STRUCTURED_CLONE_DEPTH_MAX),
    )
}

const STRUCTURED_CLONE_DEPTH_MAX: usize = 512;

fn value_or_throw<'js>(ctx: &Ctx<'js>, outcome: Outcome<Value<'js>>) -> Result<Value<'js>> {
    match outcome {
        Ok(value) => Ok(value),
        Err(DecodeError::Threw(error)) => Err(error),
        Err(DecodeError::TooDeep) => Err(js::Exception::throw_range(
            ctx,
            "the value is nested too deeply",
        )),
        Err(DecodeError::Malformed(text)) => Err(js::Exception::throw_type(ctx, &text)),
    }
}

struct Decoding<'a, 'b, 'js> {
    ctx: &'a Ctx<'js>,
    input: Decoder<'b>,
    /// Items under tag 28, in order of appearance; `None` while the item is not there yet.
    shared: Vec<Option<Value<'js>>>,
    depth_max: usize,
}

impl<'js> Decoding<'_, '_, 'js> {
    /// Decodes one item. `slot`: where in `shared` the item must be registered before its children are decoded.
    fn item(&mut self, depth: usize, slot: Option<usize>) -> Outcome<Value<'js>> {
        if depth > self.depth_max {
            return Err(DecodeError::TooDeep);
        }
        let ctx = self.ctx.clone();
        Ok(match self.input.datatype()? {
            Type::Null => {
                self.input.null()?;
                Value::new_null(ctx)
            }
            Type::Undefined => {
                self.input.undefined()?;
                Value::new_undefined(ctx)
            }
            Type::Bool => Value::new_bool(ctx, self.input.bool()?),
            Type::U8
            | Type::U16
            | Type::U32
            | Type::U64
            | Type::I8
            | Type::I16
            | Type::I32
            | Type::I64
            | Type::Int => {
                let int = i128::from(self.input.int()?);
                match i32::try_from(int) {
                    Ok(small) => Value::new_int(ctx, small),
                    Err(_) => Value::new_number(ctx, int as f64),
                }
            }
            Type::F16 | Type::F32 | Type::F64 => Value::new_number(ctx, self.input.f64()?),
            Type::String | Type::StringIndef => self.text()?,
            Type::Bytes | Type::BytesIndef => {
                let bytes = self.bytes()?;
                let buffer = self.array_buffer(&bytes)?;
                self.register(slot, &buffer);
                buffer
            }
            Type::Array | Type::ArrayIndef => self.array(depth, slot)?,
            Type::Map | Type::MapIndef => self.object(depth, slot)?,
            Type::Tag => self.tagged(depth, slot)?,
            other => {
                return Err(DecodeError::Malformed(format!(
                    "{other} has no JavaScript value"
                )));
            }
        })
    }

    fn register(&mut self, slot: Option<usize>, value: &Value<'js>) {
        if let Some(slot) = slot {
            self.shared[slot] = Some(value.clone());
        }
    }

    fn text(&mut self) -> Outcome<Value<'js>> {
        let mut joined = String::new();
        let mut parts = 0;
        let mut whole = None;
        for part in self.input.str_iter()? {
            let part = part?;
            parts += 1;
            if parts == 1 {
                whole = Some(part)
            } else {
                if let Some(first) = whole.take() {
                    joined.push_str(first)
                }
                joined.push_str(part);
            }
        }
        Ok(string(self.ctx, whole.unwrap_or(&joined).as_bytes()))
    }

    fn bytes(&mut self) -> Outcome<Vec<u8>> {
        let mut joined = Vec::new();
        for part in self.input.bytes_iter()? {
            joined.extend_from_slice(part?);
        }
        Ok(joined)
    }

    fn array_buffer(&self, bytes: &[u8]) -> Outcome<Value<'js>> {
        // SAFETY: the engine copies `bytes` and answers with an owned value.
        let value = unsafe {
            let raw = qjs::JS_NewArrayBufferCopy(
                self.ctx.as_raw().as_ptr(),
                bytes.as_ptr(),
                bytes.len() as _,
            );
            Value::from_raw(self.ctx.clone(), raw)
        };
        Ok(checked(value)?)
    }

    /// The items of an array, until its end.
    fn items(
        &mut self,
        depth: usize,
        mut each: impl FnMut(&mut Self, Value<'js>) -> Outcome<()>,
    ) -> Outcome<()> {
        match self.input.array()? {
            Some(length) => {
                for _ in 0..length {
                    let item = self.item(depth + 1, None)?;
                    each(self, item)?;
                }
            }
            None => {
                while self.input.datatype()? != Type::Break {
                    let item = self.item(depth + 1, None)?;
                    each(self, item)?;
                }
                self.input.skip()?;
            }
        }
        Ok(())
    }

    /// An array. Its items are collected and become an array at once, until a hole is met or unless the array must
    /// exist before its items because they may refer to it; from there on items are defined one by one.
    fn array(&mut self, depth: usize, slot: Option<usize>) -> Outcome<Value<'js>> {
        let mut collected = Vec::new();
        let mut in_place = None;
        if slot.is_some() {
            let empty = array(self.ctx, Vec::new());
            self.register(slot, &empty);
            in_place = Some(empty);
        }
        let length = self.input.array()?;
        let mut index: u32 = 0;
        loop {
            match length {
                Some(length) if u64::from(index) == length => break,
                None if self.input.datatype()? == Type::Break => {
                    self.input.skip()?;
                    break;
                }
                _ => {}
            }
            let hole = self.hole()?;
            if hole && in_place.is_none() {
                in_place = Some(checked(array(self.ctx, std::mem::take(&mut collected)))?);
            }
            if !hole {
                let item = self.item(depth + 1, None)?;
                match &in_place {
                    Some(array) => self.define_index(array, index, item)?,
                    None => collected.push(item),
                }
            }
            index = index
                .checked_add(1)
                .ok_or_else(|| DecodeError::Malformed("the array is too long".into()))?;
        }
        let Some(array) = in_place else {
            return Ok(checked(array(self.ctx, collected))?);
        };
        // SAFETY: `array` is an array; this sets its length, for holes at its end.
        if unsafe {
            qjs::JS_SetLength(self.ctx.as_raw().as_ptr(), array.as_raw(), i64::from(index))
        } < 0
        {
            return Err(Error::Exception.into());
        }
        Ok(array)
    }

    /// Takes a hole, if one comes next.
    fn hole(&mut self) -> Outcome<bool> {
        if self.input.datatype()? != Type::Tag {
            return Ok(false);
        }
        let position = self.input.position();
        if self.input.tag()?.as_u64() == tag::HOLE {
            self.input.null()?;
            return Ok(true);
        }
        self.input.set_position(position);
        Ok(false)
    }

    fn define_index(&self, array: &Value<'js>, index: u32, item: Value<'js>) -> Outcome<()> {
        let raw = item.as_raw();
        std::mem::forget(item);
        let ctx = self.ctx.as_raw().as_ptr();
        // SAFETY: the call takes the item's reference over.
        let outcome = unsafe {
            qjs::JS_DefinePropertyValueUint32(
                ctx,
                array.as_raw(),
                index,
                raw,
                qjs::JS_PROP_C_W_E as _,
            )
        };
        if outcome < 0 {
            Err(Error::Exception.into())
        } else {
            Ok(())
        }
    }

    fn object(&mut self, depth: usize, slot: Option<usize>) -> Outcome<Value<'js>> {
        let object = Object::new(self.ctx.clone())?.into_value();
        self.register(slot, &object);
        self.fields(depth, &object)?;
        Ok(object)
    }

    /// The entries of a map with string keys, defined on `object`.
    fn fields(&mut self, depth: usize, object: &Value<'js>) -> Outcome<()> {
        let length = self.input.map()?;
        let mut count = 0;
        loop {
            match length {
                Some(length) if count == length => return Ok(()),
                None if self.input.datatype()? == Type::Break => {
                    self.input.skip()?;
                    return Ok(());
                }
                _ => count += 1,
            }
            match self.input.datatype()? {
                Type::String => {
                    let key = self.input.str()?;
                    let value = self.item(depth + 1, None)?;
                    define(object, key.as_bytes(), value)?;
                }
                Type::StringIndef => {
                    let mut key = String::new();
                    for part in self.input.str_iter()? {
                        key.push_str(part?);
                    }
                    let value = self.item(depth + 1, None)?;
                    define(object, key.as_bytes(), value)?;
                }
                Type::Tag if self.input.tag()?.as_u64() == tag::WTF8 => {
                    let key = self.bytes()?;
                    let value = self.item(depth + 1, None)?;
                    define(object, &key, value)?;
                }
                other => {
                    return Err(DecodeError::Malformed(format!(
                        "an object has a key that is {other}"
                    )));
                }
            }
        }
    }

    fn tagged(&mut self, depth: usize, slot: Option<usize>) -> Outcome<Value<'js>> {
        let ctx = self.ctx.clone();
        let hooks = &state::get().hooks;
        let tag = self.input.tag()?.as_u64();
        match tag {
            tag::SHARED => {
                if slot.is_some() {
                    return Err(DecodeError::Malformed(
                        "an item is marked as shared twice".into(),
                    ));
                }
                self.shared.push(None);
                let slot = self.shared.len() - 1;
                let value = self.item(depth, Some(slot))?;
                self.register(Some(slot), &value);
                Ok(value)
            }
            tag::REFERENCE => {
                let index = self.input.u32()?;
                self.shared
                    .get(index as usize)
                    .and_then(Clone::clone)
                    .ok_or_else(|| {
                        DecodeError::Malformed(format!(
                            "reference {index} names an item that is not there yet"
                        ))
                    })
            }
            tag::BIGINT_POSITIVE | tag::BIGINT_NEGATIVE => {
                let bytes = self.bytes()?;
                let mut hex = String::with_capacity(bytes.len() * 2 + 2);
                for byte in &bytes {
                    hex.push_str(&format!("{byte:02x}"));
                }
                if hex.is_empty() {
                    hex.push('0');
                }
                Ok(hooks
                    .bigint(&ctx)?
                    .call((hex, tag == tag::BIGINT_NEGATIVE))?)
            }
            tag::WTF8 => {
                let bytes = self.bytes()?;
                Ok(string(&ctx, &bytes))
            }
            tag::DATE => {
                let seconds = match self.input.datatype()? {
                    Type::F16 | Type::F32 | Type::F64 => self.input.f64()?,
                    _ => i128::from(self.input.int()?) as f64,
                };
                let ms = (seconds * 1000.0).round();
                // SAFETY: answers with an owned value.
                let date = unsafe {
                    Value::from_raw(ctx.clone(), qjs::JS_NewDate(ctx.as_raw().as_ptr(), ms))
                };
                let date = checked(date)?;
                self.register(slot, &date);
                Ok(date)
            }
            tag::REGEXP => {
                let length = self.input.array()?;
                if length != Some(2) {
                    return Err(DecodeError::Malformed(
                        "a regular expression is an array of source and flags".into(),
                    ));
                }
                let source = self.item(depth + 1, None)?;
                let flags = self.item(depth + 1, None)?;
                if !source.is_string() || !flags.is_string() {
                    return Err(DecodeError::Malformed(
                        "a regular expression has a part that is not a string".into(),
                    ));
                }
                let regexp: Value = hooks.regexp(&ctx)?.call((source, flags))?;
                self.register(slot, &regexp);
                Ok(regexp)
            }
            tag::MAP => {
                let map: Value = hooks.create(&ctx)?.call(("map",))?;
                self.register(slot, &map);
                let mut flat = Vec::new();
                let length = self.input.map()?;
                let mut count = 0;
                loop {
                    match length {
                        Some(length) if count == length => break,
                        None if self.input.datatype()? == Type::Break => {
                            self.input.skip()?;
                            break;
                        }
                        _ => count += 1,
                    }
                    flat.push(self.item(depth + 1, None)?);
                    flat.push(self.item(depth + 1, None)?);
                }
                hooks
                    .map_fill(&ctx)?
                    .call::<_, ()>((map.clone(), array(&ctx, flat)))?;
                Ok(map)
            }
            tag::SET => {
                let set: Value = hooks.create(&ctx)?.call(("set",))?;
                self.register(slot, &set);
                let mut values = Vec::new();
                self.items(depth, |_, item| {
                    values.push(item);
                    Ok(())
                })?;
                hooks
                    .set_fill(&ctx)?
                    .call::<_, ()>((set.clone(), array(&ctx, values)))?;
                Ok(set)
            }
            tag::BOXED => {
                let primitive = self.item(depth + 1, None)?;
                if primitive.is_object() || primitive.is_null() || primitive.is_undefined() {
                    return Err(DecodeError::Malformed(
                        "only a primitive can be boxed".into(),
                    ));
                }
                let boxed: Value = hooks.create(&ctx)?.call(("boxed", primitive))?;
                self.register(slot, &boxed);
                Ok(boxed)
            }
            tag::ERROR => self.error(depth, slot),
            tag::DATA_VIEW => {
                let bytes = self.bytes()?;
                let buffer = self.array_buffer(&bytes)?;
                let view: Value = hooks.view(&ctx)?.call((-1, buffer))?;
                self.register(slot, &view);
                Ok(view)
            }
            tag::HOLE => Err(DecodeError::Malformed(
                "a hole stands outside of an array".into(),
            )),
            tag::EXTERNAL => Err(DecodeError::Malformed(
                "the value refers to an external, which this version does not pass".into(),
            )),
            _ => match encode::view_kind_of_tag(tag) {
                Some((kind, width, big_endian)) => {
                    let mut bytes = self.bytes()?;
                    if bytes.len() % width != 0 {
                        return Err(DecodeError::Malformed(format!(
                            "a typed array of {width}-byte elements has {} bytes",
                            bytes.len()
                        )));
                    }
                    if big_endian {
                        bytes.chunks_exact_mut(width).for_each(<[u8]>::reverse);
                    }
                    let buffer = self.array_buffer(&bytes)?;
                    let view: Value = hooks.view(&ctx)?.call((kind, buffer))?;
                    self.register(slot, &view);
                    Ok(view)
                }
                None => Err(DecodeError::Malformed(format!("tag {tag} is not known"))),
            },
        }
    }

    fn error(&mut self, depth: usize, slot: Option<usize>) -> Outcome<Value<'js>> {
        let ctx = self.ctx.clone();
        let hooks = &state::get().hooks;
        // The class is chosen by the name, which may stand anywhere in the map: look ahead.
        let position = self.input.position();
        let name = self.error_name()?;
        self.input.set_position(position);
        let error: Value = hooks.create(&ctx)?.call(("error", name))?;
        self.register(slot, &error);
        let parts = Object::new(ctx.clone())?.into_value();
        self.fields(depth, &parts)?;
        hooks
            .error_fill(&ctx)?
            .call::<_, ()>((error.clone(), parts))?;
        Ok(error)
    }

    fn error_name(&mut self) -> Outcome<String> {
        let length = self.input.map()?;
        let mut count = 0;
        loop {
            match length {
                Some(length) if count == length => return Ok("Error".into()),
                None if self.input.datatype()? == Type::Break => return Ok("Error".into()),
                _ => count += 1,
            }
            if self.input.datatype()? == Type::String {
                let key = self.input.str()?;
                if key == "name" && self.input.datatype()? == Type::String {
                    return Ok(self.input.str()?.into());
                }
            } else {
                self.input.skip()?;
            }
            self.input.skip()?;
        }
    }
}
