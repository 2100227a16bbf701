//! JavaScript values to bytes, by `schema/value.md`.
//!
//! Encoding runs worker code (getters), so it holds no borrow of our state while it does, takes nothing from prototypes
//! that a worker can patch, and looks at every buffer and array anew when it comes to it: what it has seen of them
//! before may have been resized or detached. It keeps its own stack, one frame an open object, and does not recurse by
//! the value's nesting.
//!
//! All properties of an object are read before any of its members is looked into, so that the count in the bytes is
//! the number of members whatever the getters of the members do.

mod output;
mod refusal;

pub(crate) use refusal::data_clone_error;

use crate::{
    engine::js::{Array, Ctx, Error, Exception, Result, Value},
    externals, interfaces,
    prelude::Hooks,
    raw::{self, Key},
    stack, state,
};
use coracle_abi::{EXTERNALS_MAX, External};
use coracle_value::{sink::Field, tag};
use output::Output;
use std::{collections::BTreeMap, vec};

/// Why a value did not become bytes.
pub(crate) enum EncodeError {
    /// Nested deeper than allowed.
    TooDeep,
    /// Larger than allowed; the size that it would have had by then.
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

/// How a value is to be encoded.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// What the value is called in errors.
    pub(crate) root: &'static str,
    /// Bytes that it may take.
    pub(crate) bytes_max: usize,
    /// Arrays and maps that may be open at once.
    pub(crate) depth_max: usize,
    /// What becomes of instances of a worker's classes.
    pub(crate) instances: Instances,
    /// What becomes of functions, targets and stubs.
    pub(crate) references: References,
}

/// What becomes of functions, targets and stubs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum References {
    /// Here only data can be passed.
    Refused,
    /// They become entries of the table, given out to somebody outside.
    GivenOut,
    /// They become stubs of their own, for somebody in this isolate.
    Copied,
}

/// An encoded value.
pub(crate) struct EncodedValue<'js> {
    /// CBOR.
    pub(crate) bytes: Vec<u8>,
    /// What it refers to by index, if that was given out.
    pub(crate) externals: Vec<External>,
    /// What it refers to by index, if that was copied.
    pub(crate) copies: Vec<Value<'js>>,
    /// The objects that are referred to.
    pub(crate) referred: Vec<Value<'js>>,
}

/// The exception that says why a value did not become bytes.
pub(crate) fn thrown(ctx: &Ctx<'_>, error: EncodeError) -> Error {
    match error {
        EncodeError::Threw(error) => error,
        EncodeError::TooDeep => {
            Exception::throw_range(ctx, "The value is nested too deeply to be passed.")
        }
        EncodeError::TooLarge(size) => Exception::throw_range(
            ctx,
            &format!("The value is too large to be passed: it has more than {size} bytes."),
        ),
    }
}

/// What becomes of instances of a worker's classes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instances {
    /// Refused, as in Workers RPC: a copy would have lost its methods unnoticed.
    Refused,
    /// Plain objects.
    Plain,
    /// As for the web's `structuredClone`: plain objects, but for those of the web platform, which are copied or refused.
    Cloned,
}

/// Encodes a value in CBOR.
pub(crate) fn cbor<'js>(
    ctx: &Ctx<'js>,
    value: &Value<'js>,
    manner: Manner,
) -> Outcome<EncodedValue<'js>> {
    let mut encoding = Encoding {
        ctx,
        hooks: &state::get().hooks,
        output: Output::new(manner.bytes_max),
        seen: BTreeMap::new(),
        frames: Vec::new(),
        externals: Vec::new(),
        copies: Vec::new(),
        referred: Vec::new(),
        manner,
    };
    let outcome = encoding.run(value);
    if outcome.is_err() {
        // What was given out with a value that goes nowhere.
        externals::release(ctx, &encoding.externals);
    }
    outcome?;
    Ok(EncodedValue {
        bytes: encoding.output.finished(),
        externals: encoding.externals,
        copies: encoding.copies,
        referred: encoding.referred,
    })
}

