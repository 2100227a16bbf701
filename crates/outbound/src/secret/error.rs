//! Why there is no secret.

use super::{HttpError, SECRET_BYTES_MAX};
use std::{io, path::PathBuf, time::Duration};

/// Why a secret could not be read. It names the place, never what was found there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// There is no secret of that name.
    #[error("there is no secret \"{0}\"")]
    Unknown(String),
    /// There are two secrets of one name.
    #[error("there is a secret \"{0}\" already")]
    Taken(String),
    /// There was nothing in it.
    #[error("the secret is empty")]
    Empty,
    /// It is longer than [`SECRET_BYTES_MAX`].
    #[error("the secret has more than {SECRET_BYTES_MAX} bytes")]
    TooLong,
    /// The file could not be read.
    #[error("the file \"{path}\" is not readable: {kind}", path = path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// What was named is no file, but a folder, a pipe or a device.
    #[error("\"{path}\" is not a file", path = .0.display())]
    NotFile(PathBuf),
    /// Others than the owner may read the file.
    #[error(
        "the file \"{path}\" may be read by others (mode {mode:03o}): `chmod 600` it, \
         or use \"mount\" for a secret that Kubernetes mounts",
        path = path.display()
    )]
    Mode {
        /// Which file.
        path: PathBuf,
        /// Its permissions, the nine bits.
        mode: u32,
    },
    /// A folder is no secret that Kubernetes mounts.
    #[error("\"{path}\" has no link \"..data\", as a secret mounted by Kubernetes has", path = .0.display())]
    NotMount(PathBuf),
    /// A variable is not set.
    #[error("the environment has no variable \"{0}\"")]
    Environment(String),
    /// A program could not be started or read.
    #[error("the program \"{program}\" could not be run: {kind}")]
    Program {
        /// Which program, without what it is called with.
        program: String,
        /// What the system said.
        kind: io::ErrorKind,
    },
    /// A program did not end well.
    #[error("the program \"{program}\" failed{}", code.map(|code| format!(" with {code}")).unwrap_or_default())]
    ProgramFailed {
        /// Which program.
        program: String,
        /// What it ended with; none where a signal ended it.
        code: Option<i32>,
    },
    /// Nothing was read in time.
    #[error("{place} gave nothing within {after:?}")]
    Late {
        /// What was asked.
        place: String,
        /// How long it was waited for.
        after: Duration,
    },
    /// Another server was not reached.
    #[error("{place} is not reached: {problem}")]
    Http {
        /// The server and the path, without the query.
        place: String,
        /// What the HTTP client said.
        problem: HttpError,
    },
    /// Another server refused.
    #[error("{place} answered {status}{}", reason.map(|reason| format!(" ({reason})")).unwrap_or_default())]
    Status {
        /// The server and the path, without the query.
        place: String,
        /// The status of its answer.
        status: u16,
        /// The code of the error, where it is one that the protocol knows.
        reason: Option<&'static str>,
    },
    /// Another server's answer is not what was asked for.
    #[error("the answer of {place} {problem}")]
    Answer {
        /// The server and the path, without the query.
        place: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A secret that is sent on the way to another can't be sent.
    #[error(
        "what {place} is asked with can't be in a header: it has a character that is not visible"
    )]
    NotSendable {
        /// The server and the path, without the query.
        place: String,
    },
    /// The thread that read it is gone.
    #[error("reading the secret was broken off")]
    BrokenOff,
}
