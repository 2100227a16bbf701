//! The grammar of a value: one pass over the bytes that refuses whatever is not one.
//!
//! [`decode`](crate::decode) and [`validate`](crate::validate) are this walk with different sinks, so they can't
//! disagree about what is accepted. The walk keeps its own stack, one frame an open array or map and never more than
//! the bounds allow, and does not recurse. What a sink is told has been checked.

use crate::bounds::{Bounds, Summary};
use crate::date;
use crate::error::DecodeError;
use crate::interface::Interface;
use crate::read::{Chunks, Head, Reader, TextBytes};
use crate::sink::{Container, Field, Leaf, Primitive, Sink};
use crate::tag;
use crate::typed_array::TypedArrayKind;
use crate::wtf8::Wtf8Check;

/// Walks over exactly one value and tells `sink` what it finds, in the order of the bytes.
///
/// # Errors
/// When the bytes are not a value within the bounds. The sink has then heard of what came before.
pub fn walk<'a>(
    input: &'a [u8],
    bounds: &Bounds,
    sink: &mut impl Sink<'a>,
) -> Result<Summary, DecodeError> {
    if input.len() > bounds.bytes_max {
        return Err(DecodeError::SizeExceeded {
            bytes: input.len(),
            bytes_max: bounds.bytes_max,
        });
    }
    let mut walker = Walker {
        reader: Reader::new(input),
        depth_max: bounds.depth_effective(),
        externals: bounds.externals,
        frames: Vec::new(),
        items_owed: 0,
        summary: Summary::default(),
        sink,
    };
    walker.sink.offset(0);
    walker.item(false)?;
    walker.members()?;
    if walker.reader.remaining() > 0 {
        return Err(DecodeError::TrailingBytes {
            at: walker.reader.at(),
        });
    }
    let mut summary = walker.summary;
    summary.externals_used.sort_unstable();
    summary.externals_used.dedup();
    Ok(summary)
}

struct Walker<'a, 's, S> {
    reader: Reader<'a>,
    depth_max: usize,
    externals: u32,
    frames: Vec<Frame>,
    /// Items that the open containers of known length still wait for.
    items_owed: usize,
    summary: Summary,
    sink: &'s mut S,
}

/// An open array or map.
struct Frame {
    container: Container,
    /// Items to come, keys and values counted alike; none: up to a break.
    items_left: Option<usize>,
    /// The next item is the value of a key, so that no break may stand here.
    value_due: bool,
    /// The first field that may come next in an error.
    field_next: usize,
}

impl<'a, S: Sink<'a>> Walker<'a, '_, S> {
    /// Walks over members until no container is open.
    fn members(&mut self) -> Result<(), DecodeError> {
        while let Some(frame) = self.frames.last_mut() {
            self.sink.offset(self.reader.at());
            let ended = match &mut frame.items_left {
                Some(0) => true,
                Some(items) => {
                    *items -= 1;
                    self.items_owed -= 1;
                    false
                }
                None => !frame.value_due && self.reader.take_break(),
            };
            if ended {
                self.close()?;
                continue;
            }
            let container = frame.container;
            let is_value = frame.value_due;
            let has_keys = container.has_keys();
            frame.value_due = has_keys && !is_value;
            match container {
                Container::Object if !is_value => self.key()?,
                Container::Interface(_) if has_keys && !is_value => self.key()?,
                Container::Error if is_value => self.field_value()?,
                Container::Error => self.field_key()?,
                _ => self.item(container == Container::Array)?,
            }
        }
        self.sink.offset(self.reader.at());
        Ok(())
    }

    fn open(
        &mut self,
        container: Container,
        length: Option<u64>,
        at: usize,
    ) -> Result<(), DecodeError> {
        self.check_depth(at)?;
        let has_keys = container.has_keys();
        let items_left = match length {
            None => None,
            Some(length) => {
                // An item takes at least a byte. Refusing here what can't be met keeps claims from being believed.
                let items = usize::try_from(length)
                    .ok()
                    .and_then(|n| n.checked_mul(1 + usize::from(has_keys)));
                let owed = items.and_then(|items| items.checked_add(self.items_owed));
                self.items_owed = owed
                    .filter(|owed| *owed <= self.reader.remaining())
                    .ok_or_else(|| self.reader.end())?;
                items
            }
        };
        self.frames.push(Frame {
            container,
            items_left,
            value_due: false,
            field_next: 0,
        });
        self.summary.depth = self.summary.depth.max(self.frames.len());
        self.sink.open(container, items_left);
        Ok(())
    }

