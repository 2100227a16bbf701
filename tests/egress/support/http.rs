//! An HTTP server that writes down what it saw.

use bytes::Bytes;
use http_body_util::{BodyExt, Full, combinators::UnsyncBoxBody};
use hyper::{
    Version,
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ServerConfig;
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    task::AbortHandle,
};
use tokio_rustls::TlsAcceptor;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// `Host`, or `:authority`.
    pub(crate) host: String,
    /// The name that the TLS was asked for.
    pub(crate) sni: Option<String>,
    pub(crate) is_tls: bool,
    pub(crate) version: Version,
    /// In order, with names in lower case; values as Latin-1.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Bytes,
    pub(crate) peer: SocketAddr,
    /// Which of the server's connections it came on, from 0.
    pub(crate) connection: usize,
}

impl Seen {
    /// The values of a header, of each line.
    pub(crate) fn header(&self, name: &str) -> Vec<&str> {
        let found = self.headers.iter().filter(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str()).collect()
    }
}

pub(crate) type Answer = http::Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    task: AbortHandle,
}

struct Connection {
    number: usize,
    peer: SocketAddr,
    sni: Option<String>,
    is_tls: bool,
}

impl Server {
    pub(crate) async fn plain(answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", None, answer).await
    }

    pub(crate) async fn tls(
        config: Arc<ServerConfig>,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", Some(config), answer).await
    }

    pub(crate) async fn at(
        address: &str,
        tls: Option<Arc<ServerConfig>>,
        answer: impl Fn(&Seen) -> Answer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let seen = Arc::<Mutex<Vec<Seen>>>::default();
        let (kept, answer) = (Arc::clone(&seen), Arc::new(answer));
        let task = tokio::spawn(async move {
            let mut number = 0;
            while let Ok((stream, peer)) = listener.accept().await {
                stream.set_nodelay(true).expect("a socket");
                let mut connection = Connection {
                    number,
                    peer,
                    sni: None,
                    is_tls: tls.is_some(),
                };
                number += 1;
                let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
                let acceptor = tls.clone().map(TlsAcceptor::from);
                tokio::spawn(async move {
                    let Some(acceptor) = acceptor else {
                        return serve(stream, false, connection, kept, answer).await;
                    };
                    if let Ok(stream) = acceptor.accept(stream).await {
                        let session = stream.get_ref().1;
                        connection.sni = session.server_name().map(Into::into);
                        let is_http2 = session.alpn_protocol() == Some(b"h2");
                        serve(stream, is_http2, connection, kept, answer).await;
                    }
                });
            }
        });
        Self {
            address,
            seen,
            task: task.abort_handle(),
        }
    }

    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("no panic").clone()
    }

    /// The only request.
    pub(crate) fn one(&self) -> Seen {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:?}");
        seen.into_iter().next().expect("one")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    is_http2: bool,
    connection: Connection,
    kept: Arc<Mutex<Vec<Seen>>>,
    answer: Arc<impl Fn(&Seen) -> Answer + Send + Sync + 'static>,
) {
    let connection = Arc::new(connection);
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (kept, answer) = (Arc::clone(&kept), Arc::clone(&answer));
        let connection = Arc::clone(&connection);
        async move {
            let (head, body) = request.into_parts();
            // A request that breaks off is no request.
            let body = body.collect().await?.to_bytes();
            let seen = see(&head, body, &connection);
            kept.lock().expect("no panic").push(seen.clone());
            Ok::<_, hyper::Error>(answer(&seen))
        }
    });
    let io = TokioIo::new(stream);
    // What the client breaks is no matter here.
    let _ = match is_http2 {
        true => {
            let server = http2::Builder::new(TokioExecutor::new());
            server.serve_connection(io, service).await
        }
        false => http1::Builder::new().serve_connection(io, service).await,
    };
}

fn see(head: &http::request::Parts, body: Bytes, connection: &Connection) -> Seen {
    let text = |bytes: &[u8]| bytes.iter().map(|byte| char::from(*byte)).collect();
    let headers: Vec<(String, String)> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), text(value.as_bytes())))
        .collect();
    let host = headers.iter().find(|(name, _)| name == "host");
    let host = match (head.uri.authority(), host) {
        (Some(authority), _) => authority.to_string(),
        (None, Some((_, host))) => host.clone(),
        (None, None) => String::new(),
    };
    Seen {
        method: head.method.to_string(),
        path: head
            .uri
            .path_and_query()
            .map(ToString::to_string)
            .unwrap_or_default(),
        host,
        sni: connection.sni.clone(),
        is_tls: connection.is_tls,
        version: head.version,
        headers,
        body,
        peer: connection.peer,
        connection: connection.number,
    }
}

/// An answer with a body, whose length is said.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<Bytes>) -> Answer {
    with_body(status, headers, Full::new(body.into()).boxed_unsync())
}

pub(crate) fn with_body(
    status: u16,
    headers: &[(&str, &str)],
    body: UnsyncBoxBody<Bytes, Infallible>,
) -> Answer {
    let mut answer = http::Response::builder().status(status);
    for (name, value) in headers {
        let bytes: Vec<u8> = value
            .chars()
            .map(|char| u8::try_from(u32::from(char)).expect("Latin-1"))
            .collect();
        answer = answer.header(*name, bytes);
    }
    answer.body(body).expect("an answer")
}

pub(crate) fn redirect(status: u16, location: &str) -> Answer {
    answer(status, &[("location", location)], "elsewhere")
}
