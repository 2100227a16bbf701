//! What a login yields, the same for every protocol: a session loads workers, a worker has entrypoints, an entrypoint
//! is called.

use crate::{
    in_order::yield_in_order,
    named::Name,
    outcome::CallAnswer,
    room::{Full, Room},
    router::{Address, Export, Owner, Payload},
    service::{InFlight, Service},
    shared::{Identity, Key, Shared},
    tails,
};
use coracle_isolate::{Bytes, Call, CallAccess, Form, WorkerSpec, load_message};
use coracle_loader::{
    Limits, LimitsRequest, Outbound, PolicyAsked, Problems, Refusal, SessionId, TenantId, Trust,
    WorkerCode, WorkerId, check,
};
use coracle_outbound::{Policy, PolicyOrigin};
use std::{
    collections::HashSet,
    sync::{Arc, Weak},
};

/// A login. Dropping the last handle, or [`Session::close`], revokes everything that came from it.
#[derive(Clone)]
pub struct Session(Arc<SessionInner>);

struct SessionInner {
    service: Arc<Service>,
    tenant: Arc<str>,
    tenant_id: TenantId,
    owner: Owner,
    /// What the code takes of workers that its workers have loaded, and of those that were got by an id.
    code_bytes: Arc<Room>,
    /// What waits for the tails of its workers.
    tail_bytes: Arc<Room>,
    /// What it shares with the other logins of the tenant; a session that workers are shared through has none.
    commons: Option<Arc<Commons>>,
}

/// What the logins of a tenant share: workers that are given no capability, and the session that owns them.
pub(crate) struct Commons {
    workers: Arc<Shared>,
    owner: Session,
    /// What waits for the tails of the tenant's workers.
    tail_bytes: Arc<Room>,
}

/// The capabilities that a worker is given when it is loaded: all that it has.
#[derive(Default)]
pub struct Grants {
    /// What `env` refers to by index.
    pub env: Vec<Address>,
    /// What its requests go to, for [`Outbound::Gateway`]; for [`Outbound::Policy`], who is asked about them, if anybody.
    pub outbound: Option<Address>,
    /// What is told of its invocations when they are over.
    pub tails: Vec<Address>,
    /// What is told of them while they run.
    pub streaming_tails: Vec<Address>,
}