    fn close(&mut self) -> Result<(), DecodeError> {
        let frame = self.frames.pop();
        if let Some(Frame {
            container: Container::Error,
            field_next,
            ..
        }) = frame
            && let Some(field) = [Field::Name, Field::Message].get(field_next)
        {
            return Err(DecodeError::ErrorFieldMissing {
                field: field.key(),
                at: self.reader.at(),
            });
        }
        self.sink.close();
        Ok(())
    }

    fn check_depth(&self, at: usize) -> Result<(), DecodeError> {
        if self.frames.len() >= self.depth_max {
            return Err(DecodeError::DepthExceeded {
                depth_max: self.depth_max,
                at,
            });
        }
        Ok(())
    }

    /// Walks over one item, up to and including the head of an array or map.
    fn item(&mut self, in_array: bool) -> Result<(), DecodeError> {
        let mut at = self.reader.at();
        let mut head = self.reader.head()?;
        if head == Head::Tag(tag::SHARED) {
            at = self.reader.at();
            head = self.reader.head()?;
            if !has_identity(head) {
                return Err(DecodeError::TagContentInvalid {
                    tag: tag::SHARED,
                    expected: "an object",
                    at,
                });
            }
            self.summary.shared = self.summary.shared.saturating_add(1);
            self.sink.shared();
        }
        let leaf = match head {
            Head::Array(length) => return self.open(Container::Array, length, at),
            Head::Map(length) => return self.open(Container::Object, length, at),
            Head::Tag(tag) if !is_primitive(tag) => return self.tagged(tag, at, in_array),
            Head::Bytes(length) => Leaf::ArrayBuffer(self.reader.bytes(length)?),
            _ => match self.primitive(head, at)? {
                Some(primitive) => Leaf::Primitive(primitive),
                // Nothing else is left.
                None => return Err(DecodeError::UnexpectedBreak { at }),
            },
        };
        self.sink.leaf(leaf);
        Ok(())
    }

