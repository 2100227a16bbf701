//! A website on the loopback address that notes down what it is asked, and a WebSocket server that says everything back.

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, HeaderName, Method, StatusCode, Uri, header},
    response::{IntoResponse, Response},
};
use futures::{SinkExt, StreamExt};
use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

/// What was asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub path: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

/// A website that is there as long as this is.
pub struct Website {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Website {
    /// - `/echo` and `/echo/query` say the body back, with the header `authorization`, a `set-cookie` and the query;
    /// - `/to?URL` redirects there;
    /// - `/stream` sends a piece, and for ever a piece each 10 ms;
    /// - everything else says its path.
    pub async fn start() -> Self {
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let app = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&asked));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address,
            asked,
            task,
        }
    }

    /// Its URL with that path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it was asked since it was last asked that.
    pub fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

impl Drop for Website {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    State(asked): State<Arc<Mutex<Vec<Asked>>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    asked.lock().unwrap().push(Asked {
        method: method.to_string(),
        path: uri.to_string(),
        headers: headers.clone(),
        body: body.to_vec(),
    });
    match (uri.path(), uri.query()) {
        ("/to", Some(location)) => {
            (StatusCode::FOUND, [(header::LOCATION, location.to_owned())]).into_response()
        }
        ("/echo" | "/echo/query", _) => {
            let authorization = headers.get(header::AUTHORIZATION);
            let said = authorization.map(|value| value.to_str().unwrap_or_default().to_owned());
            let said = said.unwrap_or_default();
            let echo = HeaderName::from_static("x-authorization");
            let cookie = (header::SET_COOKIE, "a=1".to_owned());
            let query = uri.query().unwrap_or_default().as_bytes();
            let body = [&body[..], b" ", said.as_bytes(), query].concat();
            ([(echo, said), cookie], body).into_response()
        }
        ("/stream", _) => {
            let pieces = futures::stream::unfold(0, async |count| {
                tokio::time::sleep(Duration::from_millis(if count == 0 { 0 } else { 10 })).await;
                Some((
                    Ok::<_, Infallible>(Bytes::from(format!("piece {count}\n"))),
                    count + 1,
                ))
            });
            Body::from_stream(pieces).into_response()
        }
        (path, _) => format!("this is {path}").into_response(),
    }
}

/// A server that says back whatever bytes it gets.
pub async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = [0; 1_024];
                while let Ok(count @ 1..) = stream.read(&mut bytes).await {
                    stream.write_all(&bytes[..count]).await.unwrap();
                }
            });
        }
    });
    address
}

/// A WebSocket server that says back each message; it takes the protocol "second" where it is asked for.
pub async fn web_socket() -> SocketAddr {
    use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                #[expect(clippy::result_large_err, reason = "the library's signature")]
                let choose = |request: &Request, mut response: Response| {
                    let asked = request.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
                    if asked.is_some_and(|asked| asked.as_bytes().ends_with(b"second")) {
                        let chosen = header::HeaderValue::from_static("second");
                        let headers = response.headers_mut();
                        headers.insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
                    }
                    Ok(response)
                };
                let accepted = tokio_tungstenite::accept_hdr_async(stream, choose).await;
                let Ok(mut socket) = accepted else { return };
                while let Some(Ok(message)) = socket.next().await {
                    if message.is_text() || message.is_binary() {
                        socket.send(message).await.unwrap();
                    }
                }
            });
        }
    });
    address
}

/// A server whose connections last until the other side ends them: it answers what looks like HTTP with a head and the
/// beginning of a body, and says nothing else unless it is told to.
pub struct Lasting {
    pub address: SocketAddr,
    open: Arc<AtomicUsize>,
    /// What came, of all connections together.
    received: Arc<Mutex<Vec<u8>>>,
    say: tokio::sync::broadcast::Sender<&'static [u8]>,
}

impl Lasting {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            open: Arc::default(),
            received: Arc::default(),
            say: tokio::sync::broadcast::channel(16).0,
        };
        let (open, received) = (Arc::clone(&server.open), Arc::clone(&server.received));
        let say = server.say.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                open.fetch_add(1, Ordering::SeqCst);
                let (open, received) = (Arc::clone(&open), Arc::clone(&received));
                let said = say.subscribe();
                tokio::spawn(async move {
                    lasting(stream, &received, said).await;
                    open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    /// Connections that are open.
    pub fn open(&self) -> usize {
        self.open.load(Ordering::SeqCst)
    }

    /// Sends that on all of them.
    pub fn say(&self, bytes: &'static [u8]) {
        self.say.send(bytes).unwrap();
    }

    pub fn received(&self) -> String {
        String::from_utf8_lossy(&self.received.lock().unwrap()).into_owned()
    }

    /// Waits until so many are open.
    pub async fn has_open(&self, count: usize) {
        super::eventually(
            &format!("{count} connections are open"),
            async || match self.open() {
                open if open == count => Ok(()),
                open => Err(format!("{open} are")),
            },
        )
        .await;
    }
}

async fn lasting(
    mut stream: tokio::net::TcpStream,
    received: &Mutex<Vec<u8>>,
    mut said: tokio::sync::broadcast::Receiver<&'static [u8]>,
) {
    let mut bytes = [0; 4_096];
    loop {
        let read = tokio::select! {
            read = stream.read(&mut bytes) => read,
            more = said.recv() => match stream.write_all(more.unwrap()).await {
                Ok(()) => continue,
                Err(_) => return,
            },
        };
        let Ok(count @ 1..) = read else { return };
        received.lock().unwrap().extend_from_slice(&bytes[..count]);
        if bytes.starts_with(b"GET ") || bytes.starts_with(b"POST ") {
            let head = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nsome";
            if stream.write_all(head).await.is_err() {
                return;
            }
            bytes[0] = 0;
        }
    }
}
