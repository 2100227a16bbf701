//! Secrets that a program prints.

use super::{Secret, SecretError, file::READ_BYTES_MAX};
use std::{io, process::Stdio, time::Duration};
use tokio::{io::AsyncReadExt, process::Child};
use zeroize::Zeroizing;

/// Runs a program, without a shell, and takes what it prints. Its input is empty. What it says on its other output is
/// thrown away, since it may quote the secret.
pub(super) async fn run(
    program: &str,
    arguments: &[String],
    timeout: Duration,
) -> Result<Secret, SecretError> {
    let failed = |error: io::Error| SecretError::Program {
        program: program.into(),
        kind: error.kind(),
    };
    let mut command = tokio::process::Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let mut running = Running(command.spawn().map_err(failed)?);
    let reading = async {
        let mut text = Zeroizing::new(Vec::with_capacity(READ_BYTES_MAX + 64));
        if let Some(output) = running.0.stdout.take() {
            let mut output = output.take(READ_BYTES_MAX as u64);
            output.read_to_end(&mut text).await.map_err(failed)?;
        }
        if text.len() == READ_BYTES_MAX {
            return Err(SecretError::TooLong);
        }
        let status = running.0.wait().await.map_err(failed)?;
        match status.success() {
            true => Secret::of_text(&text),
            false => Err(SecretError::ProgramFailed {
                program: program.into(),
                code: status.code(),
            }),
        }
    };
    let read = tokio::time::timeout(timeout, reading).await;
    read.unwrap_or_else(|_| {
        Err(SecretError::Late {
            place: format!("the program \"{program}\""),
            after: timeout,
        })
    })
}

/// A program that is killed where it is left behind, with what it has started.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // There is no number any more once it was waited for, and no other program can have it before.
        #[cfg(unix)]
        if let Some(id) = self.0.id()
            && let Some(group) = i32::try_from(id)
                .ok()
                .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::Instant;

    async fn shell(script: &str, timeout: Duration) -> Result<Secret, SecretError> {
        run("sh", &["-c".into(), script.into()], timeout).await
    }

    const LONG: Duration = Duration::from_secs(20);

    #[tokio::test]
    async fn what_a_program_prints_is_the_secret() {
        let secret = shell("echo chatter >&2; echo hunter22", LONG).await;
        assert_eq!(secret.expect("a secret").bytes(), b"hunter22");
        let unread = run("cat", &["-".into()], LONG).await;
        assert_eq!(unread.err(), Some(SecretError::Empty), "the input is empty");
        let word = "$(echo no) *; echo shell".to_owned();
        let literal = run("echo", std::slice::from_ref(&word), LONG).await;
        assert_eq!(literal.expect("a secret").bytes(), word.as_bytes());
    }

    /// Nothing that a failing program wrote is shown.
    #[tokio::test]
    async fn a_program_that_fails_gives_no_secret() {
        let failed = shell("echo hunter22; echo hunter22 >&2; exit 3", LONG).await;
        let error = failed.expect_err("a failure");
        assert_eq!(error.to_string(), "the program \"sh\" failed with 3");
        let missing = run("/no/such/program", &[], LONG).await;
        assert_eq!(
            missing.err(),
            Some(SecretError::Program {
                program: "/no/such/program".into(),
                kind: io::ErrorKind::NotFound
            })
        );
    }

    #[tokio::test]
    async fn a_program_that_prints_without_end_is_stopped() {
        let started = Instant::now();
        let endless = run("yes", &[], LONG).await;
        assert_eq!(endless.err(), Some(SecretError::TooLong));
        assert!(started.elapsed() < LONG / 2);
    }

    /// At the deadline the program ends, and with it what it started.
    #[tokio::test]
    async fn a_program_that_is_late_is_killed_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pid");
        let script = format!("sleep 1000 & echo $! > '{}'; wait", path.display());
        let after = Duration::from_secs(1);
        let late = shell(&script, after).await.err();
        let place = "the program \"sh\"".into();
        assert_eq!(late, Some(SecretError::Late { place, after }));
        let child = std::fs::read_to_string(path).expect("the child's number");
        let is_there = || {
            let status = std::fs::read_to_string(format!("/proc/{}/stat", child.trim()));
            // Dead, and not yet waited for by whom it was left to, counts as gone.
            status.is_ok_and(|status| !status.contains(") Z "))
        };
        for _ in 0..100 {
            if !is_there() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!(!is_there(), "the child lives on");
    }
}
