//! What each message does, written out.

mod common;

use common::{Wire, host, peer_of};
use coracle_capnweb::{
    Access, Capability, Closed, Effect, Kind, Limits, Outcome, Payload, Violation,
};
use coracle_value::Value;

/// A call is made when it is pushed, and answered when it is pulled.
#[test]
fn a_result_is_sent_when_it_is_pulled() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["add"],[1,2]]]"#);
    let asked = wire.asked();
    assert_eq!((asked.path.as_str(), asked.access), ("add", Access::Call));
    assert_eq!(asked.args, Value::array([1, 2]));
    wire.answer(asked.call, 3);
    assert!(wire.sent().is_empty(), "nobody has pulled");
    assert_eq!(wire.says(r#"["pull",1]"#).sent(), [r#"["resolve",1,3]"#]);
    assert!(
        wire.says(r#"["pull",1]"#).sent().is_empty(),
        "once is enough"
    );
    assert!(wire.says(r#"["release",1,1]"#).sent().is_empty());
}

#[test]
fn a_property_is_read() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["a","b",0]]]"#);
    let asked = wire.asked();
    assert_eq!((asked.path.as_str(), asked.access), ("a.b.0", Access::Get));
    assert_eq!(asked.args, Value::Undefined);
}

/// What is called on a result that is not there yet is called when it is, in the order in which it was asked for.
#[test]
fn calls_on_a_result_wait_for_it_and_keep_their_order() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["make"],[]]]"#);
    wire.says(r#"["push",["pipeline",1,["first"],[]]]"#);
    wire.says(r#"["push",["pipeline",1,["inner","second"],[["pipeline",1,["n"]]]]]"#);
    let make = wire.asked();
    assert!(wire.connection.next_effect().is_none());
    let value = Value::object([
        ("first", Value::External(0)),
        ("inner", Value::External(1)),
        ("n", Value::from(7)),
    ]);
    let externals = vec![host("first", Kind::Target), host("inner", Kind::Target)];
    wire.answer_with(make.call, value, externals);
    let (first, second) = (wire.asked(), wire.asked());
    assert_eq!((first.target, first.path.as_str()), ("first", ""));
    assert_eq!((second.target, second.path.as_str()), ("inner", "second"));
    assert_eq!(second.args, Value::array([7]));
}

/// What was thrown rejects everything that waits for it, and is sent as it is.
#[test]
fn a_rejection_goes_through_what_waits_for_it() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["fail"],[]]]"#);
    wire.says(r#"["push",["pipeline",1,["more"],[]]]"#);
    wire.says(r#"["push",["pipeline",0,["take"],[["pipeline",1]]]]"#);
    wire.says(r#"["pull",2]"#).says(r#"["pull",3]"#);
    let call = wire.asked().call;
    wire.connection
        .answer(call, Outcome::error("RangeError", "no"));
    assert_eq!(
        wire.sent(),
        [
            r#"["reject",2,["error","RangeError","no"]]"#,
            r#"["reject",3,["error","RangeError","no"]]"#
        ]
    );
}

#[test]
fn what_is_no_function_can_not_be_called() {
    let mut wire = Wire::new();
    wire.says(r#"["push",{"a":{"b":1}}]"#);
    wire.says(r#"["push",["pipeline",1,["a","b"],[]]]"#)
        .says(r#"["pull",2]"#);
    wire.says(r#"["push",["pipeline",1,["x","y"]]]"#)
        .says(r#"["pull",3]"#);
    wire.says(r#"["push",["pipeline",1,["a"]]]"#)
        .says(r#"["pull",4]"#);
    assert_eq!(
        wire.sent(),
        [
            r#"["reject",2,["error","TypeError","'a.b' is not a function."]]"#,
            r#"["reject",3,["error","TypeError","Cannot read properties of undefined (reading 'y')"]]"#,
            r#"["resolve",4,{"b":1}]"#,
        ]
    );
}

/// An object has an id of its own each time that it is given out, which is released once.
#[test]
fn what_is_given_out_is_held_until_it_is_released() {
    let mut wire = Wire::new();
    for id in 1..=2 {
        wire.says(r#"["push",["pipeline",0,["get"],[]]]"#)
            .says(&format!(r#"["pull",{id}]"#));
        let call = wire.asked().call;
        wire.answer_with(call, Value::External(0), vec![host("thing", Kind::Target)]);
        assert_eq!(
            wire.sent(),
            [format!(r#"["resolve",{id},["export",-{id}]]"#)]
        );
    }
    wire.says(r#"["release",-1,1]"#)
        .says(r#"["push",["pipeline",-2,["m"],[]]]"#);
    assert_eq!(wire.asked().target, "thing");
    wire.says(r#"["push",["pipeline",-1,["m"],[]]]"#);
    let (message, reason) = wire.ends();
    assert_eq!(
        message,
        r#"["abort",["error","TypeError","no such entry on exports table: -1"]]"#
    );
    assert_eq!(
        reason,
        Closed::Violation(Violation::ExportUnknown { id: -1 })
    );
}

/// A client's function is called by push and pull, its result is released, and it itself when nobody holds it any more.
#[test]
fn a_clients_function_is_called_and_released() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["take"],[["export",-1],["export",-1]]]]"#);
    let asked = wire.asked();
    let peer = peer_of(&asked.externals[0]);
    assert_eq!(asked.externals.len(), 2);
    assert_eq!(asked.externals[0], asked.externals[1], "it is one object");
    let args = Payload::of(&Value::array([Value::from("hi"), Value::array([1])]));
    wire.connection
        .call(9, &peer, Access::Call, &["m".into()], args);
    assert_eq!(
        wire.sent(),
        [
            r#"["push",["pipeline",-1,["m"],["hi",[[1]]]]]"#,
            r#"["pull",1]"#
        ]
    );
    wire.says(r#"["resolve",1,["date",5]]"#);
    let effects = wire.effects();
    assert_eq!(effects[0], Effect::Send(r#"["release",1,1]"#.into()));
    let date = Outcome::Value(Payload::of(&Value::Date(5.0)));
    assert_eq!(
        effects[1],
        Effect::Answer {
            ask: 9,
            outcome: date
        }
    );
    drop((asked, peer));
    assert_eq!(wire.sent(), [r#"["release",-1,2]"#]);
}

/// Giving a call up releases its result; the client may still resolve it, once.
#[test]
fn a_call_of_the_clients_that_is_given_up_is_released() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["take"],[["export",-1]]]]"#);
    let asked = wire.asked();
    let peer = peer_of(&asked.externals[0]);
    wire.connection
        .call(1, &peer, Access::Call, &[], Payload::UNDEFINED);
    assert_eq!(
        wire.sent(),
        [r#"["push",["pipeline",-1,[],[]]]"#, r#"["pull",1]"#]
    );
    wire.connection.give_up(1);
    assert_eq!(wire.sent(), [r#"["release",1,1]"#]);
    wire.says(r#"["resolve",1,["export",-2]]"#);
    assert_eq!(
        wire.sent(),
        [r#"["release",-2,1]"#],
        "what it brings is let go of"
    );
    wire.says(r#"["resolve",1,0]"#);
    assert_eq!(
        wire.ends().1,
        Closed::Violation(Violation::ResolvedTwice { id: 1 })
    );
}

/// A promise of the client's is waited for before the call that it is an argument of.
#[test]
fn a_clients_promise_is_waited_for() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["take"],[["promise",-1],{"a":["promise",-2]}]]]"#);
    assert!(wire.connection.next_effect().is_none());
    wire.says(r#"["resolve",-2,[[1,["export",-3]]]]"#);
    assert_eq!(wire.sent(), [r#"["release",-2,1]"#]);
    wire.says(r#"["resolve",-1,"x"]"#);
    assert_eq!(
        wire.connection.next_effect(),
        Some(Effect::Send(r#"["release",-1,1]"#.into()))
    );
    let asked = wire.asked();
    let inner = Value::array([Value::from(1), Value::External(0)]);
    assert_eq!(
        asked.args,
        Value::array([Value::from("x"), Value::object([("a", inner)])])
    );
    assert_eq!(asked.externals[0].kind(), Kind::Target);
}

/// A client's own object comes back as itself.
#[test]
fn a_clients_object_goes_back_as_an_import() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["echo"],[["export",-4]]]]"#)
        .says(r#"["pull",1]"#);
    let asked = wire.asked();
    wire.answer_with(asked.call, Value::External(0), asked.externals);
    assert_eq!(wire.sent(), [r#"["resolve",1,["import",-4]]"#]);
    // A call on it goes to the client.
    wire.says(r#"["push",["pipeline",1,["m"],[1]]]"#);
    assert_eq!(
        wire.sent(),
        [r#"["push",["pipeline",-4,["m"],[1]]]"#, r#"["pull",1]"#]
    );
}

/// Letting go of a result that is not there cancels its call, unless something else waits for it.
#[test]
fn releasing_a_result_cancels_its_call() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["slow"],[]]]"#);
    wire.says(r#"["push",["pipeline",1,["more"],[]]]"#);
    let call = wire.asked().call;
    assert!(wire.says(r#"["release",1,1]"#).effects().is_empty());
    assert_eq!(
        wire.says(r#"["release",2,1]"#).effects(),
        [Effect::Cancel { call }]
    );
    wire.answer(call, 1);
    assert!(wire.effects().is_empty());
}

/// `map()` applies its function to each member, with what it has captured, and puts the results together.
#[test]
fn a_recorded_function_is_applied_to_each_member() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["list"],[]]]"#);
    wire.says(
        r#"["push",["remap",1,["ids"],[["import",0]],[["pipeline",-1,["name"],[["pipeline",0,["id"]]]],{"id":["pipeline",0,["id"]],"name":["pipeline",1]}]]]"#,
    );
    wire.says(r#"["pull",2]"#);
    let list = wire.asked().call;
    let member = |id| Value::object([("id", id)]);
    wire.answer(
        list,
        Value::object([("ids", Value::array([member(1), member(2)]))]),
    );
    let (first, second) = (wire.asked(), wire.asked());
    assert_eq!(first.args, Value::array([1]));
    assert_eq!(second.args, Value::array([2]));
    wire.answer(second.call, "two");
    wire.answer(first.call, "one");
    assert_eq!(
        wire.sent(),
        [r#"["resolve",2,[[{"id":1,"name":"one"},{"id":2,"name":"two"}]]]"#]
    );
}

#[test]
fn a_function_is_applied_once_to_one_value_and_never_to_nothing() {
    let mut wire = Wire::new();
    wire.says(r#"["push",{"nothing":null,"one":5}]"#);
    let map = |path| format!(r#"["push",["remap",1,["{path}"],[],[[["x",["pipeline",0]]]]]]"#);
    wire.says(&map("nothing")).says(r#"["pull",2]"#);
    wire.says(&map("one")).says(r#"["pull",3]"#);
    wire.says(&map("absent")).says(r#"["pull",4]"#);
    assert_eq!(
        wire.sent(),
        [
            r#"["resolve",2,null]"#,
            r#"["resolve",3,[["x",5]]]"#,
            r#"["resolve",4,["undefined"]]"#
        ]
    );
}

/// A function that evaluates too much is refused with the figure, and the connection lives.
#[test]
fn what_recorded_functions_evaluate_is_counted() {
    let limits = Limits {
        remap_steps_max: 1_000,
        ..Limits::default()
    };
    let mut wire = Wire::with(limits);
    let numbers = "1,".repeat(100);
    wire.says(&format!(
        r#"["push",[[{}]]]"#,
        numbers.trim_end_matches(',')
    ));
    let inner = r#"["remap",-1,[],[["import",-1]],[["pipeline",0]]]"#;
    wire.says(&format!(
        r#"["push",["remap",1,[],[["import",1]],[{inner}]]]"#
    ))
    .says(r#"["pull",2]"#);
    assert_eq!(
        wire.sent(),
        [
            r#"["reject",2,["error","RangeError","map() evaluates more than 1000 expressions (remap_steps_max)"]]"#
        ]
    );
    assert!(!wire.connection.is_closed());
}

/// Each violation ends the connection once, tells the client, and cancels what runs.
#[test]
fn what_breaks_the_protocol_ends_the_connection() {
    for (message, violation) in [
        ("", None),
        ("{}", None),
        ("[]", None),
        (r#"["hello"]"#, None),
        (r#"["push"]"#, None),
        (r#"["push",["what"]]"#, None),
        (r#"["push",[]]"#, None),
        (
            r#"["push",["export",1]]"#,
            Some(Violation::IdInvalid { id: 1 }),
        ),
        (
            r#"["push",["pipeline",7]]"#,
            Some(Violation::ExportUnknown { id: 7 }),
        ),
        (
            r#"["push",["pipeline",2]]"#,
            Some(Violation::ExportUnknown { id: 2 }),
        ),
        (
            r#"["push",["readable",1]]"#,
            Some(Violation::PipeUnknown { id: 1 }),
        ),
        (
            r#"["push",[[["promise",-9],["promise",-9]]]]"#,
            Some(Violation::PromiseIdUsed { id: -9 }),
        ),
        (r#"["pull",2]"#, Some(Violation::ExportUnknown { id: 2 })),
        (r#"["pull",1.5]"#, None),
        (
            r#"["release",2,1]"#,
            Some(Violation::ExportUnknown { id: 2 }),
        ),
        (
            r#"["release",1,2]"#,
            Some(Violation::ReleasedTooOften { id: 1, released: 2 }),
        ),
        (r#"["release",1,0]"#, None),
        (r#"["release",1,-1]"#, None),
        (
            r#"["resolve",1,0]"#,
            Some(Violation::ImportUnknown { id: 1 }),
        ),
        (
            r#"["resolve",-1,0]"#,
            Some(Violation::ImportUnknown { id: -1 }),
        ),
        (
            r#"["resolve",0,0]"#,
            Some(Violation::ImportUnknown { id: 0 }),
        ),
        (
            r#"["reject",-1,0]"#,
            Some(Violation::ImportUnknown { id: -1 }),
        ),
    ] {
        let mut wire = Wire::new();
        wire.says(r#"["push",["pipeline",0,["slow"],[]]]"#);
        let call = wire.asked().call;
        let effects = wire.says(message).effects();
        let [
            Effect::Send(abort),
            Effect::Cancel { call: cancelled },
            Effect::Close(reason),
        ] = &effects[..]
        else {
            panic!("{message}: {effects:?}");
        };
        assert!(
            abort.starts_with(r#"["abort",["error","#),
            "{message}: {abort}"
        );
        assert_eq!(*cancelled, call);
        match (reason, violation) {
            (Closed::Violation(found), Some(expected)) => assert_eq!(*found, expected, "{message}"),
            (Closed::Violation(_), None) => {}
            other => panic!("{message}: {other:?}"),
        }
        assert!(
            wire.says(r#"["pull",1]"#).effects().is_empty(),
            "it is over"
        );
        wire.answer(call, 1);
        assert!(wire.effects().is_empty());
    }
}

/// The place in the expression is named.
#[test]
fn a_bad_expression_is_named_with_its_place() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["m"],[1,{"rows":[[{},["bytes","*"]]]}]]]"#);
    assert_eq!(
        wire.ends().0,
        r#"["abort",["error","TypeError","bad expression at $[1].rows[1]: not base64"]]"#
    );
}

/// What can't be sent rejects the one result, with its place.
#[test]
fn a_result_that_can_not_be_sent_is_rejected_with_its_place() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["get"],[]]]"#)
        .says(r#"["pull",1]"#);
    let call = wire.asked().call;
    wire.answer(
        call,
        Value::object([("rows", Value::array([Value::Map(vec![])]))]),
    );
    assert_eq!(
        wire.sent(),
        [r#"["reject",1,["error","TypeError","a Map at $.rows[0] can't be sent over Cap'n Web"]]"#]
    );
}

/// When the client ends the connection, what it runs is cancelled and what waits for it is answered.
#[test]
fn an_abort_of_the_clients_is_taken() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["take"],[["export",-1]]]]"#);
    let asked = wire.asked();
    let peer = peer_of(&asked.externals[0]);
    wire.connection
        .call(5, &peer, Access::Call, &[], Payload::UNDEFINED);
    wire.sent();
    let effects = wire.says(r#"["abort",["error","Error","bye"]]"#).effects();
    assert!(matches!(
        &effects[..],
        [Effect::Cancel { .. }, Effect::Answer { ask: 5, outcome: Outcome::Threw(_) }, Effect::Close(Closed::ByClient(reason))]
            if reason == "bye"
    ));
    assert_eq!(wire.connection.held_bytes(), 0);
    wire.connection
        .call(6, &peer, Access::Call, &[], Payload::UNDEFINED);
    assert!(matches!(
        &wire.effects()[..],
        [Effect::Answer { ask: 6, .. }]
    ));
}

/// A reference to the client's own function among the properties of what was thrown is left out: the error goes through.
#[test]
fn an_error_goes_through_without_what_can_not_be_sent() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["fail"],[["export",-1]]]]"#)
        .says(r#"["pull",1]"#);
    let asked = wire.asked();
    let Value::Error(mut error) = Value::error("Error", "no") else {
        panic!("an error");
    };
    error.props = vec![
        ("f".into(), Value::External(0)),
        ("code".into(), Value::from(7)),
    ];
    let threw: Payload<&str> = Payload {
        externals: vec![Capability::Peer {
            peer: peer_of(&asked.externals[0]),
            kind: Kind::Target,
        }],
        ..Payload::of(&Value::Error(error))
    };
    wire.connection.answer(asked.call, Outcome::Threw(threw));
    drop(asked.externals);
    assert_eq!(
        wire.sent()[0],
        r#"["reject",1,["error","Error","no",null,{"code":7}]]"#
    );
}
