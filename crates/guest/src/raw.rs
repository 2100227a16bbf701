//! What the engine offers and rquickjs does not: the calls into its C interface, made safe.
//!
//! Owns every raw call but those that a module needs for itself alone. A failed call leaves its exception pending, as
//! rquickjs does, and answers [`Error::Exception`]; whoever does not pass the error on takes the exception with
//! [`forget_exception`], because the engine's module loader mistakes one that was left behind for its own.

mod buffer;
mod source;

pub(crate) use self::{
    buffer::{
        array_buffer, detach, typed_array, typed_array_buffer, typed_array_kind, with_buffer,
    },
    source::{Job, Source, compile, eval_without_source, parse_json, run_job},
};
use crate::engine::js::{Ctx, Error, Result, Value, qjs};

fn raw(ctx: &Ctx<'_>) -> *mut qjs::JSContext {
    ctx.as_raw().as_ptr()
}

/// Takes possession of what the engine answered, and turns its exception marker into an error.
///
/// # Safety
/// `raw` is an owned value of `ctx`'s runtime, or the marker.
pub(crate) unsafe fn owned<'js>(ctx: &Ctx<'js>, raw: qjs::JSValue) -> Result<Value<'js>> {
    // SAFETY: promised by the caller.
    let value = unsafe { Value::from_raw(ctx.clone(), raw) };
    if value.is_exception() {
        Err(Error::Exception)
    } else {
        Ok(value)
    }
}

fn done(outcome: std::ffi::c_int) -> Result<bool> {
    if outcome < 0 {
        Err(Error::Exception)
    } else {
        Ok(outcome > 0)
    }
}

/// A reference of its own for a call that takes possession of it.
fn given(value: &Value<'_>) -> qjs::JSValue {
    // SAFETY: the value is alive.
    unsafe { qjs::JS_DupValue(raw(value.ctx()), value.as_raw()) }
}

/// Drops the pending exception, if there is one.
pub(crate) fn forget_exception(ctx: &Ctx<'_>) {
    ctx.catch();
}

/// The class id of an object; 0 for primitives.
pub(crate) fn class_id(value: &Value<'_>) -> u32 {
    // SAFETY: only reads the value.
    unsafe { qjs::JS_GetClassID(value.as_raw()) }
}

/// Where an object lives. Only compared, never followed.
pub(crate) fn identity(value: &Value<'_>) -> usize {
    // SAFETY: reads the pointer field of the value without following it.
    unsafe { qjs::JS_VALUE_GET_PTR(value.as_raw()) as usize }
}

/// A number. (rquickjs makes 0 of -0.)
pub(crate) fn number<'js>(ctx: &Ctx<'js>, number: f64) -> Value<'js> {
    let whole = number as i32;
    if f64::from(whole).to_bits() == number.to_bits() {
        Value::new_int(ctx.clone(), whole)
    } else {
        Value::new_float(ctx.clone(), number)
    }
}

/// A string from UTF-8 or WTF-8.
pub(crate) fn string<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    // SAFETY: the engine copies `bytes` and answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewStringLen(raw(ctx), bytes.as_ptr().cast(), bytes.len() as _);
        owned(ctx, raw)
    }
}

/// Runs `read` over the UTF-8 (WTF-8 where there are lone surrogates) of a string.
pub(crate) fn with_text<T>(value: &Value<'_>, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
    debug_assert!(value.is_string(), "what is not a string runs code here");
    let ctx = raw(value.ctx());
    let mut length = 0;
    // SAFETY: the engine's copy is read before it is freed.
    unsafe {
        let text = qjs::JS_ToCStringLen2(ctx, &raw mut length, value.as_raw(), false);
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
    with_text(value, |bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_else(|_| {
        forget_exception(value.ctx());
        String::new()
    })
}

/// The name of a property.
pub(crate) struct Key<'js> {
    ctx: Ctx<'js>,
    atom: qjs::JSAtom,
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        // SAFETY: the atom is owned and freed once.
        unsafe { qjs::JS_FreeAtom(raw(&self.ctx), self.atom) }
    }
}

impl<'js> Key<'js> {
    pub(crate) fn new(ctx: &Ctx<'js>, name: &[u8]) -> Result<Self> {
        // SAFETY: the engine copies `name` and answers with an owned atom.
        let atom = unsafe { qjs::JS_NewAtomLen(raw(ctx), name.as_ptr().cast(), name.len() as _) };
        Self::owned(ctx, atom)
    }

    fn index(ctx: &Ctx<'js>, index: u32) -> Result<Self> {
        // SAFETY: answers with an owned atom.
        let atom = unsafe { qjs::JS_NewAtomUInt32(raw(ctx), index) };
        Self::owned(ctx, atom)
    }

    /// Takes possession of what the engine answered.
    pub(crate) fn owned(ctx: &Ctx<'js>, atom: qjs::JSAtom) -> Result<Self> {
        // 0 is no atom: memory ran out.
        if atom == 0 {
            return Err(Error::Exception);
        }
        Ok(Self {
            ctx: ctx.clone(),
            atom,
        })
    }

