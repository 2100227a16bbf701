//! What users hold: the connection, workers, entrypoints.

use crate::{
    Address, Error,
    answer::{Answer, Thrown},
    code::{EntrypointOptions, GetOptions, WorkerCode},
    code_source::{CodeSource, Served},
    connection::{ConnectOptions, Connection, Job, Shared},
    convert,
    http::{Gateway, Request, Response},
    streams::Source,
    stubs::{self, Kind, Payload, Stub, StubHandle, Target},
};
use capnp::capability::Promise;
use coracle_schema::{call_results, target};
use futures::Stream;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// A connection to a server, logged in: what Workers call the loader.
#[derive(Clone)]
pub struct Coracle(Arc<Connection>);

impl Coracle {
    /// Connects to `127.0.0.1:7070`, `[::1]:7070` or `unix:/path`, and logs in.
    ///
    /// # Errors
    /// [`Error::Address`], [`Error::Connect`], [`Error::Unauthenticated`].
    pub async fn connect(address: &str, options: ConnectOptions) -> Result<Self, Error> {
        let address: Address = address.parse()?;
        Ok(Self(Arc::new(
            Connection::connect(&address, options).await?,
        )))
    }

    /// Starts a server in this process and connects to it without a socket. It ends with the last handle.
    ///
    /// # Errors
    /// [`Error::Embedded`].
    #[cfg(feature = "embedded")]
    pub async fn embedded(config: coracle_server::ServerConfig) -> Result<Self, Error> {
        Ok(Self(Arc::new(Connection::embedded(config).await?)))
    }

    /// Loads a worker. Answers at once; what is wrong with the code shows at the first call, and in
    /// [`Worker::ready`]. Two loads never share state.
    #[must_use]
    pub fn load(&self, code: WorkerCode) -> Worker {
        let id = self.0.next_id();
        self.0.run(move |held| {
            let mut held = held.borrow_mut();
            let mut request = held.loader.load_request();
            convert::write_code(&held, &code, request.get().init_code());
            let worker = request.send().pipeline.get_worker();
            held.workers.insert(id, worker);
        });
        Worker(Arc::new(WorkerHandle {
            connection: Arc::clone(&self.0),
            id,
        }))
    }

    /// The worker that is there for this id and these options, with its module state; where there is none, `source` makes
    /// its code, once, whoever else asks meanwhile. Workers without functions or stubs in their options are shared by all
    /// clients of the tenant. Answers at once; what goes wrong shows at the first call. The code's own `env`, `outbound`
    /// and `limits` stay as they are: the options have them.
    ///
    /// ```no_run
    /// # use coracle_client::{Coracle, GetOptions, Worker, WorkerCode};
    /// # fn example(coracle: &Coracle) -> Worker {
    /// let options = GetOptions { fingerprint: b"v7".into(), ..GetOptions::default() };
    /// coracle.get("reports", options, || async {
    ///     Ok(WorkerCode::new("main.js").es_module("main.js", "export default {}"))
    /// })
    /// # }
    /// ```
    #[must_use]
    pub fn get<F, R>(&self, id: &str, options: GetOptions, source: F) -> Worker
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<WorkerCode, Thrown>> + Send + 'static,
    {
        let (number, id) = (self.0.next_id(), id.to_owned());
        let source: CodeSource = Arc::new(move || Box::pin(source()));
        self.0.run(move |shared| {
            let served = Served {
                source,
                held: Shared::clone(shared),
            };
            let mut held = shared.borrow_mut();
            let mut request = held.loader.get_request();
            let mut params = request.get();
            params.set_id(&id[..]);
            params.set_fingerprint(&options.fingerprint);
            let Payload { value, externals } = &options.env;
            convert::write_payload(&held, value, externals, params.reborrow().init_env());
            let outbound = params.reborrow().init_outbound();
            convert::write_outbound(&held, &options.outbound, outbound);
            convert::write_limits(&options.limits, params.reborrow().init_limits());
            params.set_source(capnp_rpc::new_client(served));
            let worker = request.send().pipeline.get_worker();
            held.workers.insert(number, worker);
        });
        Worker(Arc::new(WorkerHandle {
            connection: Arc::clone(&self.0),
            id: number,
        }))
    }

    /// What workers load workers with, for their `env`: there it is what Workers call a worker loader binding.
    ///
    /// ```no_run
    /// # use coracle_client::{Coracle, Payload, Value, WorkerCode};
    /// # fn example(coracle: &Coracle) -> WorkerCode {
    /// let mut env = Payload::default();
    /// let loader = env.external(&coracle.loader());
    /// env.value = Value::object([("LOADER", loader)]);
    /// WorkerCode::new("main.js").env(env)
    /// # }
    /// ```
    #[must_use]
    pub fn loader(&self) -> Stub {
        Stub(Arc::new(StubHandle {
            jobs: self.0.jobs(),
            id: self.0.next_id(),
            kind: Kind::Loader,
        }))
    }

