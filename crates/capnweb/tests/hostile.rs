//! Clients that mean harm: nothing panics, what is held is bounded, and nothing recurses.

mod common;

use common::{Wire, host};
use coracle_capnweb::{Closed, Effect, Kind, Limits, Outcome, Payload, Violation};
use coracle_value::Value;
use proptest::prelude::*;

fn small() -> Limits {
    Limits {
        message_bytes_max: 4_000,
        members_max: 300,
        depth_max: 40,
        exports_max: 20,
        imports_max: 20,
        promises_max: 40,
        calls_max: 5,
        remap_steps_max: 500,
        held_bytes_max: 40_000,
        pipe_bytes_max: 2_000,
        window_bytes_max: 1_000,
        ..Limits::default()
    }
}

/// Does what a driver does, with answers that refer to things, and checks the limits after each step.
fn drive(wire: &mut Wire, limits: &Limits) {
    let mut calls = 0;
    while let Some(effect) = wire.connection.next_effect() {
        if let Effect::Call {
            call, path, args, ..
        } = effect
        {
            calls += 1;
            match path.first().map_or("", String::as_str) {
                // Stays open.
                "a" => {}
                "b" => wire.answer_with(call, Value::External(0), vec![host("b", Kind::Target)]),
                "c" => wire.answer_with(call, Value::External(0), vec![host("c", Kind::Source)]),
                "d" => wire.answer_with(call, Value::External(0), vec![host("d", Kind::Sink)]),
                "pull" if calls > 20 => wire.answer(call, Value::Undefined),
                "pull" => wire.answer(call, Value::uint8_array(vec![0; 100])),
                "e" => wire.connection.answer(call, Outcome::error("Error", "e")),
                _ => wire.connection.answer(call, Outcome::Value(args)),
            }
        }
    }
    let (imports, exports) = wire.connection.table_sizes();
    assert!(exports <= limits.exports_max && imports <= 6 * limits.imports_max);
    assert!(wire.connection.is_closed() || wire.connection.held_bytes() <= limits.held_bytes_max);
}

