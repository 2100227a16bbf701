//! `ArrayBuffer`s and typed arrays.
//!
//! A buffer's bytes are reached for the length of one call only: whatever runs in the engine may move or detach them.

use super::{forget_exception, owned, raw};
use crate::engine::js::{Ctx, Result, Value, qjs};
use coracle_value::TypedArrayKind;

/// An `ArrayBuffer` with a copy of `bytes`.
pub(crate) fn array_buffer<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    // SAFETY: the engine copies `bytes` and answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewArrayBufferCopy(raw(ctx), bytes.as_ptr(), bytes.len() as _);
        owned(ctx, raw)
    }
}

/// Runs `access` over the bytes of an `ArrayBuffer`. `None`: it is detached.
pub(crate) fn with_buffer<T>(buffer: &Value<'_>, access: impl FnOnce(&mut [u8]) -> T) -> Option<T> {
    let ctx = buffer.ctx();
    let mut size = 0;
    // SAFETY: the slice is what the engine says that the buffer is now, and nothing of the engine runs while `access`
    // has it.
    unsafe {
        let start = qjs::JS_GetArrayBuffer(raw(ctx), &raw mut size, buffer.as_raw());
        if start.is_null() && ctx.has_exception() {
            forget_exception(ctx);
            return None;
        }
        Some(match size {
            0 => access(&mut []),
            size => access(std::slice::from_raw_parts_mut(start, size as usize)),
        })
    }
}

/// Detaches an `ArrayBuffer`.
pub(crate) fn detach(buffer: &Value<'_>) {
    // SAFETY: the value is alive; of one that is no buffer, or detached already, the engine wants nothing.
    unsafe { qjs::JS_DetachArrayBuffer(raw(buffer.ctx()), buffer.as_raw()) }
}

/// The classes of typed arrays by the engine's numbers.
const TYPED_ARRAYS: [TypedArrayKind; 12] = [
    TypedArrayKind::Uint8Clamped,
    TypedArrayKind::Int8,
    TypedArrayKind::Uint8,
    TypedArrayKind::Int16,
    TypedArrayKind::Uint16,
    TypedArrayKind::Int32,
    TypedArrayKind::Uint32,
    TypedArrayKind::BigInt64,
    TypedArrayKind::BigUint64,
    TypedArrayKind::Float16,
    TypedArrayKind::Float32,
    TypedArrayKind::Float64,
];

/// The class of a typed array, if it is one.
pub(crate) fn typed_array_kind(value: &Value<'_>) -> Option<TypedArrayKind> {
    // SAFETY: only reads the value.
    let number = unsafe { qjs::JS_GetTypedArrayType(value.as_raw()) };
    TYPED_ARRAYS.get(usize::try_from(number).ok()?).copied()
}

/// A typed array over the whole of a buffer.
pub(crate) fn typed_array<'js>(buffer: &Value<'js>, kind: TypedArrayKind) -> Result<Value<'js>> {
    let number = TYPED_ARRAYS.iter().position(|known| *known == kind);
    // The older engine reads all three, however many it is told of.
    let mut arguments = [buffer.as_raw(), qjs::JS_UNDEFINED, qjs::JS_UNDEFINED];
    // SAFETY: the arguments outlive the call, which answers with an owned value.
    unsafe {
        let raw = qjs::JS_NewTypedArray(
            raw(buffer.ctx()),
            arguments.len() as _,
            arguments.as_mut_ptr(),
            number.unwrap_or_default() as _,
        );
        owned(buffer.ctx(), raw)
    }
}

/// The buffer of a typed array. `None`: it is detached, or has become too small.
///
/// The engine would also tell the window, but the length that it tells of an array that tracks its buffer's length is
/// that of the time when the array was made.
pub(crate) fn typed_array_buffer<'js>(array: &Value<'js>) -> Option<Value<'js>> {
    let nowhere = std::ptr::null_mut();
    // SAFETY: the engine leaves out what it is given no place for; answers with an owned value.
    let buffer = unsafe {
        let buffer = qjs::JS_GetTypedArrayBuffer(
            raw(array.ctx()),
            array.as_raw(),
            nowhere,
            nowhere,
            nowhere,
        );
        owned(array.ctx(), buffer)
    };
    buffer.map_err(|_| forget_exception(array.ctx())).ok()
}
