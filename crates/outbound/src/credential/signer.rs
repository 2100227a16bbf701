//! Requests to AWS: what is gathered before one is signed.

use super::{
    Moment, Outgoing, Put,
    config::{Aws, TextOrSecret, is_key_id},
    error::{CredentialConfigError, Problem},
    signature::{self, Keys},
};
use crate::{Secret, SecretSource, secret::KeptSecret};
use std::time::Instant;

/// Signs requests with a credential's secret.
pub(super) struct Signer {
    region: String,
    service: String,
    key_id: KeyId,
    session_token: Option<KeptSecret>,
}

enum KeyId {
    Text(String),
    Secret(KeptSecret),
}

impl Signer {
    /// Has its further secrets kept under names with a part of their own.
    pub(super) fn new(
        aws: Aws,
        mut keep: impl FnMut(&str, SecretSource) -> Result<KeptSecret, CredentialConfigError>,
    ) -> Result<Self, CredentialConfigError> {
        let key_id = match aws.access_key_id {
            TextOrSecret::Text(text) => KeyId::Text(text),
            TextOrSecret::Secret(source) => KeyId::Secret(keep(".access_key_id", source)?),
        };
        let session_token = aws.session_token;
        let session_token = session_token.map(|source| keep(".session_token", source));
        Ok(Self {
            region: aws.region,
            service: aws.service,
            key_id,
            session_token: session_token.transpose()?,
        })
    }

    pub(super) async fn sign(
        &self,
        request: &Outgoing<'_>,
        put: &mut Put,
        now: Moment,
    ) -> Result<(), Problem> {
        // Only what is sent can come back: the key that signs is not.
        put.secrets.clear();
        let id = match &self.key_id {
            KeyId::Text(text) => Secret::derived(text.clone().into_bytes()),
            KeyId::Secret(secret) => {
                let id = secret.get(now.instant).await?;
                put.secrets.push(id.clone());
                id
            }
        };
        let id = std::str::from_utf8(id.bytes()).map_err(|_| Problem::NotSendable)?;
        if !is_key_id(id.as_bytes()) {
            return Err(Problem::NotSendable);
        }
        put.headers.extend(signature::OURS.map(|name| (name, None)));
        if let Some(token) = &self.session_token {
            let token = token.get(now.instant).await?;
            put.header(&signature::TOKEN, "", token.clone())?;
            put.secrets.push(token);
        }
        put.destination = signature::strict(&put.destination).ok_or(Problem::TooLong)?;
        let keys = Keys {
            id,
            secret: put.used.bytes(),
            region: &self.region,
            service: &self.service,
        };
        let set = put
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name, value.as_ref()?)));
        let unsigned = signature::Unsigned {
            method: request.method,
            destination: &put.destination,
            body: request.body,
            headers: request.headers,
            set: set.collect(),
        };
        let signed = keys.sign(&unsigned, now.system)?;
        put.headers
            .extend(signed.into_iter().map(|(name, value)| (name, Some(value))));
        Ok(())
    }

    /// Has what is read beside the secret read again.
    pub(super) fn refused(&self, now: Instant) -> bool {
        let key_id = match &self.key_id {
            KeyId::Text(_) => None,
            KeyId::Secret(secret) => Some(secret),
        };
        let kept = key_id.into_iter().chain(&self.session_token);
        kept.fold(false, |is_worth_it, secret| {
            secret.refused_any(now) | is_worth_it
        })
    }
}
