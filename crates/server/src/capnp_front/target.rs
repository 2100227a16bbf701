//! `Target` on an entrypoint.

use super::{convert, guarded, refused, result_target};
use crate::{service::Service, session::Entrypoint};
use capnp::Error;
use coracle_schema::target;
use std::{rc::Rc, sync::Arc};

pub(super) struct EntrypointServer {
    pub(super) service: Arc<Service>,
    pub(super) entrypoint: Entrypoint,
}

impl target::Server for EntrypointServer {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let (path, args, form) = {
                let params = params.get()?;
                (
                    convert::path(params.get_path()?)?,
                    convert::value(params.get_args()?)?,
                    convert::form(params.get_result_form()?),
                )
            };
            // The message is not kept while the call runs.
            drop(params);
            let report = this
                .entrypoint
                .call(path, args, form)
                .await
                .map_err(refused)?;
            convert::write_report(&report, results.get());
            results
                .get()
                .set_pipeline(result_target::client(&this.service, *report));
            Ok(())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.service.metrics(), async move {
            let (path, form) = {
                let params = params.get()?;
                (
                    convert::path(params.get_path()?)?,
                    convert::form(params.get_result_form()?),
                )
            };
            let report = this.entrypoint.get(path, form).await.map_err(refused)?;
            convert::write_report(&report, results.get());
            results
                .get()
                .set_pipeline(result_target::client(&this.service, *report));
            Ok(())
        })
        .await
    }
}
