//! Streamable HTTP whose requests an outbound policy lets out.
//!
//! The transport decides what is sent when; this sends it. Credentials are put in by the policy and never known here. What
//! comes back is bounded before it is read: a body as a whole, a stream by each of its events.

use bytes::Bytes;
use coracle_outbound::{Body, Channel, Error, Redirect, Request, Response, Sender};
use futures::{Stream, StreamExt, stream::BoxStream};
use http::{HeaderName, HeaderValue};
use rmcp::{
    model::{ClientJsonRpcMessage, ServerJsonRpcMessage},
    transport::streamable_http_client::{
        StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};
use std::{collections::HashMap, sync::Arc};

/// What is read of an answer that is an error.
const ERROR_BYTES_MAX: usize = 2_000;
const SESSION: &str = "mcp-session-id";
const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

#[derive(Clone)]
pub(super) struct ChannelClient {
    channel: Arc<Channel>,
    bytes_max: usize,
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum HttpError {
    #[error("{0}")]
    Outbound(#[from] Error),
    #[error("it answers {0}: {1}")]
    Status(u16, String),
    #[error("it asks for authorization ({0}); a credential is put in by the outbound policy")]
    Unauthorized(u16),
    #[error("it sends more than {0} bytes at once (server_message_bytes_max)")]
    Large(usize),
}

type Failed = StreamableHttpError<HttpError>;
type Events = BoxStream<'static, Result<Sse, sse_stream::Error>>;

impl ChannelClient {
    pub(super) fn new(channel: Arc<Channel>, bytes_max: usize) -> Self {
        Self { channel, bytes_max }
    }

    async fn send(
        &self,
        method: &str,
        uri: &str,
        headers: Vec<(String, String)>,
        body: Body,
    ) -> Result<Answer, Failed> {
        let request = Request {
            method: method.into(),
            url: uri.into(),
            headers,
            body,
            redirect: Redirect::Follow,
        };
        let response = self.channel.fetch(request, &Sender::default()).await;
        let response = response.map_err(|error| Failed::Client(error.into()))?;
        Ok(Answer(response))
    }

    fn events(&self, answer: Answer) -> Events {
        let Some(body) = answer.0.body else {
            return futures::stream::empty().boxed();
        };
        let body = body.map(|piece| piece.map_err(HttpError::from));
        SseStream::from_bytes_stream(bounded(body, self.bytes_max)).boxed()
    }
}

/// What stands in a request beside what the transport wants to say.
fn headers(
    accept: &str,
    session: Option<&str>,
    others: HashMap<HeaderName, HeaderValue>,
) -> Vec<(String, String)> {
    let others = others.into_iter().filter_map(|(name, value)| {
        Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
    });
    let mut headers: Vec<(String, String)> = others.collect();
    headers.push(("accept".into(), accept.into()));
    headers.extend(session.map(|session| (SESSION.into(), session.into())));
    headers
}

impl StreamableHttpClient for ChannelClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let accept = format!("{JSON}, {STREAM}");
        let mut headers = headers(&accept, session_id.as_deref(), custom_headers);
        headers.push(("content-type".into(), JSON.into()));
        let body = Body::Bytes(Bytes::from(serde_json::to_vec(&message)?));
        let answer = self.send("POST", &uri, headers, body).await?;
        match answer.0.status {
            202 | 204 => return Ok(StreamableHttpPostResponse::Accepted),
            404 if session_id.is_some() => return Err(StreamableHttpError::SessionExpired),
            200..=299 => {}
            _ => return Err(answer.refusal().await),
        }
        let session = answer.header(SESSION).map(str::to_owned);
        if answer.is_of(STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(
                self.events(answer),
                session,
            ));
        }
        let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
        if !is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !answer.is_of(JSON) {
            let media_type = answer.header("content-type").map(str::to_owned);
            return Err(StreamableHttpError::UnexpectedContentType(media_type));
        }
        let body = answer.body(self.bytes_max).await?;
        let message: ServerJsonRpcMessage = serde_json::from_slice(&body)?;
        Ok(StreamableHttpPostResponse::Json(message, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let headers = headers(JSON, Some(&session_id), custom_headers);
        let answer = self.send("DELETE", &uri, headers, Body::Empty).await?;
        match answer.0.status {
            405 => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            // A session that is gone is what was asked for.
            200..=299 | 404 => Ok(()),
            _ => Err(answer.refusal().await),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failed> {
        let mut headers = headers(STREAM, session_id.as_deref(), custom_headers);
        headers.extend(last_event_id.map(|id| ("last-event-id".into(), id)));
        let answer = self.send("GET", &uri, headers, Body::Empty).await?;
        match answer.0.status {
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            404 if session_id.is_some() => Err(StreamableHttpError::SessionExpired),
            200..=299 if answer.is_of(STREAM) => Ok(self.events(answer)),
            200..=299 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            _ => Err(answer.refusal().await),
        }
    }
}

struct Answer(Response);

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.0.headers.iter();
        let found = headers.find(|(own, _)| own.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &value[..])
    }

    fn is_of(&self, media_type: &str) -> bool {
        let own = self.header("content-type").unwrap_or_default();
        let own = own.split(';').next().unwrap_or_default();
        own.trim().eq_ignore_ascii_case(media_type)
    }

    async fn body(self, bytes_max: usize) -> Result<Vec<u8>, Failed> {
        let mut body = Vec::new();
        let Some(mut stream) = self.0.body else {
            return Ok(body);
        };
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| Failed::Client(error.into()))?;
            if piece.len() > bytes_max - body.len() {
                return Err(Failed::Client(HttpError::Large(bytes_max)));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// What an error says, as far as it is told.
    async fn refusal(self) -> Failed {
        let status = self.0.status;
        if matches!(status, 401 | 403) {
            return Failed::Client(HttpError::Unauthorized(status));
        }
        let mut text = Vec::new();
        if let Some(mut stream) = self.0.body {
            while let Some(Ok(piece)) = stream.next().await {
                let room = ERROR_BYTES_MAX - text.len();
                text.extend_from_slice(&piece[..piece.len().min(room)]);
                if text.len() == ERROR_BYTES_MAX {
                    break;
                }
            }
        }
        let text = String::from_utf8_lossy(&text).trim().to_owned();
        Failed::Client(HttpError::Status(status, text))
    }
}

/// A stream of which no event has more than so many bytes. It ends with the one that has.
fn bounded<S>(stream: S, bytes_max: usize) -> impl Stream<Item = Result<Bytes, HttpError>>
where
    S: Stream<Item = Result<Bytes, HttpError>>,
{
    let mut event = EventSize::default();
    let mut is_over = false;
    stream
        .map(move |piece| {
            let piece = piece?;
            match event.add(&piece, bytes_max) {
                true => Ok(piece),
                false => Err(HttpError::Large(bytes_max)),
            }
        })
        .take_while(move |piece| {
            let goes_on = !is_over;
            is_over |= piece.is_err();
            futures::future::ready(goes_on)
        })
}

/// Bytes since the last empty line, which ends an event.
#[derive(Default)]
struct EventSize {
    bytes: usize,
    line_bytes: usize,
}

impl EventSize {
    fn add(&mut self, piece: &[u8], bytes_max: usize) -> bool {
        for byte in piece {
            match byte {
                b'\n' if self.line_bytes == 0 => self.bytes = 0,
                b'\n' => self.line_bytes = 0,
                b'\r' => {}
                _ => {
                    self.line_bytes += 1;
                    self.bytes += 1;
                }
            }
            if self.bytes > bytes_max {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_bounded_each_and_not_together() {
        let mut size = EventSize::default();
        for _ in 0..100 {
            assert!(size.add(b"data: 12345\r\n", 20) && size.add(b"\r\n", 20));
        }
        assert!(size.add(b"data: 12345\n", 20));
        assert!(!size.add(b"data: 12345\n", 20));
        let mut size = EventSize::default();
        assert!(!size.add(&[b'x'; 21], 20));
    }
}