    pub(crate) fn ctx(&self) -> &Ctx<'js> {
        &self.ctx
    }

    pub(crate) fn with_text<T>(&self, read: impl FnOnce(&[u8]) -> T) -> Result<T> {
        // SAFETY: answers with an owned value.
        let text = unsafe {
            let raw = qjs::JS_AtomToString(raw(&self.ctx), self.atom);
            owned(&self.ctx, raw)?
        };
        with_text(&text, read)
    }
}

/// The value of `object[key]`: runs getters and traps.
pub(crate) fn get<'js>(object: &Value<'js>, key: &Key<'js>) -> Result<Value<'js>> {
    // SAFETY: answers with an owned value.
    unsafe {
        let raw = qjs::JS_GetProperty(raw(&key.ctx), object.as_raw(), key.atom);
        owned(&key.ctx, raw)
    }
}

/// What an object itself has under a key.
pub(crate) enum Property<'js> {
    Data(Value<'js>),
    Accessor,
}

/// The property that `object` itself has: runs no getter.
pub(crate) fn own<'js>(object: &Value<'js>, key: &Key<'js>) -> Result<Option<Property<'js>>> {
    let ctx = &key.ctx;
    let mut found = qjs::JSPropertyDescriptor {
        flags: 0,
        value: qjs::JS_UNDEFINED,
        getter: qjs::JS_UNDEFINED,
        setter: qjs::JS_UNDEFINED,
    };
    // SAFETY: the descriptor is an out parameter; what it holds afterwards is owned.
    unsafe {
        let outcome = qjs::JS_GetOwnProperty(raw(ctx), &raw mut found, object.as_raw(), key.atom);
        if !done(outcome)? {
            return Ok(None);
        }
        let value = owned(ctx, found.value)?;
        drop(Value::from_raw(ctx.clone(), found.getter));
        drop(Value::from_raw(ctx.clone(), found.setter));
        if found.flags & qjs::JS_PROP_GETSET as i32 != 0 {
            Ok(Some(Property::Accessor))
        } else {
            Ok(Some(Property::Data(value)))
        }
    }
}

/// The value of the property that `object` itself has: runs its getter.
pub(crate) fn own_value<'js>(object: &Value<'js>, key: &Key<'js>) -> Result<Option<Value<'js>>> {
    Ok(match own(object, key)? {
        None => None,
        Some(Property::Data(value)) => Some(value),
        Some(Property::Accessor) => Some(get(object, key)?),
    })
}

/// The element that an array itself has at `index`.
pub(crate) fn own_element<'js>(array: &Value<'js>, index: u32) -> Result<Option<Value<'js>>> {
    own_value(array, &Key::index(array.ctx(), index)?)
}

/// The own enumerable string keys of an object, in order.
pub(crate) fn own_keys<'js>(object: &Value<'js>) -> Result<Vec<Key<'js>>> {
    let ctx = object.ctx();
    let (mut table, mut length) = (std::ptr::null_mut(), 0);
    let flags = qjs::JS_GPN_STRING_MASK | qjs::JS_GPN_ENUM_ONLY;
    // SAFETY: table and length are out parameters. Each atom is duplicated before the table is freed.
    unsafe {
        let outcome = qjs::JS_GetOwnPropertyNames(
            raw(ctx),
            &raw mut table,
            &raw mut length,
            object.as_raw(),
            flags as _,
        );
        done(outcome)?;
        let keys = (0..length as usize).map(|index| Key {
            ctx: ctx.clone(),
            atom: qjs::JS_DupAtom(raw(ctx), (*table.add(index)).atom),
        });
        let keys = keys.collect();
        qjs::JS_FreePropertyEnum(raw(ctx), table, length);
        Ok(keys)
    }
}

/// Whether a property that is defined shows up in an enumeration.
#[derive(Clone, Copy)]
pub(crate) enum Enumerable {
    Yes,
    No,
}

/// Defines an own data property, writable and configurable: no setter takes part.
pub(crate) fn define<'js>(
    object: &Value<'js>,
    key: &Key<'js>,
    value: &Value<'js>,
    enumerable: Enumerable,
) -> Result<()> {
    let flags = match enumerable {
        Enumerable::Yes => qjs::JS_PROP_C_W_E,
        Enumerable::No => qjs::JS_PROP_CONFIGURABLE | qjs::JS_PROP_WRITABLE,
    };
    // SAFETY: the call takes a reference of its own over.
    done(unsafe {
        qjs::JS_DefinePropertyValue(
            raw(&key.ctx),
            object.as_raw(),
            key.atom,
            given(value),
            flags as _,
        )
    })
    .map(drop)
}

/// Defines an element of an array.
pub(crate) fn define_element<'js>(
    array: &Value<'js>,
    index: u32,
    value: &Value<'js>,
) -> Result<()> {
    let flags = qjs::JS_PROP_C_W_E;
    // SAFETY: the call takes a reference of its own over.
    done(unsafe {
        qjs::JS_DefinePropertyValueUint32(
            raw(array.ctx()),
            array.as_raw(),
            index,
            given(value),
            flags as _,
        )
    })
    .map(drop)
}