/// Why a worker was not loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// Its code is wrong; all problems at once.
    #[error("the worker can't be loaded: {0}")]
    Code(#[from] Problems),
    /// The server takes no more.
    #[error("{0}")]
    Refused(#[from] Refusal),
    /// There is no room for the code.
    #[error(transparent)]
    Full(#[from] Full),
    /// It may not have the policy that it asks for, or the policy is none.
    #[error("the worker can't be loaded: outbound: {0}")]
    Outbound(String),
}

/// What a `fetch` in a worker is refused with.
pub(crate) const REFUSED_NONE: &str = "This worker is not permitted to access the internet via global functions like fetch(). It must use \
                            capabilities (such as bindings in 'env') to talk to the outside world.";
const REFUSED_POLICY: &str = "This worker is not permitted to access the internet via global functions like fetch(): the server has \
                              no outbound policy, which denies every request. Start it with --outbound-file FILE and a rule that \
                              allows this one, or give the worker a globalOutbound of its own.";

impl Session {
    pub(crate) fn open(service: &Arc<Service>, tenant: String) -> Self {
        service.metrics().session_opened();
        let commons = service.commons_of(&tenant);
        let tail_bytes = tails::part_of_session(&commons.tail_bytes);
        Self::new(service, tenant, Some(commons), tail_bytes)
    }

    fn new(
        service: &Arc<Service>,
        tenant: String,
        commons: Option<Arc<Commons>>,
        tail_bytes: Arc<Room>,
    ) -> Self {
        let (id, tenant_id) = service.open_session(&tenant, commons.is_none());
        let tenant = tenant.into();
        Self(Arc::new(SessionInner {
            commons,
            service: Arc::clone(service),
            tenant,
            tenant_id,
            owner: Owner::new(id),
            code_bytes: service.code_bytes_of_session(),
            tail_bytes,
        }))
    }

    /// The tenant that pays.
    #[must_use]
    pub fn tenant(&self) -> &str {
        &self.0.tenant
    }

    /// Whether it has been closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.0.owner.is_revoked()
    }

    pub(crate) fn owner(&self) -> Owner {
        self.0.owner.clone()
    }

    /// Revokes everything that came from this login and ends its isolates.
    pub fn close(&self) {
        self.0.close();
    }

    /// Checks a worker's code and takes it in, with what it is given. Nothing of it runs yet.
    ///
    /// It reads all of the code: for large code, call it where waiting a few milliseconds harms nobody.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, code: &WorkerCode, grants: Grants) -> Result<Worker, LoadError> {
        let service = &self.0.service;
        let outcome = self.load_checked(code, grants);
        service.metrics().load(outcome.is_ok());
        outcome
    }

    /// As [`Session::load`], for a worker that is kept in a table under a key.
    pub(crate) fn load_shared(
        &self,
        code: &WorkerCode,
        grants: Grants,
        table: &Weak<Shared>,
        key: Key,
    ) -> Result<Worker, LoadError> {
        let code_bytes: u64 = code.modules.iter().map(|module| module.body.bytes()).sum();
        let taken = self
            .0
            .code_bytes
            .take_for_code(code_bytes + code.env.bytes.len() as u64)?;
        let worker = self.load(code, grants)?;
        let name = Name::Shared(Weak::clone(table), Box::new(key));
        self.0.service.name(worker.id(), name, taken);
        Ok(worker)
    }

    /// The workers that all logins of the tenant share, and the session that owns them.
    pub(crate) fn shared_by_tenant(&self) -> (Arc<Shared>, Self) {
        match &self.0.commons {
            Some(commons) => (Arc::clone(&commons.workers), commons.owner.clone()),
            // Nobody gets anything through a session that is shared itself.
            None => (Arc::default(), self.clone()),
        }
    }

    fn load_checked(&self, code: &WorkerCode, mut grants: Grants) -> Result<Worker, LoadError> {
        if self.is_closed() {
            return Err(Refusal::SessionClosed.into());
        }
        let service = &self.0.service;
        check(code, service.limits())?;
        let limits = service.limits().lowered_by(&code.limits);
        let outbound_refusal = match &code.outbound {
            Outbound::None => Some(REFUSED_NONE.into()),
            Outbound::Gateway => None,
            Outbound::Policy(asked) => {
                let ask = grants.outbound.take();
                grants.outbound = self.door(asked, ask.as_ref())?;
                grants.outbound.is_none().then(|| REFUSED_POLICY.into())
            }
        };
        let spec = WorkerSpec {
            load: load_message(
                code,
                grants.env.iter().map(Address::kind),
                &limits,
                grants.has_tails(),
            ),
            limits,
            tenant: self.0.tenant_id.0,
            share: service.share_of(&self.0.tenant),
            trust: self.trust(),
            outbound_refusal,
            logs_streamed: !grants.streaming_tails.is_empty(),
        };
        Ok(service.load(self, spec, grants)?)
    }

    /// The way out that a policy allows; none where the server has no policies.
    fn door(
        &self,
        asked: &PolicyAsked,
        ask: Option<&Address>,
    ) -> Result<Option<Address>, LoadError> {
        let Some(egress) = self.0.service.egress() else {
            return match asked {
                PolicyAsked::Named(name) => Err(LoadError::Outbound(format!(
                    "the server has no policy \"{name}\""
                ))),
                PolicyAsked::Given(rules) => {
                    let read = Policy::of_json("given", PolicyOrigin::Client, rules);
                    read.map_err(|error| LoadError::Outbound(error.to_string()))?;
                    Ok(None)
                }
                PolicyAsked::Session => Ok(None),
            };
        };
        let door = egress.door(&self.0.tenant, self.id(), asked, ask);
        door.map(Some).map_err(LoadError::Outbound)
    }

    pub(crate) fn id(&self) -> SessionId {
        self.0.owner.session
    }

    pub(crate) fn tenant_id(&self) -> TenantId {
        self.0.tenant_id
    }

    /// With whom its isolates may share a process.
    pub(crate) fn trust(&self) -> Trust {
        self.0.service.trust_of(&self.0.tenant)
    }

    pub(crate) fn code_bytes(&self) -> &Arc<Room> {
        &self.0.code_bytes
    }

    pub(crate) fn tail_bytes(&self) -> &Arc<Room> {
        &self.0.tail_bytes
    }
}

