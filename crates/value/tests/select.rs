//! One item by its path: the same bytes or none, however it is looked for.

mod common;

use std::borrow::Cow;

use common::{EXTERNALS, value};
use coracle_value::{
    Bounds, DEPTH_CEILING, DecodeError, ErrorValue, Selected, Text, Value, decode, encode, extract,
    select, validate,
};
use proptest::prelude::*;
use proptest::sample::Index;

const BOUNDS: Bounds = Bounds {
    depth_max: 512,
    bytes_max: 32 << 20,
    externals: EXTERNALS,
};

fn selected<'a>(bytes: &'a [u8], path: &[&str]) -> Selected<'a> {
    select(bytes, path, &BOUNDS).expect("a value")
}

fn item(bytes: &[u8]) -> Selected<'_> {
    Selected::Item(Cow::Borrowed(bytes))
}

fn shared(value: Value) -> Value {
    Value::Shared(Box::new(value))
}

/// What a worker may have answered with.
fn ship() -> Value {
    Value::object([
        ("name", Value::from("Coracle")),
        ("crew", Value::array(["Ann", "Bo"])),
        ("hold", Value::object([("fish", Value::array([1, 2, 3]))])),
    ])
}

#[test]
fn properties_and_elements_are_found_by_name_and_index() {
    let bytes = encode(&ship());
    assert_eq!(selected(&bytes, &["name"]), item(b"\x67Coracle"));
    assert_eq!(selected(&bytes, &["crew"]), item(b"\x82\x63Ann\x62Bo"));
    assert_eq!(selected(&bytes, &["crew", "1"]), item(b"\x62Bo"));
    assert_eq!(selected(&bytes, &["hold", "fish", "2"]), item(b"\x03"));
    assert_eq!(selected(&bytes, &[]), item(&bytes));
}

#[test]
fn the_name_that_leads_nowhere_is_told() {
    let bytes = encode(&ship());
    for (path, index) in [
        (&["sail"][..], 0),
        (&["sail", "colour"], 0),
        (&["name", "length"], 1),
        (&["crew", "2"], 1),
        (&["crew", "01"], 1),
        (&["crew", "-1"], 1),
        (&["crew", "length"], 1),
        (&["hold", "fish", "0", "0"], 3),
    ] {
        let missing = Selected::Missing { index };
        assert_eq!(selected(&bytes, path), missing, "{path:?}");
        assert_eq!(extract(&bytes, path, &BOUNDS), Ok(missing), "{path:?}");
    }
}

#[test]
fn a_name_that_is_an_index_is_one_in_an_array_only() {
    let bytes = encode(&Value::array([Value::object([("1", "one")]), Value::Null]));
    assert_eq!(selected(&bytes, &["0", "1"]), item(b"\x63one"));
    assert_eq!(selected(&bytes, &["1"]), item(b"\xf6"));
}

#[test]
fn of_a_repeated_name_the_last_one_counts() {
    // { a: { b: 1 }, c: 2, a: { d: 3 } }
    let bytes = b"\xa3\x61a\xa1\x61b\x01\x61c\x02\x61a\xa1\x61d\x03";
    assert_eq!(selected(bytes, &["a"]), item(b"\xa1\x61d\x03"));
    assert_eq!(selected(bytes, &["a", "d"]), item(b"\x03"));
    assert_eq!(selected(bytes, &["a", "b"]), Selected::Missing { index: 1 });
    // Also where the first one could not have been cut out: { o: {}, a: o, a: 1 }
    let bytes = b"\xa3\x61o\xd8\x1c\xa0\x61a\xd8\x1d\x00\x61a\x01";
    assert_eq!(selected(bytes, &["a"]), item(b"\x01"));
    // ... and where only the last one can't: { o: {}, a: 1, a: o }
    let bytes = b"\xa3\x61o\xd8\x1c\xa0\x61a\x01\x61a\xd8\x1d\x00";
    assert_eq!(selected(bytes, &["a"]), Selected::Entangled);
}

#[test]
fn items_without_a_length_end_with_their_break() {
    // { a: [ "xy", 2 ] }, with lengths nowhere
    let bytes = b"\xbf\x7f\x61a\xff\x9f\x7f\x61x\x61y\xff\x02\xff\xff";
    assert_eq!(
        selected(bytes, &["a"]),
        item(b"\x9f\x7f\x61x\x61y\xff\x02\xff")
    );
    assert_eq!(selected(bytes, &["a", "0"]), item(b"\x7f\x61x\x61y\xff"));
    assert_eq!(selected(bytes, &["a", "1"]), item(b"\x02"));
}

