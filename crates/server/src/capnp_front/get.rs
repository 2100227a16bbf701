//! `Loader.get`: a worker by an id, whose code comes from a source that is asked only where there is none.

use super::{Connected, convert, loader::LoaderServer};
use crate::{
    loading::blocking,
    router::Address,
    session::{Grants, LoadError, Session, Worker},
    shared::{GetError, ID_BYTES_MAX, Key, SOURCE_TIME_MAX, Shared, digest},
};
use capnp::{Error, ErrorKind};
use coracle_loader::{Encoded, Form, LimitsRequest, Outbound, PolicyAsked, WorkerCode};
use coracle_schema::{code_source, loader};
use coracle_transport::Held;
use std::{rc::Rc, sync::Arc};

/// What a worker is given by whoever gets it.
struct Given {
    env: Encoded,
    outbound: Outbound,
    limits: LimitsRequest,
    grants: Grants,
    /// All of it, until the worker is there: a source may take its time.
    held: Held,
}

impl Given {
    fn key(&self, id: String, fingerprint: Vec<u8>) -> Key {
        let capabilities = self.grants.env.iter().chain(&self.grants.outbound);
        Key {
            id,
            fingerprint,
            given: digest(&self.env, &self.outbound, &self.limits),
            capabilities: capabilities.map(Address::identity).collect(),
        }
    }
}

pub(super) async fn get(
    server: &Rc<LoaderServer>,
    params: loader::GetParams,
) -> Result<Worker, Error> {
    let connected = server.connected();
    let (key, given, source) = {
        let params = params.get()?;
        let id = bounded("id", params.get_id()?.as_bytes())?;
        let id = String::from_utf8(id).map_err(|_| Error::failed("id: it is not UTF-8".into()))?;
        let fingerprint = bounded("fingerprint", params.get_fingerprint()?)?;
        let given = given(connected, params)?;
        let source = params
            .get_source()
            .map_err(|_| Error::failed("source: it has no capability".into()))?;
        (given.key(id, fingerprint), given, source)
    };
    drop(params);
    let session = server.session();
    if session.is_closed() {
        return Err(super::refused(coracle_loader::Refusal::SessionClosed));
    }
    // What holds no capability of anybody's may be shared by all logins of the tenant.
    let (table, owner): (Arc<Shared>, Session) = match key.capabilities.is_empty() {
        true => session.shared_by_tenant(),
        false => (Arc::clone(server.shared()), session.clone()),
    };
    let service = Arc::clone(&connected.service);
    let is_of_use = |worker: &Worker| service.is_of_use(worker);
    let provide = || provide(connected, &table, &owner, key.clone(), given, source);
    let got = table.get(key.clone(), is_of_use, provide).await;
    got.map_err(|error| match error {
        GetError::Load(error) => told(&error),
        GetError::Source(message) | GetError::SourceGone(message) => Error::failed(message),
    })
}

/// What a client is told of a worker that could not be loaded.
pub(super) fn told(error: &LoadError) -> Error {
    match error {
        LoadError::Refused(refusal) => super::refused(*refusal),
        LoadError::Code(problems) => {
            Error::failed(format!("the worker can't be loaded:\n{problems}"))
        }
        LoadError::Full(full) => Error::overloaded(full.to_string()),
        LoadError::Outbound(_) => Error::failed(error.to_string()),
    }
}

fn bounded(what: &str, bytes: &[u8]) -> Result<Vec<u8>, Error> {
    if bytes.len() > ID_BYTES_MAX {
        return Err(Error::failed(format!(
            "{what}: it has {} bytes, {ID_BYTES_MAX} are allowed",
            bytes.len()
        )));
    }
    Ok(bytes.to_vec())
}

fn given(
    connected: &Rc<Connected>,
    params: loader::get_params::Reader<'_>,
) -> Result<Given, Error> {
    let (outbound, gateway) = convert::outbound_of(connected, params.get_outbound()?)?;
    let (env, capabilities) = convert::env_of(connected, params.get_env()?)?;
    let grants = Grants {
        env: capabilities,
        outbound: gateway,
        ..Grants::default()
    };
    let rules = match &outbound {
        Outbound::Policy(PolicyAsked::Given(rules)) => rules.len(),
        _ => 0,
    };
    let bytes = (env.bytes.len() + rules) as u64;
    Ok(Given {
        held: connected.hold(bytes.saturating_add(grants.data_bytes()))?,
        env,
        outbound,
        limits: convert::limits(params.get_limits()?),
        grants,
    })
}

/// Asks a source, and loads what it answers.
async fn provide(
    connected: &Rc<Connected>,
    table: &Arc<Shared>,
    owner: &Session,
    key: Key,
    given: Given,
    source: code_source::Client,
) -> Result<Worker, GetError> {
    let message = |what: String| format!("the source of the code {what}");
    let failed = |what: String| GetError::Source(message(what));
    let asked = tokio::time::timeout(SOURCE_TIME_MAX, source.code_request().send().promise).await;
    let response = match asked {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            let why = error.extra.trim_start_matches("remote exception: ");
            return Err(match error.kind {
                ErrorKind::Disconnected => GetError::SourceGone(message(format!("is gone: {why}"))),
                _ => failed(format!("failed: {why}")),
            });
        }
        Err(_) => {
            let seconds = SOURCE_TIME_MAX.as_secs();
            return Err(failed(format!("did not answer within {seconds} s")));
        }
    };
    let read = || -> Result<(WorkerCode, Grants), Error> {
        convert::worker_code(connected, response.get()?.get_code()?)
    };
    let (mut code, grants) =
        read().map_err(|error| failed(format!("is refused: {}", error.extra)))?;
    let is_bare = code.env.form == Form::Undefined
        && grants.is_empty()
        && code.outbound == Outbound::default()
        && code.limits == LimitsRequest::default();
    if !is_bare {
        let what = "answered with env, outbound, limits or tails, which it may not";
        return Err(failed(what.into()));
    }
    drop(response);
    (code.env, code.outbound, code.limits) = (given.env, given.outbound, given.limits);
    let (owner, table, grants) = (owner.clone(), Arc::downgrade(table), given.grants);
    let load = move || owner.load_shared(&code, grants, &table, key);
    let loaded = blocking(load).await;
    drop(given.held);
    loaded.map_err(|error| GetError::Load(Arc::new(error)))
}
