//! Values that arrive encoded: what can be said of them without giving them a meaning.
//!
//! Both forms are read without recursion by their nesting, without trust in a length, and without
//! building anything: 10 MiB of brackets must not become a tree of a hundred.

use super::problem::{ProblemCode, Problems};
use super::{Encoded, Form};
use crate::limits::Limits;
use coracle_value::{Bounds, DEPTH_CEILING, validate};
use serde::de::IgnoredAny;

const PATH: &str = "/env";

pub(super) fn check_env(env: &Encoded, limits: &Limits, problems: &mut Problems) {
    let size = env.bytes.len() as u64;
    if size > limits.env_bytes_max {
        problems.push(
            PATH.to_owned(),
            ProblemCode::EnvTooLarge,
            format!(
                "Dynamic Worker env size ({size} bytes) exceeds the maximum allowed size of {} bytes.",
                limits.env_bytes_max
            ),
            "pass large data as an argument of a call, or as a module".to_owned(),
        );
        return;
    }
    match object_fault(env, limits) {
        None => {}
        Some(Fault::NotObject) => problems.push(
            PATH.to_owned(),
            ProblemCode::EnvNotObject,
            "Incorrect type for the 'env' field on 'WorkerCode': the provided value is not of type 'Object'."
                .to_owned(),
            "pass an object whose properties are the bindings, or undefined".to_owned(),
        ),
        Some(Fault::Malformed(fault)) => problems.push(
            PATH.to_owned(),
            ProblemCode::EnvInvalid,
            format!("The 'env' field on 'WorkerCode' can't be read: {fault}."),
            String::new(),
        ),
    }
}

/// Why a text is not JSON within the bounds, if it is not.
pub(super) fn json_fault(text: &str, limits: &Limits) -> Option<String> {
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return Some(error.to_string());
    }
    let (depth, depth_max) = (json_depth(text), depth_max(limits));
    (depth > depth_max)
        .then(|| format!("it is nested {depth} levels deep, the maximum is {depth_max}"))
}

/// How many arrays and objects are open at once at most, in text that is JSON.
fn json_depth(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    let mut bytes = text.bytes();
    let mut in_string = false;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            // What is escaped can't end the string.
            b'\\' => _ = bytes.next(),
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

fn depth_max(limits: &Limits) -> usize {
    usize::try_from(limits.value_depth_max)
        .unwrap_or(usize::MAX)
        .min(DEPTH_CEILING)
}

enum Fault {
    NotObject,
    Malformed(String),
}

fn object_fault(env: &Encoded, limits: &Limits) -> Option<Fault> {
    let (malformed, is_object) = match env.form {
        Form::Undefined => (None, true),
        Form::Cbor => {
            // The size was checked in its own words before, so here it is no bound.
            let bounds = Bounds {
                depth_max: depth_max(limits),
                bytes_max: env.bytes.len(),
                externals: env.externals,
            };
            let error = validate(&env.bytes, &bounds).err();
            (
                error.map(|error| error.to_string()),
                is_cbor_object(&env.bytes),
            )
        }
        Form::Json => match std::str::from_utf8(&env.bytes) {
            Ok(text) => (
                json_fault(text, limits),
                text.trim_ascii_start().starts_with('{'),
            ),
            Err(error) => (Some(error.to_string()), true),
        },
    };
    match (malformed, is_object) {
        (Some(fault), _) => Some(Fault::Malformed(fault)),
        (None, false) => Some(Fault::NotObject),
        (None, true) => None,
    }
}

/// Whether well-formed CBOR is an object: a map, perhaps marked as shared because something in it
/// refers to it.
fn is_cbor_object(bytes: &[u8]) -> bool {
    const MAJOR_TYPE_MAP: u8 = 5;
    const TAG_SHARED: [u8; 2] = [0xd8, coracle_value::tag::SHARED as u8];
    let item = bytes.strip_prefix(&TAG_SHARED).unwrap_or(bytes);
    item.first()
        .is_some_and(|first| first >> 5 == MAJOR_TYPE_MAP)
}