impl Commons {
    pub(crate) fn new(service: &Arc<Service>, tenant: &str) -> Arc<Self> {
        let tail_bytes = service.tellings().part_of_tenant();
        let of_owner = tails::part_of_session(&tail_bytes);
        Arc::new(Self {
            workers: Arc::default(),
            owner: Session::new(service, tenant.to_owned(), None, of_owner),
            tail_bytes,
        })
    }
}

impl Grants {
    fn has_tails(&self) -> bool {
        !(self.tails.is_empty() && self.streaming_tails.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            env,
            outbound,
            tails,
            streaming_tails,
        } = self;
        env.is_empty() && outbound.is_none() && tails.is_empty() && streaming_tails.is_empty()
    }

    /// What it takes of memory besides places in tables.
    pub(crate) fn data_bytes(&self) -> u64 {
        let tails = data_bytes(&self.tails).saturating_add(data_bytes(&self.streaming_tails));
        let outbound = self.outbound.as_ref().map_or(0, Address::data_bytes);
        let rest = tails.saturating_add(outbound);
        data_bytes(&self.env).saturating_add(rest)
    }

    /// As the worker holds them that they are for.
    pub(crate) fn held_by(self, holder: &Facts) -> Self {
        let held = |address: Address| address.held_by(holder);
        Self {
            env: self.env.into_iter().map(held).collect(),
            outbound: self.outbound.map(held),
            tails: self.tails.into_iter().map(held).collect(),
            streaming_tails: self.streaming_tails.into_iter().map(held).collect(),
        }
    }
}

impl SessionInner {
    fn close(&self) {
        if self.owner.revoke() {
            self.service
                .close_session(self.owner.session, self.commons.is_none());
            self.owner.announce_end();
        }
    }
}

impl Drop for SessionInner {
    fn drop(&mut self) {
        self.close();
    }
}

/// A loaded worker. While a handle on it or on one of its entrypoints lives, its isolate may live on between calls.
#[derive(Clone)]
pub struct Worker {
    facts: Arc<Facts>,
    /// Keeps it loaded. Workers that it has loaded hold it without: they end with it, and would keep each other alive.
    hold: Option<Arc<Hold>>,
}

/// What is known of a worker, whether it is still loaded or not.
pub(crate) struct Facts {
    service: Arc<Service>,
    owner: Owner,
    tenant: Arc<str>,
    worker: WorkerId,
    /// The worker that loaded it, and so on.
    ancestors: Vec<WorkerId>,
    limits: Limits,
}

/// Keeps a worker loaded.
pub(crate) struct Hold {
    /// There until it is dropped.
    session: Option<Session>,
    facts: Arc<Facts>,
}

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(session) = self.session.take() {
            let Facts {
                service, worker, ..
            } = &*self.facts;
            service.release_worker(*worker, session);
        }
    }
}

impl Facts {
    pub(crate) fn tenant(&self) -> &Arc<str> {
        &self.tenant
    }

    pub(crate) fn worker_id(&self) -> WorkerId {
        self.worker
    }

    /// The workers that end with a worker which this one loads.
    pub(crate) fn lineage(&self) -> Vec<WorkerId> {
        let own = std::iter::once(self.worker);
        own.chain(self.ancestors.iter().copied()).collect()
    }
}

impl Worker {
    /// What holds for its calls.
    pub(crate) fn limits(&self) -> &Limits {
        &self.facts.limits
    }

