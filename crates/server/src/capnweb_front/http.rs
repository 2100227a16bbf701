//! HTTP: who may ask, a WebSocket that begins, and batches. A connection serves one request.
//!
//! Browsers are why more is looked at than the token. A page may let its own name resolve to an address of ours, so the
//! `Host` must be a name that we answer to. And it may open a WebSocket to anywhere, with the reach of the machine that it
//! is shown on, so a foreign `Origin` is turned away unless it was allowed.

use super::{batch, client::Client, remotes::Remotes, socket, stream};
use crate::{
    auth::{self, Credentials},
    host_header,
    router::RemoteCommand,
    standing::{ConnectionSettings, FAILURE_DELAY, Standing},
};
use bytes::Bytes;
use coracle_capnweb::Limits;
use coracle_transport::Held;
use futures::FutureExt;
use http_body_util::{BodyExt, Full};
use hyper::{
    HeaderMap, Method, Request, Response, StatusCode,
    body::{Body, Incoming},
    header::{self, HeaderValue},
    server::conn::http1,
    service::service_fn,
    upgrade::OnUpgrade,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::{
    cell::RefCell, convert::Infallible, panic::AssertUnwindSafe, rc::Rc, sync::Arc, time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::mpsc,
    time::timeout,
};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// Where Cap'n Web is served.
const PATH: &str = "/rpc";
/// Bytes of a request's line and headers.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// How long the body of a batch may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);

/// Which pages and names are let in.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebPolicy {
    /// Names that requests may give as their host, besides IP addresses and `localhost`.
    pub(crate) hosts: Vec<String>,
    /// Origins of other sites' pages, as browsers send them.
    pub(crate) origins: Vec<String>,
}

/// What one connection has come to.
struct Connection {
    settings: ConnectionSettings,
    policy: Arc<WebPolicy>,
    limits: Limits,
    /// A WebSocket that begins when the answer is sent, and the token that came with the request.
    upgrade: RefCell<Option<(OnUpgrade, Option<String>)>>,
    /// What is held until the answer is sent.
    answer: RefCell<Vec<Held>>,
}

type Answer = Response<Full<Bytes>>;
/// An answer that ends a request early.
type Refusal = Box<Answer>;

/// Serves one connection until it ends.
pub(crate) async fn serve<S>(stream: S, settings: ConnectionSettings, policy: Arc<WebPolicy>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let login_deadline = settings.login_deadline;
    let connection = Rc::new(Connection {
        settings,
        policy,
        limits: Limits::default(),
        upgrade: RefCell::default(),
        answer: RefCell::default(),
    });
    let service = {
        let connection = Rc::clone(&connection);
        service_fn(move |request| {
            let connection = Rc::clone(&connection);
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        })
    };
    let mut http = http1::Builder::new();
    http.max_buf_size(HEAD_BYTES_MAX)
        .timer(TokioTimer::new())
        .header_read_timeout(login_deadline);
    let io = TokioIo::new(stream::Patient::new(stream));
    if let Err(error) = http.serve_connection(io, service).with_upgrades().await {
        tracing::debug!(%error, "a web connection has ended");
        return;
    }
    let Some((upgrade, token)) = connection.upgrade.take() else {
        return;
    };
    match upgrade.await {
        Ok(upgraded) => {
            let (client, commands) = connection.client(token);
            let limits = connection.limits;
            let stream = TokioIo::new(upgraded);
            let served = socket::serve(stream, client, commands, limits, login_deadline);
            if AssertUnwindSafe(served).catch_unwind().await.is_err() {
                connection.settings.service.metrics().panicked();
            }
        }
        Err(error) => tracing::debug!(%error, "a WebSocket did not begin"),
    }
}

