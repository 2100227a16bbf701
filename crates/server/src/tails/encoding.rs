//! Events as bytes (`schema/value.md`): each is encoded once, for all tails, and put into the arguments of calls so.

use coracle_value::{
    Value,
    tag::{REFERENCE, SHARED},
};
use minicbor::{Encoder, encode};
use std::{convert::Infallible, sync::Arc};

/// An event.
pub(super) struct Event {
    /// Names and values, one after the other, besides those that [`batch`] adds.
    properties: Box<[u8]>,
    count: u64,
    is_truncated: bool,
    /// Shared objects in it, numbered from 0.
    shared: u32,
}

impl Event {
    pub(super) fn bytes(&self) -> usize {
        self.properties.len()
    }
}

/// The arguments of a call: these events, the first of which says how many were lost before it.
pub(super) fn batch(events: &[Arc<Event>], lost: u64) -> Vec<u8> {
    let mut batch = Writer::default();
    batch.array(1);
    batch.array(events.len());
    let mut lost = Some(lost).filter(|lost| *lost > 0);
    for event in events {
        let lost = lost.take();
        batch.map(event.count + 1 + u64::from(lost.is_some()));
        batch.key("truncated");
        batch.value(&Value::from(event.is_truncated || lost.is_some()));
        if let Some(lost) = lost {
            batch.key("dropped");
            batch.value(&Value::Number(lost as f64));
        }
        match event.shared {
            0 => batch.bytes().extend_from_slice(&event.properties),
            _ => batch.encoded(&event.properties),
        }
    }
    batch.encoder.into_writer()
}

/// Writes an event, or a batch of them.
pub(super) struct Writer {
    encoder: Encoder<Vec<u8>>,
    /// Properties of the event.
    count: u64,
    /// Shared objects so far.
    shared: u32,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            encoder: Encoder::new(Vec::new()),
            count: 0,
            shared: 0,
        }
    }
}

impl Writer {
    pub(super) fn into_event(self, is_truncated: bool) -> Event {
        Event {
            properties: self.encoder.into_writer().into_boxed_slice(),
            count: self.count,
            is_truncated,
            shared: self.shared,
        }
    }

    /// Properties of the event.
    pub(super) fn properties<const N: usize>(&mut self, properties: [(&str, Value); N]) {
        for (name, value) in properties {
            self.property(name);
            self.value(&value);
        }
    }

    /// The name of a property of the event. Its value has to follow.
    pub(super) fn property(&mut self, name: &str) {
        self.count += 1;
        self.key(name);
    }

    pub(super) fn key(&mut self, key: &str) {
        written(self.encoder.str(key));
    }

    pub(super) fn map(&mut self, entries: u64) {
        written(self.encoder.map(entries));
    }

    pub(super) fn array(&mut self, members: usize) {
        written(self.encoder.array(members as u64));
    }

    /// A value without shared objects.
    pub(super) fn value(&mut self, value: &Value) {
        coracle_value::encode_into(value, self.bytes());
    }

    /// Items that are encoded, and are right. Their shared objects are numbered from 0, and go on from those before.
    pub(super) fn encoded(&mut self, items: &[u8]) {
        let first = self.shared;
        let (mut at, mut copied, mut is_reference) = (0, 0, false);
        while let Some(head) = items.get(at..).and_then(Head::read) {
            if is_reference {
                self.bytes().extend_from_slice(&items[copied..at]);
                written(self.encoder.u64(head.argument + u64::from(first)));
                copied = at + head.length;
            }
            is_reference = head.is_tag(REFERENCE);
            self.shared += u32::from(head.is_tag(SHARED));
            at = at.saturating_add(head.length + head.content_length());
        }
        self.bytes().extend_from_slice(&items[copied..]);
    }

    fn bytes(&mut self) -> &mut Vec<u8> {
        self.encoder.writer_mut()
    }
}

/// Into memory everything can be written.
fn written<T>(outcome: Result<T, encode::Error<Infallible>>) {
    debug_assert!(outcome.is_ok(), "a vector takes everything");
}

/// What a CBOR item begins with.
struct Head {
    major: u8,
    argument: u64,
    length: usize,
}

impl Head {
    fn read(bytes: &[u8]) -> Option<Self> {
        let (first, rest) = bytes.split_first()?;
        let small = first & 0x1f;
        let argument_bytes = match small {
            24..=27 => 1 << (small - 24),
            _ => 0,
        };
        let argument = rest.get(..argument_bytes)?.iter();
        let argument = argument.fold(0, |argument, byte| argument << 8 | u64::from(*byte));
        Some(Self {
            major: first >> 5,
            argument: match small {
                0..=23 => u64::from(small),
                // 31 is an indefinite length, and has none.
                _ => argument,
            },
            length: 1 + argument_bytes,
        })
    }

    fn is_tag(&self, tag: u64) -> bool {
        self.major == 6 && self.argument == tag
    }

    /// Bytes of a string; all other items have theirs in items that follow.
    fn content_length(&self) -> usize {
        match self.major {
            2 | 3 => usize::try_from(self.argument).unwrap_or(usize::MAX / 2),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_value::Bounds;

    /// An array of a shared object, something that must not be taken for one, and a reference to it.
    fn shared(text: &str) -> Value {
        let object = Value::object([("a", Value::from(text))]);
        Value::Array(vec![
            Value::Shared(Box::new(object)),
            Value::from("\u{1c}\u{1d}".repeat(200)),
            Value::ArrayBuffer(vec![0xd8, 0x1d, 0, 0xd8, 0x1c]),
            Value::Number(0.5),
            Value::Reference(0),
        ])
    }

    fn decoded(bytes: &[u8]) -> Value {
        coracle_value::decode(bytes, &Bounds::default()).expect("it is right")
    }

    fn event(text: &str) -> Arc<Event> {
        let mut writer = Writer::default();
        writer.properties([("before", Value::from(1))]);
        writer.property("message");
        writer.array(2);
        writer.encoded(&coracle_value::encode(&shared(text)));
        writer.encoded(&coracle_value::encode(&shared(text)));
        Arc::new(writer.into_event(false))
    }

    #[test]
    fn shared_objects_of_events_are_numbered_on() {
        // More than 23, so that heads get longer.
        let events: Vec<_> = (0..20).map(|number| event(&number.to_string())).collect();
        let args = decoded(&batch(&events, 0));
        for number in 0..20 {
            let message = args
                .index(0)
                .and_then(|events| events.index(number)?.get("message"));
            for half in 0..2 {
                let member = |index| message.and_then(|message| message.index(half)?.index(index));
                let object = Value::object([("a", Value::from(number.to_string()))]);
                assert_eq!(member(0), Some(&Value::Shared(Box::new(object))));
                let expected = (number * 2 + half) as u32;
                assert_eq!(member(4), Some(&Value::Reference(expected)));
            }
        }
    }

    #[test]
    fn indefinite_lengths_are_passed_on() {
        // [_ shared [], (_ "a", "b"), reference to 0]
        let items = [
            0x9f, 0xd8, 0x1c, 0x80, 0x7f, 0x61, 0x61, 0x61, 0x62, 0xff, 0xd8, 0x1d, 0x00, 0xff,
        ];
        let mut writer = Writer::default();
        writer.array(2);
        writer.encoded(&items);
        writer.encoded(&items);
        let both = decoded(&writer.encoder.into_writer());
        let last = |index: usize| both.index(index).and_then(|items| items.index(2)).cloned();
        assert_eq!(last(0), Some(Value::Reference(0)));
        assert_eq!(last(1), Some(Value::Reference(1)));
    }
}