    pub(crate) fn new(
        session: &Session,
        worker: WorkerId,
        ancestors: Vec<WorkerId>,
        limits: Limits,
    ) -> Self {
        let facts = Arc::new(Facts {
            service: Arc::clone(&session.0.service),
            owner: session.owner(),
            tenant: Arc::clone(&session.0.tenant),
            worker,
            ancestors,
            limits,
        });
        let hold = Hold {
            session: Some(session.clone()),
            facts: Arc::clone(&facts),
        };
        Self {
            facts,
            hold: Some(Arc::new(hold)),
        }
    }

    pub(crate) fn of_hold(hold: Arc<Hold>) -> Self {
        Self {
            facts: Arc::clone(&hold.facts),
            hold: Some(hold),
        }
    }

    pub(crate) fn hold(&self) -> Weak<Hold> {
        self.hold.as_ref().map(Arc::downgrade).unwrap_or_default()
    }

    /// As it is held by a worker: without keeping it loaded, if it is the very same or one that has loaded it.
    pub(crate) fn held_by(mut self, holder: &Facts) -> Self {
        let own = self.facts.worker;
        if holder.worker == own || holder.ancestors.contains(&own) {
            self.hold = None;
        }
        self
    }

    pub(crate) fn id(&self) -> WorkerId {
        self.facts.worker
    }

    pub(crate) fn facts(&self) -> &Arc<Facts> {
        &self.facts
    }

    /// The session that it belongs to, as long as this keeps it loaded.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.hold.as_ref()?.session.as_ref()
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.facts.service
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.facts.owner.is_revoked()
    }

    pub(crate) fn owner(&self) -> &Owner {
        &self.facts.owner
    }

    /// The export `name` of the main module; empty is "default". Whether it exists shows at the first call.
    #[must_use]
    pub fn entrypoint(&self, name: &str, props: Payload, limits: &LimitsRequest) -> Entrypoint {
        let Payload {
            form,
            bytes,
            externals,
        } = props;
        let name = if name.is_empty() { "default" } else { name };
        self.entrypoint_of(name, Bytes::data(form, bytes), externals, limits)
    }

    /// Props that refer to what [`Entrypoint::check_props`] would refuse are for callers to refuse.
    pub(crate) fn entrypoint_of(
        &self,
        name: &str,
        props: Bytes,
        props_externals: Vec<Address>,
        limits: &LimitsRequest,
    ) -> Entrypoint {
        let bytes = (name.len() + props.bytes.len()) as u64;
        Entrypoint {
            worker: self.clone(),
            export: name.into(),
            data_bytes: bytes.saturating_add(data_bytes(&props_externals)),
            nesting: nesting(&props_externals),
            props: Arc::new(props),
            props_externals: props_externals.into(),
            limits: self.facts.limits.lowered_by(limits),
        }
    }

    /// Evaluates the modules, if that has not happened yet.
    pub async fn ready(&self) -> CallAnswer {
        let entrypoint = self.entrypoint("", Payload::UNDEFINED, &LimitsRequest::default());
        let nothing = (Vec::new(), Payload::UNDEFINED);
        entrypoint
            .invoke(CallAccess::Ready, nothing.0, nothing.1, Form::Cbor)
            .await
    }

    /// Calls an object that the worker's isolate has given out.
    pub(crate) async fn invoke_export(
        &self,
        export: &Export,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> CallAnswer {
        let call = OutCall::of_export(export, access, path, args, result_form);
        self.invoke(call).await
    }

    async fn invoke(&self, call: OutCall) -> CallAnswer {
        if self.is_revoked() {
            return Err(Refusal::SessionClosed);
        }
        let service = self.service();
        let arrival = service.arrive();
        // Others that came in the same batch arrive before it is asked whether this one is alone.
        yield_in_order().await;
        let in_flight: InFlight = service.call(arrival, call);
        in_flight.answer().await
    }
}

