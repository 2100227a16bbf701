//! A request: judged, sent, and judged again at each redirect.

use crate::{
    Destination, Error, Redactor,
    audit::{Decision, Kind, Record, Sender},
    body::{self, Body, Bounds, Received},
    channel::Channel,
    clients, headers,
    sent::Sent,
    socket::Counted,
    trail::{Trail, Upload},
    web_socket,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use hyper::body::Incoming;
use std::{borrow::Cow, sync::Arc};
use tokio::io::{AsyncRead, AsyncWrite};
use url::Position;

/// Bytes of a method.
pub(crate) const METHOD_BYTES_MAX: usize = 128;
/// Redirects of one request that are followed.
pub const REDIRECTS_MAX: u32 = 5;
/// What makes a tunnel, or has the request for its answer (<https://fetch.spec.whatwg.org/#forbidden-method>).
const METHODS_REFUSED: [&str; 3] = ["CONNECT", "TRACE", "TRACK"];
/// What a request says it comes from that does not say so itself.
const USER_AGENT: HeaderValue = HeaderValue::from_static("Coracle");

/// A request of a worker's.
pub struct Request {
    /// A token, such as GET.
    pub method: String,
    /// An absolute URL.
    pub url: String,
    /// Names and values in order; each character of a value is a byte.
    pub headers: Vec<(String, String)>,
    /// Its body.
    pub body: Body,
    /// What a redirect means to it.
    pub redirect: Redirect,
}

/// What is done with a redirect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirect {
    /// It is followed, where the policy allows the next place too.
    #[default]
    Follow,
    /// It is an error.
    Error,
    /// It is the response.
    Manual,
}

/// The response to one.
pub struct Response {
    /// 200 to 599, or 101 with `socket`.
    pub status: u16,
    /// The reason phrase.
    pub status_text: String,
    /// Names and values in order; each character of a value is a byte.
    pub headers: Vec<(String, String)>,
    /// None where the status or the method has none.
    pub body: Option<Received>,
    /// The connection, of a request that asked for a WebSocket.
    pub socket: Option<Socket>,
    /// Where it came from in the end.
    pub url: String,
    /// Whether that is another place than was asked.
    pub redirected: bool,
}

/// A connection of bytes.
pub type Socket = Box<dyn Duplex>;

/// What is read from and written to.
pub trait Duplex: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Duplex for T {}

/// One request on its way, as it is sent to each place in turn.
struct Journey<'a> {
    channel: &'a Channel,
    sender: &'a Sender,
    method: Method,
    /// As the worker gave them.
    pairs: Vec<(String, String)>,
    /// As they are sent to the next place; see [`Journey::take_headers`].
    headers: HeaderMap,
    has_left_origin: bool,
    has_left_body: bool,
    body: Body,
    is_web_socket: bool,
}

impl Channel {
    /// Sends a request where it may go, and answers when the head of the response is there.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn fetch(&self, request: Request, sender: &Sender) -> Result<Response, Error> {
        let Request {
            method,
            url,
            headers,
            body,
            redirect,
        } = request;
        let begun = Journey::begin(self, sender, &method, headers, body);
        let shown = &method[..method.floor_char_boundary(METHOD_BYTES_MAX)];
        let read = begun.and_then(|journey| Ok((journey, Destination::of_url(&url)?)));
        let (mut journey, mut destination) = match read {
            Ok(ready) => ready,
            Err(error) => {
                self.note_refused(Record::new(sender.clone(), Kind::Fetch, shown), &error);
                return Err(error);
            }
        };
        let mut hop = 0;
        loop {
            let head = journey.send(&destination, hop).await?;
            let is_manual = redirect == Redirect::Manual;
            let Some(location) = location(&head).filter(|_| !is_manual) else {
                return head.finish(&destination, hop > 0);
            };
            let refused = match redirect {
                Redirect::Error => Some(Error::Redirected(destination.to_string())),
                _ if hop >= REDIRECTS_MAX => {
                    Some(Error::Redirects(REDIRECTS_MAX, destination.to_string()))
                }
                _ => None,
            };
            if let Some(error) = refused {
                head.trail.note(|record| record.failed(&error));
                return Err(error);
            }
            hop += 1;
            let next = match destination.redirected(&location) {
                Ok(next) => next,
                Err(refused) => {
                    // Its record comes before that of what it led to.
                    drop(head);
                    let error = Error::Destination(refused);
                    self.note_refused(journey.record(hop), &error);
                    return Err(error);
                }
            };
            if let Err(error) = journey.redirected(head.status, &destination, &next) {
                head.trail.note(|record| record.failed(&error));
                return Err(error);
            }
            destination = next;
        }
    }

    /// Tells of a request that went nowhere, for nobody could say where to.
    fn note_refused(&self, mut record: Record, error: &Error) {
        record.failed(error);
        drop(Trail::new(self.audit(), record));
    }
}