impl Connection {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let origin = match self.check(&request) {
            Ok(origin) => origin,
            Err(refusal) => return *refusal,
        };
        let mut answer = match self.route(request).await {
            Ok(answer) => answer,
            Err(refusal) => *refusal,
        };
        if let Some(origin) = origin {
            let headers = answer.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::VARY, HeaderValue::from_static("Origin"));
        }
        answer
    }

    /// Who may ask at all. Answers the origin of a page that may.
    fn check(&self, request: &Request<Incoming>) -> Result<Option<HeaderValue>, Refusal> {
        let WebPolicy { hosts, origins } = &*self.policy;
        let headers = request.headers();
        if let Err(problem) = host_header::check(request.uri(), headers, hosts) {
            return Err(match problem {
                host_header::HostProblem::Malformed => refusal(
                    StatusCode::BAD_REQUEST,
                    "exactly one Host header is expected",
                ),
                host_header::HostProblem::Unknown(_) => refusal(
                    StatusCode::MISDIRECTED_REQUEST,
                    "this server does not answer to that host; start it with --web-host NAME to change that",
                ),
            });
        }
        let mut given = headers.get_all(header::ORIGIN).iter();
        let origin = match (given.next(), given.next()) {
            (None, _) => return Ok(None),
            (Some(origin), None) => origin,
            (Some(_), Some(_)) => return Err(foreign()),
        };
        let named = origin.to_str().map_err(|_| foreign())?;
        let is_own = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok())
            .is_some_and(|host| is_origin_of(named, host));
        let is_allowed = origins
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(named));
        match is_own || is_allowed {
            true => Ok(Some(origin.clone())),
            false => Err(foreign()),
        }
    }

    async fn route(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        if request.uri().path() != PATH {
            let told = "not found; Cap'n Web is served at /rpc";
            return Err(refusal(StatusCode::NOT_FOUND, told));
        }
        if request.uri().query().is_some() {
            let told = "no query is expected: a token belongs in login(token) or in the Authorization header";
            return Err(refusal(StatusCode::BAD_REQUEST, told));
        }
        match *request.method() {
            Method::OPTIONS => Ok(preflight()),
            Method::POST => self.batch(request).await,
            Method::GET if request.headers().contains_key(header::UPGRADE) => {
                self.upgrade(request).await
            }
            _ => {
                let told = "a WebSocket or a POST is expected";
                let mut answer = refusal(StatusCode::METHOD_NOT_ALLOWED, told);
                let allowed = HeaderValue::from_static("GET, POST, OPTIONS");
                answer.headers_mut().insert(header::ALLOW, allowed);
                Err(answer)
            }
        }
    }

    async fn upgrade(&self, mut request: Request<Incoming>) -> Result<Answer, Refusal> {
        let token = self.token(request.headers()).await?;
        let upgrade = hyper::upgrade::on(&mut request);
        let answer = create_response_with_body(&request, Full::default).map_err(|error| {
            refusal(
                StatusCode::BAD_REQUEST,
                format!("this is no WebSocket's handshake: {error}"),
            )
        })?;
        *self.upgrade.borrow_mut() = Some((upgrade, token));
        Ok(answer)
    }

    async fn batch(&self, request: Request<Incoming>) -> Result<Answer, Refusal> {
        let token = self.token(request.headers()).await?;
        // Who can't log in without a word has little to say.
        let bytes_max = match self.is_admitted(token.clone()) {
            true => self.limits.message_bytes_max,
            false => stream::STRANGER_BYTES_MAX,
        };
        let read = timeout(BODY_TIME_MAX, self.read(request.into_body(), bytes_max)).await;
        let (body, _held) = read.map_err(|_| {
            let told = "the body did not come in time";
            refusal(StatusCode::REQUEST_TIMEOUT, told)
        })??;
        let (client, commands) = self.client(token);
        let answering = batch::answer(&body, &client, commands, self.limits);
        let answered = match AssertUnwindSafe(answering).catch_unwind().await {
            Ok(answered) => answered,
            Err(_) => {
                self.settings.service.metrics().panicked();
                let told = "the server failed while it served this; please report it";
                return Err(refusal(StatusCode::INTERNAL_SERVER_ERROR, told));
            }
        };
        let lines: Vec<&str> = answered.iter().map(|(line, _)| &line[..]).collect();
        let answer = text(StatusCode::OK, lines.join("\n"));
        let held = answered.into_iter().filter_map(|(_, held)| held);
        *self.answer.borrow_mut() = held.collect();
        Ok(answer)
    }

    async fn read(
        &self,
        mut body: Incoming,
        bytes_max: usize,
    ) -> Result<(String, Vec<Held>), Refusal> {
        let too_long = || {
            let told = format!("the body is too long: {bytes_max} bytes are allowed");
            refusal(StatusCode::PAYLOAD_TOO_LARGE, told)
        };
        if body.size_hint().lower() > bytes_max as u64 {
            return Err(too_long());
        }
        let mut bytes = Vec::new();
        let mut held = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame =
                frame.map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body is broken"))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if bytes.len() + data.len() > bytes_max {
                return Err(too_long());
            }
            let room = self.settings.holdings.hold(data.len() as u64);
            held.push(
                room.map_err(|full| refusal(StatusCode::SERVICE_UNAVAILABLE, full.to_string()))?,
            );
            bytes.extend_from_slice(&data);
        }
        let body = String::from_utf8(bytes)
            .map_err(|_| refusal(StatusCode::BAD_REQUEST, "the body is not UTF-8"))?;
        Ok((body, held))
    }

    /// The token that came with a request. A wrong one is answered late, so that guessing is slow.
    async fn token(&self, headers: &HeaderMap) -> Result<Option<String>, Refusal> {
        let mut given = headers.get_all(header::AUTHORIZATION).iter();
        let header = match (given.next(), given.next()) {
            (None, _) => return Ok(None),
            (Some(header), None) => header.to_str().ok(),
            (Some(_), Some(_)) => None,
        };
        let Some(token) = header.and_then(bearer_token) else {
            let told = "Authorization: one header is expected, with Bearer and a token";
            return Err(refusal(StatusCode::BAD_REQUEST, told));
        };
        if !self.is_admitted(Some(token.to_owned())) {
            self.settings.service.metrics().login(false);
            tokio::time::sleep(FAILURE_DELAY).await;
            let told = "unauthenticated: the token is not known";
            let mut answer = refusal(StatusCode::UNAUTHORIZED, told);
            let scheme = HeaderValue::from_static("Bearer");
            answer
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, scheme);
            return Err(answer);
        }
        Ok(Some(token.to_owned()))
    }

    fn is_admitted(&self, token: Option<String>) -> bool {
        let ConnectionSettings { tokens, peer, .. } = &self.settings;
        let credentials = token.map_or(Credentials::None, Credentials::BearerToken);
        auth::login(tokens, *peer, &credentials).is_ok()
    }

    fn client(
        &self,
        token: Option<String>,
    ) -> (Rc<Client>, mpsc::UnboundedReceiver<RemoteCommand>) {
        let (remotes, commands) = Remotes::new();
        let ConnectionSettings {
            service,
            tokens,
            peer,
            holdings,
            ..
        } = &self.settings;
        let client = Client {
            service: Arc::clone(service),
            tokens: Arc::clone(tokens),
            peer: *peer,
            holdings: Rc::clone(holdings),
            standing: Standing::default(),
            token,
            remotes,
            session: RefCell::default(),
        };
        (Rc::new(client), commands)
    }
}

