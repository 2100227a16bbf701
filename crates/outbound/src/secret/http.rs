//! The way to other servers, for what is read over HTTP. Who brings the real client implements [`Http`].

use super::SecretError;
use crate::{Destination, Scheme};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use std::time::Duration;

/// The longest answer, in bytes.
pub const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How long an answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a request to a server that the configuration names, and reads all of its answer.
///
/// The request has secrets in its headers or body: an implementation follows no redirect, writes neither into a log, and
/// stops reading at [`ANSWER_BYTES_MAX`].
pub trait Http: Send + Sync {
    /// Sends it.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, HttpError>>;
}

/// Why there is no answer. Nothing of the request or the answer is in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The server was not reached, or went away.
    #[error("no answer: {0}")]
    Unreachable(String),
    /// The answer is longer than [`ANSWER_BYTES_MAX`].
    #[error("the answer has more than {ANSWER_BYTES_MAX} bytes")]
    TooLong,
}

/// Sends a request within the limits; `place` names where to in errors.
pub(crate) async fn exchange(
    http: &dyn Http,
    place: &Destination,
    request: Request<Bytes>,
) -> Result<Response<Bytes>, SecretError> {
    let failed = |problem| SecretError::Http {
        place: place.to_string(),
        problem,
    };
    let answer = tokio::time::timeout(ANSWER_TIMEOUT, http.send(request)).await;
    let answer = answer.map_err(|_| SecretError::Late {
        place: place.to_string(),
        after: ANSWER_TIMEOUT,
    })?;
    let answer = answer.map_err(failed)?;
    match answer.body().len() <= ANSWER_BYTES_MAX {
        true => Ok(answer),
        false => Err(failed(HttpError::TooLong)),
    }
}

/// Whether a destination is spoken to without TLS.
pub(crate) fn is_plain(destination: &Destination) -> bool {
    destination.scheme() != Scheme::Https
}

/// Servers that answer what a test says.
#[cfg(test)]
pub(crate) mod script {
    use super::*;
    use std::{
        collections::VecDeque,
        sync::{Arc, Mutex},
    };

    /// The answers that are left, and the requests that came.
    pub(crate) struct Script {
        answers: Mutex<VecDeque<(u16, String)>>,
        requests: Mutex<Vec<Request<Bytes>>>,
    }

    impl Script {
        pub(crate) fn new<const N: usize>(answers: [(u16, &str); N]) -> Arc<Self> {
            let answers = answers.map(|(status, body)| (status, body.to_owned()));
            Arc::new(Self {
                answers: Mutex::new(answers.into()),
                requests: Mutex::default(),
            })
        }

        /// The requests since this was last asked.
        pub(crate) fn requests(&self) -> Vec<Request<Bytes>> {
            std::mem::take(&mut *self.requests.lock().expect("no panic"))
        }
    }

    impl Http for Script {
        fn send(
            &self,
            request: Request<Bytes>,
        ) -> BoxFuture<'_, Result<Response<Bytes>, HttpError>> {
            self.requests.lock().expect("no panic").push(request);
            let answer = self.answers.lock().expect("no panic").pop_front();
            let answer = answer.ok_or_else(|| HttpError::Unreachable("connection refused".into()));
            let response = answer.map(|(status, body)| {
                let response = Response::builder().status(status).body(body.into());
                response.expect("a response")
            });
            Box::pin(std::future::ready(response))
        }
    }
}
