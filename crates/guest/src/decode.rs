//! Bytes to JavaScript values, by `schema/value.md`.
//!
//! What the bytes may be is decided by `coracle_value`'s walk, the same that the host and every Rust client use; this
//! builds what the walk finds. The bytes come from a client through the host, which has not looked into them. Objects
//! are built with define, never with set, so that no setter or prototype of the worker's takes part, and nothing
//! recurses by their nesting.

mod leaf;

use crate::{
    engine::js::{Array, Ctx, Error, Exception, Object, Result, Value},
    externals, interfaces, json,
    raw::{self, Enumerable, Key},
    state,
};
use coracle_abi::{Encoded, Form};
use coracle_value::{
    Bounds, Interface,
    sink::{Container, Field, Leaf, Primitive, Sink, TextBytes},
    walk,
};

/// Why bytes did not become a value.
pub(crate) enum DecodeError {
    /// Nested deeper than allowed.
    TooDeep,
    /// Not what `schema/value.md` describes; the text is for the client.
    Malformed(String),
    /// The engine threw: out of memory, or a pattern that is none.
    Threw(Error),
}

impl From<Error> for DecodeError {
    fn from(error: Error) -> Self {
        Self::Threw(error)
    }
}

impl From<coracle_value::DecodeError> for DecodeError {
    fn from(error: coracle_value::DecodeError) -> Self {
        match error {
            coracle_value::DecodeError::DepthExceeded { .. } => Self::TooDeep,
            other => Self::Malformed(other.to_string()),
        }
    }
}

impl DecodeError {
    /// Says what it was that did not become a value.
    pub(crate) fn in_context(self, what: &str) -> Self {
        match self {
            Self::Malformed(text) => Self::Malformed(format!("{what} can't be decoded: {text}")),
            other => other,
        }
    }
}

/// The exception that says why bytes did not become a value.
pub(crate) fn thrown(ctx: &Ctx<'_>, error: DecodeError) -> Error {
    match error {
        DecodeError::Threw(error) => error,
        DecodeError::TooDeep => Exception::throw_range(ctx, "The value is nested too deeply."),
        DecodeError::Malformed(text) => Exception::throw_type(ctx, &text),
    }
}

type Outcome<T> = std::result::Result<T, DecodeError>;

/// Decodes a value in any form.
pub(crate) fn value<'js>(
    ctx: &Ctx<'js>,
    encoded: &Encoded<'_>,
    depth_max: usize,
) -> Outcome<Value<'js>> {
    Ok(with_stubs(ctx, encoded, depth_max)?.0)
}

/// Decodes a value in any form, and tells the stubs in it, which whoever asked for the value is to dispose of.
pub(crate) fn with_stubs<'js>(
    ctx: &Ctx<'js>,
    encoded: &Encoded<'_>,
    depth_max: usize,
) -> Outcome<(Value<'js>, Vec<Value<'js>>)> {
    let stubs = externals::stubs(ctx, &encoded.externals)?;
    let value = match encoded.form {
        Form::Undefined => Ok(Value::new_undefined(ctx.clone())),
        Form::Json => json::parse(ctx, encoded.bytes, depth_max),
        Form::Cbor => cbor(ctx, encoded.bytes, depth_max, &stubs),
    };
    match value {
        Ok(value) => Ok((value, stubs)),
        Err(error) => {
            let hooks = &state::get().hooks;
            let stubs = raw::array(ctx, &stubs)?;
            hooks.dispose_all(ctx)?.call::<_, ()>((stubs,))?;
            Err(error)
        }
    }
}

