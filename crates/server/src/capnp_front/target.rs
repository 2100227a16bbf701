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

    async fn answer(&self, access: CallAccess, asked: Asked) -> Result<Answered, Error> {
        call_for(self.owner.as_ref(), &self.address, access, asked).await
    }
}

/// What a client asks of a target. It counts in what the connection holds as long as the call runs.
pub(super) struct Asked {
    pub(super) path: Vec<String>,
    args: Payload,
    pub(super) form: Form,
    _held: Held,
}

impl Asked {
    pub(super) fn to_call(
        connected: &Rc<Connected>,
        params: &target::CallParams,
    ) -> Result<Self, Error> {
        let params = params.get()?;
        let args = convert::payload(connected, params.get_args()?)?;
        let (path, form) = (params.get_path()?, params.get_result_form()?);
        Self::new(connected, convert::path(path)?, args, convert::form(form))
    }

    pub(super) fn to_get(
        connected: &Rc<Connected>,
        params: &target::GetParams,
    ) -> Result<Self, Error> {
        let params = params.get()?;
        let (path, form) = (params.get_path()?, params.get_result_form()?);
        let nothing = Payload::UNDEFINED;
        Self::new(
            connected,
            convert::path(path)?,
            nothing,
            convert::form(form),
        )
    }

    fn new(
        connected: &Rc<Connected>,
        path: Vec<String>,
        args: Payload,
        form: Form,
    ) -> Result<Self, Error> {
        let bytes = args.data_bytes().saturating_add(convert::path_bytes(&path));
        Ok(Self {
            path,
            args,
            form,
            _held: connected.hold(bytes)?,
        })
    }
}

/// Calls something for a login. What is not the login's own ends with it all the same.
pub(super) async fn call_for(
    owner: Option<&Owner>,
    address: &Address,
    access: CallAccess,
    asked: Asked,
) -> Result<Answered, Error> {
    let Asked {
        path,
        args,
        form,
        _held,
    } = asked;
    let call = address.call(access, path, args, form);
    let Some(owner) = owner.filter(|owner| address.is_foreign_to(owner)) else {
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
        let metrics = self.connected.service.metrics();
        pipelined(metrics, results, async move |results| {
            let asked = Asked::to_call(&this.connected, &params)?;
            // The message is not kept while the call runs, but its arguments are.
            drop(params);
            let answered = this.answer(CallAccess::Call, asked).await?;
            result_target::answer_report(&this.connected, answered, results.get())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        let metrics = self.connected.service.metrics();
        pipelined(metrics, results, async move |results| {
            let asked = Asked::to_get(&this.connected, &params)?;
            drop(params);
            let answered = this.answer(CallAccess::Get, asked).await?;
            result_target::answer_report(&this.connected, answered, results.get())
        })
        .await
    }
}
