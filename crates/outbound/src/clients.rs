//! HTTP clients: connections that are kept for the next request. A tenant has its own, and what may reach private
//! addresses has others than what may not, so that no connection is used for what it was not judged for.

use crate::{
    Destination, Error,
    body::why,
    config::RequestLimits,
    dial::{Connector, Dialer, Reach, Route, Share},
    sent::{Flight, INFORMATIONAL_MAX, Sent},
};
use futures::FutureExt;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{Client, Error as ClientError},
    rt::{TokioExecutor, TokioTimer},
};
use rustls::ClientConfig;
use std::{
    error::Error as _,
    future::{Future, poll_fn},
    pin::pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Poll, ready},
    time::Duration,
};
use tokio::time::sleep_until;

/// How long a connection is kept that nothing is sent on.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);
const HTTP2_CONNECTION_BYTES: u32 = 1 << 20;
const HTTP2_STREAM_BYTES: u32 = 256 << 10;
/// How often a connection of HTTP/2 in use is asked whether it is still there, and how long it may take to answer.
const ALIVE_INTERVAL: Duration = Duration::from_secs(20);
const ALIVE_TIME_MAX: Duration = Duration::from_secs(10);
/// Bytes of headers that a server may send. (Of headers it may send 100, which is hyper's own limit.)
const HEADER_BYTES_MAX: usize = 128 << 10;

pub(crate) type HttpClient = Client<Connector, Sent>;

/// TLS as clients speak it.
pub(crate) struct Tls {
    /// HTTP/2 where the server has it.
    pub(crate) any: Arc<ClientConfig>,
    /// HTTP/1.1, which can become a WebSocket.
    pub(crate) http1: Arc<ClientConfig>,
    /// No HTTP.
    pub(crate) bare: Arc<ClientConfig>,
}

/// By reach, and by whether it is for WebSockets.
type Made = [[Option<Arc<HttpClient>>; 2]; Reach::COUNT];

/// The clients of one tenant, or of the operator.
pub(crate) struct Clients {
    dialer: Arc<Dialer>,
    tls: Arc<Tls>,
    share: Arc<Share>,
    made: Mutex<Made>,
}

impl Clients {
    pub(crate) fn new(dialer: &Arc<Dialer>, tls: &Arc<Tls>, share: &Arc<Share>) -> Self {
        Self {
            dialer: Arc::clone(dialer),
            tls: Arc::clone(tls),
            share: Arc::clone(share),
            made: Mutex::default(),
        }
    }

    /// Ends the connections that are kept and not used: they end with the clients that keep them.
    pub(crate) fn let_idle_go(&self) {
        *self.made.lock().unwrap_or_else(PoisonError::into_inner) = Made::default();
    }

    pub(crate) fn get(&self, reach: Reach, is_web_socket: bool) -> Arc<HttpClient> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if self.share.is_used_up() {
            *made = Made::default();
        }
        let client = &mut made[reach as usize][usize::from(is_web_socket)];
        let client = client.get_or_insert_with(|| Arc::new(self.make(reach, is_web_socket)));
        Arc::clone(client)
    }

    fn make(&self, reach: Reach, is_web_socket: bool) -> HttpClient {
        let tls = match is_web_socket {
            true => &self.tls.http1,
            false => &self.tls.any,
        };
        let connector = Connector(Arc::new(Route {
            dialer: Arc::clone(&self.dialer),
            tls: Arc::clone(tls),
            reach,
            share: Arc::clone(&self.share),
        }));
        Client::builder(TokioExecutor::new())
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIME_MAX)
            .pool_max_idle_per_host(self.dialer.limits.idle_connections_max)
            .http1_max_buf_size(HEADER_BYTES_MAX)
            .http2_max_header_list_size(HEADER_BYTES_MAX as u32)
            // What a server may send before it is read: of all bodies of a connection together, and of each.
            .http2_initial_connection_window_size(HTTP2_CONNECTION_BYTES)
            .http2_initial_stream_window_size(HTTP2_STREAM_BYTES)
            // One that has died without a word is not to be waited for again and again.
            .http2_keep_alive_interval(ALIVE_INTERVAL)
            .http2_keep_alive_timeout(ALIVE_TIME_MAX)
            .build(connector)
    }
}

/// Sends a request and waits for the head of its response.
pub(crate) async fn send(
    client: &HttpClient,
    mut request: http::Request<Sent>,
    destination: &Destination,
    limits: &RequestLimits,
) -> Result<http::Response<Incoming>, Error> {
    let flight = Flight::begin();
    request.body_mut().watched(&flight);
    let informed = Arc::clone(&flight);
    hyper::ext::on_informational(&mut request, move |_| informed.informed());
    let mut answer = client.request(request);
    let mut late = pin!(sleep_until(flight.first_deadline(limits)));
    // All that can happen to it wakes one task, and is looked at in one place.
    poll_fn(|context| {
        if let Poll::Ready(outcome) = answer.poll_unpin(context) {
            return Poll::Ready(outcome.map_err(|error| told(&error, destination)));
        }
        if flight.poll_flooded(context).is_ready() {
            let reason =
                format!("more than {INFORMATIONAL_MAX} answers came before the one that counts");
            let origin = destination.origin();
            return Poll::Ready(Err(Error::Protocol { origin, reason }));
        }
        loop {
            ready!(late.as_mut().poll(context));
            // It may have gone on since that was set.
            let (deadline, is_sent) = flight.deadline(limits);
            if deadline <= late.deadline() {
                return Poll::Ready(Err(too_slow(destination, is_sent, limits)));
            }
            late.as_mut().reset(deadline);
        }
    })
    .await
}

/// Nothing came, or nothing more of the request was taken.
fn too_slow(destination: &Destination, is_sent: bool, limits: &RequestLimits) -> Error {
    let (what, time_max, limit) = match is_sent {
        true => ("answer", limits.response(), "response_ms_max"),
        false => (
            "take more of the request's body",
            limits.idle(),
            "idle_ms_max",
        ),
    };
    Error::TooSlow {
        origin: destination.origin(),
        what,
        time_max,
        limit,
    }
}

/// What went wrong, which may be of ours: of the connection, or of the body.
fn told(error: &ClientError, destination: &Destination) -> Error {
    let mut source = error.source();
    while let Some(inner) = source {
        if let Some(ours) = inner.downcast_ref::<Error>() {
            return ours.clone();
        }
        source = inner.source();
    }
    Error::Protocol {
        origin: destination.origin(),
        reason: why(error),
    }
}
