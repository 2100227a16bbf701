//! Nesting: bounded for whatever reads, and harmless to a small native stack up to the ceiling.

use coracle_value::{
    Bounds, DEPTH_CEILING, DecodeError, JsonError, Value, decode, encode, from_json, to_json,
    validate,
};

/// The smallest stack that we promise to get by with; Rust's own threads have four times as much.
const STACK_BYTES: usize = 512 << 10;

const BOUNDS: Bounds = Bounds {
    depth_max: usize::MAX,
    bytes_max: usize::MAX,
    externals: 0,
};

/// What may stand around a value: the bytes before it and after it, and the levels of nesting that they make.
const WRAPS: &[(&str, &[u8], &[u8], usize)] = &[
    ("array", b"\x81", b"", 1),
    ("array without a length", b"\x9f", b"\xff", 1),
    ("shared array", b"\xd8\x1c\x81", b"", 1),
    ("set", b"\xd9\x01\x02\x81", b"", 1),
    ("object", b"\xa1\x61a", b"", 1),
    ("shared object", b"\xd8\x1c\xbf\x61a", b"\xff", 1),
    ("map value", b"\xd9\x01\x03\xa1\x00", b"", 1),
    ("map key", b"\xd8\x1c\xd9\x01\x03\xa1", b"\x00", 1),
    (
        "cause",
        b"\xd8\x1c\xd9\x9c\x41\xa3\x64name\x60\x67message\x60\x65cause",
        b"",
        1,
    ),
    (
        "errors",
        b"\xd9\x9c\x41\xa3\x64name\x60\x67message\x60\x66errors\x81",
        b"",
        2,
    ),
    (
        "props",
        b"\xd9\x9c\x41\xa3\x64name\x60\x67message\x60\x65props\xa1\x61a",
        b"",
        2,
    ),
];

/// The number 0 with wraps around it up to a depth.
fn nested((name, before, after, levels): (&str, &[u8], &[u8], usize), depth: usize) -> Vec<u8> {
    assert_eq!(depth % levels, 0, "{name}");
    [
        before.repeat(depth / levels),
        vec![0],
        after.repeat(depth / levels),
    ]
    .concat()
}

fn on_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(STACK_BYTES)
        .spawn(test)
        .expect("a thread");
    thread.join().expect("no overflow");
}

#[test]
fn a_value_at_the_ceiling_is_read_written_and_dropped_on_a_small_stack() {
    on_small_stack(|| {
        for wrap in WRAPS {
            let bytes = nested(*wrap, DEPTH_CEILING);
            assert_eq!(
                validate(&bytes, &BOUNDS).map(|summary| summary.depth),
                Ok(DEPTH_CEILING),
                "{}",
                wrap.0
            );
            let value = decode(&bytes, &BOUNDS).expect(wrap.0);
            let _ = to_json(&value);
            let written = encode(&value);
            drop(value);
            assert_eq!(
                validate(&written, &BOUNDS).map(|summary| summary.depth),
                Ok(DEPTH_CEILING),
                "{}",
                wrap.0
            );
        }
    });
}

#[test]
fn a_value_of_the_default_depth_is_cloned_compared_and_printed_on_a_default_stack() {
    // Without optimisation a clone takes up to 3 KiB a level, so the ceiling is for optimised builds.
    let depth = if cfg!(debug_assertions) {
        Bounds::default().depth_max
    } else {
        DEPTH_CEILING
    };
    for wrap in WRAPS {
        let value = decode(&nested(*wrap, depth), &BOUNDS).expect(wrap.0);
        assert_eq!(value.clone(), value);
        assert!(format!("{value:?}").len() > depth);
    }
}

#[test]
fn one_level_more_than_the_ceiling_is_refused_whatever_the_bounds_say() {
    for wrap in WRAPS {
        let bytes = nested(*wrap, DEPTH_CEILING + 2);
        let refused = decode(&bytes, &BOUNDS).expect_err(wrap.0);
        assert!(
            matches!(
                refused,
                DecodeError::DepthExceeded {
                    depth_max: DEPTH_CEILING,
                    ..
                }
            ),
            "{}: {refused}",
            wrap.0
        );
        assert_eq!(validate(&bytes, &BOUNDS), Err(refused));
    }
}

#[test]
fn nesting_is_counted_in_arrays_and_maps_that_are_open_at_once() {
    let bounds = |depth_max| Bounds {
        depth_max,
        ..Bounds::default()
    };
    for (depth, hex) in [
        (0, &b"\x00"[..]),
        (0, b"\xc1\x00"),
        (1, b"\x80"),
        (1, b"\xd8\x1c\xd9\x01\x02\x80"),
        (1, b"\xd9\x52\x4a\x82\x60\x60"),
        (2, b"\x82\x80\x80"),
        (2, b"\xa1\x61a\x80"),
    ] {
        assert_eq!(
            validate(hex, &bounds(depth)).map(|summary| summary.depth),
            Ok(depth),
            "{hex:02x?}"
        );
        if depth > 0 {
            let refused = decode(hex, &bounds(depth - 1));
            assert!(
                matches!(refused, Err(DecodeError::DepthExceeded { .. })),
                "{hex:02x?}"
            );
        }
    }
}

#[test]
fn a_million_brackets_are_refused_on_a_small_stack() {
    on_small_stack(|| {
        for wrap in WRAPS {
            let refused = validate(&wrap.1.repeat(1_000_000), &BOUNDS);
            assert!(
                matches!(refused, Err(DecodeError::DepthExceeded { .. })),
                "{}",
                wrap.0
            );
        }
        for json in ["[", "{\"a\":"] {
            let refused = from_json(&json.repeat(1_000_000), &BOUNDS);
            assert_eq!(
                refused,
                Err(JsonError::DepthExceeded {
                    depth_max: DEPTH_CEILING
                })
            );
        }
    });
}

#[test]
fn json_at_the_ceiling_is_read_and_written_on_a_small_stack() {
    on_small_stack(|| {
        let json = format!("{}{}", "[".repeat(DEPTH_CEILING), "]".repeat(DEPTH_CEILING));
        let value = from_json(&json, &BOUNDS).expect("within the ceiling");
        assert_eq!(to_json(&value).as_deref(), Ok(&*json));
    });
}

#[test]
fn json_that_references_make_deeper_than_the_value_is_refused() {
    // Each element is 500 levels around a reference to the one before it.
    let mut elements = vec![Value::Shared(Box::new(Value::Array(vec![])))];
    for index in 0..10 {
        let mut value = Value::Reference(index);
        for _ in 0..500 {
            value = Value::Array(vec![value]);
        }
        elements.push(Value::Shared(Box::new(value)));
    }
    let refused = to_json(&Value::Array(elements));
    assert_eq!(
        refused,
        Err(JsonError::DepthExceeded {
            depth_max: DEPTH_CEILING
        })
    );
}