/// Decodes CBOR that refers to these stubs.
pub(crate) fn cbor<'js>(
    ctx: &Ctx<'js>,
    bytes: &[u8],
    depth_max: usize,
    stubs: &[Value<'js>],
) -> Outcome<Value<'js>> {
    let bounds = Bounds {
        depth_max,
        // The host has judged the size by the limit that holds for the call.
        bytes_max: usize::MAX,
        externals: u32::try_from(stubs.len()).unwrap_or(u32::MAX),
    };
    let mut builder = Builder {
        ctx,
        open: Vec::new(),
        shared: Vec::new(),
        shared_next: false,
        stubs,
        finished: Value::new_undefined(ctx.clone()),
        failed: None,
    };
    walk(bytes, &bounds, &mut builder)?;
    match builder.failed {
        Some(error) => Err(error.into()),
        None => Ok(builder.finished),
    }
}

struct Builder<'c, 'js> {
    ctx: &'c Ctx<'js>,
    open: Vec<Open<'js>>,
    /// The shared objects by number.
    shared: Vec<Value<'js>>,
    shared_next: bool,
    /// The table of externals.
    stubs: &'c [Value<'js>],
    finished: Value<'js>,
    /// The walk can't be stopped; after a failure nothing more is built.
    failed: Option<Error>,
}

/// A container whose members are still coming.
enum Open<'js> {
    /// Elements are collected and become an array at once, unless the array must be there before them because it is
    /// shared, or there are holes.
    Array {
        shared: Option<Value<'js>>,
        elements: Vec<Value<'js>>,
        holes: bool,
    },
    Object {
        object: Value<'js>,
        key: Option<Key<'js>>,
        /// The further properties of an error, which are the error's own.
        of_error: bool,
    },
    Map {
        map: Value<'js>,
        entries: Vec<Value<'js>>,
    },
    Set {
        set: Value<'js>,
        members: Vec<Value<'js>>,
    },
    /// An object of the web platform, made of its content when that is there.
    Interface {
        interface: Interface,
        /// Its number if it is shared.
        slot: Option<usize>,
        /// An object, or the elements of an array.
        fields: Value<'js>,
        elements: Vec<Value<'js>>,
        key: Option<Key<'js>>,
    },
    Error {
        /// Its number if it is shared.
        slot: Option<usize>,
        field: Field,
        name: Value<'js>,
        /// Once its message is there.
        error: Option<Value<'js>>,
    },
}

impl<'a> Sink<'a> for Builder<'_, '_> {
    fn shared(&mut self) {
        self.shared_next = true;
    }

    fn leaf(&mut self, leaf: Leaf<'a>) {
        self.attempt(|builder| builder.add_leaf(leaf));
    }

    fn key(&mut self, text: TextBytes<'a>) {
        self.attempt(|builder| {
            let name = leaf::key_of(builder.ctx, text)?;
            if let Some(Open::Object { key, .. } | Open::Interface { key, .. }) =
                builder.open.last_mut()
            {
                *key = Some(name);
            }
            Ok(())
        });
    }

    fn field(&mut self, next: Field) {
        if let Some(Open::Error { field, .. }) = self.open.last_mut() {
            *field = next;
        }
    }

    fn open(&mut self, container: Container, items: Option<usize>) {
        self.attempt(|builder| builder.begin(container, items.unwrap_or(0)));
    }

    fn close(&mut self) {
        self.attempt(Self::end);
    }
}

