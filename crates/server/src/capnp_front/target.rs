//! `Target` on an entrypoint.

use super::{Connected, convert, guarded, refused, result_target};
use crate::session::Entrypoint;
use capnp::Error;
use coracle_schema::target;
use coracle_transport::Held;
use std::rc::Rc;

pub(super) struct EntrypointServer {
    connected: Rc<Connected>,
    entrypoint: Entrypoint,
    _held: Held,
}

impl EntrypointServer {
    pub(super) fn new(connected: &Rc<Connected>, entrypoint: Entrypoint, held: Held) -> Self {
        Self {
            connected: Rc::clone(connected),
            entrypoint,
            _held: held,
        }
    }
}

impl target::Server for EntrypointServer {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        mut results: target::CallResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            let (path, args, form) = {
                let params = params.get()?;
                (
                    convert::path(params.get_path()?)?,
                    convert::value(params.get_args()?)?,
                    convert::form(params.get_result_form()?),
                )
            };
            // The message is not kept while the call runs, but its arguments are.
            drop(params);
            let held_bytes = args.bytes.len() as u64 + convert::path_bytes(&path);
            let _held = this.connected.hold(held_bytes)?;
            let report = this
                .entrypoint
                .call(path, args, form)
                .await
                .map_err(refused)?;
            result_target::answer_report(&this.connected, *report, results.get())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        mut results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        guarded(self.connected.service.metrics(), async move {
            let (path, form) = {
                let params = params.get()?;
                (
                    convert::path(params.get_path()?)?,
                    convert::form(params.get_result_form()?),
                )
            };
            drop(params);
            let _held = this.connected.hold(convert::path_bytes(&path))?;
            let report = this.entrypoint.get(path, form).await.map_err(refused)?;
            result_target::answer_report(&this.connected, *report, results.get())
        })
        .await
    }
}
