//! What a login yields, the same for every protocol: a session loads workers, a worker has entrypoints, an entrypoint
//! is called.

use crate::{
    outcome::CallAnswer,
    router::{Address, Owner, Target},
    service::{InFlight, Service},
};
use coracle_abi as abi;
use coracle_isolate::{Bytes, Call, CallAccess, Form, WorkerSpec};
use coracle_loader::{
    Encoded, Limits, LimitsRequest, ModuleBody, Outbound, Problems, Refusal, TenantId, WorkerCode,
    WorkerId, check,
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

    /// Checks a worker's code and takes it in. Nothing of it runs yet.
    ///
    /// It reads all of the code: for large code, call it where waiting a few milliseconds harms nobody.
    ///
    /// # Errors
    /// See [`LoadError`].
    pub fn load(&self, code: &WorkerCode) -> Result<Worker, LoadError> {
        let service = &self.0.service;
        let outcome = self.load_checked(code);
        service.metrics().load(outcome.is_ok());
        outcome
    }

    fn load_checked(&self, code: &WorkerCode) -> Result<Worker, LoadError> {
        if self.is_closed() {
            return Err(Refusal::SessionClosed.into());
        }
        let service = &self.0.service;
        check(code, service.limits())?;
        let limits = service.limits().lowered_by(&code.limits);
        let spec = WorkerSpec {
            load: load_message(code, &limits).into(),
            limits,
            tenant: self.0.tenant_id.0,
            outbound_refusal: match code.outbound {
                Outbound::None => REFUSED_NONE,
                Outbound::Policy => REFUSED_POLICY,
            }
            .into(),
        };
        let worker = service.load(self.0.owner.session, spec)?;
        Ok(Worker(Arc::new(WorkerInner {
            session: self.clone(),
            worker,
            limits,
        })))
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

fn load_message(code: &WorkerCode, limits: &Limits) -> Vec<u8> {
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

struct WorkerInner {
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
    /// The export `name` of the main module; empty is "default". Whether it exists shows at the first call.
    #[must_use]
    pub fn entrypoint(&self, name: &str, props: Encoded, limits: &LimitsRequest) -> Entrypoint {
        let export = if name.is_empty() { "default" } else { name };
        Entrypoint {
            worker: self.clone(),
            address: Address {
                target: Target::Entrypoint {
                    worker: self.0.worker,
                    export: export.into(),
                },
                owner: self.0.session.0.owner.clone(),
            },
            props: Arc::new(bytes(props)),
            limits: self.0.limits.lowered_by(limits),
        }
    }

    /// Evaluates the modules, if that has not happened yet.
    pub async fn ready(&self) -> CallAnswer {
        let entrypoint = self.entrypoint("", Encoded::default(), &LimitsRequest::default());
        entrypoint
            .invoke(
                CallAccess::Ready,
                Vec::new(),
                Encoded::default(),
                Form::Cbor,
            )
            .await
    }
}

/// An export of a worker's main module, to be called.
#[derive(Clone)]
pub struct Entrypoint {
    worker: Worker,
    address: Address,
    props: Arc<Bytes>,
    limits: Limits,
}

impl Entrypoint {
    /// Calls the method at `path`. Dropping the future gives the call up.
    pub async fn call(
        &self,
        path: Vec<String>,
        args: Encoded,
        result_form: coracle_loader::Form,
    ) -> CallAnswer {
        self.invoke(CallAccess::Call, path, args, form(result_form))
            .await
    }

    /// Reads the property at `path`.
    pub async fn get(&self, path: Vec<String>, result_form: coracle_loader::Form) -> CallAnswer {
        self.invoke(CallAccess::Get, path, Encoded::default(), form(result_form))
            .await
    }

    async fn invoke(
        &self,
        access: CallAccess,
        path: Vec<String>,
        args: Encoded,
        result_form: Form,
    ) -> CallAnswer {
        if self.address.owner.is_revoked() {
            return Err(Refusal::SessionClosed);
        }
        let Target::Entrypoint { worker, export } = &self.address.target;
        let call = Box::new(Call {
            invocation: 0,
            entrypoint: Arc::clone(export),
            path,
            access,
            args: bytes(args),
            props: Arc::clone(&self.props),
            result_form,
            limits: self.limits,
        });
        let service = &self.worker.0.session.0.service;
        let arrival = service.arrive();
        // Others that came in the same batch arrive before it is asked whether this one is alone.
        tokio::task::yield_now().await;
        let in_flight: InFlight = service.call(arrival, *worker, call);
        in_flight.answer().await
    }
}

fn bytes(encoded: Encoded) -> Bytes {
    Bytes {
        form: form(encoded.form),
        bytes: encoded.bytes,
    }
}