impl<'js> Builder<'_, 'js> {
    fn attempt(&mut self, step: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failed.is_none() {
            self.failed = step(self).err();
        }
    }

    /// Numbers a new object, if the bytes say that it is shared.
    fn register(&mut self, value: &Value<'js>) -> bool {
        let shared = std::mem::take(&mut self.shared_next);
        if shared {
            self.shared.push(value.clone());
        }
        shared
    }

    fn add_leaf(&mut self, leaf: Leaf<'_>) -> Result<()> {
        let ctx = self.ctx;
        let value = match leaf {
            Leaf::Primitive(Primitive::Text(text)) => match self.open.last() {
                Some(Open::Error { .. }) => return self.add_text_to_error(text),
                _ => leaf::string(ctx, text)?,
            },
            Leaf::Reference(index) => self.shared[index as usize].clone(),
            Leaf::Hole => {
                if let Some(Open::Array { holes, .. }) = self.open.last_mut() {
                    *holes = true;
                }
                Value::new_uninitialized(ctx.clone())
            }
            Leaf::Primitive(value) => leaf::primitive(ctx, value)?,
            Leaf::External(index) => {
                // The walk has compared it with the table's length.
                let stub = self.stubs[index as usize].clone();
                self.register(&stub);
                stub
            }
            other => {
                let object = leaf::object(ctx, other)?;
                self.register(&object);
                object
            }
        };
        self.add(value)
    }

    fn begin(&mut self, container: Container, items: usize) -> Result<()> {
        let ctx = self.ctx;
        let hooks = &state::get().hooks;
        let open = match container {
            Container::Array => {
                let shared = if self.shared_next {
                    let array = raw::array(ctx, &[])?;
                    self.register(&array);
                    Some(array)
                } else {
                    None
                };
                Open::Array {
                    shared,
                    elements: Vec::with_capacity(items),
                    holes: false,
                }
            }
            Container::Object => match self.open.last() {
                Some(Open::Error {
                    field: Field::Props,
                    error: Some(error),
                    ..
                }) => Open::Object {
                    object: error.clone(),
                    key: None,
                    of_error: true,
                },
                _ => {
                    let object = Object::new(ctx.clone())?.into_value();
                    self.register(&object);
                    Open::Object {
                        object,
                        key: None,
                        of_error: false,
                    }
                }
            },
            Container::Map => {
                let map: Value = hooks.map(ctx)?.call(())?;
                self.register(&map);
                let entries = Vec::with_capacity(items);
                Open::Map { map, entries }
            }
            Container::Set => {
                let set: Value = hooks.set(ctx)?.call(())?;
                self.register(&set);
                let members = Vec::with_capacity(items);
                Open::Set { set, members }
            }
            Container::Interface(interface) => {
                let fields = Object::new(ctx.clone())?.into_value();
                // Its number is due now; who refers to it before it is there refers to its fields.
                let slot = self.register(&fields).then(|| self.shared.len() - 1);
                Open::Interface {
                    interface,
                    slot,
                    fields,
                    elements: Vec::new(),
                    key: None,
                }
            }
            Container::Error => {
                // Nothing can refer to it before its name and message are there; its number is due now.
                let nothing = Value::new_undefined(ctx.clone());
                let slot = self.register(&nothing).then(|| self.shared.len() - 1);
                Open::Error {
                    slot,
                    field: Field::Name,
                    name: nothing,
                    error: None,
                }
            }
        };
        self.open.push(open);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        let ctx = self.ctx;
        let hooks = &state::get().hooks;
        let value = match self.open.pop() {
            Some(Open::Array {
                shared: None,
                elements,
                holes: false,
            }) => raw::array(ctx, &elements)?,
            Some(Open::Array {
                shared, elements, ..
            }) => {
                let array = match shared {
                    Some(array) => array,
                    None => raw::array(ctx, &[])?,
                };
                fill_array(&array, &elements)?;
                array
            }
            Some(Open::Object { of_error: true, .. }) | None => return Ok(()),
            Some(Open::Object { object, .. }) => object,
            Some(Open::Map { map, entries }) => {
                let entries = raw::array(ctx, &entries)?;
                hooks.map_fill(ctx)?.call::<_, ()>((map.clone(), entries))?;
                map
            }
            Some(Open::Set { set, members }) => {
                let members = raw::array(ctx, &members)?;
                hooks.set_fill(ctx)?.call::<_, ()>((set.clone(), members))?;
                set
            }
            Some(Open::Interface {
                interface,
                slot,
                fields,
                elements,
                ..
            }) => {
                let content = match interface.has_keys() {
                    true => fields,
                    false => raw::array(ctx, &elements)?,
                };
                let object: Value = hooks
                    .new_interface(ctx)?
                    .call((interfaces::number_of(interface), content))?;
                if let Some(slot) = slot {
                    self.shared[slot] = object.clone();
                }
                object
            }
            Some(Open::Error { error, .. }) => {
                error.unwrap_or_else(|| Value::new_undefined(ctx.clone()))
            }
        };
        self.add(value)
    }

    /// Puts a finished value where it belongs.
    fn add(&mut self, value: Value<'js>) -> Result<()> {
        match self.open.last_mut() {
            None => self.finished = value,
            Some(Open::Array { elements, .. }) => elements.push(value),
            Some(Open::Map { entries, .. }) => entries.push(value),
            Some(Open::Set { members, .. }) => members.push(value),
            Some(Open::Interface {
                interface,
                elements,
                ..
            }) if !interface.has_keys() => elements.push(value),
            Some(
                Open::Object { object, key, .. }
                | Open::Interface {
                    fields: object,
                    key,
                    ..
                },
            ) => {
                if let Some(key) = key.take() {
                    raw::define(object, &key, &value, Enumerable::Yes)?;
                }
            }
            Some(Open::Error {
                field,
                error: Some(error),
                ..
            }) => {
                let key = Key::new(self.ctx, field.key().as_bytes())?;
                raw::define(error, &key, &value, Enumerable::No)?;
            }
            Some(Open::Error { .. }) => {}
        }
        Ok(())
    }

    fn add_text_to_error(&mut self, text: TextBytes<'_>) -> Result<()> {
        let ctx = self.ctx;
        let value = leaf::string(ctx, text)?;
        let Some(Open::Error {
            slot,
            field,
            name,
            error,
        }) = self.open.last_mut()
        else {
            return Ok(());
        };
        match (*field, &error) {
            (Field::Name, _) => *name = value,
            (Field::Message, _) => {
                let new = new_error(ctx, name, &value)?;
                if let Some(slot) = slot {
                    self.shared[*slot] = new.clone();
                }
                *error = Some(new);
            }
            (_, Some(_)) => return self.add(value),
            (_, None) => {}
        }
        Ok(())
    }
}

