//! What users hold: the connection, workers, entrypoints.

use crate::{
    Address, Error, Value,
    answer::Answer,
    code::{EntrypointOptions, WorkerCode},
    connection::{ConnectOptions, Connection, Shared},
    convert,
};
use capnp::capability::Promise;
use coracle_schema::{call_results, target};
use std::sync::Arc;
use tokio::sync::oneshot;

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
            convert::write_code(&code, request.get().init_code());
            let worker = request.send().pipeline.get_worker();
            held.workers.insert(id, worker);
        });
        Worker(Arc::new(WorkerHandle {
            connection: Arc::clone(&self.0),
            id,
        }))
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
            let Some(worker) = held.workers.get(&worker) else {
                return;
            };
            let mut request = worker.get_entrypoint_request();
            let mut params = request.get();
            params.set_name(&name[..]);
            convert::write_value(&options.props, params.reborrow().init_props());
            convert::write_limits(&options.limits, params.init_limits());
            let entrypoint = request.send().pipeline.get_entrypoint();
            held.entrypoints.insert(id, entrypoint);
        });
        Entrypoint(Arc::new(EntrypointHandle {
            worker: self.clone(),
            id,
        }))
    }

    /// Evaluates the modules, if that has not happened yet.
    ///
    /// # Errors
    /// As for calls.
    pub async fn ready(&self) -> Result<Answer, Error> {
        let id = self.0.id;
        ask(&self.0.connection, move |held| {
            let worker = held.borrow().workers.get(&id).cloned();
            worker
                .map(|worker| worker.ready_request().send().promise)
                .map(reader_of_ready)
        })
        .await
    }
}

/// An entrypoint: what is called.
#[derive(Clone)]
pub struct Entrypoint(Arc<EntrypointHandle>);

struct EntrypointHandle {
    worker: Worker,
    id: u64,
}

impl Drop for EntrypointHandle {
    fn drop(&mut self) {
        let id = self.id;
        self.worker
            .0
            .connection
            .run(move |held| drop(held.borrow_mut().entrypoints.remove(&id)));
    }
}

impl Entrypoint {
    /// Calls a method; `a.b` calls method `b` of property `a`. Dropping the future cancels the call.
    ///
    /// # Errors
    /// What keeps the server from taking the call on. What the worker throws and what a limit stops are answers.
    pub async fn call(&self, method: &str, args: Vec<Value>) -> Result<Answer, Error> {
        let (id, path) = (self.0.id, split(method));
        let args = Value::Array(args);
        ask(&self.0.worker.0.connection, move |held| {
            let entrypoint = held.borrow().entrypoints.get(&id).cloned();
            entrypoint.map(|entrypoint| {
                let mut request = entrypoint.call_request();
                write_path(&path, |length| request.get().init_path(length));
                convert::write_value(&args, request.get().init_args());
                reader_of_call(request.send().promise)
            })
        })
        .await
    }

    /// Reads a property; `a.b` reads `b` of `a`.
    ///
    /// # Errors
    /// As for calls.
    pub async fn get(&self, property: &str) -> Result<Answer, Error> {
        let (id, path) = (self.0.id, split(property));
        ask(&self.0.worker.0.connection, move |held| {
            let entrypoint = held.borrow().entrypoints.get(&id).cloned();
            entrypoint.map(|entrypoint| {
                let mut request = entrypoint.get_request();
                write_path(&path, |length| request.get().init_path(length));
                reader_of_get(request.send().promise)
            })
        })
        .await
    }
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
        $(fn $name(promise: Promise<capnp::capability::Response<$results>, capnp::Error>) -> Results {
            Promise::from_future(async move {
                let response = promise.await?;
                let results: call_results::Reader<'_> = response.get()?;
                Ok(convert::answer(results))
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
    connection: &Connection,
    request: impl FnOnce(&Shared) -> Option<Results> + Send + 'static,
) -> Result<Answer, Error> {
    let (mut sender, receiver) = oneshot::channel();
    let sent = connection.run(move |held| {
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
    });
    if !sent {
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
