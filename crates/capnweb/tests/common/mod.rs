//! A client that is written out, message by message, and a driver that does what the test says.

#![allow(dead_code, reason = "each test uses a part of it")]

use coracle_capnweb::{
    Access, Capability, Closed, Connection, Effect, Limits, Outcome, Payload, Peer,
};
use coracle_value::{Bounds, Value, decode};

pub(crate) struct Wire {
    pub(crate) connection: Connection<&'static str>,
}

/// A call that is to be made, its arguments decoded.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) call: u64,
    pub(crate) target: &'static str,
    pub(crate) access: Access,
    pub(crate) path: String,
    pub(crate) args: Value,
    pub(crate) externals: Vec<Capability<&'static str>>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        Self {
            connection: Connection::new("main", limits),
        }
    }

    /// The client says this.
    pub(crate) fn says(&mut self, message: &str) -> &mut Self {
        self.connection.receive(message);
        self
    }

    /// All effects so far.
    pub(crate) fn effects(&mut self) -> Vec<Effect<&'static str>> {
        std::iter::from_fn(|| self.connection.next_effect()).collect()
    }

    /// All effects so far, which must be messages.
    pub(crate) fn sent(&mut self) -> Vec<String> {
        let effects = self.effects().into_iter();
        let message = |effect| match effect {
            Effect::Send(message) => message,
            other => panic!("not a message: {other:?}"),
        };
        effects.map(message).collect()
    }

    /// The next effect, which must be a call.
    pub(crate) fn asked(&mut self) -> Asked {
        match self.connection.next_effect() {
            Some(Effect::Call {
                call,
                target,
                access,
                path,
                args,
            }) => Asked {
                call,
                target,
                access,
                path: path.join("."),
                args: value_of(&args),
                externals: args.externals,
            },
            other => panic!("not a call: {other:?}"),
        }
    }

    pub(crate) fn answer(&mut self, call: u64, value: impl Into<Value>) {
        self.connection
            .answer(call, Outcome::Value(Payload::of(&value.into())));
    }

    /// Answers with a value whose externals are these.
    pub(crate) fn answer_with(
        &mut self,
        call: u64,
        value: Value,
        externals: Vec<Capability<&'static str>>,
    ) {
        let mut payload = Payload::of(&value);
        payload.externals = externals;
        self.connection.answer(call, Outcome::Value(payload));
    }

    /// The connection ends with this message and for this reason.
    pub(crate) fn ends(&mut self) -> (String, Closed) {
        let mut message = String::new();
        for effect in self.effects() {
            match effect {
                Effect::Send(sent) => message = sent,
                Effect::Close(reason) => return (message, reason),
                _ => {}
            }
        }
        panic!("the connection has not ended");
    }
}

pub(crate) fn value_of(payload: &Payload<&'static str>) -> Value {
    if payload.bytes.is_empty() {
        return Value::Undefined;
    }
    let bounds = Bounds {
        externals: payload.externals.len() as u32,
        ..Bounds::default()
    };
    decode(&payload.bytes, &bounds).expect("the connection gives values")
}

pub(crate) fn host(target: &'static str, kind: coracle_capnweb::Kind) -> Capability<&'static str> {
    Capability::Host { target, kind }
}

pub(crate) fn peer_of(capability: &Capability<&'static str>) -> Peer {
    match capability {
        Capability::Peer { peer, .. } => peer.clone(),
        Capability::Host { .. } => panic!("it is the server's"),
    }
}
