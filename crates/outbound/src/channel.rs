//! The way out of one worker: who is asked, in which order, before anything is sent.

use crate::{
    Applied, BodyDigest, Budgets, Credential, Decider, Destination, Effect, Error, Meter, Moment,
    Outgoing, Policies, REDACTED_BYTES_MIN, Redactor, Secret,
    audit::Audit,
    body::Body,
    clients::{Clients, Tls},
    config::RequestLimits,
    dial::{Dialer, Reach, Share},
    outbound::Shared,
    places::Limit,
    trail::Trail,
};
use futures::future::BoxFuture;
use http::{HeaderMap, HeaderName, Method};
use sha2::{Digest as _, Sha256};
use std::{sync::Arc, time::Instant};
use tokio::sync::OwnedSemaphorePermit;

/// Decides about requests where a rule says "ask".
pub trait Ask: Send + Sync {
    /// Whether a request may leave; a no may have a reason.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<(), String>>;
}

/// A request as it is shown to whoever decides: everything but its body, and before a credential is put in.
#[derive(Clone, Debug)]
pub struct Question {
    /// Empty for a connection of bytes.
    pub method: String,
    /// With its query; `tcp://host:port` for a connection of bytes.
    pub url: String,
    /// Names and values in order.
    pub headers: Vec<(String, String)>,
}

/// What all workers of a tenant share.
pub(crate) struct Tenant {
    pub(crate) clients: Arc<Clients>,
    pub(crate) share: Arc<Share>,
    pub(crate) sockets: Limit,
    pub(crate) budgets: Arc<Budgets>,
}

/// The way out of one worker. See [`Outbound::channel`](crate::Outbound::channel).
pub struct Channel {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tenant: Arc<Tenant>,
    pub(crate) policies: Policies,
    pub(crate) ask: Option<Arc<dyn Ask>>,
    pub(crate) session: u64,
}

impl Channel {
    /// As it is for that session: the budgets of a policy that a client gave count for its session, and a session has its
    /// share of what budgets can count. Without it, it is 0.
    #[must_use]
    pub fn of_session(self, session: u64) -> Self {
        Self { session, ..self }
    }

    pub(crate) fn audit(&self) -> &Arc<dyn Audit> {
        &self.shared.audit
    }

    pub(crate) fn limits(&self) -> &RequestLimits {
        &self.shared.limits
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.tenant.clients
    }

    pub(crate) fn share(&self) -> &Share {
        &self.tenant.share
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.shared.dialer
    }

    pub(crate) fn tls(&self) -> &Tls {
        &self.shared.tls
    }

    /// A place for a connection of bytes.
    pub(crate) fn take_socket(&self) -> Result<OwnedSemaphorePermit, Error> {
        self.tenant.sockets.try_take()
    }

    /// Whether a request may leave: by the rules, by whoever is asked, and by the budgets.
    pub(crate) async fn judge(
        &self,
        destination: &Destination,
        asked: Option<(&Method, &HeaderMap)>,
        trail: &Trail,
    ) -> Result<Permit, Error> {
        let method = asked.map(|(method, _)| method.as_str());
        let decision = self.policies.decide(destination, method);
        let rule = decision.decider().map(Decider::label).unwrap_or_default();
        trail.note(|record| record.rule = Arc::clone(&rule));
        match decision.effect() {
            Effect::Deny => return Err(Error::Denied(decision.explain())),
            Effect::Ask => self.ask(destination, asked, &rule).await?,
            Effect::Allow => {}
        }
        let now = Instant::now();
        let meter = self.tenant.budgets.open(&decision, self.session, now)?;
        meter.take_request(now)?;
        let credentials = decision.credentials();
        if !credentials.is_empty() {
            trail.note(|record| record.credential = credentials.join(", "));
        }
        let credentials = credentials.into_iter();
        let credentials = credentials.map(|name| self.shared.credential(name));
        let reach = match decision.is_private_named() {
            true => Reach::Private,
            false => Reach::Public,
        };
        Ok(Permit {
            reach,
            meter,
            credentials: credentials.collect::<Result<_, _>>()?,
            applied: Vec::new(),
            sent_before: 0,
        })
    }

    async fn ask(
        &self,
        destination: &Destination,
        asked: Option<(&Method, &HeaderMap)>,
        rule: &str,
    ) -> Result<(), Error> {
        let no = |reason: String| Error::AnswerNo {
            rule: rule.into(),
            destination: destination.to_string(),
            reason,
        };
        let Some(ask) = &self.ask else {
            return Err(no(": nobody is there to be asked".into()));
        };
        let question = Question {
            method: asked
                .map(|(method, _)| method.to_string())
                .unwrap_or_default(),
            url: match destination.url() {
                Some(url) => url.as_str().into(),
                None => destination.origin(),
            },
            headers: asked
                .map(|(_, headers)| crate::headers::of_response(headers))
                .unwrap_or_default(),
        };
        ask.ask(question)
            .await
            .map_err(|reason| match reason.is_empty() {
                true => no(reason),
                false => no(format!(": {reason}")),
            })
    }
}

