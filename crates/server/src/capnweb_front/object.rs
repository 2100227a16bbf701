//! What clients find: the gate, what a login yields, workers, and everything that has an address.

use super::{
    client::Client,
    code,
    convert::{self, Arguments},
    rejection::Rejection,
    report,
};
use crate::{
    auth::Credentials,
    loading::{ENTRYPOINT_NAME_BYTES_MAX, blocking, code_bytes, load},
    outcome::Answered,
    router::{Address, Owner, Payload},
    session::{Entrypoint, Grants, Session, Worker},
    shared::{GetError, ID_BYTES_MAX, Key, SOURCE_TIME_MAX, Shared},
};
use coracle_capnweb::{Access, Capability, Kind, Outcome, Payload as WebPayload};
use coracle_isolate::{CallAccess, Form, Outcome as Ending};
use coracle_loader::{Refusal, WorkerCode};
use coracle_transport::Held;
use coracle_value::Value;
use std::{rc::Rc, sync::Arc};

/// Something of the server's that a client can call.
#[derive(Clone)]
pub(super) enum Object {
    /// All that a connection finds: `login(token)`.
    Gate,
    /// What a login yields: `load`, `get`, `report`, `tenant`, `close`.
    Session(Rc<SessionObject>),
    /// A worker: `getEntrypoint`, `ready`.
    Worker(Rc<WorkerObject>),
    /// Whatever has an address. All that is called on it is its own.
    Target(Rc<Target>),
}

/// How a call ends.
pub(super) type Answer = Result<Outcome<Object>, Rejection>;

pub(super) struct SessionObject {
    session: Session,
    /// Workers that were got by an id.
    shared: Arc<Shared>,
    _held: Held,
}

pub(super) struct WorkerObject {
    /// The login that it was given to.
    session: Session,
    worker: Worker,
    /// Its code, which is kept as long as it may be called.
    _held: Held,
}

pub(super) struct Target {
    address: Address,
    /// The login that it was given to.
    owner: Option<Owner>,
    _held: Held,
}

/// A call of the client's.
pub(super) struct Asked {
    pub(super) access: Access,
    pub(super) path: Vec<String>,
    pub(super) args: WebPayload<Object>,
}

impl Object {
    pub(super) fn of_address(client: &Client, address: Address) -> Result<Self, Rejection> {
        let held = client.hold(address.data_bytes())?;
        let session = client.session.borrow();
        Ok(Self::Target(Rc::new(Target {
            address,
            owner: session.as_ref().map(Session::owner),
            _held: held,
        })))
    }

    /// Where calls of it go, if it may be passed to a worker.
    pub(super) fn address(&self) -> Result<Address, Rejection> {
        match self {
            Self::Target(target) => Ok(target.address.clone()),
            Self::Session(_) => Err(Rejection::type_error("a loader can be passed in env only")),
            Self::Gate | Self::Worker(_) => Err(Rejection::type_error(
                "a worker can't be passed: pass one of its entrypoints",
            )),
        }
    }

    /// Does what a client asks.
    pub(super) async fn answer(self, client: &Rc<Client>, asked: Asked) -> Answer {
        match self {
            Self::Target(target) => target.answer(client, asked).await,
            Self::Gate => match asked.method()? {
                "login" => login(client, asked).await,
                other => Err(no_method(other)),
            },
            Self::Session(session) => session.answer(client, asked).await,
            Self::Worker(worker) => worker.answer(client, asked).await,
        }
    }
}

impl Asked {
    /// The method of an object of ours.
    fn method(&self) -> Result<&str, Rejection> {
        match (&self.path[..], self.access) {
            ([name], Access::Call) => Ok(name),
            (path, _) => Err(no_method(&path.join("."))),
        }
    }

    /// As a call of something that has an address.
    fn of_address(self, client: &Client) -> Result<(CallAccess, Vec<String>, Payload), Rejection> {
        let access = match self.access {
            Access::Call => CallAccess::Call,
            Access::Get => CallAccess::Get,
        };
        let args = convert::payload(client, self.args)?;
        Ok((access, self.path, args))
    }
}

fn no_method(name: &str) -> Rejection {
    Rejection::type_error(format!(
        "The RPC receiver does not implement the method \"{name}\"."
    ))
}

/// A result that is one object.
fn found(target: Object) -> Outcome<Object> {
    let kind = Kind::Target;
    Outcome::Value(WebPayload {
        bytes: coracle_value::encode(&Value::External(0)),
        externals: vec![Capability::Host { target, kind }],
    })
}