/// An array of `values`.
pub(crate) fn array<'js>(ctx: &Ctx<'js>, values: &[Value<'js>]) -> Result<Value<'js>> {
    let raws: Vec<qjs::JSValue> = values.iter().map(given).collect();
    // SAFETY: `raws` holds references of their own, which the call takes over.
    unsafe {
        let array = qjs::JS_NewArrayFrom(raw(ctx), raws.len() as _, raws.as_ptr());
        owned(ctx, array)
    }
}

/// The length of an array.
pub(crate) fn length(array: &Value<'_>) -> Result<u32> {
    let mut length = 0;
    // SAFETY: the length is an out parameter.
    done(unsafe { qjs::JS_GetLength(raw(array.ctx()), array.as_raw(), &raw mut length) })?;
    Ok(u32::try_from(length).unwrap_or(u32::MAX))
}

/// Sets the length of an array, for holes at its end.
pub(crate) fn set_length(array: &Value<'_>, length: u32) -> Result<()> {
    // SAFETY: only passes values.
    done(unsafe { qjs::JS_SetLength(raw(array.ctx()), array.as_raw(), i64::from(length)) })
        .map(drop)
}

/// The prototype of an object that is no Proxy.
pub(crate) fn prototype<'js>(object: &Value<'js>) -> Result<Value<'js>> {
    // SAFETY: answers with an owned value.
    unsafe {
        let raw = qjs::JS_GetPrototype(raw(object.ctx()), object.as_raw());
        owned(object.ctx(), raw)
    }
}

/// A new object of an engine's class.
pub(crate) fn object_of_class<'js>(
    ctx: &Ctx<'js>,
    prototype: &Value<'js>,
    class: u32,
) -> Result<Value<'js>> {
    // SAFETY: answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewObjectProtoClass(raw(ctx), prototype.as_raw(), class as _);
        owned(ctx, raw)
    }
}

/// A `Date`.
pub(crate) fn date<'js>(ctx: &Ctx<'js>, milliseconds: f64) -> Result<Value<'js>> {
    // SAFETY: answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewDate(raw(ctx), milliseconds);
        owned(ctx, raw)
    }
}

/// What there is now is not counted any more, nor collected. An isolate copies each page that it writes to, and to refer
/// to an object is to write its count; to collect cycles is to write to every object that could be in one. See
/// `engine/immortal.c`. The other engine does without.
pub(crate) fn make_immortal(ctx: &Ctx<'_>) {
    #[cfg(feature = "quickjs")]
    {
        unsafe extern "C" {
            fn JS_MakeImmortal(runtime: *mut qjs::JSRuntime);
        }
        // SAFETY: the runtime is alive, and runs nothing at the moment.
        unsafe { JS_MakeImmortal(qjs::JS_GetRuntime(raw(ctx))) }
    }
    #[cfg(not(feature = "quickjs"))]
    let _ = ctx;
}

/// Whether `eval` and the function constructors make code of text, or throw an `EvalError`. See `engine/text.c`.
pub(crate) fn allow_code_of_text(ctx: &Ctx<'_>, is_allowed: bool) {
    unsafe extern "C" {
        fn JS_SetCodeOfText(runtime: *mut qjs::JSRuntime, is_allowed: std::ffi::c_int);
    }
    // SAFETY: the runtime is alive.
    unsafe { JS_SetCodeOfText(qjs::JS_GetRuntime(raw(ctx)), is_allowed.into()) }
}

/// Fills the holes in the engine's arenas, and gives each size of block an arena of its own, in an order in which those that
/// a small worker allocates from lie next to each other. An isolate copies each page that it writes to, and the host
/// restores 32 stretches of them cheaply, not more. To be called when everything that goes into the snapshot is there.
pub(crate) fn fill_arenas(ctx: &Ctx<'_>) {
    /// As `JSMallocBlockHeader` in quickjs.c.
    const BLOCK_HEADER_BYTES: usize = 8;
    /// Of quickjs.c, by how often a small worker needs them. One that is not on the list is found when it is needed.
    const BLOCK_BYTES: [usize; 31] = [
        24, 16, 32, 48, 40, 56, 72, 64, 80, 88, 96, 104, 192, 208, 160, 128, 120, 416, 112, 144,
        176, 240, 224, 256, 288, 320, 352, 384, 448, 480, 512,
    ];
    const HOLES_MAX: usize = 2_000;
    let fresh = crate::heap::use_up_free_pages();
    for block in BLOCK_BYTES {
        for _ in 0..HOLES_MAX {
            // SAFETY: the context is alive; the block is never used, and never freed.
            let hole =
                unsafe { qjs::js_malloc(ctx.as_raw().as_ptr(), (block - BLOCK_HEADER_BYTES) as _) };
            if hole.is_null() || hole.addr() >= fresh {
                break;
            }
        }
    }
}
