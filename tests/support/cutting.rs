//! A proxy that cuts connections off.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

/// Passes so many messages on, both ways taken together, then half of the next one, and closes both ends.
pub struct CuttingProxy {
    address: String,
    passed: Arc<AtomicUsize>,
}

impl CuttingProxy {
    /// A proxy in front of a TCP address.
    pub async fn start(server: &str, messages: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let passed = Arc::new(AtomicUsize::new(0));
        let (server, counter) = (server.to_owned(), Arc::clone(&passed));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server)
                    .await
                    .expect("the server accepts");
                let counter = Arc::clone(&counter);
                tokio::spawn(async move {
                    let (from_client, to_client) = client.into_split();
                    let (from_server, to_server) = server.into_split();
                    // Whichever way ends first ends the other.
                    tokio::select! {
                        () = pass(from_client, to_server, &counter, messages) => {}
                        () = pass(from_server, to_client, &counter, messages) => {}
                    }
                });
            }
        });
        Self { address, passed }
    }

    /// Where clients connect.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Messages that were passed on so far.
    pub fn passed(&self) -> usize {
        self.passed.load(Ordering::Relaxed)
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    passed: &AtomicUsize,
    messages: usize,
) {
    while let Ok(message) = read(&mut from).await {
        // Counted at once, so that the other way can't take the same place.
        let is_cut = passed.fetch_add(1, Ordering::Relaxed) >= messages;
        let length = if is_cut {
            message.len() / 2
        } else {
            message.len()
        };
        if to.write_all(&message[..length]).await.is_err() || is_cut {
            return;
        }
    }
}

/// A message with its framing.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> std::io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message).await?;
    let segments = number(&message, 0) + 1;
    // The sizes of the segments, filled up to a whole word with the number before them.
    let head = (4 + 4 * segments).next_multiple_of(8);
    message.resize(head, 0);
    from.read_exact(&mut message[4..]).await?;
    let words: usize = (0..segments)
        .map(|segment| number(&message, 4 + 4 * segment))
        .sum();
    message.resize(head + words * 8, 0);
    from.read_exact(&mut message[head..]).await?;
    Ok(message)
}

fn number(bytes: &[u8], at: usize) -> usize {
    let four: [u8; 4] = bytes[at..at + 4].try_into().expect("four bytes");
    u32::from_le_bytes(four) as usize
}