struct Encoding<'c, 'js> {
    ctx: &'c Ctx<'js>,
    hooks: &'static Hooks,
    output: Output,
    /// Object to where its bytes begin. The object is kept alive: a getter's result has no other owner, and its address
    /// must not become that of another object.
    seen: BTreeMap<usize, (usize, Value<'js>)>,
    /// What is open, innermost last.
    frames: Vec<Frame<'js>>,
    externals: Vec<External>,
    copies: Vec<Value<'js>>,
    referred: Vec<Value<'js>>,
    manner: Manner,
}

/// An object whose members are being written.
enum Frame<'js> {
    Array {
        array: Value<'js>,
        length: u32,
        /// The element after the one that is being written.
        next: u32,
    },
    /// The properties of an object, or of an error under `props`.
    Properties {
        left: vec::IntoIter<(Key<'js>, Value<'js>)>,
        current: Option<Key<'js>>,
    },
    /// The members of a `Map` or `Set`.
    Members {
        kind: &'static str,
        left: vec::IntoIter<Value<'js>>,
    },
    Error {
        left: vec::IntoIter<(Field, Value<'js>)>,
        /// None while `props` are being written, which are the error's own properties.
        current: Option<Field>,
        props: Vec<(Key<'js>, Value<'js>)>,
    },
}

/// What an error carries under its own name in the bytes; other properties are further down, under `props`.
const FIXED_FIELDS: [Field; 5] = [
    Field::Name,
    Field::Message,
    Field::Stack,
    Field::Cause,
    Field::Errors,
];

impl<'js> Encoding<'_, 'js> {
    fn run(&mut self, value: &Value<'js>) -> Outcome<()> {
        self.item(value)?;
        while !self.frames.is_empty() {
            match self.next_member()? {
                Some(member) => self.item(&member)?,
                None => drop(self.frames.pop()),
            }
        }
        Ok(())
    }

    /// Writes an object that is passed by reference. False: this one is not.
    fn reference(&mut self, value: &Value<'js>) -> Outcome<bool> {
        let index = self.referred.len();
        if index >= EXTERNALS_MAX {
            let reason = "there are more than 10,000 in one value";
            return Err(self.refuse("A function or stub", reason));
        }
        match self.manner.references {
            References::Refused => return Ok(false),
            References::GivenOut => match externals::of_value(self.ctx, value)? {
                Some(external) => self.externals.push(external),
                None => return Ok(false),
            },
            References::Copied => match externals::copy_of(self.ctx, value)? {
                Some(copy) => self.copies.push(copy),
                None => return Ok(false),
            },
        }
        self.referred.push(value.clone());
        self.output.external(index)?;
        Ok(true)
    }

