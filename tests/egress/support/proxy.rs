//! A proxy that makes tunnels, all of them to servers of this world: what is public on the way to it is not left out of
//! the tests for want of an internet.

use super::raw::{RawServer, read_head};
use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};
use tokio::{
    io::{AsyncWriteExt, copy_bidirectional},
    net::TcpStream,
};

pub(crate) struct ProxyServer {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
    _server: RawServer,
}

#[derive(Default)]
struct State {
    to: HashMap<String, SocketAddr>,
    heads: Vec<String>,
}

impl ProxyServer {
    pub(crate) async fn start() -> Self {
        let state = Arc::<Mutex<State>>::default();
        let kept = Arc::clone(&state);
        let server = RawServer::start(move |mut stream| {
            let kept = Arc::clone(&kept);
            async move {
                let head = read_head(&mut stream).await;
                let asked = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let to = {
                    let mut state = kept.lock().expect("no panic");
                    state.heads.push(head);
                    state.to.get(&asked).copied()
                };
                let Some(to) = to else {
                    let no = b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n";
                    let _ = stream.write_all(no).await;
                    return;
                };
                let mut server = TcpStream::connect(to).await.expect("a server");
                let yes = b"HTTP/1.1 200 Connection Established\r\n\r\n";
                if stream.write_all(yes).await.is_ok() {
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                }
            }
        })
        .await;
        Self {
            address: server.address,
            state,
            _server: server,
        }
    }

    /// Whose place a server takes.
    pub(crate) fn set(&self, asked: &str, server: SocketAddr) {
        let mut state = self.state.lock().expect("no panic");
        state.to.insert(asked.into(), server);
    }

    /// What it was asked, each a whole head.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.state.lock().expect("no panic").heads.clone()
    }

    /// What it was asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        let heads = self.heads().into_iter();
        heads
            .map(|head| head.split(' ').nth(1).unwrap_or_default().to_owned())
            .collect()
    }
}
