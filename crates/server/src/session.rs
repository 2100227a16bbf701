//! What a login yields, the same for every protocol: a session loads workers, a worker has entrypoints, an entrypoint
//! is called.

use crate::{
    in_order::yield_in_order,
    outcome::CallAnswer,
    router::{Address, Export, Owner, Payload},
    service::{InFlight, Service},
};
use coracle_abi as abi;
use coracle_isolate::{Bytes, Call, CallAccess, Form, WorkerSpec};
use coracle_loader::{
    Limits, LimitsRequest, ModuleBody, Outbound, Problems, Refusal, TenantId, WorkerCode, WorkerId,
    check,
};
use std::sync::Arc;

/// A login. Dropping the last handle, or [`Session::close`], revokes everything that came from it.
#[derive(Clone)]
pub struct Session(Arc<SessionInner>);

struct SessionInner {
    service: Arc<Service>,
    tenant: String,
    tenant_id: TenantId,
    owner: Owner,
}

/// The capabilities that a worker is given when it is loaded: all that it has.
#[derive(Default)]
pub struct Grants {
    /// What `env` refers to by index.
    pub env: Vec<Address>,
    /// What its requests go to, for [`Outbound::Gateway`].
    pub outbound: Option<Address>,
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
}

/// What a `fetch` in a worker is refused with.
const REFUSED_NONE: &str = "This worker is not permitted to access the internet via global functions like fetch(). It must use \
                            capabilities (such as bindings in 'env') to talk to the outside world.";
const REFUSED_POLICY: &str = "This worker is not permitted to access the internet via global functions like fetch(): the session's \
                              outbound policy denies every request.";

impl Session {
    pub(crate) fn open(service: &Arc<Service>, tenant: String) -> Self {
        let (id, tenant_id) = service.open_session(&tenant);
        Self(Arc::new(SessionInner {
            service: Arc::clone(service),
            tenant,
            tenant_id,
            owner: Owner::new(id),
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

    fn load_checked(&self, code: &WorkerCode, grants: Grants) -> Result<Worker, LoadError> {
        if self.is_closed() {
            return Err(Refusal::SessionClosed.into());
        }
        let service = &self.0.service;
        check(code, service.limits())?;
        let limits = service.limits().lowered_by(&code.limits);
        let spec = WorkerSpec {
            load: load_message(code, &grants.env, &limits).into(),
            limits,
            tenant: self.0.tenant_id.0,
            outbound_refusal: match code.outbound {
                Outbound::None => Some(REFUSED_NONE.into()),
                Outbound::Policy => Some(REFUSED_POLICY.into()),
                Outbound::Gateway => None,
            },
        };
        let id = service.load(self.0.owner.session, spec, grants)?;
        let worker = Worker(Arc::new(WorkerInner {
            session: self.clone(),
            worker: id,
            limits,
        }));
        service.note_handle(id, Arc::downgrade(&worker.0));
        Ok(worker)
    }
}

impl SessionInner {
    fn close(&self) {
        if self.owner.revoke() {
            self.service.close_session(self.owner.session);
        }
    }
}

impl Drop for SessionInner {
    fn drop(&mut self) {
        self.close();
    }
}

fn load_message(code: &WorkerCode, env: &[Address], limits: &Limits) -> Vec<u8> {
    let modules = code.modules.iter().filter_map(|module| {
        let (kind, body) = match &module.body {
            ModuleBody::EsModule(text) => (abi::ModuleKind::EsModule, text.as_bytes()),
            ModuleBody::CommonJs(text) => (abi::ModuleKind::CommonJs, text.as_bytes()),
            ModuleBody::Text(text) => (abi::ModuleKind::Text, text.as_bytes()),
            ModuleBody::Json(text) => (abi::ModuleKind::Json, text.as_bytes()),
            ModuleBody::Data(bytes) => (abi::ModuleKind::Data, &bytes[..]),
            // Refused by `check`.
            ModuleBody::Unset | ModuleBody::Wasm(_) => return None,
        };
        Some(abi::Module {
            name: &module.name,
            kind,
            body: body.into(),
        })
    });
    let message = abi::Load {
        main_module: &code.main_module,
        modules: modules.collect(),
        env: abi::Encoded {
            form: form(code.env.form),
            bytes: code.env.bytes[..].into(),
            externals: (1..)
                .zip(env)
                .map(|(id, address)| abi::External::Import(id, address.kind()))
                .collect(),
        },
        value_depth_max: u32::try_from(limits.value_depth_max).unwrap_or(u32::MAX),
    };
    let size: usize = code
        .modules
        .iter()
        .map(|module| module.body.bytes() as usize + module.name.len() + 16)
        .sum();
    let mut bytes = Vec::with_capacity(size + code.env.bytes.len() + 64);
    // Encoding into a Vec can't fail.
    let _ = minicbor::encode(&message, &mut bytes);
    bytes
}

fn form(form: coracle_loader::Form) -> Form {
    match form {
        coracle_loader::Form::Undefined => Form::Undefined,
        coracle_loader::Form::Cbor => Form::Cbor,
        coracle_loader::Form::Json => Form::Json,
    }
}

/// A loaded worker. While a handle on it or on one of its entrypoints lives, its isolate may live on between calls.
#[derive(Clone)]
pub struct Worker(Arc<WorkerInner>);

pub(crate) struct WorkerInner {
    session: Session,
    worker: WorkerId,
    limits: Limits,
}

impl Drop for WorkerInner {
    fn drop(&mut self) {
        self.session.0.service.release_worker(self.worker);
    }
}

impl Worker {
    pub(crate) fn from_inner(inner: Arc<WorkerInner>) -> Self {
        Self(inner)
    }

    pub(crate) fn id(&self) -> WorkerId {
        self.0.worker
    }

    pub(crate) fn service(&self) -> &Arc<Service> {
        &self.0.session.0.service
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.0.session.is_closed()
    }

    /// The export `name` of the main module; empty is "default". Whether it exists shows at the first call.
    #[must_use]
    pub fn entrypoint(&self, name: &str, props: Payload, limits: &LimitsRequest) -> Entrypoint {
        let Payload {
            form,
            bytes,
            externals,
        } = props;
        self.entrypoint_of(name, Bytes::data(form, bytes), externals, limits)
    }

    pub(crate) fn entrypoint_of(
        &self,
        name: &str,
        props: Bytes,
        props_externals: Vec<Address>,
        limits: &LimitsRequest,
    ) -> Entrypoint {
        let export = if name.is_empty() { "default" } else { name };
        Entrypoint {
            worker: self.clone(),
            export: export.into(),
            props: Arc::new(props),
            props_externals: props_externals.into(),
            limits: self.0.limits.lowered_by(limits),
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
        export: &Arc<Export>,
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
        export: &Arc<Export>,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        result_form: Form,
    ) -> Self {
        Self {
            worker: export.worker.clone(),
            isolate: Some(export.isolate),
            call: Box::new(Call {
                invocation: 0,
                entrypoint: "".into(),
                export: Some(export.id),
                path,
                access,
                args: Bytes::data(args.form, args.bytes),
                props: Arc::new(Bytes::UNDEFINED),
                result_form,
                limits: export.worker.0.limits,
            }),
            args: args.externals,
            props: Arc::default(),
            callee: Address::Export(Arc::clone(export)),
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

/// An export of a worker's main module, to be called.
#[derive(Clone)]
pub struct Entrypoint {
    pub(crate) worker: Worker,
    export: Arc<str>,
    props: Arc<Bytes>,
    props_externals: Arc<[Address]>,
    limits: Limits,
}

impl Entrypoint {
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
