//! The exports that the host calls.

use crate::{mappings::mappings, place::Place, transpile::transpile};
use coracle_abi::{Transpile, Transpiled};
use std::cell::RefCell;

struct Answer(RefCell<Vec<u8>>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Answer {}
/// What the host reads until the next call.
static ANSWER: Answer = Answer(RefCell::new(Vec::new()));

/// A buffer of `length` bytes for the next message, or null where memory ran out. [`transpile`] owns and frees it.
#[unsafe(no_mangle)]
extern "C" fn allocate(length: usize) -> *mut u8 {
    let mut buffer = Vec::new();
    if buffer.try_reserve_exact(length).is_err() {
        return std::ptr::null_mut();
    }
    let pointer = buffer.as_mut_ptr();
    std::mem::forget(buffer);
    pointer
}

/// Makes JavaScript of a module.
///
/// # Safety
/// `pointer` comes from [`allocate`] with this `length`, and is given once.
#[unsafe(export_name = "transpile")]
unsafe extern "C" fn answer(pointer: *mut u8, length: usize) -> u64 {
    // SAFETY: promised by the caller.
    let message = unsafe { Vec::from_raw_parts(pointer, length, length) };
    let request: Transpile<'_> = minicbor::decode(&message).expect("the host writes what it says");
    let outcome = transpile(&request);
    let mappings = outcome.as_ref().map(|code| mappings(&code.tokens));
    let answer = match &outcome {
        Ok(code) => Transpiled::Code {
            text: &code.text,
            mappings: mappings.as_deref().unwrap_or_default(),
        },
        Err(fault) => {
            let Place { line, column } = Place::of(request.source, fault.at);
            Transpiled::Fault {
                message: &fault.message,
                line,
                column,
            }
        }
    };
    // Encoding into a Vec can't fail.
    let bytes = minicbor::to_vec(&answer).unwrap_or_default();
    let place = (bytes.as_ptr() as usize as u64) << 32 | bytes.len() as u64;
    *ANSWER.0.borrow_mut() = bytes;
    place
}