#[test]
fn names_are_compared_as_strings_however_they_are_written() {
    // { "é": 1, "\ud800": 2 }; the first key once as text in chunks, once as WTF-8
    for bytes in [
        &b"\xa2\x7f\x62\xc3\xa9\x60\xff\x01\xd9\x01\x11\x43\xed\xa0\x80\x02"[..],
        b"\xa2\xd9\x01\x11\x42\xc3\xa9\x01\xd9\x01\x11\x43\xed\xa0\x80\x02",
        b"\xa2\xd9\x01\x11\x5f\x41\xc3\x41\xa9\xff\x01\xd9\x01\x11\x43\xed\xa0\x80\x02",
    ] {
        assert_eq!(selected(bytes, &["é"]), item(b"\x01"));
        // No path spells a lone surrogate, nor is one taken for what it is shown as.
        assert_eq!(
            selected(bytes, &["\u{fffd}"]),
            Selected::Missing { index: 0 }
        );
    }
}

#[test]
fn what_is_no_plain_object_and_no_array_has_no_members() {
    let error = ErrorValue {
        cause: Some(Value::from(1)),
        props: vec![("code".into(), Value::from(2))],
        ..ErrorValue::new("Error", "no")
    };
    let members = [
        Value::Map(vec![(Value::from("0"), Value::from(1))]),
        Value::Set(vec![Value::from(1)]),
        Value::from(error),
        Value::uint8_array([1]),
        Value::from("text"),
        Value::Boxed(Box::new(Value::from("text"))),
    ];
    for member in members {
        let bytes = encode(&Value::array([member.clone()]));
        for name in ["0", "message", "cause", "code", "props", "length"] {
            let missing = Selected::Missing { index: 1 };
            assert_eq!(selected(&bytes, &["0", name]), missing, "{member:?}");
        }
        assert_eq!(selected(&bytes, &["0"]), item(&encode(&member)));
    }
}

#[test]
fn a_hole_is_undefined() {
    let bytes = encode(&Value::Array(vec![Value::Hole, Value::Undefined]));
    let undefined = encode(&Value::Undefined);
    for path in [["0"], ["1"]] {
        assert_eq!(selected(&bytes, &path), item(&undefined));
        assert_eq!(
            extract(&bytes, &path, &BOUNDS),
            Ok(Selected::Item(Cow::Owned(undefined.clone())))
        );
    }
}

#[test]
fn what_is_marked_as_shared_is_looked_into_and_cut_out_with_its_mark() {
    let crew = shared(Value::array(["Ann", "Bo"]));
    let bytes = encode(&shared(Value::object([("crew", crew.clone())])));
    assert_eq!(selected(&bytes, &["crew"]), item(&encode(&crew)));
    assert_eq!(selected(&bytes, &["crew", "0"]), item(b"\x63Ann"));
}

#[test]
fn references_are_cut_out_only_where_they_mean_the_same_afterwards() {
    let twice =
        |number| Value::array([shared(Value::object([("x", 1)])), Value::Reference(number)]);
    // Nothing shared before it: its numbers are those of a value by itself.
    let bytes = encode(&Value::object([("a", twice(0)), ("b", twice(1))]));
    assert_eq!(selected(&bytes, &["a"]), item(&encode(&twice(0))));
    assert_eq!(selected(&bytes, &["b"]), Selected::Entangled);
    assert_eq!(selected(&bytes, &["b", "1"]), Selected::Entangled);
    assert_eq!(selected(&bytes, &["b", "1", "x"]), Selected::Entangled);
    // Without a reference in it, it does not matter what came before.
    assert_eq!(selected(&bytes, &["b", "0", "x"]), item(b"\x01"));
    assert_eq!(selected(&bytes, &[]), item(&bytes));
    // An object that holds itself.
    let bytes = encode(&shared(Value::object([("self", Value::Reference(0))])));
    assert_eq!(selected(&bytes, &["self"]), Selected::Entangled);
}

#[test]
fn what_is_entangled_is_extracted_with_what_it_refers_to() {
    let extracted = |root: &Value, path: &[&str]| match extract(&encode(root), path, &BOUNDS)
        .expect("a value")
    {
        Selected::Item(bytes) => decode(&bytes, &BOUNDS).expect("a value"),
        other => panic!("{other:?}"),
    };
    let point = || Value::object([("x", 1)]);
    let root = Value::object([
        ("a", shared(point())),
        (
            "b",
            Value::array([Value::Reference(0), Value::Reference(0)]),
        ),
    ]);
    let twice = Value::array([shared(point()), Value::Reference(0)]);
    assert_eq!(extracted(&root, &["b"]), twice);
    assert_eq!(extracted(&root, &["b", "1"]), shared(point()));
    assert_eq!(extracted(&root, &["b", "1", "x"]), Value::from(1));

    // A child that knows its parent: cut out, it still does.
    let child = shared(Value::object([("parent", Value::Reference(0))]));
    let root = shared(Value::object([("child", child), ("name", "root".into())]));
    let expected = shared(Value::object([(
        "parent",
        shared(Value::object([
            ("child", Value::Reference(0)),
            ("name", "root".into()),
        ])),
    )]));
    assert_eq!(extracted(&root, &["child"]), expected);
    assert_eq!(
        extracted(&root, &["child", "parent", "child", "parent", "name"]),
        Value::from("root")
    );
}