/// A call of something in a worker, ready to be placed.
pub(crate) struct OutCall {
    pub(crate) worker: Worker,
    /// Set for what only this isolate can serve.
    pub(crate) isolate: Option<u64>,
    pub(crate) call: Box<Call>,
    pub(crate) args: Vec<Address>,
    pub(crate) props: Arc<[Address]>,
    /// Kept while the call is under way.
    pub(crate) callee: Address,
}

impl OutCall {
    pub(crate) fn of_export(
        export: &Export,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> Self {
        Self {
            worker: export.worker.clone(),
            isolate: Some(export.isolate()),
            call: Box::new(Call {
                invocation: 0,
                entrypoint: "".into(),
                export: Some(export.id()),
                path,
                access,
                args: Bytes::data(args.form, args.bytes),
                props: Arc::new(Bytes::UNDEFINED),
                result_form,
                limits: export.worker.facts.limits,
            }),
            args: args.externals,
            props: Arc::default(),
            callee: Address::Export(export.clone()),
        }
    }

    pub(crate) fn of_entrypoint(
        entrypoint: &Entrypoint,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> Self {
        Self {
            worker: entrypoint.worker.clone(),
            isolate: None,
            call: Box::new(Call {
                invocation: 0,
                entrypoint: Arc::clone(&entrypoint.export),
                export: None,
                path,
                access,
                args: Bytes::data(args.form, args.bytes),
                props: Arc::clone(&entrypoint.props),
                result_form,
                limits: entrypoint.limits,
            }),
            args: args.externals,
            props: Arc::clone(&entrypoint.props_externals),
            callee: Address::Entrypoint(entrypoint.clone()),
        }
    }
}

/// How deep what props refer to is nested.
fn nesting(externals: &[Address]) -> u32 {
    let of = |address: &Address| match address {
        Address::Entrypoint(entrypoint) => entrypoint.nesting + 1,
        _ => 0,
    };
    externals.iter().map(of).max().unwrap_or_default()
}

/// What these take of memory besides their places in tables; what is listed twice takes it once.
pub(crate) fn data_bytes(externals: &[Address]) -> u64 {
    let mut seen = HashSet::new();
    let mut bytes = 0_u64;
    for address in externals {
        if let Address::Entrypoint(entrypoint) = address
            && seen.insert(Arc::as_ptr(&entrypoint.props))
        {
            bytes = bytes.saturating_add(entrypoint.data_bytes);
        }
    }
    bytes
}

/// An export of a worker's main module, to be called.
#[derive(Clone)]
pub struct Entrypoint {
    pub(crate) worker: Worker,
    export: Arc<str>,
    pub(crate) props: Arc<Bytes>,
    props_externals: Arc<[Address]>,
    limits: Limits,
    /// What it takes, that of what its props refer to included.
    data_bytes: u64,
    /// How often its props refer to entrypoints whose props refer to entrypoints.
    nesting: u32,
}

/// How deep entrypoints may be in the props of others. Letting go of one lets go of the next on the same stack.
const NESTING_MAX: u32 = 64;

/// Props refer to too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "props: the entrypoints in them have props with entrypoints in turn, more than {NESTING_MAX} deep"
)]
pub(crate) struct TooNested;

impl Entrypoint {
    /// Whether props may refer to these.
    pub(crate) fn check_props(externals: &[Address]) -> Result<(), TooNested> {
        match nesting(externals) > NESTING_MAX {
            true => Err(TooNested),
            false => Ok(()),
        }
    }

    /// What it takes of memory, that of what its props refer to included.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.data_bytes
    }

    /// Which one it is, as long as it is kept.
    pub(crate) fn identity(&self) -> Identity {
        let (name, props) = (self.export.as_ptr().addr(), Arc::as_ptr(&self.props).addr());
        Identity::Entrypoint(self.worker.id(), name, props)
    }

    /// As it is held by a worker; see [`Worker::held_by`].
    pub(crate) fn held_by(mut self, holder: &Facts) -> Self {
        self.worker = self.worker.held_by(holder);
        self
    }

    pub(crate) async fn invoke(
        &self,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> CallAnswer {
        let call = OutCall::of_entrypoint(self, access, path, args, result_form);
        self.worker.invoke(call).await
    }
}
