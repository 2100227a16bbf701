//! Why a command could not do its work at all, and the exit code that says so. What the code in a
//! sandbox does is never a failure: it is an outcome.

use crate::{exit::Exit, text::visible};
use coracle_client::Error;
use coracle_server::ServerError;
use std::fmt;

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    message: String,
}

impl Failure {
    /// What was asked for is wrong: asking again does not help.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Usage,
            message: message.to_string(),
        }
    }

    /// What was asked for could not be done here and now.
    pub(crate) fn server(message: impl fmt::Display) -> Self {
        Self {
            exit: Exit::Server,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        // Most of it is a server's text.
        let message = visible(&error.to_string());
        match error {
            Error::Address(_) | Error::Failed(_) => Self::usage(message),
            _ => Self::server(message),
        }
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Config(_) => Self::usage(error),
            error => Self::server(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_asking_again_does_not_help_is_a_fault_of_usage() {
        let exit = |error: Error| Failure::from(error).exit;
        assert_eq!(exit(Error::Failed("no such module".into())), Exit::Usage);
        assert_eq!(exit(Error::Overloaded("busy".into())), Exit::Server);
        assert_eq!(exit(Error::Unauthenticated("no".into())), Exit::Server);
    }
}