#[test]
fn an_extract_that_references_nest_too_deep_is_refused() {
    // Each element is 400 levels around a reference to the one before it.
    let mut elements = vec![shared(Value::Array(vec![]))];
    for number in 0..3 {
        let mut value = Value::Reference(number);
        for _ in 0..400 {
            value = Value::Array(vec![value]);
        }
        elements.push(shared(value));
    }
    let bytes = encode(&Value::Array(elements));
    assert!(matches!(
        extract(&bytes, &["1"], &BOUNDS),
        Ok(Selected::Item(_))
    ));
    assert!(matches!(
        extract(&bytes, &["2"], &BOUNDS),
        Err(DecodeError::DepthExceeded { .. })
    ));
}

#[test]
fn what_is_wrong_behind_the_item_is_refused_all_the_same() {
    let mut bytes = encode(&ship());
    bytes.push(0);
    let at = bytes.len() - 1;
    assert_eq!(
        select(&bytes, &["name"], &BOUNDS),
        Err(DecodeError::TrailingBytes { at })
    );
    bytes.truncate(at - 1);
    assert_eq!(
        select(&bytes, &["name"], &BOUNDS),
        Err(DecodeError::UnexpectedEnd { at: at - 1 })
    );
    let bounds = Bounds {
        bytes_max: 4,
        ..BOUNDS
    };
    assert!(matches!(
        select(&bytes, &["name"], &bounds),
        Err(DecodeError::SizeExceeded { .. })
    ));
}

#[test]
fn a_path_leads_as_deep_as_a_value_may_be_and_no_deeper() {
    let bounds = Bounds {
        depth_max: usize::MAX,
        ..BOUNDS
    };
    for (wrap, name) in [(&b"\x81"[..], "0"), (b"\xa1\x61a", "a")] {
        let nested = |depth: usize| [wrap.repeat(depth), vec![7]].concat();
        let path = vec![name; DEPTH_CEILING];
        let bytes = nested(DEPTH_CEILING);
        assert_eq!(select(&bytes, &path, &bounds), Ok(item(b"\x07")));
        let too_long = vec![name; DEPTH_CEILING + 1];
        assert_eq!(
            select(&bytes, &too_long, &bounds),
            Ok(Selected::Missing {
                index: DEPTH_CEILING
            })
        );
        assert!(matches!(
            select(&nested(DEPTH_CEILING + 1), &path, &bounds),
            Err(DecodeError::DepthExceeded { .. })
        ));
    }
}

/// A path into a value; most of them lead somewhere.
fn path_into(root: &Value, turns: &[Index]) -> Vec<String> {
    let numbered = numbered(root);
    let mut path = Vec::new();
    let mut place = root;
    for turn in turns {
        let place_now = resolve(&numbered, place);
        let (name, next) = match place_now {
            Value::Array(elements) if !elements.is_empty() => {
                let index = turn.index(elements.len());
                (index.to_string(), &elements[index])
            }
            Value::Object(properties) if !properties.is_empty() => {
                let (key, value) = turn.get(properties);
                (key.to_string(), value)
            }
            _ => (turn.index(3).to_string(), &Value::Null),
        };
        path.push(name);
        place = next;
    }
    path
}

/// What [`Value::get`] and [`Value::index`] find on this path.
fn member<'v>(root: &'v Value, path: &[String]) -> Result<&'v Value, usize> {
    let numbered = numbered(root);
    let mut place = root;
    for (index, name) in path.iter().enumerate() {
        let container = resolve(&numbered, place);
        let member = match container {
            Value::Array(_) => name.parse().ok().and_then(|at| container.index(at)),
            _ => container.get(name),
        };
        place = member.ok_or(index)?;
    }
    Ok(place)
}

/// The shared objects by number, found by recursion.
fn numbered(value: &Value) -> Vec<&Value> {
    let mut found = Vec::new();
    number(value, &mut found);
    found
}