/// The head of a response, with what is needed for the rest.
struct Head {
    status: StatusCode,
    headers: HeaderMap,
    version_has_reason: bool,
    response: http::Response<Incoming>,
    redactor: Option<Redactor>,
    trail: Arc<Trail>,
    bounds: Bounds,
    is_head: bool,
    socket: Option<Socket>,
    upload: Upload,
}

/// Where a response redirects to.
fn location(head: &Head) -> Option<String> {
    let redirects = [301, 302, 303, 307, 308].contains(&head.status.as_u16());
    let location = head.headers.get(header::LOCATION).filter(|_| redirects)?;
    Some(String::from_utf8_lossy(location.as_bytes()).into_owned())
}

impl<'a> Journey<'a> {
    fn begin(
        channel: &'a Channel,
        sender: &'a Sender,
        method: &str,
        pairs: Vec<(String, String)>,
        body: Body,
    ) -> Result<Self, Error> {
        let unsendable = || {
            let shown: String = method.chars().take(100).collect();
            Error::Method(shown.escape_debug().to_string())
        };
        if method.len() > METHOD_BYTES_MAX {
            return Err(unsendable());
        }
        if METHODS_REFUSED
            .iter()
            .any(|refused| refused.eq_ignore_ascii_case(method))
        {
            return Err(unsendable());
        }
        let method = Method::from_bytes(method.as_bytes()).map_err(|_| unsendable())?;
        let (mut headers, is_asked) = headers::of_request(&pairs)?;
        let is_web_socket = is_asked && method == Method::GET;
        headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
        Ok(Self {
            channel,
            sender,
            method,
            pairs,
            headers,
            has_left_origin: false,
            has_left_body: false,
            body,
            is_web_socket,
        })
    }

    /// The headers to send. They are seldom needed again, and then made again.
    fn take_headers(&mut self) -> Result<HeaderMap, Error> {
        if self.headers.is_empty() {
            self.fill_headers()?;
        }
        Ok(std::mem::take(&mut self.headers))
    }

    fn fill_headers(&mut self) -> Result<(), Error> {
        (self.headers, _) = headers::of_request(&self.pairs)?;
        self.headers.entry(header::USER_AGENT).or_insert(USER_AGENT);
        if self.has_left_body {
            headers::leave_body(&mut self.headers);
        }
        if self.has_left_origin {
            headers::leave_origin(&mut self.headers);
        }
        Ok(())
    }

    /// Sends it to one place.
    async fn send(&mut self, destination: &Destination, hop: u32) -> Result<Box<Head>, Error> {
        let mut record = self.record(hop);
        record.goes_to(destination);
        let trail = Trail::begun(self.channel.audit(), record);
        let outcome = self.send_noted(destination, &trail).await;
        trail.settle(&outcome);
        outcome
    }

    fn record(&self, hop: u32) -> Record {
        let kind = match self.is_web_socket {
            true => Kind::WebSocket,
            false => Kind::Fetch,
        };
        let mut record = Record::new(self.sender.clone(), kind, self.method.as_str());
        record.hop = hop;
        record
    }

