//! `Loader` and `Worker`.

use super::{
    Connected, convert, get, pipelined::pipelined, refused, result_target, target::TargetServer,
};
use crate::{
    loading::{code_bytes, load},
    router::Address,
    session::{Entrypoint, Session, Worker},
    shared::Shared,
};
use capnp::Error;
use coracle_loader::Refusal;
use coracle_schema::{loader, worker};
use coracle_transport::Held;
use std::{rc::Rc, sync::Arc};

pub(super) struct LoaderServer {
    connected: Rc<Connected>,
    session: Session,
    /// Workers that were got by an id and are given capabilities.
    shared: Arc<Shared>,
    _held: Held,
}

impl LoaderServer {
    pub(super) fn new(connected: &Rc<Connected>, session: &Session, held: Held) -> Self {
        Self {
            connected: Rc::clone(connected),
            session: session.clone(),
            shared: Arc::default(),
            _held: held,
        }
    }

    pub(super) fn connected(&self) -> &Rc<Connected> {
        &self.connected
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn is_open(&self) -> bool {
        !self.session.is_closed()
    }

    fn offer(&self, worker: Worker, held: Held) -> worker::Client {
        capnp_rpc::new_client(WorkerServer {
            connected: Rc::clone(&self.connected),
            session: self.session.clone(),
            worker,
            _held: held,
        })
    }
}

impl loader::Server for LoaderServer {
    async fn load(
        self: Rc<Self>,
        params: loader::LoadParams,
        results: loader::LoadResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                let (code, grants) =
                    convert::worker_code(&this.connected, params.get()?.get_code()?)?;
                drop(params);
                let held_bytes = code_bytes(&code).saturating_add(grants.data_bytes());
                let held = this.connected.hold(held_bytes)?;
                let worker = load(&this.session, code, grants)
                    .await
                    .map_err(|error| get::told(&error))?;
                results.get().set_worker(this.offer(worker, held));
                Ok(())
            },
        )
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: loader::GetParams,
        results: loader::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                let held = this.connected.hold(0)?;
                let worker = get::get(&this, params).await?;
                results.get().set_worker(this.offer(worker, held));
                Ok(())
            },
        )
        .await
    }
}

struct WorkerServer {
    connected: Rc<Connected>,
    /// The login that it was given to; the worker may be another's.
    session: Session,
    worker: Worker,
    /// Its code, which is kept as long as it may be called.
    _held: Held,
}

impl WorkerServer {
    fn check_open(&self) -> Result<(), Error> {
        match self.session.is_closed() {
            true => Err(refused(Refusal::SessionClosed)),
            false => Ok(()),
        }
    }
}

impl worker::Server for WorkerServer {
    async fn get_entrypoint(
        self: Rc<Self>,
        params: worker::GetEntrypointParams,
        results: worker::GetEntrypointResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                this.check_open()?;
                let params = params.get()?;
                let name = convert::entrypoint_name(params.get_name()?)?;
                let props = convert::payload(&this.connected, params.get_props()?)?;
                let limits = convert::limits(params.get_limits()?);
                Entrypoint::check_props(&props.externals)
                    .map_err(|error| Error::failed(error.to_string()))?;
                let entrypoint = this.worker.entrypoint(&name, props, &limits);
                let data_bytes = entrypoint.data_bytes();
                let address = Address::Entrypoint(entrypoint);
                let client = TargetServer::client(&this.connected, address, data_bytes)?;
                results.get().set_entrypoint(client);
                Ok(())
            },
        )
        .await
    }

    async fn ready(
        self: Rc<Self>,
        _params: worker::ReadyParams,
        results: worker::ReadyResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                this.check_open()?;
                this.connected.check()?;
                let answered = this.worker.ready().await.map_err(refused)?;
                result_target::answer_report(&this.connected, answered, results.get())
            },
        )
        .await
    }
}
