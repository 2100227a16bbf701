//! The schema only grows: what a client of the last release says and hears is still what it means.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use capnp::{
    message::{self, ReaderOptions},
    schema_capnp::{code_generator_request, field, node, type_},
    serialize,
};
use std::collections::BTreeMap;

const NOW: &[u8] = include_bytes!("../../../schema/coracle.req");
const RELEASED: &[u8] = include_bytes!("../../../schema/released.req");

/// What the wire depends on, by node and ordinal. Names of structs and methods are not part of it.
type Surface = BTreeMap<String, String>;

type Request = message::Builder<message::HeapAllocator>;

fn request(bytes: &[u8]) -> Request {
    let mut options = ReaderOptions::new();
    options.traversal_limit_in_words(None);
    let message = serialize::read_message(bytes, options).unwrap();
    let mut copy = message::Builder::new_default();
    copy.set_root(
        message
            .get_root::<code_generator_request::Reader<'_>>()
            .unwrap(),
    )
    .unwrap();
    copy
}

fn surface(request: &mut Request) -> Surface {
    let request: code_generator_request::Builder<'_> = request.get_root().unwrap();
    let mut surface = Surface::new();
    for node in request.into_reader().get_nodes().unwrap() {
        let id = format!("{:016x}", node.get_id());
        let mut add = |what: String, is: String| {
            assert_eq!(
                surface.insert(format!("{id} {what}"), is),
                None,
                "{what} twice"
            );
        };
        match node.which().unwrap() {
            node::Struct(it) => {
                add("kind".into(), "struct".into());
                for field in it.get_fields().unwrap() {
                    let (what, is) = of_field(field);
                    add(what, is);
                }
            }
            node::Enum(it) => {
                add("kind".into(), "enum".into());
                for (ordinal, _) in it.get_enumerants().unwrap().iter().enumerate() {
                    add(format!("enumerant @{ordinal}"), String::new());
                }
            }
            node::Interface(it) => {
                add("kind".into(), "interface".into());
                for (ordinal, method) in it.get_methods().unwrap().iter().enumerate() {
                    let (params, results) = (
                        method.get_param_struct_type(),
                        method.get_result_struct_type(),
                    );
                    add(
                        format!("method @{ordinal}"),
                        format!("{params:016x} -> {results:016x}"),
                    );
                }
            }
            // Neither is on the wire.
            node::File(()) | node::Const(_) | node::Annotation(_) => {}
        }
    }
    surface
}

fn of_field(field: field::Reader<'_>) -> (String, String) {
    let name = field.get_name().unwrap().to_string().unwrap();
    let what = match field.get_ordinal().which().unwrap() {
        field::ordinal::Explicit(ordinal) => format!("field @{ordinal}"),
        field::ordinal::Implicit(()) => format!("group {name}"),
    };
    let union = field.get_discriminant_value();
    let is = match field.which().unwrap() {
        field::Slot(slot) => format!(
            "{} at {}, union {union}, default {:?}",
            of_type(slot.get_type().unwrap()),
            slot.get_offset(),
            slot.get_default_value().unwrap()
        ),
        field::Group(group) => format!("group {:016x}, union {union}", group.get_type_id()),
    };
    (what, is)
}

fn of_type(it: type_::Reader<'_>) -> String {
    match it.which().unwrap() {
        type_::Void(()) => "Void".into(),
        type_::Bool(()) => "Bool".into(),
        type_::Int8(()) => "Int8".into(),
        type_::Int16(()) => "Int16".into(),
        type_::Int32(()) => "Int32".into(),
        type_::Int64(()) => "Int64".into(),
        type_::Uint8(()) => "UInt8".into(),
        type_::Uint16(()) => "UInt16".into(),
        type_::Uint32(()) => "UInt32".into(),
        type_::Uint64(()) => "UInt64".into(),
        type_::Float32(()) => "Float32".into(),
        type_::Float64(()) => "Float64".into(),
        type_::Text(()) => "Text".into(),
        type_::Data(()) => "Data".into(),
        type_::List(list) => format!("List({})", of_type(list.get_element_type().unwrap())),
        type_::Enum(it) => format!("enum {:016x}", it.get_type_id()),
        type_::Struct(it) => format!("struct {:016x}", it.get_type_id()),
        type_::Interface(it) => format!("interface {:016x}", it.get_type_id()),
        type_::AnyPointer(_) => "AnyPointer".into(),
    }
}

/// What was released and is not there any more, or is something else.
fn breaks(released: &Surface, now: &Surface) -> Vec<String> {
    released
        .iter()
        .filter(|(what, is)| now.get(*what) != Some(*is))
        .map(|(what, is)| format!("{what}: was {is:?}, is {:?}", now.get(what)))
        .collect()
}

#[test]
fn what_was_released_is_there_and_means_the_same() {
    let released = surface(&mut request(RELEASED));
    assert!(released.len() > 100, "{released:#?}");
    let broken = breaks(&released, &surface(&mut request(NOW)));
    assert!(broken.is_empty(), "{broken:#?}");
}

/// Changes the first node of a kind that can be changed so, and says what breaks.
fn broken_by(change: impl Fn(node::Builder<'_>) -> bool) -> Vec<String> {
    let mut changed = request(RELEASED);
    let root: code_generator_request::Builder<'_> = changed.get_root().unwrap();
    let mut nodes = root.get_nodes().unwrap();
    let is_changed = (0..nodes.len()).any(|index| change(nodes.reborrow().get(index)));
    assert!(is_changed, "there is no such node");
    breaks(&surface(&mut request(RELEASED)), &surface(&mut changed))
}

#[test]
fn a_field_that_moves_or_changes_its_type_is_a_break() {
    let of_fields = |change: fn(field::slot::Builder<'_>)| {
        broken_by(|node| {
            let Ok(node::Struct(it)) = node.which() else {
                return false;
            };
            let mut fields = it.get_fields().unwrap();
            (0..fields.len()).any(|index| match fields.reborrow().get(index).which() {
                Ok(field::Slot(slot)) => {
                    change(slot);
                    true
                }
                _ => false,
            })
        })
    };
    let moved = of_fields(|mut slot| {
        let offset = slot.reborrow().get_offset();
        slot.set_offset(offset + 1);
    });
    assert_eq!(moved.len(), 1, "{moved:#?}");
    let retyped = of_fields(|slot| slot.init_type().set_float32(()));
    assert_eq!(retyped.len(), 1, "{retyped:#?}");
}

#[test]
fn a_method_that_is_gone_or_takes_something_else_is_a_break() {
    let gone = broken_by(|node| match node.which() {
        Ok(node::Interface(it)) => {
            it.init_methods(0);
            true
        }
        _ => false,
    });
    assert!(
        !gone.is_empty() && gone.iter().all(|what| what.ends_with("is None")),
        "{gone:#?}"
    );
    let retyped = broken_by(|node| match node.which() {
        Ok(node::Interface(it)) => {
            let mut methods = it.get_methods().unwrap();
            methods.reborrow().get(0).set_param_struct_type(1);
            true
        }
        _ => false,
    });
    assert_eq!(retyped.len(), 1, "{retyped:#?}");
}

#[test]
fn what_is_added_is_no_break() {
    let released = surface(&mut request(RELEASED));
    let mut grown = released.clone();
    grown.insert("00 field @99".into(), "Text at 9".into());
    assert_eq!(breaks(&released, &grown), Vec::<String>::new());
}
