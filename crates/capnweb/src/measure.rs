//! What a value weighs, before and after there is a tree of it. Nothing here recurses.

use crate::{error::ConvertError, limits::Limits};
use coracle_value::{
    Bounds, ErrorValue, Text, Value,
    sink::{Container, Leaf, Sink},
    walk,
};

/// What a member takes as a node of a tree, besides its text.
const NODE_BYTES: usize = 48;

/// What a tree takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Measure {
    /// Values in it, the root included.
    pub(crate) members: usize,
    /// Memory, roughly.
    pub(crate) bytes: usize,
    /// Arrays, objects and errors that are open at once at most.
    pub(crate) depth: usize,
}

impl Measure {
    pub(crate) fn of(value: &Value) -> Self {
        let mut measure = Self::default();
        let mut pending = vec![(value, 0)];
        while let Some((value, depth)) = pending.pop() {
            measure.members += 1;
            measure.bytes += NODE_BYTES;
            measure.depth = measure.depth.max(depth);
            let inner = depth + 1;
            match value {
                Value::String(text) => measure.text(text),
                Value::BigInt(number) => measure.bytes += number.magnitude().len(),
                Value::RegExp { source, flags } => {
                    measure.text(source);
                    measure.text(flags);
                }
                Value::ArrayBuffer(bytes)
                | Value::DataView(bytes)
                | Value::TypedArray { bytes, .. } => measure.bytes += bytes.len(),
                Value::Array(members) | Value::Set(members) => {
                    measure.depth = measure.depth.max(inner);
                    pending.extend(members.iter().map(|member| (member, inner)));
                }
                Value::Object(properties) => {
                    measure.depth = measure.depth.max(inner);
                    measure.properties(properties, inner, &mut pending);
                }
                Value::Map(entries) => {
                    measure.depth = measure.depth.max(inner);
                    let members = entries.iter().flat_map(|(key, value)| [key, value]);
                    pending.extend(members.map(|member| (member, inner)));
                }
                Value::Error(error) => measure.error(error, inner, &mut pending),
                Value::Boxed(inside) | Value::Shared(inside) | Value::Interface(_, inside) => {
                    pending.push((inside, depth));
                }
                _ => {}
            }
        }
        measure
    }

    fn text(&mut self, text: &Text) {
        self.bytes += text.as_bytes().len();
    }

    fn properties<'v>(
        &mut self,
        properties: &'v [(Text, Value)],
        depth: usize,
        pending: &mut Vec<(&'v Value, usize)>,
    ) {
        for (key, value) in properties {
            self.bytes += size_of::<Text>();
            self.text(key);
            pending.push((value, depth));
        }
    }

    fn error<'v>(
        &mut self,
        error: &'v ErrorValue,
        depth: usize,
        pending: &mut Vec<(&'v Value, usize)>,
    ) {
        self.bytes += size_of::<ErrorValue>();
        self.depth = self.depth.max(depth);
        self.text(&error.name);
        self.text(&error.message);
        if let Some(stack) = &error.stack {
            self.text(stack);
        }
        let members = error.cause.iter().chain(&error.errors);
        pending.extend(members.map(|member| (member, depth)));
        if !error.props.is_empty() {
            self.depth = self.depth.max(depth + 1);
            self.properties(&error.props, depth + 1, pending);
        }
    }

    /// Whether a value of this measure may be held.
    pub(crate) fn check(self, limits: &Limits) -> Result<Self, ConvertError> {
        let Limits { members_max, .. } = *limits;
        let depth_max = limits.value_depth();
        if self.members > members_max {
            return Err(ConvertError::MembersExceeded { members_max });
        }
        if self.depth > depth_max {
            return Err(ConvertError::DepthExceeded { depth_max });
        }
        Ok(self)
    }
}

/// The members of JSON text, or somewhat more: what a parser would make of it. Counts without parsing.
pub(crate) fn json_members(text: &str) -> usize {
    let (mut members, mut in_string, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => members += 1,
            _ => {}
        }
    }
    members
}

/// Checks that a tree of the bytes would not be too large.
pub(crate) fn check_bytes(
    bytes: &[u8],
    bounds: &Bounds,
    limits: &Limits,
) -> Result<(), ConvertError> {
    let Limits { members_max, .. } = *limits;
    let mut count = Count(0);
    walk(bytes, bounds, &mut count)?;
    match count.0 > members_max {
        true => Err(ConvertError::MembersExceeded { members_max }),
        false => Ok(()),
    }
}

impl Limits {
    /// Checks that a value of the codec's would not have too many members, before a tree is made of it.
    ///
    /// # Errors
    /// It would, or it is no value.
    pub fn check_members(&self, bytes: &[u8], externals: u32) -> Result<(), ConvertError> {
        let bounds = Bounds {
            externals,
            ..Bounds::default()
        };
        check_bytes(bytes, &bounds, self)
    }
}

struct Count(usize);

impl<'a> Sink<'a> for Count {
    fn leaf(&mut self, _: Leaf<'a>) {
        self.0 += 1;
    }

    fn open(&mut self, _: Container, _: Option<usize>) {
        self.0 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_members_of_json_are_counted_outside_of_strings() {
        assert_eq!(json_members("1"), 1);
        assert_eq!(json_members(r#"[1,{"a":[2,3]}]"#), 6);
        assert_eq!(json_members(r#"["[{,\",[",2]"#), 3);
    }

    #[test]
    fn a_value_is_measured_as_the_codec_counts_depth() {
        for (value, depth) in [
            (Value::Null, 0),
            (Value::Array(vec![]), 1),
            (Value::array([Value::array([1])]), 2),
            (Value::error("Error", "no"), 1),
            (
                Value::Error(Box::new(ErrorValue {
                    props: vec![("a".into(), Value::Null)],
                    ..ErrorValue::new("Error", "")
                })),
                2,
            ),
        ] {
            assert_eq!(Measure::of(&value).depth, depth, "{value:?}");
            let summary =
                coracle_value::validate(&coracle_value::encode(&value), &Bounds::default());
            assert_eq!(summary.map(|summary| summary.depth), Ok(depth));
        }
    }
}