    /// Puts an object of this process up for being called by workers: pass the stub in arguments, `env` or props.
    #[must_use]
    pub fn serve(&self, target: impl Target) -> Stub {
        self.0.serve(Arc::new(target), Kind::Target)
    }

    /// As [`Coracle::serve`], for a function: what workers call as `tool(…)`.
    ///
    /// ```no_run
    /// # use coracle_client::{args, Coracle, Payload, Thrown, Value};
    /// # fn example(coracle: &Coracle) {
    /// let double = coracle.function(|args: Payload| async move {
    ///     match args.value.index(0).and_then(Value::as_f64) {
    ///         Some(number) => Ok(Payload::from(Value::from(2.0 * number))),
    ///         None => Err(Thrown::new("TypeError", "double() takes a number")),
    ///     }
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn function<F, R>(&self, function: F) -> Stub
    where
        F: Fn(Payload) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Payload, Thrown>> + Send + 'static,
    {
        self.0.serve(stubs::function(function), Kind::Target)
    }

    /// A stream of bytes of this process, to be read by workers as a `ReadableStream`: it is polled when they read. After
    /// an error it is over.
    #[must_use]
    pub fn byte_stream(
        &self,
        stream: impl Stream<Item = Result<Vec<u8>, Thrown>> + Send + 'static,
    ) -> Stub {
        self.0.serve(Arc::new(Source::new(stream)), Kind::Source)
    }

    /// As [`Coracle::byte_stream`], for an object that is pulled and cancelled itself, as `schema/value.md` says.
    #[must_use]
    pub fn serve_source(&self, target: impl Target) -> Stub {
        self.0.serve(Arc::new(target), Kind::Source)
    }

    /// A stream of bytes that workers write to, as a `WritableStream`: an object with the methods `write`, `close` and
    /// `abort`, as `schema/value.md` says.
    #[must_use]
    pub fn serve_sink(&self, target: impl Target) -> Stub {
        self.0.serve(Arc::new(target), Kind::Sink)
    }

    /// As [`Coracle::serve`], for a function that answers requests: an
    /// [`Outbound::Gateway`](crate::Outbound::Gateway), or what workers call as `env.API.fetch(request)`.
    #[must_use]
    pub fn gateway<F, R>(&self, answer: F) -> Stub
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Response, Thrown>> + Send + 'static,
    {
        self.0.serve(Arc::new(Gateway(answer)), Kind::Target)
    }
}

/// A loaded worker.
#[derive(Clone)]
pub struct Worker(Arc<WorkerHandle>);

struct WorkerHandle {
    connection: Arc<Connection>,
    id: u64,
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        let id = self.id;
        self.connection
            .run(move |held| drop(held.borrow_mut().workers.remove(&id)));
    }
}

impl Worker {
    /// The entrypoint of that name: an export of the main module, "default" for its default export.
    #[must_use]
    pub fn entrypoint(&self, name: &str) -> Entrypoint {
        self.entrypoint_with(name, EntrypointOptions::default())
    }

    /// As [`Worker::entrypoint`], with props and lower limits.
    #[must_use]
    pub fn entrypoint_with(&self, name: &str, options: EntrypointOptions) -> Entrypoint {
        let (worker, id, name) = (self.0.id, self.0.connection.next_id(), name.to_owned());
        self.0.connection.run(move |held| {
            let mut held = held.borrow_mut();
            let Some(worker) = held.workers.get(&worker).cloned() else {
                return;
            };
            let mut request = worker.get_entrypoint_request();
            let mut params = request.get();
            params.set_name(&name[..]);
            let props = params.reborrow().init_props();
            convert::write_payload(&held, &options.props, &options.props_externals, props);
            convert::write_limits(&options.limits, params.init_limits());
            let entrypoint = request.send().pipeline.get_entrypoint();
            held.targets.insert(id, entrypoint);
        });
        let jobs = self.0.connection.jobs();
        Entrypoint {
            stub: Stub(Arc::new(StubHandle {
                jobs,
                id,
                kind: Kind::Target,
            })),
            _worker: self.clone(),
        }
    }

    /// Evaluates the modules, if that has not happened yet.
    ///
    /// # Errors
    /// As for calls.
    pub async fn ready(&self) -> Result<Answer, Error> {
        let id = self.0.id;
        ask(&self.0.connection.jobs(), move |held| {
            let worker = held.borrow().workers.get(&id).cloned();
            let promise = worker.map(|worker| worker.ready_request().send().promise);
            promise.map(|promise| reader_of_ready(Shared::clone(held), promise))
        })
        .await
    }
}

