//! A proxy between a client and a server that can keep the server's replies back.

use std::{path::PathBuf, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, split},
    net::{TcpListener, TcpStream, UnixListener, UnixStream},
    sync::watch,
};

/// Passes bytes on; while the replies are held, none of the server's reach the client.
///
/// That makes round trips countable without a clock: what the server has done while the replies were held needed none.
pub struct Proxy {
    address: String,
    held: Arc<watch::Sender<bool>>,
    _folder: Option<tempfile::TempDir>,
}

impl Proxy {
    /// A proxy in front of an address, of the same kind.
    pub async fn start(server: &str) -> Self {
        let (held, holding) = watch::channel(false);
        let server = server.to_owned();
        if let Some(path) = server.strip_prefix("unix:") {
            let folder = tempfile::tempdir().expect("a folder");
            let own_path = folder.path().join("proxy.sock");
            let listener = UnixListener::bind(&own_path).expect("a socket");
            let path = PathBuf::from(path);
            tokio::spawn(async move {
                while let Ok((client, _)) = listener.accept().await {
                    let server = UnixStream::connect(&path)
                        .await
                        .expect("the server accepts");
                    forward(client, server, holding.clone());
                }
            });
            let address = format!("unix:{}", own_path.display());
            return Self {
                address,
                held: Arc::new(held),
                _folder: Some(folder),
            };
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server)
                    .await
                    .expect("the server accepts");
                forward(client, server, holding.clone());
            }
        });
        Self {
            address,
            held: Arc::new(held),
            _folder: None,
        }
    }

    /// A proxy in front of one connection; also returns the client's end.
    pub fn between(
        server: impl AsyncRead + AsyncWrite + Send + 'static,
    ) -> (Self, tokio::io::DuplexStream) {
        let (held, holding) = watch::channel(false);
        let (near, far) = tokio::io::duplex(256 * 1024);
        forward(far, server, holding);
        (
            Self {
                address: String::new(),
                held: Arc::new(held),
                _folder: None,
            },
            near,
        )
    }

    /// Where clients connect.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// From now on no reply gets through.
    pub fn hold_replies(&self) {
        self.held.send_replace(true);
    }

    /// Lets all replies through.
    pub fn release_replies(&self) {
        self.held.send_replace(false);
    }
}

fn forward<C, S>(client: C, server: S, mut held: watch::Receiver<bool>)
where
    C: AsyncRead + AsyncWrite + Send + 'static,
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let (mut from_client, mut to_client) = split(client);
    let (mut from_server, mut to_server) = split(server);
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
    });
    tokio::spawn(async move {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from_server.read(&mut buffer).await {
            if held.wait_for(|held| !held).await.is_err()
                || to_client.write_all(&buffer[..count]).await.is_err()
            {
                return;
            }
        }
        let _ = to_client.shutdown().await;
    });
}