    /// The primitive that begins with this head, if one does.
    #[inline(always)] // see `Reader::head`
    fn primitive(&mut self, head: Head, at: usize) -> Result<Option<Primitive<'a>>, DecodeError> {
        Ok(Some(match head {
            Head::Text(_) | Head::Tag(tag::WTF8) => {
                return Ok(self.text(head, at)?.map(Primitive::Text));
            }
            Head::Simple(20) => Primitive::Bool(false),
            Head::Simple(21) => Primitive::Bool(true),
            Head::Simple(22) => Primitive::Null,
            Head::Simple(23) => Primitive::Undefined,
            Head::Simple(simple) => return Err(DecodeError::UnknownSimple { simple, at }),
            Head::Tag(tag @ (tag::BIGINT_POSITIVE | tag::BIGINT_NEGATIVE)) => {
                let content = self.tag_bytes(tag)?;
                Primitive::BigInt {
                    negative: tag == tag::BIGINT_NEGATIVE,
                    content,
                }
            }
            _ => match number(head) {
                Some(number) => Primitive::Number(number),
                None => return Ok(None),
            },
        }))
    }

    /// The string that begins with this head, if one does.
    #[inline(always)] // see `Reader::head`
    fn text(&mut self, head: Head, at: usize) -> Result<Option<TextBytes<'a>>, DecodeError> {
        match head {
            Head::Text(length) => self.reader.text(length, at).map(Some),
            Head::Tag(tag::WTF8) => {
                let at = self.reader.at();
                let bytes = self.tag_bytes(tag::WTF8)?;
                let mut check = Wtf8Check::default();
                if !bytes.iter().all(|chunk| check.push(chunk)) || !check.is_complete() {
                    return Err(DecodeError::TextInvalid { at });
                }
                Ok(Some(TextBytes::Chunks(bytes)))
            }
            _ => Ok(None),
        }
    }

    fn key(&mut self) -> Result<(), DecodeError> {
        let at = self.reader.at();
        let head = self.reader.head()?;
        let key = self.text(head, at)?.ok_or(DecodeError::KeyInvalid { at })?;
        self.sink.key(key);
        Ok(())
    }

    fn field_key(&mut self) -> Result<(), DecodeError> {
        let at = self.reader.at();
        let head = self.reader.head()?;
        let key = self.text(head, at)?.ok_or(DecodeError::KeyInvalid { at })?;
        let unexpected = DecodeError::ErrorFieldUnexpected { at };
        let Some(frame) = self.frames.last_mut() else {
            return Err(unexpected);
        };
        let index = Field::ALL
            .iter()
            .position(|field| key.is(field.key()))
            .ok_or(unexpected.clone())?;
        // Name and message must be there; any other field may be left out.
        let may_come =
            index == frame.field_next || (index > frame.field_next && frame.field_next >= 2);
        if !may_come {
            return Err(unexpected);
        }
        frame.field_next = index + 1;
        self.sink.field(Field::ALL[index]);
        Ok(())
    }

    fn field_value(&mut self) -> Result<(), DecodeError> {
        let index = self
            .frames
            .last()
            .map_or(0, |frame| frame.field_next.saturating_sub(1));
        let field = Field::ALL[index];
        if matches!(field, Field::Cause | Field::Errors) {
            return self.item(false);
        }
        let at = self.reader.at();
        let head = self.reader.head()?;
        let invalid = |expected| DecodeError::ErrorFieldInvalid {
            field: field.key(),
            expected,
            at,
        };
        match (field, head) {
            (Field::Props, Head::Map(length)) => self.open(Container::Object, length, at),
            (Field::Props, _) => Err(invalid("a map")),
            _ => {
                let text = self.text(head, at)?.ok_or(invalid("a string"))?;
                self.sink.leaf(Leaf::Primitive(Primitive::Text(text)));
                Ok(())
            }
        }
    }

    /// Walks over the content of a tag, up to and including the head of an array or map.
    fn tagged(&mut self, tag: u64, tag_at: usize, in_array: bool) -> Result<(), DecodeError> {
        if let Some((kind, big_endian)) = TypedArrayKind::from_tag(tag) {
            return self.typed_array(tag, kind, big_endian);
        }
        let at = self.reader.at();
        let invalid = |expected| DecodeError::TagContentInvalid { tag, expected, at };
        if let Some(interface) = Interface::from_tag(tag) {
            let container = Container::Interface(interface);
            return match (self.reader.head()?, interface.has_keys()) {
                (Head::Array(length), false) => self.open(container, length, at),
                (Head::Map(length), true) => self.open(container, length, at),
                (_, false) => Err(invalid("an array")),
                (_, true) => Err(invalid("a map")),
            };
        }
        let leaf = match tag {
            tag::SET => match self.reader.head()? {
                Head::Array(length) => return self.open(Container::Set, length, at),
                _ => return Err(invalid("an array")),
            },
            tag::MAP => match self.reader.head()? {
                Head::Map(length) => return self.open(Container::Map, length, at),
                _ => return Err(invalid("a map")),
            },
            tag::ERROR => match self.reader.head()? {
                Head::Map(length) => return self.open(Container::Error, length, at),
                _ => return Err(invalid("a map")),
            },
            tag::DATE => {
                let seconds = number(self.reader.head()?).ok_or(invalid("a number"))?;
                Leaf::Date(date::from_seconds(seconds))
            }
            tag::REGEXP => self.regexp(at)?,
            tag::HOLE if !in_array => return Err(DecodeError::HoleMisplaced { at: tag_at }),
            tag::HOLE => match self.reader.head()? {
                Head::Simple(22) => Leaf::Hole,
                _ => return Err(invalid("null")),
            },
            tag::BOXED => {
                let head = self.reader.head()?;
                match self.primitive(head, at)? {
                    None | Some(Primitive::Undefined | Primitive::Null) => {
                        return Err(invalid("a bool, number, bigint or string"));
                    }
                    Some(primitive) => Leaf::Boxed(primitive),
                }
            }
            tag::DATA_VIEW => Leaf::DataView(self.tag_bytes(tag)?),
            tag::REFERENCE => {
                let Head::Unsigned(index) = self.reader.head()? else {
                    return Err(invalid("an unsigned integer"));
                };
                let shared = self.summary.shared;
                let known = u32::try_from(index).ok().filter(|index| *index < shared);
                Leaf::Reference(known.ok_or(DecodeError::ReferenceUnknown {
                    index,
                    shared,
                    at: tag_at,
                })?)
            }
            tag::EXTERNAL => {
                let Head::Unsigned(index) = self.reader.head()? else {
                    return Err(invalid("an unsigned integer"));
                };
                let externals = self.externals;
                let known = u32::try_from(index).ok().filter(|index| *index < externals);
                let index = known.ok_or(DecodeError::ExternalOutOfRange {
                    index,
                    externals,
                    at: tag_at,
                })?;
                self.summary.externals_used.push(index);
                Leaf::External(index)
            }
            _ => return Err(DecodeError::UnknownTag { tag, at: tag_at }),
        };
        self.sink.leaf(leaf);
        Ok(())
    }

    fn typed_array(
        &mut self,
        tag: u64,
        kind: TypedArrayKind,
        big_endian: bool,
    ) -> Result<(), DecodeError> {
        let at = self.reader.at();
        let bytes = self.tag_bytes(tag)?;
        if !bytes.len().is_multiple_of(kind.element_bytes()) {
            return Err(DecodeError::ElementsIncomplete {
                bytes: bytes.len(),
                array: kind.name(),
                at,
            });
        }
        self.sink.leaf(Leaf::TypedArray {
            kind,
            big_endian,
            bytes,
        });
        Ok(())
    }

    /// `[source, flags]`
    fn regexp(&mut self, at: usize) -> Result<Leaf<'a>, DecodeError> {
        let invalid = DecodeError::TagContentInvalid {
            tag: tag::REGEXP,
            expected: "an array of two strings",
            at,
        };
        let Head::Array(length @ (None | Some(2))) = self.reader.head()? else {
            return Err(invalid);
        };
        self.check_depth(at)?;
        self.summary.depth = self.summary.depth.max(self.frames.len() + 1);
        // One after the other: after what is no text the reader stands in the midst of it.
        let Some(source) = self.next_text()? else {
            return Err(invalid);
        };
        let Some(flags) = self.next_text()? else {
            return Err(invalid);
        };
        if length.is_none() && !self.reader.take_break() {
            return Err(invalid);
        }
        Ok(Leaf::RegExp { source, flags })
    }

    fn next_text(&mut self) -> Result<Option<TextBytes<'a>>, DecodeError> {
        let at = self.reader.at();
        let head = self.reader.head()?;
        self.text(head, at)
    }

    fn tag_bytes(&mut self, tag: u64) -> Result<Chunks<'a>, DecodeError> {
        let at = self.reader.at();
        match self.reader.head()? {
            Head::Bytes(length) => self.reader.bytes(length),
            _ => Err(DecodeError::TagContentInvalid {
                tag,
                expected: "a byte string",
                at,
            }),
        }
    }
}

/// Whether the content of this tag is a primitive.
fn is_primitive(tag: u64) -> bool {
    matches!(tag, tag::BIGINT_POSITIVE | tag::BIGINT_NEGATIVE | tag::WTF8)
}

/// Whether tag 28 may mark what begins with this head. Unknown tags pass; they are refused for what they are.
fn has_identity(head: Head) -> bool {
    match head {
        Head::Bytes(_) | Head::Array(_) | Head::Map(_) => true,
        Head::Tag(tag) => {
            !is_primitive(tag) && !matches!(tag, tag::SHARED | tag::REFERENCE | tag::HOLE)
        }
        _ => false,
    }
}

/// The number that this head is. Integers that a double can't hold become the nearest one that it can.
fn number(head: Head) -> Option<f64> {
    match head {
        Head::Unsigned(number) => Some(number as f64),
        Head::Negative(number) => Some(-((u128::from(number) + 1) as f64)),
        Head::Float(number) => Some(number),
        _ => None,
    }
}