/// An error of the built-in class of that name; of another name, an `Error` that bears it. It has no stack of its own.
fn new_error<'js>(ctx: &Ctx<'js>, name: &Value<'js>, message: &Value<'js>) -> Result<Value<'js>> {
    let hooks = &state::get().hooks;
    let found: Array = hooks.error_prototype(ctx)?.call((name.clone(),))?;
    let (prototype, is_built_in): (Value, bool) = (found.get(0)?, found.get(1)?);
    if found.get(2)? {
        let error: Value = hooks
            .dom_exception(ctx)?
            .call((message.clone(), name.clone()))?;
        let key = Key::new(ctx, Field::Stack.key().as_bytes())?;
        raw::define(&error, &key, &raw::string(ctx, b"")?, Enumerable::No)?;
        return Ok(error);
    }
    let error = raw::object_of_class(ctx, &prototype, hooks.samples().error)?;
    let define = |key: Field, value: &Value<'js>| {
        let key = Key::new(ctx, key.key().as_bytes())?;
        raw::define(&error, &key, value, Enumerable::No)
    };
    if !is_built_in {
        define(Field::Name, name)?;
    }
    define(Field::Message, message)?;
    // Where the bytes bring none, the place of this call would stand there.
    define(Field::Stack, &raw::string(ctx, b"")?)?;
    Ok(error)
}

fn fill_array<'js>(array: &Value<'js>, elements: &[Value<'js>]) -> Result<()> {
    // A value takes a byte at least, and a message is smaller than 4 GiB.
    for (index, element) in (0u32..).zip(elements) {
        if !is_hole(element) {
            raw::define_element(array, index, element)?;
        }
    }
    raw::set_length(array, elements.len() as u32)
}

fn is_hole(element: &Value<'_>) -> bool {
    element.type_of() == crate::engine::js::Type::Uninitialized
}