    /// Writes what stands before the next member of what is open, and answers it.
    fn next_member(&mut self) -> Outcome<Option<Value<'js>>> {
        let output = &mut self.output;
        match self.frames.last_mut() {
            None => Ok(None),
            Some(Frame::Array {
                array,
                length,
                next,
            }) => {
                while *next < *length {
                    let element = raw::own_element(array, *next)?;
                    *next += 1;
                    match element {
                        Some(element) => return Ok(Some(element)),
                        None => output.hole()?,
                    }
                }
                Ok(None)
            }
            Some(Frame::Properties { left, current }) => {
                let Some((key, value)) = left.next() else {
                    return Ok(None);
                };
                key.with_text(|text| output.text(text))??;
                *current = Some(key);
                Ok(Some(value))
            }
            Some(Frame::Members { left, .. }) => Ok(left.next()),
            Some(Frame::Error {
                left,
                current,
                props,
            }) => {
                if let Some((field, value)) = left.next() {
                    output.text(field.key().as_bytes())?;
                    *current = Some(field);
                    return Ok(Some(value));
                }
                if props.is_empty() {
                    return Ok(None);
                }
                *current = None;
                let props = std::mem::take(props);
                output.text(Field::Props.key().as_bytes())?;
                self.open_properties(props)?;
                self.next_member()
            }
        }
    }

    /// Writes one value up to where its members begin.
    fn item(&mut self, value: &Value<'js>) -> Outcome<()> {
        if value.is_object() {
            return self.object(value);
        }
        if let Some(number) = value.as_number() {
            self.output.number(number)
        } else if value.is_string() {
            raw::with_text(value, |text| self.output.text(text))?
        } else if let Some(bool) = value.as_bool() {
            self.output.bool(bool)
        } else if value.is_null() {
            self.output.null()
        } else if value.is_undefined() {
            self.output.undefined()
        } else if value.is_big_int() {
            self.bigint(value)
        } else {
            Err(self.refuse("A symbol", "symbols have no copies"))
        }
    }

    fn bigint(&mut self, value: &Value<'js>) -> Outcome<()> {
        let text: Value = self.hooks.bigint_text(self.ctx)?.call((value.clone(),))?;
        raw::with_text(&text, |text| match text {
            [b'-', digits @ ..] => self.output.bigint(true, digits),
            digits => self.output.bigint(false, digits),
        })?
    }

    fn open(&mut self, frame: Frame<'js>) {
        self.frames.push(frame);
    }

    /// Must be asked before the head of an array or map is written.
    fn check_depth(&self) -> Outcome<()> {
        if self.frames.len() >= self.manner.depth_max {
            return Err(EncodeError::TooDeep);
        }
        Ok(())
    }

    fn object(&mut self, value: &Value<'js>) -> Outcome<()> {
        let identity = raw::identity(value);
        if let Some((start, _)) = self.seen.get(&identity) {
            return self.output.reference(*start);
        }
        let start = self.output.position();
        self.seen.insert(identity, (start, value.clone()));
        let samples = self.hooks.samples();
        let class = raw::class_id(value);
        if class == samples.object {
            self.plain_object(value)
        } else if class == samples.array {
            self.array(value)
        } else if let Some(kind) = raw::typed_array_kind(value) {
            if raw::typed_array_buffer(value).is_none() {
                return Err(self.refuse_out_of_bounds());
            }
            self.output.tag(kind.tag())?;
            self.view(value)
        } else if class == samples.error || class == samples.dom_exception {
            self.error(value)
        } else if class == samples.map {
            self.check_depth()?;
            let entries: Array = self.hooks.map_entries(self.ctx)?.call((value.clone(),))?;
            self.output.tag(tag::MAP)?;
            self.output.map(entries.len() / 2)?;
            self.open_members("entry", &entries)
        } else if class == samples.set {
            self.check_depth()?;
            let members: Array = self.hooks.set_values(self.ctx)?.call((value.clone(),))?;
            self.output.tag(tag::SET)?;
            self.output.array(members.len())?;
            self.open_members("member", &members)
        } else if class == samples.date {
            let ms: f64 = self.hooks.date_value(self.ctx)?.call((value.clone(),))?;
            self.output.tag(tag::DATE)?;
            self.output.number(ms / 1000.0)
        } else if class == samples.regexp {
            self.regexp(value)
        } else if class == samples.array_buffer {
            self.buffer(value, None)
        } else if class == samples.data_view {
            self.output.tag(tag::DATA_VIEW)?;
            self.view(value)
        } else if samples.boxed.contains(&class) {
            let primitive: Value = self.hooks.unbox(self.ctx)?.call((value.clone(),))?;
            self.output.tag(tag::BOXED)?;
            self.item(&primitive)
        } else if self.reference(value)? {
            Ok(())
        } else {
            let (what, reason) = refusal::of_object(value, samples);
            Err(self.refuse(what, reason))
        }
    }

    fn open_members(&mut self, kind: &'static str, members: &Array<'js>) -> Outcome<()> {
        let members: Vec<Value> = members.iter().collect::<Result<_>>()?;
        let left = members.into_iter();
        self.open(Frame::Members { kind, left });
        Ok(())
    }

    fn array(&mut self, array: &Value<'js>) -> Outcome<()> {
        self.check_depth()?;
        let length = raw::length(array)?;
        self.output.array(length as usize)?;
        self.open(Frame::Array {
            array: array.clone(),
            length,
            next: 0,
        });
        Ok(())
    }

    fn plain_object(&mut self, object: &Value<'js>) -> Outcome<()> {
        let is_cloned = self.manner.instances == Instances::Cloned;
        if is_cloned || self.manner.instances == Instances::Refused {
            let prototype = raw::prototype(object)?;
            let plain = self.hooks.samples().object_prototype;
            if !prototype.is_null() && raw::identity(&prototype) != plain {
                let content = interfaces::content_of(self.ctx, object, is_cloned)?;
                if let Some((interface, content)) = content {
                    self.output.tag(interface.tag())?;
                    return match interface.has_keys() {
                        true => self.plain_object(&content),
                        false => self.array(&content),
                    };
                }
                if !is_cloned {
                    if self.reference(object)? {
                        return Ok(());
                    }
                    return Err(self.refuse(
                        "An instance of a class",
                        "its methods would be lost; make a plain object of what is to be sent",
                    ));
                }
            }
        }
        let properties = self.properties(object, |_| true)?;
        self.open_properties(properties)
    }

    /// The own enumerable properties of an object whose keys are wanted. Runs all their getters.
    fn properties(
        &mut self,
        object: &Value<'js>,
        wanted: impl Fn(&[u8]) -> bool,
    ) -> Outcome<Vec<(Key<'js>, Value<'js>)>> {
        let keys = raw::own_keys(object)?;
        let mut properties = Vec::with_capacity(keys.len());
        for key in keys {
            if !key.with_text(&wanted)? {
                continue;
            }
            // A getter may have deleted the property.
            if let Some(value) = raw::own_value(object, &key)? {
                properties.push((key, value));
            }
        }
        Ok(properties)
    }

    fn open_properties(&mut self, properties: Vec<(Key<'js>, Value<'js>)>) -> Outcome<()> {
        self.check_depth()?;
        self.output.map(properties.len())?;
        self.open(Frame::Properties {
            left: properties.into_iter(),
            current: None,
        });
        Ok(())
    }

    fn error(&mut self, error: &Value<'js>) -> Outcome<()> {
        self.check_depth()?;
        let own = |key: Field| -> Result<Option<Value<'js>>> {
            raw::own_value(error, &Key::new(self.ctx, key.key().as_bytes())?)
        };
        let name = stack::text_property(error, Field::Name)?.unwrap_or_else(|| b"Error".to_vec());
        let message = stack::text_property(error, Field::Message)?.unwrap_or_default();
        let stack = stack::of_error(error, &name, &message)?;
        let mut fields = Vec::new();
        for field in [Field::Cause, Field::Errors] {
            if let Some(value) = own(field)? {
                fields.push((field, value));
            }
        }
        let mut props = self.properties(error, |key| {
            FIXED_FIELDS
                .iter()
                .all(|field| field.key().as_bytes() != key)
        })?;
        // As in Workers: methods of an error don't travel.
        props.retain(|(_, value)| !value.is_function());
        let count =
            2 + usize::from(stack.is_some()) + fields.len() + usize::from(!props.is_empty());
        self.output.tag(tag::ERROR)?;
        self.output.map(count)?;
        let mut text = |field: Field, text: &[u8]| {
            self.output.text(field.key().as_bytes())?;
            self.output.text(text)
        };
        text(Field::Name, &name)?;
        text(Field::Message, &message)?;
        if let Some(stack) = stack {
            text(Field::Stack, &stack)?;
        }
        self.open(Frame::Error {
            left: fields.into_iter(),
            current: None,
            props,
        });
        Ok(())
    }

    fn regexp(&mut self, value: &Value<'js>) -> Outcome<()> {
        self.check_depth()?;
        let parts: Array = self.hooks.regexp_parts(self.ctx)?.call((value.clone(),))?;
        self.output.tag(tag::REGEXP)?;
        self.output.array(2)?;
        for index in 0..2 {
            let part: Value = parts.get(index)?;
            self.item(&part)?;
        }
        Ok(())
    }

    /// The bytes in the window of a typed array or `DataView`.
    fn view(&mut self, view: &Value<'js>) -> Outcome<()> {
        let window: Result<Array> = self.hooks.view_window(self.ctx)?.call((view.clone(),));
        let Ok(window) = window else {
            raw::forget_exception(self.ctx);
            return Err(self.refuse_out_of_bounds());
        };
        let (buffer, offset, length): (Value, usize, usize) =
            (window.get(0)?, window.get(1)?, window.get(2)?);
        self.buffer(&buffer, Some((offset, length)))
    }

    /// The bytes of a window of a buffer, or of all of it.
    fn buffer(&mut self, buffer: &Value<'js>, window: Option<(usize, usize)>) -> Outcome<()> {
        let written = raw::with_buffer(buffer, |bytes| {
            let (offset, length) = window.unwrap_or((0, bytes.len()));
            let range = offset..offset.saturating_add(length);
            bytes.get(range).map(|bytes| self.output.byte_string(bytes))
        });
        match written {
            Some(Some(outcome)) => outcome,
            Some(None) => Err(self.refuse_out_of_bounds()),
            None => Err(self.refuse("An ArrayBuffer", "it is detached")),
        }
    }

    fn refuse_out_of_bounds(&self) -> EncodeError {
        self.refuse(
            "A view of an ArrayBuffer",
            "the buffer was detached or resized, and the view lies outside of it",
        )
    }

    /// A DataCloneError that names the path to the value and what is wrong with it.
    fn refuse(&self, what: &str, reason: &str) -> EncodeError {
        let mut path = String::from(self.manner.root);
        for frame in &self.frames {
            refusal::push_step(&mut path, frame);
        }
        let message = format!("{what} could not be cloned: {reason} (at {path}).");
        EncodeError::Threw(data_clone_error(self.ctx, &message))
    }
}
