//! A driver with some objects in memory.

use coracle_capnweb::{
    Access, Capability, Connection, Effect, Kind, Limits, Outcome, Payload, Peer,
};
use coracle_value::{BigInt, Bounds, ErrorValue, Interface, Value, decode, encode};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    rc::Rc,
};

/// Something that can be called.
#[derive(Clone)]
pub(crate) struct Object(Rc<Thing>);

enum Thing {
    Main,
    Adder,
    Counter(Cell<f64>, #[expect(dead_code, reason = "it counts")] Live),
    /// So many bytes are left; fewer than none is an error.
    Source(Cell<i64>, #[expect(dead_code, reason = "it counts")] Live),
    Sink(
        Rc<RefCell<(Vec<u8>, String)>>,
        #[expect(dead_code, reason = "it counts")] Live,
    ),
}

/// Counts what lives.
struct Live(Rc<Cell<i32>>);

impl Drop for Live {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// What is done with the answer of the client's.
enum Then {
    /// It is the answer of this call.
    Answer(u64),
    /// It is a piece of a stream that is read for this call.
    Read(u64, Peer, Vec<u8>, fn(&[u8], &Value) -> Value, Value),
    /// The stream is to be closed for this call.
    Close(u64, Peer),
}

pub(crate) struct Server {
    connection: Connection<Object>,
    live: Rc<Cell<i32>>,
    cancelled: u32,
    held: Vec<u64>,
    kept: Option<Peer>,
    asked: BTreeMap<u64, Then>,
    ask_last: u64,
    sink: Rc<RefCell<(Vec<u8>, String)>>,
    adder: Object,
}

type Given = (Value, Vec<Capability<Object>>);

impl Server {
    pub(crate) fn new() -> Self {
        Self {
            connection: Connection::new(Object(Rc::new(Thing::Main)), Limits::default()),
            live: Rc::default(),
            cancelled: 0,
            held: Vec::new(),
            kept: None,
            asked: BTreeMap::new(),
            ask_last: 0,
            sink: Rc::default(),
            adder: Object(Rc::new(Thing::Adder)),
        }
    }

    pub(crate) fn receive(&mut self, message: &str) -> Vec<String> {
        self.connection.receive(message);
        self.work()
    }

    pub(crate) fn end_batch(&mut self) -> Vec<String> {
        self.connection.end_input();
        let mut answers = self.work();
        assert!(self.connection.is_idle());
        answers.push("END".into());
        answers
    }

    /// The client has gone: nothing is left of it.
    pub(crate) fn leave(mut self) {
        self.connection.disconnected();
        self.work();
        assert_eq!(self.connection.table_sizes(), (0, 0));
        assert_eq!(self.connection.held_bytes(), 0);
        assert_eq!(self.live.get(), 0);
    }

    fn work(&mut self) -> Vec<String> {
        let mut messages = Vec::new();
        while let Some(effect) = self.connection.next_effect() {
            match effect {
                Effect::Send(message) => messages.push(message),
                Effect::Cancel { .. } => self.cancelled += 1,
                Effect::Answer { ask, outcome } => self.answered(ask, outcome),
                Effect::Close(_) => self.kept = None,
                Effect::Call {
                    call,
                    target,
                    access,
                    path,
                    args,
                } => {
                    let name = path.join(".");
                    let value = value_of(&args);
                    if let Some(outcome) =
                        self.call(call, &target, access, &name, &value, &args.externals)
                    {
                        let outcome = match outcome {
                            Ok(given) => Outcome::Value(payload(given)),
                            Err(thrown) => Outcome::Threw(Payload::of(&thrown)),
                        };
                        self.connection.answer(call, outcome);
                    }
                }
            }
        }
        messages
    }

    fn new_live(&self) -> Live {
        self.live.set(self.live.get() + 1);
        Live(Rc::clone(&self.live))
    }

    fn counter(&self, from: f64) -> Capability<Object> {
        host(
            Object(Rc::new(Thing::Counter(Cell::new(from), self.new_live()))),
            Kind::Target,
        )
    }

    /// The outcome, or none where the call goes on.
    fn call(
        &mut self,
        call: u64,
        target: &Object,
        access: Access,
        name: &str,
        args: &Value,
        externals: &[Capability<Object>],
    ) -> Option<Result<Given, Value>> {
        let arg = |index| args.index(index).cloned().unwrap_or_default();
        let number = |index| arg(index).as_f64().unwrap_or(f64::NAN);
        let plain = |value: Value| Some(Ok((value, Vec::new())));
        let peer = |index| match (arg(index), externals) {
            (Value::External(at), _) => match &externals[at as usize] {
                Capability::Peer { peer, .. } => peer.clone(),
                Capability::Host { .. } => panic!("it is the server's"),
            },
            (other, _) => panic!("not a reference: {other:?}"),
        };
        match (&*target.0, name) {
            (Thing::Adder, "") | (Thing::Main, "add") => plain(Value::from(number(0) + number(1))),
            (Thing::Counter(count, _), "increment") => {
                count.set(count.get() + number(0));
                plain(Value::from(count.get()))
            }
            (Thing::Counter(count, _), "value") => plain(Value::from(count.get())),
            (Thing::Source(left, _), "pull") => match left.get() {
                ..0 => Some(Err(Value::error("Error", "dry"))),
                0 => plain(Value::Undefined),
                some => {
                    let bytes = some.min(number(0) as i64);
                    left.set(some - bytes);
                    plain(Value::uint8_array(vec![1; bytes as usize]))
                }
            },
            (Thing::Sink(written, _), method) => {
                let mut written = written.borrow_mut();
                match method {
                    "write" => written.0.extend(arg(0).as_bytes().unwrap_or_default()),
                    method => written.1 = method.to_owned(),
                }
                plain(Value::Undefined)
            }
            (Thing::Main, "version") if access == Access::Get => plain("1".into()),
            (Thing::Main, "adder") => Some(Ok((
                Value::External(0),
                vec![host(self.adder.clone(), Kind::Target)],
            ))),
            // The value goes as it is, with what it refers to.
            (Thing::Main, "echo") => Some(Ok((arg(0), externals.to_vec()))),
            (Thing::Main, "everything") => plain(Value::object([
                (
                    "bigint",
                    Value::BigInt(BigInt::new(false, &[1, 0, 0, 0, 0, 0, 0, 0, 0])),
                ),
                ("date", Value::Date(5.0)),
                ("bytes", Value::uint8_array([9])),
                ("nothing", Value::Undefined),
                (
                    "list",
                    Value::array([Value::Array(vec![]), Value::array([Value::Null])]),
                ),
            ])),
            (Thing::Main, "map_") => plain(Value::object([("m", Value::Map(vec![]))])),
            (Thing::Main, "list") => plain(Value::array([1, 2, 3])),
            (Thing::Main, "makeCounter") => {
                Some(Ok((Value::External(0), vec![self.counter(number(0))])))
            }
            (Thing::Main, "counters") => {
                let count = number(0) as u32;
                let counters = (0..count).map(|from| self.counter(f64::from(from)));
                Some(Ok((
                    Value::Array((0..count).map(Value::External).collect()),
                    counters.collect(),
                )))
            }
            (Thing::Main, "twice") => {
                let counter = self.counter(0.0);
                let value = Value::object([("a", Value::External(0)), ("b", Value::External(1))]);
                Some(Ok((value, vec![counter.clone(), counter])))
            }
            (Thing::Main, "nest") => {
                let inner = Value::object([("n", Value::from(7)), ("counter", Value::External(0))]);
                Some(Ok((
                    Value::object([("inner", inner)]),
                    vec![self.counter(100.0)],
                )))
            }
            (Thing::Main, "fail") => {
                let text = |index| arg(index).as_text().cloned().unwrap_or_default();
                let mut error = ErrorValue::new(text(0), text(1));
                error.stack = Some("Error: no\n    at worker.js:1:1".into());
                error.props = vec![("code".into(), Value::from(7))];
                Some(Err(Value::Error(Box::new(error))))
            }
            (Thing::Main, "throwText") => Some(Err("only text".into())),
            (Thing::Main, "hold") => {
                self.held.push(call);
                None
            }
            (Thing::Main, "letGo") => {
                for held in std::mem::take(&mut self.held) {
                    let given = (Value::External(0), vec![self.counter(0.0)]);
                    self.connection.answer(held, Outcome::Value(payload(given)));
                }
                plain(Value::Undefined)
            }
            (Thing::Main, "counts") => {
                let (imports, exports) = self.connection.table_sizes();
                plain(Value::object([
                    ("live", Value::from(self.live.get())),
                    ("cancelled", Value::from(self.cancelled)),
                    ("imports", Value::from(imports as u32)),
                    ("exports", Value::from(exports as u32)),
                ]))
            }
            (Thing::Main, "callBack") => {
                let peer = peer(0);
                let path: &[String] = match &externals[0] {
                    _ if matches!(arg(1), Value::Number(1.0)) => &["add".to_owned()],
                    _ => &[],
                };
                // What else the arguments refer to goes on to the client.
                let given = match arg(1) {
                    Value::External(index) => {
                        (Value::External(0), vec![externals[index as usize].clone()])
                    }
                    value => (value, Vec::new()),
                };
                let args = payload((Value::Array(vec![given.0]), given.1));
                self.ask(&peer, Access::Call, path, args, Then::Answer(call));
                None
            }
            (Thing::Main, "read") => {
                self.ask(
                    &peer(0),
                    Access::Get,
                    &["base".into()],
                    Payload::UNDEFINED,
                    Then::Answer(call),
                );
                None
            }
            (Thing::Main, "keep") => {
                self.kept = Some(peer(0));
                plain(Value::Undefined)
            }
            (Thing::Main, "callKept") => {
                let kept = self.kept.clone().expect("it was kept");
                let args = Payload::of(&Value::array([arg(0)]));
                self.ask(
                    &kept,
                    Access::Call,
                    &["add".into()],
                    args,
                    Then::Answer(call),
                );
                None
            }
            (Thing::Main, "dropKept") => {
                self.kept = None;
                plain(Value::Undefined)
            }
            (Thing::Main, "sum") => {
                let length = |bytes: &[u8], _: &Value| Value::from(bytes.len() as f64);
                self.read(call, peer(0), Vec::new(), length, Value::Undefined);
                None
            }
            (Thing::Main, "describe") => {
                let request = arg(0);
                let content = request
                    .as_interface(Interface::Request)
                    .expect("a request")
                    .clone();
                let Some(Value::External(index)) = content.get("body") else {
                    panic!("a body that is a stream: {content:?}");
                };
                let Capability::Peer {
                    peer,
                    kind: Kind::Source,
                } = &externals[*index as usize]
                else {
                    panic!("a stream of the client's");
                };
                let describe = |bytes: &[u8], request: &Value| {
                    let field = |name| request.get(name).cloned().unwrap_or_default();
                    let body = String::from_utf8_lossy(bytes).into_owned();
                    Value::object([
                        ("url", field("url")),
                        ("method", field("method")),
                        ("body", body.into()),
                    ])
                };
                self.read(call, peer.clone(), Vec::new(), describe, content);
                None
            }
            (Thing::Main, "respond") => {
                let headers = Value::array([Value::array(["x-b", "2"])]);
                let content = Value::object([
                    ("status", Value::from(201)),
                    ("headers", headers),
                    ("body", Value::ArrayBuffer(b"made".to_vec())),
                ]);
                plain(Value::Interface(Interface::Response, Box::new(content)))
            }
            (Thing::Main, "stream") => {
                let source = Thing::Source(Cell::new(number(0) as i64), self.new_live());
                Some(Ok((
                    Value::External(0),
                    vec![host(Object(Rc::new(source)), Kind::Source)],
                )))
            }
            (Thing::Main, "sink") => {
                self.sink = Rc::default();
                let sink = Thing::Sink(Rc::clone(&self.sink), self.new_live());
                Some(Ok((
                    Value::External(0),
                    vec![host(Object(Rc::new(sink)), Kind::Sink)],
                )))
            }
            (Thing::Main, "written") => {
                let written = self.sink.borrow();
                let text = String::from_utf8_lossy(&written.0).into_owned();
                plain(Value::object([
                    ("text", Value::from(text)),
                    ("end", written.1.clone().into()),
                ]))
            }
            (Thing::Main, "writeTo") => {
                let peer = peer(0);
                let bytes = arg(1)
                    .as_text()
                    .map(|text| text.as_bytes().to_vec())
                    .unwrap_or_default();
                let args = Payload::of(&Value::array([Value::uint8_array(bytes)]));
                self.ask(
                    &peer,
                    Access::Call,
                    &["write".into()],
                    args,
                    Then::Close(call, peer.clone()),
                );
                None
            }
            (Thing::Main, "quit") => {
                let reason = arg(0);
                self.connection.abort(reason.as_str().unwrap_or_default());
                None
            }
            _ => Some(Err(Value::error(
                "TypeError",
                format!("'{name}' is not a function."),
            ))),
        }
    }

    fn ask(
        &mut self,
        peer: &Peer,
        access: Access,
        path: &[String],
        args: Payload<Object>,
        then: Then,
    ) {
        self.ask_last += 1;
        self.asked.insert(self.ask_last, then);
        self.connection
            .call(self.ask_last, peer, access, path, args);
    }

    fn read(
        &mut self,
        call: u64,
        peer: Peer,
        bytes: Vec<u8>,
        made: fn(&[u8], &Value) -> Value,
        with: Value,
    ) {
        let args = Payload::of(&Value::array([10_000]));
        let then = Then::Read(call, peer.clone(), bytes, made, with);
        self.ask(&peer, Access::Call, &["pull".into()], args, then);
    }

    fn answered(&mut self, ask: u64, outcome: Outcome<Object>) {
        match (self.asked.remove(&ask).expect("it was asked"), outcome) {
            (Then::Answer(call), outcome) => self.connection.answer(call, outcome),
            (Then::Read(call, peer, mut bytes, made, with), Outcome::Value(value)) => {
                match value_of(&value).as_bytes() {
                    Some(more) => {
                        bytes.extend_from_slice(more);
                        self.read(call, peer, bytes, made, with);
                    }
                    None => {
                        drop(peer);
                        let value = made(&bytes, &with);
                        self.connection
                            .answer(call, Outcome::Value(Payload::of(&value)));
                    }
                }
            }
            (Then::Close(call, peer), Outcome::Value(_)) => {
                self.ask(
                    &peer,
                    Access::Call,
                    &["close".into()],
                    Payload::UNDEFINED,
                    Then::Answer(call),
                );
            }
            (Then::Read(call, ..) | Then::Close(call, _), threw) => {
                self.connection.answer(call, threw)
            }
        }
    }
}

fn host(target: Object, kind: Kind) -> Capability<Object> {
    Capability::Host { target, kind }
}

fn value_of(payload: &Payload<Object>) -> Value {
    if payload.bytes.is_empty() {
        return Value::Undefined;
    }
    let bounds = Bounds {
        externals: payload.externals.len() as u32,
        ..Bounds::default()
    };
    decode(&payload.bytes, &bounds).expect("the connection gives values")
}

fn payload((value, externals): Given) -> Payload<Object> {
    Payload {
        bytes: encode(&value),
        externals,
    }
}
