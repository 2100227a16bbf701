//! The npm package `capnweb`, as it is published, against the connection: `interop/client.mjs` has the stories.
//!
//! Node's stdout and stdin carry the messages. The driver here has no I/O of its own to wait for, so each story is the same
//! each time.

mod interop {
    pub(crate) mod server;
}

use interop::server::Server;
use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

/// Tells a story to its end, and returns what is left at the server's.
fn tell(story: &str) {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let tool = Command::new(crate_folder.join("../../tools/capnweb"))
        .output()
        .expect("tools/capnweb can be run");
    assert!(
        tool.status.success(),
        "{}",
        String::from_utf8_lossy(&tool.stderr)
    );
    let mut node = Command::new("node")
        .arg(crate_folder.join("tests/interop/client.mjs"))
        .arg(story)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("node is installed");
    let mut to_client = node.stdin.take().expect("a pipe");
    let from_client = BufReader::new(node.stdout.take().expect("a pipe"));
    let mut server = Server::new();
    for line in from_client.lines() {
        let line = line.expect("messages are text");
        let answers = match line.as_str() {
            "END" => server.end_batch(),
            message => server.receive(message),
        };
        for answer in answers {
            // A client that has ended reads no more.
            if writeln!(to_client, "{answer}")
                .and_then(|()| to_client.flush())
                .is_err()
            {
                break;
            }
        }
    }
    let output = node.wait_with_output().expect("node ends");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    server.leave();
}

macro_rules! stories {
    ($($(#[$doc:meta])* $story:ident)*) => { $(
        $(#[$doc])*
        #[test]
        fn $story() {
            tell(stringify!($story));
        }
    )* };
}

stories! {
    /// Methods, properties, many at once, and tables that are empty afterwards.
    calls
    /// Every kind of value there and back, and what can't be sent is an error.
    values
    /// Blobs of any size.
    blobs
    /// `Request`, `Response` and `Headers` with their bodies.
    http
    /// Calls on results, arguments that are results, properties of results.
    pipelining
    /// `map()` over arrays, values and nothing, nested, with what it captures.
    map
    /// What is disposed of on either side is released on the other, once.
    references
    /// Functions and objects of the client's are called, read and passed on.
    callbacks
    /// Errors keep class, message, properties and stack.
    errors
    /// Streams of bytes in all four directions.
    streams
    /// The error of a stream arrives at its other end, and cancelling ends its source.
    streams_that_fail
    /// Disposing of a result cancels its call.
    cancellation
    /// What breaks the protocol ends the session with the reason, for everything in it.
    abort
    /// The server ends the session with a reason.
    shutdown
    /// The HTTP batch.
    batch
}