    async fn send_noted(
        &mut self,
        destination: &Destination,
        trail: &Arc<Trail>,
    ) -> Result<Box<Head>, Error> {
        let channel = self.channel;
        let limits = channel.limits();
        if self.headers.is_empty() {
            self.fill_headers()?;
        }
        let asked = (&self.method, &self.headers);
        let mut permit = channel.judge(destination, Some(asked), trail).await?;
        let place = match self.is_web_socket {
            true => Some(permit.settle(channel.take_socket(), trail)?),
            false => None,
        };
        let digest = permit.digest(&self.body);
        let upload = Upload::new(self.body.is_stream());
        let mut is_second_try = false;
        let (mut response, destination, key) = loop {
            let mut headers = self.take_headers()?;
            let is_range = headers.contains_key(header::RANGE);
            let accepted = if is_range { "identity" } else { body::UNPACKED };
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            if self.is_empty_body_said() {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
            }
            let key = self.is_web_socket.then(|| web_socket::ask(&mut headers));
            let put_in = permit
                .put_in(&self.method, destination, &mut headers, digest)
                .await;
            let destination = permit.settle(put_in, trail)?;
            let body = self
                .body
                .take(limits.request_bytes_max, &permit.meter(), trail, &upload)?;
            trail.note(|record| record.decision = Decision::Allowed);
            let request = request(&self.method, &destination, headers, body)?;
            let client = channel.clients().get(permit.reach(), self.is_web_socket);
            let sent = clients::send(&client, request, &destination, limits).await;
            let response = permit.settle(sent, trail)?;
            // A token may have been withdrawn before its time. (AWS says so with 403.)
            let is_refused = [401, 403].contains(&response.status().as_u16());
            let may_try = !self.body.is_stream() && !is_second_try;
            if is_refused && may_try && permit.refused() {
                permit.try_again(trail)?;
                is_second_try = true;
                continue;
            }
            break (response, destination, key);
        };
        let status = response.status();
        trail.note(|record| record.status = status.as_u16());
        let bounds = Bounds {
            destination,
            bytes_max: limits.response_bytes_max,
            idle: limits.idle(),
            meter: permit.meter(),
        };
        let socket = match key {
            Some(key) if status == StatusCode::SWITCHING_PROTOCOLS => {
                let upgraded = web_socket::take(&mut response, &key).await;
                let upgraded = upgraded.map_err(|reason| bounds.wrong(reason))?;
                // (Its place among all connections goes with the connection that it was.)
                Some(Counted::socket(
                    upgraded,
                    trail,
                    permit.meter(),
                    (place, None),
                ))
            }
            _ => None,
        };
        let mut headers = std::mem::take(response.headers_mut());
        // Before anything is made of them: a redirect may quote what was put into the query.
        let mut redactor = permit.redactor()?;
        if let Some(redactor) = &mut redactor {
            permit.leave_telling_names(&mut headers);
            redact_headers(redactor, &mut headers, trail);
        }
        Ok(Box::new(Head {
            status,
            headers,
            version_has_reason: response.version() < http::Version::HTTP_2,
            response,
            redactor,
            trail: Arc::clone(trail),
            bounds,
            is_head: self.method == Method::HEAD,
            socket,
            upload,
        }))
    }

    /// Whether servers are to be told that there is no body: of POST and PUT they expect one, and some refuse a request
    /// that says nothing of it (<https://fetch.spec.whatwg.org/#concept-http-network-or-cache-fetch>).
    fn is_empty_body_said(&self) -> bool {
        match &self.body {
            Body::Empty => [Method::POST, Method::PUT].contains(&self.method),
            Body::Bytes(bytes) => bytes.is_empty(),
            Body::Stream(_) => false,
        }
    }

    /// Makes it what it is at the next place, by the Fetch standard ("HTTP-redirect fetch").
    fn redirected(
        &mut self,
        status: StatusCode,
        from: &Destination,
        to: &Destination,
    ) -> Result<(), Error> {
        let becomes_get = match status.as_u16() {
            301 | 302 => self.method == Method::POST,
            303 => self.method != Method::GET && self.method != Method::HEAD,
            _ => false,
        };
        if becomes_get {
            self.method = Method::GET;
            self.body = Body::Empty;
            self.has_left_body = true;
        } else if self.body.is_stream() {
            return Err(Error::BodyGone(from.to_string()));
        }
        self.has_left_origin |= !from.is_same_origin(to);
        Ok(())
    }
}