fn number<'v>(value: &'v Value, found: &mut Vec<&'v Value>) {
    match value {
        Value::Shared(inner) => {
            found.push(inner);
            number(inner, found);
        }
        Value::Interface(_, content) => number(content, found),
        Value::Array(elements) | Value::Set(elements) => {
            elements.iter().for_each(|value| number(value, found));
        }
        Value::Object(properties) => {
            properties
                .iter()
                .for_each(|(_, value)| number(value, found));
        }
        Value::Map(entries) => entries.iter().for_each(|(key, value)| {
            number(key, found);
            number(value, found);
        }),
        Value::Error(error) => {
            let ErrorValue {
                cause,
                errors,
                props,
                ..
            } = &**error;
            cause.iter().for_each(|value| number(value, found));
            errors.iter().for_each(|value| number(value, found));
            props.iter().for_each(|(_, value)| number(value, found));
        }
        _ => {}
    }
}

fn resolve<'v>(numbered: &[&'v Value], value: &'v Value) -> &'v Value {
    match value {
        Value::Reference(number) => numbered[*number as usize],
        value => value.unshared(),
    }
}

/// The value with what is shared written out, down to a depth: what a reader sees who does not ask for identity.
fn unfold(numbered: &[&Value], value: &Value, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    let all = |values: &[Value]| {
        let values = values.iter().map(|value| unfold(numbered, value, depth));
        values.collect::<Vec<_>>()
    };
    let properties = |properties: &[(Text, Value)]| {
        let unfolded = properties
            .iter()
            .map(|(key, value)| (key.clone(), unfold(numbered, value, depth)));
        unfolded.collect::<Vec<_>>()
    };
    match resolve(numbered, value) {
        Value::Array(elements) => Value::Array(all(elements)),
        Value::Set(elements) => Value::Set(all(elements)),
        Value::Object(members) => Value::Object(properties(members)),
        Value::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| {
                let [key, value] = [key, value].map(|value| unfold(numbered, value, depth));
                (key, value)
            });
            Value::Map(entries.collect())
        }
        Value::Error(error) => {
            let optional =
                |value: &Option<Value>| value.as_ref().map(|value| unfold(numbered, value, depth));
            Value::from(ErrorValue {
                name: error.name.clone(),
                message: error.message.clone(),
                stack: error.stack.clone(),
                cause: optional(&error.cause),
                errors: optional(&error.errors),
                props: properties(&error.props),
            })
        }
        Value::Hole => Value::Undefined,
        leaf => leaf.clone(),
    }
}

const UNFOLDED_DEPTH: usize = 5;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2048))]

    #[test]
    fn what_is_found_in_the_bytes_is_what_is_found_in_the_tree(
        root in value(),
        turns in prop::collection::vec(any::<Index>(), 0..5),
    ) {
        let path = path_into(&root, &turns);
        let bytes = encode(&root);
        let expected = member(&root, &path);
        let found = select(&bytes, &path, &BOUNDS).expect("a value");
        let extracted = extract(&bytes, &path, &BOUNDS).expect("a value");
        if found != Selected::Entangled {
            // The way through the tree comes to the same; of holes it makes what they read as.
            match (&found, &extracted) {
                (Selected::Item(cut), Selected::Item(copy)) => {
                    prop_assert_eq!(decode(cut, &BOUNDS), decode(copy, &BOUNDS));
                }
                _ => prop_assert_eq!(&found, &extracted),
            }
        }
        match (expected, extracted) {
            (Err(expected), Selected::Missing { index }) => prop_assert_eq!(index, expected),
            (Ok(expected), Selected::Item(item)) => {
                let item = decode(&item, &BOUNDS).expect("a value");
                prop_assert_eq!(
                    unfold(&numbered(&item), &item, UNFOLDED_DEPTH),
                    unfold(&numbered(&root), expected, UNFOLDED_DEPTH)
                );
            }
            (expected, extracted) => prop_assert!(false, "{expected:?}, yet {extracted:?}"),
        }
    }

    #[test]
    fn without_references_every_member_can_be_cut_out(
        root in value().prop_filter("references", |root| validate(&encode(root), &BOUNDS).expect("a value").shared == 0),
        turns in prop::collection::vec(any::<Index>(), 0..5),
    ) {
        let path = path_into(&root, &turns);
        let bytes = encode(&root);
        match (member(&root, &path), select(&bytes, &path, &BOUNDS).expect("a value")) {
            (Ok(Value::Hole), found) => prop_assert_eq!(found, item(b"\xf7")),
            (Ok(member), found) => {
                let bytes = encode(member);
                prop_assert_eq!(found, item(&bytes));
            }
            (Err(index), found) => prop_assert_eq!(found, Selected::Missing { index }),
        }
    }
}
