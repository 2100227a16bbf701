//! `Target` on anything that has an address.

use super::{Connected, convert, pipelined::pipelined, refused, result_target};
use crate::{
    outcome::Answered,
    router::{Address, Owner, Payload},
};
use capnp::Error;
use coracle_isolate::{CallAccess, Form};
use coracle_loader::Refusal;
use coracle_schema::target;
use coracle_transport::Held;
use std::rc::Rc;

pub(super) struct TargetServer {
    connected: Rc<Connected>,
    pub(super) address: Address,
    /// The login that it was given to.
    owner: Option<Owner>,
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
            && is_known(&object)
        {
            return Ok(object);
        }
        let held = connected.hold(data_bytes)?;
        let server = Self {
            connected: Rc::clone(connected),
            address,
            owner: connected.owner.borrow().clone(),
            _held: held,
        };
        Ok(connected.offer(server))
    }

    /// Calls what it is of. What is not the login's own ends with it all the same.
    async fn answer(
        &self,
        access: CallAccess,
        path: Vec<String>,
        args: Payload,
        form: Form,
    ) -> Result<Answered, Error> {
        let call = self.address.call(access, path, args, form);
        let foreign = self
            .owner
            .as_ref()
            .filter(|owner| self.address.is_foreign_to(owner));
        let Some(owner) = foreign else {
            return call.await.map_err(refused);
        };
        if owner.is_revoked() {
            return Err(refused(Refusal::SessionClosed));
        }
        tokio::select! {
            biased;
            answered = call => answered.map_err(refused),
            () = owner.ended() => Ok(Answered::cancelled()),
        }
    }
}

/// Whether what a client has sent is more than a promise. A promise that was sent back could be what another waits for, and
/// so on: the RPC layer asks each for the next on the same stack.
fn is_known(object: &target::Client) -> bool {
    let hook = super::resolved(object.client.hook.add_ref());
    hook.when_more_resolved().is_none()
}

impl target::Server for TargetServer {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        results: target::CallResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
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
                let held_bytes = args.data_bytes().saturating_add(convert::path_bytes(&path));
                let _held = this.connected.hold(held_bytes)?;
                let answered = this.answer(CallAccess::Call, path, args, form).await?;
                result_target::answer_report(&this.connected, answered, results.get())
            },
        )
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        pipelined(
            self.connected.service.metrics(),
            results,
            async move |results| {
                let (path, form) = {
                    let params = params.get()?;
                    (
                        convert::path(params.get_path()?)?,
                        convert::form(params.get_result_form()?),
                    )
                };
                drop(params);
                let _held = this.connected.hold(convert::path_bytes(&path))?;
                let nothing = Payload::UNDEFINED;
                let answered = this.answer(CallAccess::Get, path, nothing, form).await?;
                result_target::answer_report(&this.connected, answered, results.get())
            },
        )
        .await
    }
}