/// An entrypoint: what is called.
#[derive(Clone)]
pub struct Entrypoint {
    stub: Stub,
    _worker: Worker,
}

impl Entrypoint {
    /// Calls a method; `a.b` calls method `b` of property `a`. Dropping the future cancels the call. Arguments are a list of
    /// values (see [`args!`](crate::args)), or a [`Payload`] of an array where there are functions or stubs among them.
    ///
    /// # Errors
    /// What keeps the server from taking the call on. What the worker throws and what a limit stops are answers.
    pub async fn call(&self, method: &str, args: impl Into<Payload>) -> Result<Answer, Error> {
        self.stub.call(method, args).await
    }

    /// Reads a property; `a.b` reads `b` of `a`.
    ///
    /// # Errors
    /// As for calls.
    pub async fn get(&self, property: &str) -> Result<Answer, Error> {
        self.stub.get(property).await
    }

    /// The entrypoint as a stub, to be passed to another worker.
    #[must_use]
    pub fn stub(&self) -> &Stub {
        &self.stub
    }
}

pub(crate) async fn call(
    jobs: &mpsc::UnboundedSender<Job>,
    id: u64,
    method: &str,
    args: Payload,
) -> Result<Answer, Error> {
    let path = split(method);
    ask(jobs, move |held| {
        let target = held.borrow().targets.get(&id).cloned();
        target.map(|target| {
            let mut request = target.call_request();
            write_path(&path, |length| request.get().init_path(length));
            let (value, externals) = (&args.value, &args.externals);
            convert::write_payload(&held.borrow(), value, externals, request.get().init_args());
            reader_of_call(Shared::clone(held), request.send().promise)
        })
    })
    .await
}

pub(crate) async fn get(
    jobs: &mpsc::UnboundedSender<Job>,
    id: u64,
    property: &str,
) -> Result<Answer, Error> {
    let path = split(property);
    ask(jobs, move |held| {
        let target = held.borrow().targets.get(&id).cloned();
        target.map(|target| {
            let mut request = target.get_request();
            write_path(&path, |length| request.get().init_path(length));
            reader_of_get(Shared::clone(held), request.send().promise)
        })
    })
    .await
}

fn split(path: &str) -> Vec<String> {
    if path.is_empty() {
        Vec::new()
    } else {
        path.split('.').map(str::to_owned).collect()
    }
}

fn write_path<'a>(path: &[String], init: impl FnOnce(u32) -> capnp::text_list::Builder<'a>) {
    let mut list = init(path.len() as u32);
    for (index, step) in path.iter().enumerate() {
        list.set(index as u32, &step[..]);
    }
}

/// A promise of the results, whichever method they are of.
type Results = Promise<Result<Answer, Error>, capnp::Error>;

macro_rules! reader {
    ($($name:ident: $results:path,)*) => {
        $(fn $name(
            held: Shared,
            promise: Promise<capnp::capability::Response<$results>, capnp::Error>,
        ) -> Results {
            Promise::from_future(async move {
                let response = promise.await?;
                let results: call_results::Reader<'_> = response.get()?;
                Ok(convert::answer(&held, results))
            })
        })*
    };
}

reader! {
    reader_of_call: call_results::Owned,
    reader_of_get: call_results::Owned,
    reader_of_ready: call_results::Owned,
}

/// Sends a request on the connection's thread and waits for its answer. Dropping the future drops the request.
async fn ask(
    jobs: &mpsc::UnboundedSender<Job>,
    request: impl FnOnce(&Shared) -> Option<Results> + Send + 'static,
) -> Result<Answer, Error> {
    let (mut sender, receiver) = oneshot::channel();
    let sent = jobs.send(Box::new(move |held: &Shared| {
        let results = request(held);
        tokio::task::spawn_local(async move {
            let outcome = match results {
                None => Err(Error::Disconnected("the handle's connection is closed".into())),
                Some(results) => tokio::select! {
                    biased;
                    outcome = results => outcome.unwrap_or_else(|error| Err(Error::from_rpc(&error))),
                    // Nobody waits any more: dropping the promise tells the server.
                    () = sender.closed() => return,
                },
            };
            let _ = sender.send(outcome);
        });
    }));
    if sent.is_err() {
        return Err(Error::Disconnected("the connection is closed".into()));
    }
    receiver
        .await
        .unwrap_or_else(|_| Err(Error::Disconnected("the connection ended".into())))
}

#[allow(dead_code, reason = "a compile-time check")]
fn handles_can_be_sent(
    coracle: Coracle,
    worker: Worker,
    entrypoint: Entrypoint,
    target: target::Client,
) {
    fn check(_: impl Send + Sync) {}
    check(coracle);
    check(worker);
    check(entrypoint);
    let _ = target;
}