fn request(
    method: &Method,
    destination: &Destination,
    headers: HeaderMap,
    body: Sent,
) -> Result<http::Request<Sent>, Error> {
    let unsendable = || Error::Protocol {
        origin: destination.origin(),
        reason: "its URL can't be sent".into(),
    };
    let url = destination.url().ok_or_else(unsendable)?;
    // As it was judged, but for what WebSockets call their schemes.
    let text = [destination.scheme().as_str(), &url[Position::AfterScheme..]].concat();
    let uri = http::Uri::from_maybe_shared(Bytes::from(text));
    let mut request = http::Request::new(body);
    *request.method_mut() = method.clone();
    *request.uri_mut() = uri.map_err(|_| unsendable())?;
    *request.headers_mut() = headers;
    Ok(request)
}

impl Head {
    /// The response, unless it is none that may be passed on.
    fn finish(
        self: Box<Self>,
        destination: &Destination,
        redirected: bool,
    ) -> Result<Response, Error> {
        let trail = Arc::clone(&self.trail);
        let finished = self.finish_noted(destination, redirected);
        trail.settle(&finished);
        finished
    }

    fn finish_noted(
        self: Box<Self>,
        destination: &Destination,
        redirected: bool,
    ) -> Result<Response, Error> {
        let Self {
            status,
            mut headers,
            version_has_reason,
            response,
            mut redactor,
            trail,
            bounds,
            is_head,
            socket,
            upload,
        } = *self;
        let code = status.as_u16();
        if !(200..=599).contains(&code) && socket.is_none() {
            return Err(bounds.wrong(format!("the status {code} is none that a response has")));
        }
        let reason = response.extensions().get::<hyper::ext::ReasonPhrase>();
        let status_text = match reason {
            Some(reason) => String::from_utf8_lossy(reason.as_bytes()).into_owned(),
            None if version_has_reason => status.canonical_reason().unwrap_or_default().into(),
            None => String::new(),
        };
        let status_text = match &mut redactor {
            Some(redactor) => redactor.redact_text(&status_text).into_owned(),
            None => status_text,
        };
        let has_body = !is_head && ![204, 205, 304].contains(&code) && socket.is_none();
        // (Of a HEAD, what says how the body would be packed is true.)
        let packing = match has_body {
            true => body::packing(&mut headers),
            false => body::Packing::None,
        };
        // (Hyper undoes chunks, and leaves what else there is to whoever reads.)
        if headers
            .get_all(header::TRANSFER_ENCODING)
            .iter()
            .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        {
            return Err(bounds.wrong("it uses a transfer coding that was not asked for".into()));
        }
        // A part can't be searched for the rest of what was put in.
        let is_part = code == 206 || headers.contains_key(header::CONTENT_RANGE);
        if redactor.is_some() && is_part {
            return Err(bounds.wrong("it answers a request with a credential in parts".into()));
        }
        // What can't be unpacked can't be searched for what was put in either.
        if has_body && redactor.is_some() && headers.contains_key(header::CONTENT_ENCODING) {
            return Err(bounds.wrong("its body is packed in a way that was not asked for".into()));
        }
        let pairs = headers::of_response(&headers);
        let body = has_body.then(|| {
            body::received(
                response.into_body(),
                packing,
                redactor,
                bounds,
                (trail, upload),
            )
        });
        Ok(Response {
            status: code,
            status_text,
            headers: pairs,
            body,
            socket,
            url: destination
                .url()
                .map(|url| url.as_str().into())
                .unwrap_or_default(),
            redirected,
        })
    }
}

/// Takes out of a response's headers what was put into the request.
fn redact_headers(redactor: &mut Redactor, headers: &mut HeaderMap, trail: &Trail) {
    for value in headers.values_mut() {
        let redacted = match redactor.redact(value.as_bytes()) {
            Cow::Borrowed(_) => continue,
            Cow::Owned(redacted) => HeaderValue::from_bytes(&redacted),
        };
        *value = redacted.unwrap_or_else(|_| HeaderValue::from_static("[redacted]"));
    }
    let redactions = redactor.count();
    trail.note(|record| record.redactions = redactions);
}
