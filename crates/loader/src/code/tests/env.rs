//! `env`: its size, form and shape.

use super::*;

/// Case R12.
#[test]
fn env_may_be_as_large_as_the_limit_and_not_a_byte_larger() {
    let sized = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes - 8)).into_bytes();
    assert_eq!(problems(&with_env(Form::Json, &sized(1 << 20))), []);
    assert_problem(
        &with_env(Form::Json, &sized((1 << 20) + 1)),
        "/env",
        ProblemCode::EnvTooLarge,
        "Dynamic Worker env size (1048577 bytes) exceeds the maximum allowed size of 1048576 bytes.",
    );
}

#[test]
fn env_must_be_an_object_or_undefined() {
    let message = "Incorrect type for the 'env' field on 'WorkerCode': the provided value is not of type 'Object'.";
    for (form, bytes) in [
        (Form::Json, &b"[]"[..]),
        (Form::Json, b"null"),
        (Form::Json, b"\"{}\""),
        (Form::Cbor, &[0x80]),                   // []
        (Form::Cbor, &[0xf6]),                   // null
        (Form::Cbor, &[0xd9, 0x01, 0x03, 0xa0]), // new Map()
        (Form::Cbor, &[0xd8, 0x1c, 0x80]),       // an array that is referred to again
    ] {
        assert_problem(
            &with_env(form, bytes),
            "/env",
            ProblemCode::EnvNotObject,
            message,
        );
    }
    for (form, bytes) in [
        (Form::Undefined, &b""[..]),
        (Form::Json, b"\t{}"),
        (Form::Cbor, &[0xa0]),             // {}
        (Form::Cbor, &[0xbf, 0xff]),       // {}, of indefinite length
        (Form::Cbor, &[0xd8, 0x1c, 0xa0]), // an object that is referred to again
    ] {
        assert_eq!(problems(&with_env(form, bytes)), [], "{bytes:02x?}");
    }
}

#[test]
fn env_that_is_not_well_formed_says_where() {
    let cut = problem(&with_env(Form::Cbor, &[0xa1, 0x61, b'a']));
    assert_eq!((&cut.path[..], cut.code), ("/env", ProblemCode::EnvInvalid));
    assert!(
        cut.message
            .starts_with("The 'env' field on 'WorkerCode' can't be read: "),
        "{cut}"
    );
    assert_eq!(
        problem(&with_env(Form::Cbor, b"")).code,
        ProblemCode::EnvInvalid
    );
    assert_eq!(
        problem(&with_env(Form::Json, b"{")).code,
        ProblemCode::EnvInvalid
    );
    assert_eq!(
        problem(&with_env(Form::Json, b"{\"a\":\"\xff\"}")).code,
        ProblemCode::EnvInvalid
    );
    // {"a": external 0}, with no table of externals.
    let external = [0xa1, 0x61, b'a', 0xd9, 0x9c, 0x40, 0x00];
    assert_eq!(
        problem(&with_env(Form::Cbor, &external)).code,
        ProblemCode::EnvInvalid
    );
}

#[test]
fn env_is_nested_as_deeply_as_values_are() {
    // {"a": [[…[]…]]}
    let nested = |depth: usize| [&[0xa1, 0x61, b'a'][..], &vec![0x81; depth - 2], &[0x80]].concat();
    assert_eq!(problems(&with_env(Form::Cbor, &nested(512))), []);
    assert_eq!(
        problem(&with_env(Form::Cbor, &nested(513))).code,
        ProblemCode::EnvInvalid
    );
}