async fn login(client: &Rc<Client>, asked: Asked) -> Answer {
    let mut arguments = Arguments::read(asked.args)?;
    let credentials = match (arguments.take(0), &client.token) {
        (Value::String(token), _) => Credentials::BearerToken(token.into_string_lossy()),
        (Value::Undefined | Value::Null, Some(token)) => Credentials::BearerToken(token.clone()),
        (Value::Undefined | Value::Null, None) => Credentials::None,
        _ => {
            return Err(Rejection::type_error(
                "login: the token is a string, or left out",
            ));
        }
    };
    let Client {
        service,
        tokens,
        peer,
        standing,
        holdings,
        ..
    } = &**client;
    let mut admission = standing
        .admit(service.metrics(), tokens, *peer, &credentials)
        .await
        .map_err(|refused| Rejection::failed(refused.to_string()))?;
    let held = client.hold(0)?;
    let session = Session::open(service, std::mem::take(&mut admission.tenant));
    admission.opened(&session);
    holdings.introduce();
    *client.session.borrow_mut() = Some(session.clone());
    Ok(found(Object::Session(Rc::new(SessionObject {
        session,
        shared: Arc::default(),
        _held: held,
    }))))
}

impl SessionObject {
    async fn answer(&self, client: &Rc<Client>, asked: Asked) -> Answer {
        match asked.method()? {
            "load" => self.load(client, asked.args).await,
            "get" => self.get(client, asked.args).await,
            "report" => self.report(client, asked.args).await,
            "tenant" => Ok(Outcome::Value(WebPayload::of(
                &self.session.tenant().into(),
            ))),
            "close" => {
                self.session.close();
                Ok(Outcome::Value(WebPayload::UNDEFINED))
            }
            other => Err(no_method(other)),
        }
    }

    /// For a worker that is to load workers itself.
    pub(super) fn loader_address(&self) -> Result<Address, Rejection> {
        self.check_open()?;
        Ok(Address::Loader(Arc::default()))
    }

    fn check_open(&self) -> Result<(), Rejection> {
        match self.session.is_closed() {
            true => Err(Refusal::SessionClosed.into()),
            false => Ok(()),
        }
    }

    /// `load(code)`
    async fn load(&self, client: &Rc<Client>, args: WebPayload<Object>) -> Answer {
        let mut arguments = Arguments::read(args)?;
        let code = arguments.take(0);
        let (code, grants) = code::worker_code(client, &arguments, code)?;
        let held = client.hold(code_bytes(&code).saturating_add(grants.data_bytes()))?;
        let worker = load(&self.session, code, grants).await?;
        Ok(self.offer(worker, held))
    }

    /// `get(id, source)`: the worker that this login has by that id; where there is none, the source is asked for it. As in
    /// Workers, the source answers with all of the worker, and is not asked as long as it is there.
    async fn get(&self, client: &Rc<Client>, args: WebPayload<Object>) -> Answer {
        let mut arguments = Arguments::read(args)?;
        let id = match arguments.take(0) {
            Value::String(id) => id.into_string_lossy(),
            _ => return Err(Rejection::type_error("get: the id is a string")),
        };
        if id.len() > ID_BYTES_MAX {
            let bytes = id.len();
            return Err(Rejection::type_error(format!(
                "get: the id has {bytes} bytes, {ID_BYTES_MAX} are allowed"
            )));
        }
        let source = arguments.take(1);
        let source = arguments
            .capability(&source)
            .ok_or_else(|| Rejection::type_error("get: the source of the code is a function"))?;
        let source = client.address(source)?;
        self.check_open()?;
        let held = client.hold(0)?;
        let key = Key {
            id,
            fingerprint: Vec::new(),
            given: [0; 32],
            capabilities: Vec::new(),
        };
        let is_of_use = |worker: &Worker| client.service.is_of_use(worker);
        let provide = || self.provide(client, key.clone(), source);
        let worker = self
            .shared
            .get(key.clone(), is_of_use, provide)
            .await
            .map_err(|error| match error {
                GetError::Load(error) => Rejection::from(&*error),
                GetError::Source(message) | GetError::SourceGone(message) => {
                    Rejection::failed(message)
                }
            })?;
        Ok(self.offer(worker, held))
    }

    /// Asks a source, and loads what it answers.
    async fn provide(
        &self,
        client: &Rc<Client>,
        key: Key,
        source: Address,
    ) -> Result<Worker, GetError> {
        let failed = |what: String| GetError::Source(format!("the source of the code {what}"));
        let call = source.call(CallAccess::Call, Vec::new(), Payload::UNDEFINED, Form::Cbor);
        let answered = match tokio::time::timeout(SOURCE_TIME_MAX, call).await {
            Ok(Ok(answered)) => answered,
            Ok(Err(refusal)) => return Err(failed(format!("failed: {refusal}"))),
            Err(_) => {
                let seconds = SOURCE_TIME_MAX.as_secs();
                return Err(failed(format!("did not answer within {seconds} s")));
            }
        };
        let (code, grants) = read_code(client, answered)
            .map_err(|rejection| failed(format!("failed: {}", rejection.message())))?;
        let (session, table) = (self.session.clone(), Arc::downgrade(&self.shared));
        let load = move || session.load_shared(&code, grants, &table, key);
        let loaded = blocking(load).await;
        loaded.map_err(|error| GetError::Load(Arc::new(error)))
    }

    fn offer(&self, worker: Worker, held: Held) -> Outcome<Object> {
        found(Object::Worker(Rc::new(WorkerObject {
            session: self.session.clone(),
            worker,
            _held: held,
        })))
    }

