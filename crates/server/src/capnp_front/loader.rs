//! `Loader` and `Worker`.

use super::{convert, guarded, refused, result_target, target::EntrypointServer};
use crate::{
    service::Service,
    session::{LoadError, Session, Worker},
};
use capnp::Error;
use coracle_loader::WorkerCode;
use coracle_schema::{self as schema, loader, worker};
use std::{rc::Rc, sync::Arc};

/// Code above this size is checked off the RPC thread.
const CHECK_INLINE_BYTES_MAX: u64 = 128 * 1024;

pub(super) struct LoaderServer {
    service: Arc<Service>,
    session: Session,
}

impl LoaderServer {
    pub(super) fn new(service: &Arc<Service>, session: &Session) -> Self {
        Self {
            service: Arc::clone(service),
            session: session.clone(),
        }
    }

    async fn load_code(&self, code: WorkerCode) -> Result<Worker, LoadError> {
        let size: u64 = code.modules.iter().map(|module| module.body.bytes()).sum();
        if size + code.env.bytes.len() as u64 <= CHECK_INLINE_BYTES_MAX {
            return self.session.load(&code);
        }
        let session = self.session.clone();
        let checked = tokio::task::spawn_blocking(move || session.load(&code)).await;
        match checked {
            Ok(outcome) => outcome,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

impl loader::Server for LoaderServer {
    async fn load(
        self: Rc<Self>,
        params: loader::LoadParams,
        mut results: loader::LoadResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let code = convert::worker_code(params.get()?.get_code()?)?;
            drop(params);
            let worker = this.load_code(code).await.map_err(|error| match error {
                LoadError::Refused(refusal) => refused(refusal),
                LoadError::Code(problems) => {
                    Error::failed(format!("the worker can't be loaded:\n{problems}"))
                }
            })?;
            let client: worker::Client = capnp_rpc::new_client(WorkerServer {
                service: Arc::clone(&this.service),
                worker,
            });
            results.get().set_worker(client);
            Ok(())
        })
        .await
    }
}

struct WorkerServer {
    service: Arc<Service>,
    worker: Worker,
}

impl worker::Server for WorkerServer {
    async fn get_entrypoint(
        self: Rc<Self>,
        params: worker::GetEntrypointParams,
        mut results: worker::GetEntrypointResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let params = params.get()?;
            let name = convert::text(params.get_name()?)?;
            let props = convert::value(params.get_props()?)?;
            let limits = convert::limits(params.get_limits()?);
            let entrypoint = this.worker.entrypoint(&name, props, &limits);
            let client: schema::target::Client = capnp_rpc::new_client(EntrypointServer {
                service: Arc::clone(&this.service),
                entrypoint,
            });
            results.get().set_entrypoint(client);
            Ok(())
        })
        .await
    }

    async fn ready(
        self: Rc<Self>,
        _params: worker::ReadyParams,
        mut results: worker::ReadyResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let report = this.worker.ready().await.map_err(refused)?;
            convert::write_report(&report, results.get());
            results
                .get()
                .set_pipeline(result_target::client(&this.service, *report));
            Ok(())
        })
        .await
    }
}
