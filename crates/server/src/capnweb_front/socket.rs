//! A WebSocket: a message of the protocol in each of its own.

use super::{
    client::Client,
    driver::Driver,
    outbox::Outbox,
    stream::{Allowance, Reserved},
};
use crate::router::RemoteCommand;
use coracle_capnweb::{Closed, Limits};
use futures::{Sink, SinkExt, StreamExt};
use std::{future::poll_fn, pin::Pin, rc::Rc, task::ready, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite},
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        Error, Message,
        error::CapacityError,
        protocol::{CloseFrame, Role, WebSocketConfig, frame::coding::CloseCode},
    },
};

/// Bytes that are read at once; each connection has a buffer of that size.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// How long a client may take to close its end when the server has closed.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(2);

/// Serves a WebSocket until it ends.
pub(super) async fn serve<S>(
    stream: S,
    client: Rc<Client>,
    commands: mpsc::UnboundedReceiver<RemoteCommand>,
    limits: Limits,
    login_deadline: Duration,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let allowance = Allowance::default();
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(READ_BUFFER_BYTES)
        .max_message_size(Some(limits.message_bytes_max))
        .max_frame_size(Some(limits.message_bytes_max));
    let reserved = Reserved::new(stream, &allowance);
    let socket = WebSocketStream::from_raw_socket(reserved, Role::Server, Some(config)).await;
    let (mut sink, mut messages) = socket.split();
    let (mut driver, mut events) = Driver::new(&client, commands, limits);
    let outbox = driver.outbox();
    let mut must_flush = false;

    // Whoever does not log in in time, or fails too often, is let go.
    let deadline = sleep(login_deadline);
    tokio::pin!(deadline);
    while driver.closed().is_none() {
        let may_read = driver.may_read();
        must_flush |= !outbox.is_empty();
        tokio::select! {
            biased;
            sent = send(&outbox, &mut sink), if must_flush => match sent {
                Ok(()) => must_flush = false,
                Err(error) => {
                    tracing::debug!(%error, "a WebSocket can't be written to");
                    return;
                }
            },
            event = events.next() => driver.on_event(event),
            message = messages.next(), if may_read => match message {
                Some(Ok(message)) => take(&mut driver, message),
                Some(Err(error)) => refuse(&mut driver, &error),
                None => return,
            },
            () = client.standing.changed.notified() => {
                if client.standing.logged_in() {
                    allowance.lift();
                }
                if client.standing.is_given_up() {
                    tracing::info!("connection closed after too many failed logins");
                    driver.abort("too many logins have failed");
                }
            }
            () = &mut deadline, if !client.standing.logged_in() => {
                tracing::debug!("connection closed: no login in time");
                driver.abort("no login in time");
            }
        }
    }
    let close = close_frame(driver.closed());
    drop(driver);
    drop(events);
    // What is left to say, and then nothing more. What the client still sends is let go by.
    let goodbye = async {
        send(&outbox, &mut sink).await?;
        if let Some(close) = close {
            sink.send(Message::Close(Some(close))).await?;
        }
        let Ok(socket) = sink.reunite(messages) else {
            return Ok(());
        };
        allowance.lift();
        let mut stream = socket.into_inner();
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        Ok::<(), Error>(())
    };
    let _ = timeout(CLOSE_TIME_MAX, goodbye).await;
}

/// Sends what lies in the outbox. May be dropped and asked again.
async fn send<S>(outbox: &Outbox, sink: &mut S) -> Result<(), Error>
where
    S: Sink<Message, Error = Error> + Unpin,
{
    poll_fn(|context| {
        let mut sink = Pin::new(&mut *sink);
        while !outbox.is_empty() {
            ready!(sink.as_mut().poll_ready(context))?;
            if let Some((message, _held)) = outbox.pop() {
                sink.as_mut().start_send(Message::text(message))?;
            }
        }
        sink.as_mut().poll_flush(context)
    })
    .await
}

fn take(driver: &mut Driver, message: Message) {
    match message {
        Message::Text(text) => driver.receive(&text),
        Message::Binary(_) => driver.abort("a message is binary: Cap'n Web is spoken in text"),
        // Answered by the WebSocket itself; after a close nothing comes any more.
        Message::Ping(_) | Message::Pong(_) | Message::Close(_) | Message::Frame(_) => {}
    }
}

/// What can't be read ends the connection. Who has just gone is told nothing.
fn refuse(driver: &mut Driver, error: &Error) {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { size, max_size }) => driver.abort(
            &format!("a message has {size} bytes, {max_size} are allowed (message_bytes_max)"),
        ),
        error => driver.abort(&format!("the WebSocket is broken: {error}")),
    }
}

/// What is said with the end of a WebSocket.
fn close_frame(reason: Option<&Closed>) -> Option<CloseFrame> {
    let (code, text) = match reason? {
        Closed::Violation(violation) => (CloseCode::Policy, violation.to_string()),
        Closed::Aborted(reason) => (CloseCode::Policy, reason.clone()),
        Closed::ByClient(_) | Closed::Disconnected => (CloseCode::Normal, String::new()),
    };
    // A control frame has room for 123 bytes of text.
    let text = &text[..text.floor_char_boundary(CLOSE_TEXT_BYTES_MAX)];
    Some(CloseFrame {
        code,
        reason: text.into(),
    })
}

/// Bytes of the text in a close frame.
const CLOSE_TEXT_BYTES_MAX: usize = 123;