/// What a request may use that may leave.
pub(crate) struct Permit {
    reach: Reach,
    meter: Meter,
    credentials: Vec<Arc<Credential>>,
    /// What was put in, with the credential that it is of.
    applied: Vec<(Arc<Credential>, Applied)>,
    /// Bytes that went out with an earlier try.
    sent_before: u64,
}

impl Permit {
    pub(crate) fn reach(&self) -> Reach {
        self.reach
    }

    pub(crate) fn meter(&self) -> Meter {
        self.meter.clone()
    }

    /// Takes a request from the budgets once more. What the first try has sent is sent, whatever becomes of the second.
    pub(crate) fn try_again(&mut self, trail: &Trail) -> Result<(), Error> {
        self.meter.take_request(Instant::now())?;
        self.sent_before = trail.sent();
        Ok(())
    }

    /// Gives back what was taken from budgets for a try that failed before there was a connection for it.
    pub(crate) fn settle<T>(&self, outcome: Result<T, Error>, trail: &Trail) -> Result<T, Error> {
        if outcome.as_ref().is_err_and(Error::is_unsent) {
            let unsent = trail.unsend(self.sent_before);
            self.meter.give_back(unsent, Instant::now());
        }
        outcome
    }

    /// What credentials that sign need to know of a body.
    pub(crate) fn digest(&self, body: &Body) -> BodyDigest {
        match body {
            Body::Empty => BodyDigest::Empty,
            Body::Bytes(bytes) if self.credentials.iter().any(|one| one.is_of_body()) => {
                BodyDigest::Sha256(Sha256::digest(bytes).into())
            }
            Body::Bytes(_) | Body::Stream(_) => BodyDigest::Unknown,
        }
    }

    /// Puts the credentials in; answers where the request goes then.
    pub(crate) async fn put_in(
        &mut self,
        method: &Method,
        destination: &Destination,
        headers: &mut HeaderMap,
        body: BodyDigest,
    ) -> Result<Destination, Error> {
        self.applied.clear();
        let mut destination = destination.clone();
        for credential in &self.credentials {
            let outgoing = Outgoing {
                method,
                destination: &destination,
                headers,
                body,
            };
            let applied = credential.apply(outgoing, Moment::now()).await;
            let applied = applied.map_err(|error| {
                if let Some(cause) = error.secret() {
                    tracing::error!(credential = credential.name(), %cause, "a secret can't be had");
                }
                Error::Credential(error.to_string())
            })?;
            destination = applied.destination.clone();
            self.applied.push((Arc::clone(credential), applied));
        }
        Ok(destination)
    }

    /// The server did not accept what was put in. Whether another try is worth it.
    pub(crate) fn refused(&self) -> bool {
        let now = Moment::now().instant;
        let mut is_worth_it = false;
        for (credential, applied) in &self.applied {
            is_worth_it |= credential.invalidate(applied, now);
        }
        is_worth_it
    }

    /// Takes out headers whose names say what was put in. (Names are in lower case.)
    pub(crate) fn leave_telling_names(&self, headers: &mut HeaderMap) {
        for secret in self
            .applied
            .iter()
            .flat_map(|(_, applied)| &applied.secrets)
        {
            let secret = secret.bytes().to_ascii_lowercase();
            if secret.len() < REDACTED_BYTES_MIN {
                continue;
            }
            let tells = |name: &&HeaderName| {
                let mut windows = name.as_str().as_bytes().windows(secret.len());
                windows.any(|window| window == secret)
            };
            let telling: Vec<HeaderName> = headers.keys().filter(tells).cloned().collect();
            for name in telling {
                headers.remove(name);
            }
        }
    }

    /// Finds in a response what was put into the request.
    pub(crate) fn redactor(&self) -> Result<Option<Redactor>, Error> {
        let redactor = match &*self.applied {
            [] => return Ok(None),
            [(credential, applied)] => credential.redactor(applied),
            several @ [(first, _), ..] => {
                let secrets = several.iter().flat_map(|(_, applied)| &applied.secrets);
                let secrets: Vec<Secret> = secrets.cloned().collect();
                first.redactor_of(&secrets)
            }
        };
        let redactor = redactor.map_err(|error| Error::Credential(error.to_string()))?;
        Ok(Some(redactor))
    }
}
