//! Streams of bytes and blobs in both directions, and the end of a batch, written out.

mod common;

use common::{Wire, host, peer_of, value_of};
use coracle_capnweb::{Access, Closed, Effect, Kind, Limits, Outcome, Payload, Violation};
use coracle_value::Value;

/// `stream` is pulled by itself and released when it was resolved.
#[test]
fn a_streamed_call_is_resolved_and_released_by_itself() {
    let mut wire = Wire::new();
    wire.says(r#"["stream",["pipeline",0,["write"],[1]]]"#);
    let call = wire.asked().call;
    wire.answer(call, Value::Undefined);
    assert_eq!(wire.sent(), [r#"["resolve",1,["undefined"]]"#]);
    wire.says(r#"["release",1,1]"#);
    assert_eq!(
        wire.ends().1,
        Closed::Violation(Violation::ExportUnknown { id: 1 })
    );
}

/// A client's stream is read by pulls, its writes are acknowledged as they are read, and its end is seen.
#[test]
fn a_clients_stream_is_pulled() {
    let mut wire = Wire::new();
    wire.says(r#"["pipe"]"#);
    wire.says(r#"["push",["pipeline",0,["read"],[["readable",1]]]]"#);
    let asked = wire.asked();
    assert_eq!(asked.externals[0].kind(), Kind::Source);
    let peer = peer_of(&asked.externals[0]);
    let pull = |wire: &mut Wire, ask, bytes: u32| {
        let args = Payload::of(&Value::array([bytes]));
        wire.connection
            .call(ask, &peer, Access::Call, &["pull".into()], args);
    };
    wire.says(r#"["stream",["pipeline",1,["write"],[["bytes","AQIDBA"]]]]"#);
    assert!(wire.effects().is_empty(), "nothing was read");
    pull(&mut wire, 1, 3);
    let chunk = |bytes: &[u8]| Outcome::Value(Payload::of(&Value::uint8_array(bytes)));
    assert_eq!(
        wire.effects(),
        [Effect::Answer {
            ask: 1,
            outcome: chunk(&[1, 2, 3])
        }]
    );
    pull(&mut wire, 2, 3);
    let effects = wire.effects();
    assert!(effects.contains(&Effect::Send(r#"["resolve",3,["undefined"]]"#.into())));
    assert!(effects.contains(&Effect::Answer {
        ask: 2,
        outcome: chunk(&[4])
    }));
    pull(&mut wire, 3, 3);
    wire.says(r#"["stream",["pipeline",1,["close"],[]]]"#)
        .says(r#"["release",1,1]"#);
    let effects = wire.effects();
    let end = Outcome::Value(Payload::UNDEFINED);
    assert!(effects.contains(&Effect::Send(r#"["resolve",4,["undefined"]]"#.into())));
    assert!(effects.contains(&Effect::Answer {
        ask: 3,
        outcome: end
    }));
}

/// A client's stream that is let go of fails its writes; one that is released without an end fails its reader.
#[test]
fn a_stream_ends_badly_on_either_side() {
    let mut wire = Wire::new();
    wire.says(r#"["pipe"]"#)
        .says(r#"["push",["pipeline",0,["read"],[["readable",1]]]]"#);
    let asked = wire.asked();
    drop(asked.externals);
    wire.says(r#"["stream",["pipeline",1,["write"],[["bytes","AQ"]]]]"#);
    assert_eq!(
        wire.sent(),
        [r#"["reject",3,["error","TypeError","The stream was cancelled."]]"#]
    );

    wire.says(r#"["pipe"]"#)
        .says(r#"["push",["pipeline",0,["read"],[["readable",4]]]]"#);
    let asked = wire.asked();
    let peer = peer_of(&asked.externals[0]);
    wire.connection
        .call(1, &peer, Access::Call, &["pull".into()], Payload::UNDEFINED);
    wire.says(r#"["release",4,1]"#);
    let effects = wire.effects();
    let [
        Effect::Answer {
            ask: 1,
            outcome: Outcome::Threw(threw),
        },
    ] = &effects[..]
    else {
        panic!("{effects:?}");
    };
    assert!(value_of(threw).as_error().is_some());
}

/// A stream to the client is pulled from its source as the client acknowledges, and ended.
#[test]
fn a_stream_to_the_client_is_pumped_within_the_window() {
    let mut wire = Wire::with(Limits {
        window_bytes_max: 600,
        ..Limits::default()
    });
    wire.says(r#"["push",["pipeline",0,["get"],[]]]"#)
        .says(r#"["pull",1]"#);
    let call = wire.asked().call;
    wire.answer_with(call, Value::External(0), vec![host("source", Kind::Source)]);
    let messages: Vec<_> = (0..2).map(|_| wire.connection.next_effect()).collect();
    let expected = [r#"["pipe"]"#, r#"["resolve",1,["readable",1]]"#];
    assert_eq!(
        messages,
        expected.map(|message| Some(Effect::Send(message.into())))
    );
    for id in 2..=4 {
        let pull = wire.asked();
        assert_eq!((pull.target, pull.path.as_str()), ("source", "pull"));
        wire.answer(pull.call, Value::uint8_array([id]));
        let Some(Effect::Send(message)) = wire.connection.next_effect() else {
            panic!("a write");
        };
        assert!(
            message.starts_with(r#"["stream",["pipeline",1,["write"],[["bytes""#),
            "{message}"
        );
    }
    assert!(wire.effects().is_empty(), "three writes fill the window");
    wire.says(r#"["resolve",2,["undefined"]]"#);
    let pull = wire.asked();
    wire.answer(pull.call, Value::Undefined);
    assert_eq!(wire.sent(), [r#"["stream",["pipeline",1,["close"],[]]]"#]);
    wire.says(r#"["resolve",5,["undefined"]]"#);
    assert_eq!(wire.sent(), [r#"["release",1,1]"#]);
    assert!(!wire.connection.is_closed());
}

/// Of a stream of the server's one call is made at a time; what comes after a failure fails.
#[test]
fn writes_to_the_servers_stream_are_made_one_by_one() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["open"],[]]]"#)
        .says(r#"["pull",1]"#);
    let call = wire.asked().call;
    wire.answer_with(call, Value::External(0), vec![host("sink", Kind::Sink)]);
    assert_eq!(wire.sent(), [r#"["resolve",1,["writable",-1]]"#]);
    for _ in 0..2 {
        wire.says(r#"["stream",["pipeline",-1,["write"],[["bytes","AQ"]]]]"#);
    }
    wire.says(r#"["stream",["pipeline",-1,["close"],[]]]"#);
    let first = wire.asked();
    assert_eq!((first.target, first.path.as_str()), ("sink", "write"));
    assert_eq!(first.args, Value::array([Value::uint8_array([1])]));
    assert!(wire.connection.next_effect().is_none());
    wire.answer(first.call, Value::Undefined);
    let second = wire.asked();
    assert_eq!(wire.sent(), [r#"["resolve",2,["undefined"]]"#]);
    wire.connection
        .answer(second.call, Outcome::error("Error", "full"));
    assert_eq!(
        wire.sent(),
        [
            r#"["reject",3,["error","Error","full"]]"#,
            r#"["reject",4,["error","Error","full"]]"#
        ]
    );
}

/// A blob is collected from its pipe before the call that it is an argument of.
#[test]
fn a_blob_is_collected_and_one_is_sent_through_a_pipe() {
    let mut wire = Wire::new();
    wire.says(r#"["pipe"]"#);
    wire.says(r#"["push",["pipeline",0,["take"],[["blob","text/plain",["readable",1]]]]]"#);
    wire.says(r#"["pull",2]"#);
    wire.says(r#"["stream",["pipeline",1,["write"],[["bytes","aGk"]]]]"#);
    wire.says(r#"["stream",["pipeline",1,["close"],[]]]"#);
    let mut sent = Vec::new();
    let (call, blob) = loop {
        match wire.connection.next_effect() {
            Some(Effect::Send(message)) => sent.push(message),
            Some(Effect::Call { call, args, .. }) => break (call, value_of(&args)),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(
        sent,
        [
            r#"["resolve",3,["undefined"]]"#,
            r#"["resolve",4,["undefined"]]"#
        ]
    );
    let content = blob
        .index(0)
        .and_then(|blob| blob.as_interface(coracle_value::Interface::Blob));
    let bytes = content
        .and_then(|content| content.get("bytes"))
        .and_then(Value::as_bytes);
    assert_eq!(bytes, Some(&b"hi"[..]));
    wire.answer(call, blob.index(0).expect("a blob").clone());
    assert_eq!(
        wire.sent(),
        [
            r#"["pipe"]"#,
            r#"["resolve",2,["blob","text/plain",["readable",1]]]"#,
            r#"["stream",["pipeline",1,["write"],[["bytes","aGk"]]]]"#,
            r#"["stream",["pipeline",1,["close"],[]]]"#,
        ]
    );
}

/// In a batch nothing comes back from the client: what waits for it fails, and the rest is answered.
#[test]
fn after_a_batch_the_client_can_not_be_called() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["take"],[["export",-1]]]]"#)
        .says(r#"["pull",1]"#);
    let asked = wire.asked();
    let peer = peer_of(&asked.externals[0]);
    wire.connection
        .call(1, &peer, Access::Call, &[], Payload::UNDEFINED);
    wire.connection.end_input();
    wire.connection
        .call(2, &peer, Access::Call, &[], Payload::UNDEFINED);
    let answers = wire
        .effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::Answer {
                ask,
                outcome: Outcome::Threw(_),
            } => Some(ask),
            _ => None,
        });
    assert_eq!(answers.collect::<Vec<_>>(), [1, 2]);
    assert!(!wire.connection.is_idle());
    wire.answer_with(
        asked.call,
        Value::External(0),
        vec![host("source", Kind::Source)],
    );
    let mut pulls = 0;
    while let Some(effect) = wire.connection.next_effect() {
        if let Effect::Call { call, .. } = effect {
            pulls += 1;
            match pulls {
                1..=9 => wire.answer(call, Value::uint8_array(vec![0; 60_000])),
                _ => wire.answer(call, Value::Undefined),
            }
        }
    }
    assert_eq!(pulls, 10, "no window holds the stream back");
    assert!(wire.connection.is_idle());
}

/// A write that can't be made fails those after it, not those before it.
#[test]
fn a_write_of_no_bytes_fails_in_its_turn() {
    let mut wire = Wire::new();
    wire.says(r#"["push",["pipeline",0,["open"],[]]]"#)
        .says(r#"["pull",1]"#);
    let call = wire.asked().call;
    wire.answer_with(call, Value::External(0), vec![host("sink", Kind::Sink)]);
    wire.sent();
    wire.says(r#"["stream",["pipeline",-1,["write"],[["bytes","AQ"]]]]"#);
    wire.says(r#"["stream",["pipeline",-1,["write"],[["bytes","Ag"]]]]"#);
    wire.says(r#"["stream",["pipeline",-1,["write"],["text"]]]"#);
    wire.says(r#"["stream",["pipeline",-1,["close"],[]]]"#);
    for _ in 0..2 {
        let call = wire.asked().call;
        wire.answer(call, Value::Undefined);
    }
    let sent = wire.sent();
    assert_eq!(
        sent[..2],
        [
            r#"["resolve",2,["undefined"]]"#,
            r#"["resolve",3,["undefined"]]"#
        ]
    );
    assert!(
        sent[2].starts_with(r#"["reject",4,["error","TypeError","This stream takes bytes only"#),
        "{sent:?}"
    );
    assert!(
        sent[3].starts_with(r#"["reject",5,["error","TypeError","This stream takes bytes only"#),
        "{sent:?}"
    );
}
