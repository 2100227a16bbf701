//! What is passed by reference: stubs of what is at the server, and objects of this process that workers call.
//!
//! A value refers to its externals by index ([`Value::External`]); a [`Payload`] is both together.

use crate::{
    Error, Value,
    answer::{Answer, Thrown},
    connection::{Connection, Job, Shared},
    convert,
};
use coracle_schema::target;
use futures::future::BoxFuture;
use std::{rc::Rc, sync::Arc};
use tokio::sync::mpsc;

/// A value with what it refers to.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    /// The value; [`Value::External`] in it is an index into `externals`.
    pub value: Value,
    /// What is passed by reference.
    pub externals: Vec<Stub>,
}

impl Payload {
    /// Adds something that is passed by reference, and returns what stands for it in the value.
    pub fn external(&mut self, stub: &Stub) -> Value {
        self.externals.push(stub.clone());
        Value::External((self.externals.len() - 1) as u32)
    }

    /// The stub that a value in this payload stands for.
    #[must_use]
    pub fn stub(&self, value: &Value) -> Option<&Stub> {
        match value {
            Value::External(index) => self.externals.get(*index as usize),
            _ => None,
        }
    }
}

impl From<Value> for Payload {
    fn from(value: Value) -> Self {
        Self {
            value,
            externals: Vec::new(),
        }
    }
}

impl From<Vec<Value>> for Payload {
    fn from(args: Vec<Value>) -> Self {
        Value::Array(args).into()
    }
}

/// Something that can be called: a function or object of a worker's, or one of this process on its way to a worker.
/// Dropping the last clone releases it.
#[derive(Clone)]
pub struct Stub(pub(crate) Arc<StubHandle>);

pub(crate) struct StubHandle {
    pub(crate) jobs: mpsc::UnboundedSender<Job>,
    pub(crate) id: u64,
    pub(crate) kind: Kind,
}

/// What a stub is used as; all that can be done with any of them is to call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function, an object with methods, an entrypoint.
    Target,
    /// A byte stream to be read: a `ReadableStream` for the worker.
    Source,
    /// A byte stream to be written: a `WritableStream` for the worker.
    Sink,
    /// What loads workers ([`Coracle::loader`](crate::Coracle::loader)): it goes into `env`, and can't be called.
    Loader,
}

impl Drop for StubHandle {
    fn drop(&mut self) {
        let id = self.id;
        let forget: Job = Box::new(move |held: &Shared| {
            let released = held.borrow_mut().targets.remove(&id);
            drop(released);
        });
        let _ = self.jobs.send(forget);
    }
}

impl std::fmt::Debug for Stub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Stub({})", self.0.id)
    }
}

/// The same stub.
impl PartialEq for Stub {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Stub {
    /// What it is used as.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// Calls a method; empty calls the stub itself, `a.b` method `b` of property `a`. Dropping the future cancels the
    /// call.
    ///
    /// # Errors
    /// What keeps the server from taking the call on. What the callee throws and what a limit stops are answers.
    pub async fn call(&self, method: &str, args: impl Into<Payload>) -> Result<Answer, Error> {
        crate::handles::call(&self.0.jobs, self.0.id, method, args.into()).await
    }

    /// Reads a property; `a.b` reads `b` of `a`.
    ///
    /// # Errors
    /// As for calls.
    pub async fn get(&self, property: &str) -> Result<Answer, Error> {
        crate::handles::get(&self.0.jobs, self.0.id, property).await
    }
}

/// An object of this process that workers can call.
pub trait Target: Send + Sync + 'static {
    /// A call of the method at `path`; an empty path calls the object itself. Dropping the future means that nobody waits
    /// for it any more.
    fn call(&self, path: Vec<String>, args: Payload)
    -> BoxFuture<'static, Result<Payload, Thrown>>;
}

/// A function as a [`Target`]; it has no methods.
struct Function<F>(F);

impl<F, R> Target for Function<F>
where
    F: Fn(Payload) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Payload, Thrown>> + Send + 'static,
{
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        match path.first() {
            None => Box::pin((self.0)(args)),
            Some(name) => {
                let message = format!("The RPC receiver does not implement the method \"{name}\".");
                Box::pin(std::future::ready(Err(Thrown::new("TypeError", &message))))
            }
        }
    }
}

impl Connection {
    /// Puts an object up for being called through this connection.
    pub(crate) fn serve(self: &Arc<Self>, target: Arc<dyn Target>, kind: Kind) -> Stub {
        let id = self.next_id();
        self.run(move |held| {
            let client: target::Client = capnp_rpc::new_client(Served {
                target,
                held: Rc::clone(held),
            });
            held.borrow_mut().targets.insert(id, client);
        });
        Stub(Arc::new(StubHandle {
            jobs: self.jobs(),
            id,
            kind,
        }))
    }
}

/// See [`Coracle::function`](crate::Coracle::function).
pub(crate) fn function<F, R>(function: F) -> Arc<dyn Target>
where
    F: Fn(Payload) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Payload, Thrown>> + Send + 'static,
{
    Arc::new(Function(function))
}

/// The Cap'n Proto side of a [`Target`].
struct Served {
    target: Arc<dyn Target>,
    held: Shared,
}

impl target::Server for Served {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), capnp::Error> {
        let (path, args) = {
            let params = params.get()?;
            let path = convert::path(params.get_path()?)?;
            (path, convert::payload(&self.held, params.get_args()?)?)
        };
        drop(params);
        let outcome = self.target.call(path, args).await;
        convert::write_outcome(&self.held, outcome, results.get())
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), capnp::Error> {
        let path = convert::path(params.get()?.get_path()?)?;
        let name = path.last().cloned().unwrap_or_default();
        let message = format!("\"{name}\" can't be read: this object has methods only.");
        let thrown = Thrown::new("TypeError", &message);
        convert::write_outcome(&self.held, Err(thrown), results.get())
    }
}
