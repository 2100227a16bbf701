//! Connections: few at once, one request each, and over after a few seconds whatever the peer does.
//!
//! One deadline for the whole connection covers a request that trickles in, an answer that is not read and a connection
//! kept open for nothing. An honest request takes milliseconds.

use axum::serve::Listener;
use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{self, Sleep},
};

/// Connections that are served at once; more wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
/// From being accepted to being closed.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(5);
/// What a peer may send: a request line and headers.
const REQUEST_BYTES_MAX: usize = 16 << 10;

/// Accepts within [`CONNECTIONS_MAX`].
pub(super) struct OneRequestListener {
    listener: TcpListener,
    places: Arc<Semaphore>,
}

impl OneRequestListener {
    /// Takes over a bound socket. Needs the runtime that will serve it to be entered.
    pub(super) fn new(listener: std::net::TcpListener) -> io::Result<Self> {
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        })
    }
}

impl Listener for OneRequestListener {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // Axum's own `accept` waits and tries again when there is no descriptor left.
        let (stream, peer) = Listener::accept(&mut self.listener).await;
        let connection = Connection {
            stream,
            deadline: Box::pin(time::sleep(CONNECTION_TIME_MAX)),
            bytes_left: REQUEST_BYTES_MAX,
            _place: place,
        };
        (connection, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that fails at its deadline, or when the peer sends too much.
pub(super) struct Connection {
    stream: TcpStream,
    deadline: Pin<Box<Sleep>>,
    bytes_left: usize,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    fn check_deadline(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check_deadline(context)?;
        let filled_before = buffer.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(context, buffer);
        let read = buffer.filled().len() - filled_before;
        match self.bytes_left.checked_sub(read) {
            Some(bytes_left) => self.bytes_left = bytes_left,
            None => return Poll::Ready(Err(io::ErrorKind::InvalidData.into())),
        }
        polled
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.check_deadline(context)?;
        Pin::new(&mut self.stream).poll_write(context, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