fn bearer_token(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then(|| token.trim_matches(' '))
}

/// Whether a page of this origin was served under that host.
fn is_origin_of(origin: &str, host: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| {
        let named = origin.strip_prefix(scheme);
        named.is_some_and(|named| named.eq_ignore_ascii_case(host))
    })
}

fn foreign() -> Refusal {
    let told = "pages of that origin are turned away; start the server with --web-origin ORIGIN to let them in";
    refusal(StatusCode::FORBIDDEN, told)
}

/// What browsers ask before a page may send a token along.
fn preflight() -> Answer {
    let mut answer = text(StatusCode::NO_CONTENT, "");
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::ACCESS_CONTROL_ALLOW_METHODS, "POST"),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type",
        ),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// See [`text`].
fn refusal(status: StatusCode, told: impl Into<String>) -> Refusal {
    Box::new(text(status, told))
}

fn text(status: StatusCode, text: impl Into<String>) -> Answer {
    let mut answer = Response::new(Full::from(Bytes::from(text.into())));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (header::CONNECTION, "close"),
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_of_its_own_host_only() {
        for (origin, host, is_own) in [
            ("http://localhost:7071", "localhost:7071", true),
            ("https://Coracle.example", "coracle.example", true),
            ("http://localhost:3000", "localhost:7071", false),
            (
                "http://localhost:7071.evil.example",
                "localhost:7071",
                false,
            ),
            ("file://localhost:7071", "localhost:7071", false),
            ("null", "null", false),
        ] {
            assert_eq!(is_origin_of(origin, host), is_own, "{origin} {host}");
        }
    }

    #[test]
    fn a_token_is_a_bearer_token() {
        assert_eq!(bearer_token("Bearer abc"), Some("abc"));
        assert_eq!(bearer_token("bearer  abc "), Some("abc"));
        assert_eq!(bearer_token("Basic abc"), None);
        assert_eq!(bearer_token("abc"), None);
    }
}