    /// `report(target, path, args)`: calls, and answers with all that is known of it. The path is a name, or an array of them.
    async fn report(&self, client: &Rc<Client>, args: WebPayload<Object>) -> Answer {
        let mut arguments = Arguments::read(args)?;
        let target = arguments.take(0);
        let Some(Capability::Host {
            target: Object::Target(target),
            ..
        }) = arguments.capability(&target)
        else {
            return Err(Rejection::type_error(
                "report: the target is an entrypoint, or what a worker has returned",
            ));
        };
        let path = match arguments.take(1) {
            Value::String(name) => vec![name.into_string_lossy()],
            Value::Array(names) => names
                .into_iter()
                .map(|name| code::text("report: the path", name))
                .collect::<Result<_, _>>()?,
            _ => {
                return Err(Rejection::type_error(
                    "report: the path is a name, or an array of them",
                ));
            }
        };
        let path_bytes: usize = path.iter().map(String::len).sum();
        if path.len() > coracle_abi::PATH_LENGTH_MAX || path_bytes > coracle_abi::PATH_BYTES_MAX {
            return Err(Rejection::type_error("report: the path is too long"));
        }
        let args = arguments.take(2);
        if !matches!(args, Value::Undefined | Value::Array(_)) {
            return Err(Rejection::type_error("report: the arguments are an array"));
        }
        let (bytes, externals) = arguments.part(args);
        let asked = Asked {
            access: Access::Call,
            path,
            args: WebPayload { bytes, externals },
        };
        report::whole(client, target.call(client, asked).await?)
    }
}

/// What a source of code answered.
fn read_code(client: &Rc<Client>, answered: Answered) -> Result<(WorkerCode, Grants), Rejection> {
    let Answered { report, externals } = answered;
    match report.outcome {
        Ending::Value(bytes) => {
            let externals = externals
                .into_iter()
                .map(|address| client.offer(address))
                .collect::<Result<_, _>>()?;
            let (arguments, code) = Arguments::of_value(WebPayload {
                bytes: convert::cbor(bytes.form, bytes.bytes)?,
                externals,
            })?;
            code::worker_code(client, &arguments, code)
        }
        Ending::Threw(thrown) => Err(Rejection::failed(format!(
            "{}: {}",
            thrown.name, thrown.message
        ))),
        Ending::Verdict(verdict) => Err(Rejection::failed(verdict.message())),
    }
}

impl WorkerObject {
    async fn answer(&self, client: &Rc<Client>, asked: Asked) -> Answer {
        if self.session.is_closed() {
            return Err(Refusal::SessionClosed.into());
        }
        match asked.method()? {
            "getEntrypoint" => self.entrypoint(client, asked.args),
            "ready" => report::outcome(client, self.worker.ready().await?),
            other => Err(no_method(other)),
        }
    }

    /// `getEntrypoint(name?, { props, limits }?)`
    fn entrypoint(&self, client: &Rc<Client>, args: WebPayload<Object>) -> Answer {
        let mut arguments = Arguments::read(args)?;
        let name = match arguments.take(0) {
            Value::Undefined | Value::Null => String::new(),
            name => code::text("getEntrypoint: the name", name)?,
        };
        if name.len() > ENTRYPOINT_NAME_BYTES_MAX {
            let bytes = name.len();
            return Err(Rejection::type_error(format!(
                "getEntrypoint: the name has {bytes} bytes, {ENTRYPOINT_NAME_BYTES_MAX} are allowed"
            )));
        }
        let options = arguments.take(1);
        let option = |name| options.get(name).cloned().unwrap_or_default();
        let limits = code::limits(&option("limits"))?;
        let (bytes, externals) = arguments.part(option("props"));
        let props = convert::payload(client, WebPayload { bytes, externals })?;
        Entrypoint::check_props(&props.externals)
            .map_err(|error| Rejection::failed(error.to_string()))?;
        let entrypoint = self.worker.entrypoint(&name, props, &limits);
        let address = Address::Entrypoint(entrypoint);
        Ok(found(Object::of_address(client, address)?))
    }
}

impl Target {
    async fn answer(&self, client: &Rc<Client>, asked: Asked) -> Answer {
        report::outcome(client, self.call(client, asked).await?)
    }

    /// Calls for a login. What is not the login's own ends with it all the same.
    async fn call(&self, client: &Rc<Client>, asked: Asked) -> Result<Answered, Rejection> {
        let (access, path, args) = asked.of_address(client)?;
        let _held = client.hold(args.data_bytes())?;
        let call = self.address.call(access, path, args, Form::Cbor);
        let owner = self.owner.as_ref();
        let Some(owner) = owner.filter(|owner| self.address.is_foreign_to(owner)) else {
            return Ok(call.await?);
        };
        if owner.is_revoked() {
            return Err(Refusal::SessionClosed.into());
        }
        tokio::select! {
            biased;
            answered = call => Ok(answered?),
            () = owner.ended() => Ok(Answered::cancelled()),
        }
    }
}