/// Expressions that are mostly right.
fn expression() -> impl Strategy<Value = String> {
    let id = -4..8;
    let path = prop_oneof![
        Just("[]"),
        Just(r#"["a"]"#),
        Just(r#"["b"]"#),
        Just(r#"["c"]"#),
        Just(r#"["d"]"#),
        Just(r#"["e"]"#),
        Just(r#"["write"]"#),
        Just(r#"["close"]"#),
        Just(r#"["abort"]"#),
        Just("[0]"),
        Just(r#"["x","y"]"#),
    ];
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("null".to_owned()),
        Just(r#""s""#.to_owned()),
        Just(r#"["undefined"]"#.to_owned()),
        Just(r#"["bytes","AQID"]"#.to_owned()),
        Just("[[]]".to_owned()),
        Just("{}".to_owned()),
        (
            id.clone(),
            prop_oneof![
                Just("import"),
                Just("pipeline"),
                Just("export"),
                Just("promise"),
                Just("readable"),
                Just("writable")
            ]
        )
            .prop_map(|(id, name)| format!(r#"["{name}",{id}]"#)),
        (id.clone(), path.clone()).prop_map(|(id, path)| format!(r#"["pipeline",{id},{path}]"#)),
    ];
    leaf.prop_recursive(4, 24, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|list| list.join(","));
        prop_oneof![
            list.clone().prop_map(|list| format!("[[{list}]]")),
            inner
                .clone()
                .prop_map(|inner| format!(r#"{{"x":{inner},"y":1}}"#)),
            (id.clone(), path.clone(), list.clone())
                .prop_map(|(id, path, list)| format!(r#"["pipeline",{id},{path},[{list}]]"#)),
            (id.clone(), path.clone(), list).prop_map(|(id, path, list)| format!(
                r#"["remap",{id},{path},[["import",{id}],["export",-2]],[{list}]]"#
            )),
            inner
                .clone()
                .prop_map(|inner| format!(r#"["error","E","m",null,{{"x":{inner}}}]"#)),
            inner
                .clone()
                .prop_map(|inner| format!(r#"["response",{inner},{{}}]"#)),
            inner.prop_map(|inner| format!(r#"["blob","t",{inner}]"#)),
        ]
    })
}

fn message() -> impl Strategy<Value = String> {
    let id = -4..8;
    prop_oneof![
        4 => expression().prop_map(|expression| format!(r#"["push",{expression}]"#)),
        2 => expression().prop_map(|expression| format!(r#"["stream",{expression}]"#)),
        2 => Just(r#"["pipe"]"#.to_owned()),
        2 => id.clone().prop_map(|id| format!(r#"["pull",{id}]"#)),
        2 => (id.clone(), 1..3).prop_map(|(id, count)| format!(r#"["release",{id},{count}]"#)),
        1 => (id.clone(), expression()).prop_map(|(id, expression)| format!(r#"["resolve",{id},{expression}]"#)),
        1 => (id, expression()).prop_map(|(id, expression)| format!(r#"["reject",{id},{expression}]"#)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    /// Any bytes that are text.
    #[test]
    fn arbitrary_text_does_no_harm(messages in prop::collection::vec(".{0,80}", 1..4)) {
        let mut wire = Wire::with(small());
        for message in &messages {
            wire.says(message);
            drive(&mut wire, &small());
        }
    }

    /// Messages that the protocol has, with ids that are there, were there, or never were. What is held for the client is
    /// bounded all the while, and nothing when it has gone.
    #[test]
    fn messages_in_any_order_do_no_harm(messages in prop::collection::vec(message(), 1..30), batch: bool) {
        let mut wire = Wire::with(small());
        for message in &messages {
            wire.says(message);
            drive(&mut wire, &small());
        }
        if batch {
            wire.connection.end_input();
            drive(&mut wire, &small());
        }
        wire.connection.disconnected();
        wire.effects();
        prop_assert_eq!(wire.connection.held_bytes(), 0);
    }
}

/// A value of values of values doubles with each: it is refused before it is built.
#[test]
fn values_that_double_are_refused() {
    let mut wire = Wire::new();
    wire.says(r#"["push",[["x"]]]"#);
    for id in 1..=40 {
        wire.says(&format!(
            r#"["push",[[["pipeline",{id}],["pipeline",{id}]]]]"#
        ));
    }
    wire.says(r#"["pull",41]"#);
    let effects = wire.effects();
    let last = effects.last().expect("an effect");
    let refused = match last {
        Effect::Send(message) => message.starts_with(r#"["reject",41,["error","RangeError""#),
        Effect::Close(Closed::Violation(Violation::HeldExceeded { .. })) => true,
        _ => false,
    };
    assert!(refused, "{last:?}");
}

/// Deep nesting, long chains of promises and the fall of them take no stack.
#[test]
fn depth_takes_no_stack() {
    let on_small_stack = std::thread::Builder::new().stack_size(512 << 10).spawn(|| {
        for open in [
            "[",
            r#"{"a":"#,
            r#"["push","#,
            r#"["error","","",null,{"a":"#,
        ] {
            Wire::new().says(&open.repeat(100_000)).ends();
        }
        let limits = Limits {
            exports_max: 20_000,
            promises_max: 40_000,
            ..Limits::default()
        };
        // Each waits for the one before.
        let mut wire = Wire::with(limits);
        wire.says(r#"["push",["pipeline",0,["slow"],[]]]"#);
        for id in 1..=15_000 {
            wire.says(&format!(r#"["push",[[["pipeline",{id},["m"]]]]]"#));
        }
        let call = wire.asked().call;
        wire.connection.answer(call, Outcome::error("Error", "no"));
        wire.says(r#"["pull",15001]"#);
        assert_eq!(wire.sent(), [r#"["reject",15001,["error","Error","no"]]"#]);
        // Only the last is held, and with it all.
        let mut wire = Wire::with(limits);
        wire.says(r#"["push",["pipeline",0,["slow"],[]]]"#);
        let call = wire.asked().call;
        for id in 1..=9_000 {
            wire.says(&format!(r#"["push",["pipeline",{id},["m"],[]]]"#));
            wire.says(&format!(r#"["release",{id},1]"#));
        }
        assert!(wire.effects().is_empty());
        wire.says(r#"["release",9001,1]"#);
        assert_eq!(wire.effects(), [Effect::Cancel { call }]);
        // Values of values, one level deeper each.
        let mut wire = Wire::with(limits);
        wire.says(r#"["push",0]"#);
        for id in 1..=1_000 {
            wire.says(&format!(r#"["push",[[["pipeline",{id}]]]]"#));
        }
        wire.says(r#"["pull",1000]"#);
        let sent = wire.sent();
        assert!(
            sent[0].contains("nested deeper than 250 levels"),
            "{sent:?}"
        );
    });
    on_small_stack
        .expect("a thread")
        .join()
        .expect("no stack is overrun");
}

/// Each table has an end, and the connection says which.
#[test]
fn each_table_is_bounded() {
    let limit_of = |limits: Limits, messages: &mut dyn Iterator<Item = String>| {
        let mut wire = Wire::with(limits);
        for message in messages.take(100) {
            if wire.says(&message).connection.is_closed() {
                break;
            }
        }
        let (_, reason) = wire.ends();
        match reason {
            Closed::Violation(violation) => violation.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let pushes = || std::iter::repeat_with(|| r#"["push",["pipeline",0,["a"]]]"#.to_owned());
    let limits = Limits {
        exports_max: 10,
        ..Limits::default()
    };
    assert!(
        limit_of(limits, &mut pushes()).contains("10 entries, no more are allowed (exports_max)")
    );
    let limits = Limits {
        promises_max: 10,
        ..Limits::default()
    };
    assert!(
        limit_of(limits, &mut pushes()).contains("10 entries, no more are allowed (promises_max)")
    );
    let limits = Limits {
        imports_max: 10,
        ..Limits::default()
    };
    let mut exports = (1..).map(|id| format!(r#"["push",["export",-{id}]]"#));
    assert!(
        limit_of(limits, &mut exports).contains("10 entries, no more are allowed (imports_max)")
    );
    let limits = Limits {
        held_bytes_max: 1_000,
        ..Limits::default()
    };
    let mut large = std::iter::repeat_with(|| format!(r#"["push","{}"]"#, "x".repeat(100)));
    assert!(limit_of(limits, &mut large).contains("1000 are allowed (held_bytes_max)"));
    let limits = Limits {
        message_bytes_max: 10,
        ..Limits::default()
    };
    assert!(limit_of(limits, &mut pushes()).contains("10 are allowed (message_bytes_max)"));
    let limits = Limits {
        path_length_max: 3,
        ..Limits::default()
    };
    let mut long = std::iter::once(r#"["push",["pipeline",0,["a","b","c","d"]]]"#.to_owned());
    assert!(limit_of(limits, &mut long).contains("a path has 4 names"));
}

/// One call too many is refused by itself.
#[test]
fn calls_in_flight_are_bounded() {
    let mut wire = Wire::with(Limits {
        calls_max: 1,
        ..Limits::default()
    });
    wire.says(r#"["push",["pipeline",0,["a"],[]]]"#)
        .says(r#"["push",["pipeline",0,["a"],[]]]"#);
    wire.says(r#"["pull",2]"#);
    let call = wire.asked().call;
    assert!(wire.sent()[0].contains("no more are allowed (calls_max)"));
    wire.answer(call, 1);
    wire.says(r#"["push",["pipeline",0,["a"],[]]]"#);
    wire.asked();
}

/// A client that keeps no window loses the stream, not the connection.
#[test]
fn a_stream_that_nobody_reads_is_bounded() {
    let mut wire = Wire::with(Limits {
        pipe_bytes_max: 5,
        ..Limits::default()
    });
    wire.says(r#"["pipe"]"#)
        .says(r#"["push",["pipeline",0,["a"],[["readable",1]]]]"#);
    let _held = wire.asked();
    for _ in 0..2 {
        wire.says(r#"["stream",["pipeline",1,["write"],[["bytes","AQID"]]]]"#);
    }
    let sent = wire.sent();
    assert_eq!(sent.len(), 2, "both writes fail");
    assert!(
        sent.iter()
            .all(|message| message.contains("pipe_bytes_max")),
        "{sent:?}"
    );
    assert!(!wire.connection.is_closed());
}

/// A driver's bytes that are no value reject the call.
#[test]
fn a_result_that_is_no_value_is_rejected() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["a"],[]]]"#)
        .says(r#"["pull",1]"#);
    let call = wire.asked().call;
    let bytes = vec![0xff];
    wire.connection.answer(
        call,
        Outcome::Value(Payload {
            bytes,
            externals: vec![],
        }),
    );
    assert!(wire.sent()[0].starts_with(r#"["reject",1,["error","TypeError","not a value"#));
}
