//! Connections of bytes: `connect`, and turning one into TLS.

use crate::{
    Destination, Error, Host, Meter,
    audit::{Decision, Kind, Record, Sender},
    channel::Channel,
    dial,
    fetch::Socket,
    places::{Place, Use},
    trail::Trail,
};
use std::{
    io,
    pin::Pin,
    sync::{Arc, Weak},
    task::{Context, Poll, ready},
    time::Instant,
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::OwnedSemaphorePermit,
    time::timeout,
};

/// A connection that a worker has opened.
pub struct Connection {
    /// Its bytes.
    pub socket: Socket,
    /// What it is to, which has to prove itself where TLS is started.
    pub host: Host,
    /// What is told of it when it is over.
    pub trail: Weak<Trail>,
}

impl Channel {
    /// Opens a connection to `host:port`, with TLS or without.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn connect(
        &self,
        address: &str,
        with_tls: bool,
        sender: &Sender,
    ) -> Result<Connection, Error> {
        let record = Record::new(sender.clone(), Kind::Connect, "");
        let trail = Trail::begun(self.audit(), record);
        let connected = self.connect_noted(address, with_tls, &trail).await;
        trail.settle(&connected);
        connected
    }

    async fn connect_noted(
        &self,
        address: &str,
        with_tls: bool,
        trail: &Arc<Trail>,
    ) -> Result<Connection, Error> {
        let destination = Destination::of_address(address)?;
        trail.note(|record| record.goes_to(&destination));
        let permit = self.judge(&destination, None, trail).await?;
        let place = permit.settle(self.take_socket(), trail)?;
        trail.note(|record| record.decision = Decision::Allowed);
        if self.share().is_used_up() {
            self.clients().let_idle_go();
        }
        let share = (self.share(), Use::Socket);
        let finish = async |stream| match with_tls {
            true => {
                let secured = dial::secure(&self.tls().bare, destination.host(), stream).await?;
                Ok(Box::new(secured) as Socket)
            }
            false => Ok(Box::new(stream) as Socket),
        };
        let dialed = self
            .dialer()
            .dial(&destination, permit.reach(), share, finish)
            .await;
        let (stream, among_all) = permit.settle(dialed, trail)?;
        let places = (Some(place), Some(among_all));
        let socket = Counted::socket(stream, trail, permit.meter(), places);
        Ok(Connection {
            socket,
            host: destination.host().clone(),
            trail: Arc::downgrade(trail),
        })
    }

    /// Goes on in TLS on a connection, with whoever proves to be the host that it is to, or the name that is given.
    ///
    /// # Errors
    /// See [`Error`].
    pub async fn start_tls(
        &self,
        connection: Connection,
        expected_name: Option<&str>,
    ) -> Result<Connection, Error> {
        let trail = connection.trail.upgrade();
        let secured = self.start_tls_noted(connection, expected_name).await;
        if let (Some(trail), Err(error)) = (trail, &secured) {
            trail.note(|record| record.failed(error));
        }
        secured
    }

    async fn start_tls_noted(
        &self,
        connection: Connection,
        expected_name: Option<&str>,
    ) -> Result<Connection, Error> {
        let Connection {
            socket,
            host,
            trail,
        } = connection;
        let host = match expected_name {
            None => host,
            Some("") => return Err(Error::TlsNameEmpty),
            Some(name) => Destination::of_address(&format!("{name}:1"))?
                .host()
                .clone(),
        };
        let secured = dial::secure(&self.tls().bare, &host, socket);
        match timeout(self.limits().connect(), secured).await {
            Ok(secured) => Ok(Connection {
                socket: Box::new(secured?),
                host,
                trail,
            }),
            Err(_) => Err(Error::TooSlow {
                origin: host.to_string(),
                what: "speak TLS",
                time_max: self.limits().connect(),
                limit: "connect_ms_max",
            }),
        }
    }
}

/// The place of a connection among the tenant's sockets, and among all connections.
pub(crate) type SocketPlaces = (Option<OwnedSemaphorePermit>, Option<Place>);

/// A connection whose bytes are counted, and taken from the budgets.
pub(crate) struct Counted<S> {
    stream: S,
    trail: Arc<Trail>,
    meter: Meter,
    /// Taken from the budgets, and not written yet.
    paid: usize,
    _places: SocketPlaces,
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Counted<S> {
    pub(crate) fn socket(
        stream: S,
        trail: &Arc<Trail>,
        meter: Meter,
        places: SocketPlaces,
    ) -> Socket {
        Box::new(Self {
            stream,
            trail: Arc::clone(trail),
            meter,
            paid: 0,
            _places: places,
        })
    }
}

impl<S> Counted<S> {
    fn take(&self, bytes: usize) -> io::Result<()> {
        let taken = self.meter.take_bytes(bytes as u64, Instant::now());
        taken.map_err(|error| {
            let error = Error::Budget(error);
            self.trail.note(|record| record.failed(&error));
            io::Error::other(error)
        })
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let read = buffer.filled().len() - before;
        self.trail.receive(read);
        self.take(read).inspect_err(|_| buffer.set_filled(before))?;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let unpaid = bytes.len().saturating_sub(self.paid);
        if unpaid > 0 {
            self.take(unpaid)?;
            self.paid += unpaid;
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.paid -= written;
        self.trail.send(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
