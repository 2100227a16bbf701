//! A server of bytes, for what no HTTP server would say.

use std::{net::SocketAddr, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    net::{TcpListener, TcpStream},
    task::AbortHandle,
};

pub(crate) struct RawServer {
    pub(crate) address: SocketAddr,
    task: AbortHandle,
}

impl RawServer {
    /// Does that with each connection.
    pub(crate) async fn start<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        Self::at("127.0.0.1:0", serve).await
    }

    pub(crate) async fn at<F: Future<Output = ()> + Send + 'static>(
        address: &str,
        serve: impl Fn(TcpStream) -> F + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).await.expect("a listener");
        let address = listener.local_addr().expect("an address");
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream));
            }
        });
        Self {
            address,
            task: task.abort_handle(),
        }
    }

    /// Reads the head of a request, and writes that, again and again if `and_then` is not empty, until nobody reads.
    pub(crate) async fn saying(first: impl Into<Vec<u8>>, and_then: impl Into<Vec<u8>>) -> Self {
        use tokio::io::AsyncWriteExt;
        let (first, and_then) = (Arc::new(first.into()), Arc::new(and_then.into()));
        Self::start(move |mut stream| {
            let (first, and_then) = (Arc::clone(&first), Arc::clone(&and_then));
            async move {
                read_head(&mut stream).await;
                let mut written = stream.write_all(&first).await;
                while written.is_ok() && !and_then.is_empty() {
                    written = stream.write_all(&and_then).await;
                }
                // It stays open until the other side is done.
                let _ = stream.read_to_end(&mut Vec::new()).await;
            }
        })
        .await
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// All up to the empty line, with it.
pub(crate) async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8_lossy(&head).into_owned()
}
