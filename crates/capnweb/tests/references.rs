//! A model of reference counts beside the connection: what is held, by whom, and how often.

use coracle_capnweb::{Capability, Connection, Effect, Kind, Limits, Outcome, Payload, Peer};
use coracle_value::Value;
use proptest::prelude::*;
use std::{collections::BTreeMap, rc::Rc};

/// Something of the server's whose clones are counted.
#[derive(Clone, Debug)]
struct Counted(Rc<usize>);

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }
}

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The client gets object n as a result.
    Get(usize),
    /// The client releases the first of the references that it has to object n.
    Release(usize),
    /// The client passes its object n, so many times in one call.
    Pass(usize, usize),
    /// The server lets go of one of the references that it has to the client's object n.
    Drop(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_usize).prop_map(Step::Get),
        (0..3_usize).prop_map(Step::Release),
        (0..3_usize, 1..4_usize).prop_map(|(object, times)| Step::Pass(object, times)),
        (0..3_usize).prop_map(Step::Drop),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// What the client has been given is held exactly as long as it has not released it, each time by itself; what the server was given is released exactly when the server holds it no more, with the count of how often it
    /// was given.
    #[test]
    fn counts_are_those_of_the_model(steps in prop::collection::vec(step(), 0..60)) {
        let objects: Vec<Counted> = (0..3).map(|n| Counted(Rc::new(n))).collect();
        let mut connection = Connection::new(Counted(Rc::new(9)), Limits::default());
        // Of the server's objects: the ids under which the client has them.
        let mut given: Vec<(usize, i64)> = Vec::new();
        let mut ids_used = 0;
        // Of the client's: what the server holds, and how often it was given.
        let mut held: BTreeMap<usize, (Vec<Peer>, usize)> = BTreeMap::new();
        let mut pushes = 0;
        for step in steps {
            match step {
                Step::Get(n) => {
                    pushes += 1;
                    connection.receive(r#"["push",["pipeline",0,["get"],[]]]"#);
                    connection.receive(&format!(r#"["pull",{pushes}]"#));
                    let call = match connection.next_effect() {
                        Some(Effect::Call { call, .. }) => call,
                        other => panic!("{other:?}"),
                    };
                    let mut payload = Payload::of(&Value::External(0));
                    payload.externals = vec![Capability::Host { target: objects[n].clone(), kind: Kind::Target }];
                    connection.answer(call, Outcome::Value(payload));
                    ids_used += 1;
                    given.push((n, -ids_used));
                    let expected = format!(r#"["resolve",{pushes},["export",-{ids_used}]]"#);
                    prop_assert_eq!(connection.next_effect(), Some(Effect::Send(expected)));
                    connection.receive(&format!(r#"["release",{pushes},1]"#));
                }
                Step::Release(n) => {
                    let Some(at) = given.iter().position(|(object, _)| *object == n) else {
                        continue;
                    };
                    let (_, id) = given.remove(at);
                    connection.receive(&format!(r#"["release",{id},1]"#));
                }
                Step::Pass(n, times) => {
                    pushes += 1;
                    let id = -1 - n as i64;
                    let args = vec![format!(r#"["export",{id}]"#); times].join(",");
                    connection.receive(&format!(r#"["push",["pipeline",0,["take"],[{args}]]]"#));
                    let (call, externals) = match connection.next_effect() {
                        Some(Effect::Call { call, args, .. }) => (call, args.externals),
                        other => panic!("{other:?}"),
                    };
                    let entry = held.entry(n).or_default();
                    entry.1 += times;
                    entry.0.extend(externals.iter().map(common_peer));
                    drop(externals);
                    connection.answer(call, Outcome::Value(Payload::UNDEFINED));
                    connection.receive(&format!(r#"["release",{pushes},1]"#));
                }
                Step::Drop(n) => {
                    let Some((peers, times)) = held.get_mut(&n) else {
                        continue;
                    };
                    peers.pop();
                    if peers.is_empty() {
                        let expected = format!(r#"["release",{},{times}]"#, -1 - n as i64);
                        prop_assert_eq!(connection.next_effect(), Some(Effect::Send(expected)));
                        held.remove(&n);
                    }
                }
            }
            prop_assert!(connection.next_effect().is_none());
            prop_assert_eq!(connection.table_sizes(), (held.len(), given.len() + 1));
            for (n, object) in objects.iter().enumerate() {
                let clones = given.iter().filter(|(object, _)| *object == n).count();
                prop_assert_eq!(Rc::strong_count(&object.0), 1 + clones);
            }
        }
        connection.disconnected();
        prop_assert_eq!(connection.held_bytes(), 0);
        prop_assert!(objects.iter().all(|object| Rc::strong_count(&object.0) == 1));
    }
}

fn common_peer(capability: &Capability<Counted>) -> Peer {
    match capability {
        Capability::Peer { peer, .. } => peer.clone(),
        Capability::Host { .. } => panic!("it is the server's"),
    }
}
