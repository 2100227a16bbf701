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
    sync::{Arc, Mutex},
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
    /// - `/echo` says the body back, with the header `authorization` and a `set-cookie`;
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
        ("/echo", _) => {
            let authorization = headers.get(header::AUTHORIZATION);
            let said = authorization.map(|value| value.to_str().unwrap_or_default().to_owned());
            let said = said.unwrap_or_default();
            let echo = HeaderName::from_static("x-authorization");
            let cookie = (header::SET_COOKIE, "a=1".to_owned());
            let body = [&body[..], b" ", said.as_bytes()].concat();
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
