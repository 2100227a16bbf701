//! Where output goes: whether people read it, and whether they want colour.

use crate::failure::Failure;
use std::{
    env,
    ffi::OsStr,
    io::{self, ErrorKind, IsTerminal, Write},
};

/// What stdout and stderr are.
#[derive(Clone, Copy)]
pub(crate) struct Terminal {
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
    /// For stderr, the only place where there is any.
    pub(crate) paint: Paint,
}

impl Terminal {
    pub(crate) fn detect() -> Self {
        let (stdout, stderr) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        Self {
            stdout,
            stderr,
            paint: Paint {
                on: stderr && colour_wanted(),
            },
        }
    }
}

/// By <https://no-color.org>, and not on terminals that say they can't.
fn colour_wanted() -> bool {
    let no_color = env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = env::var_os("TERM").is_some_and(|value| value == OsStr::new("dumb"));
    !no_color && !dumb
}

/// Colours text, or leaves it as it is.
#[derive(Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

#[derive(Clone, Copy)]
pub(crate) enum Colour {
    Red,
    Yellow,
    Blue,
    Grey,
    Bold,
}

impl Paint {
    #[cfg(test)]
    pub(crate) const OFF: Self = Self { on: false };
    #[cfg(test)]
    pub(crate) const ON: Self = Self { on: true };

    pub(crate) fn is_on(self) -> bool {
        self.on
    }

    pub(crate) fn apply(self, colour: Colour, text: &str) -> String {
        if !self.on || text.is_empty() {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Red => "1;31",
            Colour::Yellow => "33",
            Colour::Blue => "34",
            Colour::Grey => "90",
            Colour::Bold => "1",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// Writes a command's result. A reader that has seen enough is no failure.
pub(crate) fn write_stdout(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::server(format!("can't write to stdout: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes what is said beside the result; where nobody can read it there is nobody to tell.
pub(crate) fn write_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
