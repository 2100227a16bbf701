//! Requests of the operator's own: for tokens and secrets. They go where the configuration says, and follow no redirect.

use crate::{
    ANSWER_BYTES_MAX, Http, HttpError, body::why, clients::Clients, dial::Reach, sent::Sent,
};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// Sends them.
pub(crate) struct OperatorHttp(pub(crate) Clients);

impl Http for OperatorHttp {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, HttpError>> {
        let client = self.0.get(Reach::Operator, false);
        Box::pin(async move {
            let unreachable = |reason: String| HttpError::Unreachable(reason);
            let (head, body) = request.into_parts();
            let request = Request::from_parts(head, Sent::whole(body));
            let sent = client.request(request).await;
            let (head, body) = sent.map_err(|error| unreachable(why(&error)))?.into_parts();
            let whole = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let whole = whole.map_err(|error| match error.is::<LengthLimitError>() {
                true => HttpError::TooLong,
                false => unreachable(error.to_string()),
            })?;
            Ok(Response::from_parts(head, whole.to_bytes()))
        })
    }
}
