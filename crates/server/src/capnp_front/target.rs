//! `Target` on anything that has an address.

use super::{Connected, convert, guarded, refused, result_target};
use crate::router::{Address, Payload};
use capnp::Error;
use coracle_isolate::CallAccess;
use coracle_schema::target;
use coracle_transport::Held;
use std::rc::Rc;

pub(super) struct TargetServer {
    connected: Rc<Connected>,
    pub(super) address: Address,
    _held: Held,
}

impl TargetServer {
    /// What the client is given for an address: its own object, if it is one of this client's.
    pub(super) fn client(
        connected: &Rc<Connected>,
        address: Address,
        data_bytes: u64,
    ) -> Result<target::Client, Error> {
        if let Address::Remote(remote) = &address
            && let Some(object) = connected.remotes.object_of(remote)
        {
            return Ok(object);
        }
        let held = connected.hold(data_bytes)?;
        let server = Self {
            connected: Rc::clone(connected),
            address,
            _held: held,
        };
        Ok(connected.offer(server))
    }
}

impl target::Server for TargetServer {
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
                    convert::payload(&this.connected, params.get_args()?)?,
                    convert::form(params.get_result_form()?),
                )
            };
            // The message is not kept while the call runs, but its arguments are.
            drop(params);
            let held_bytes = args.bytes.len() as u64 + convert::path_bytes(&path);
            let _held = this.connected.hold(held_bytes)?;
            let answered = this
                .address
                .call(CallAccess::Call, path, args, form)
                .await
                .map_err(refused)?;
            result_target::answer_report(&this.connected, answered, results.get())
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
            let answered = this
                .address
                .call(CallAccess::Get, path, Payload::UNDEFINED, form)
                .await
                .map_err(refused)?;
            result_target::answer_report(&this.connected, answered, results.get())
        })
        .await
    }
}
