//! A server that is a process of ours.
//!
//! It has the environment that it is given and nothing of ours, and is the head of a process group, which is ended with it: a
//! server that is a script does not leave behind what the script started.

use crate::upstream::McpProviderError;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    collections::{BTreeMap, VecDeque},
    path::PathBuf,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::{
    io::AsyncReadExt,
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
};

/// What is kept of what it writes to stderr: the end of it.
const LAST_WORDS_BYTES_MAX: usize = 2_000;

/// What is to be started, and how.
#[derive(Clone, Debug)]
pub struct ProcessConfig {
    /// A program, looked for where our own `PATH` says if it has no slash.
    pub command: String,
    /// What it is given.
    pub arguments: Vec<String>,
    /// All of its environment, `PATH` included.
    pub environment: BTreeMap<String, String>,
    /// Where it runs.
    pub folder: PathBuf,
}

/// The process. Dropping it ends its group.
pub(super) struct Process {
    group: Option<Pid>,
    /// Not waited for while its group may have to be ended, so that its number stays its own.
    _child: Child,
    words: Arc<Mutex<VecDeque<u8>>>,
}

impl Process {
    /// Starts it. In a tokio runtime.
    pub(super) fn start(
        config: &ProcessConfig,
    ) -> Result<(Self, ChildStdin, ChildStdout), McpProviderError> {
        let wrong = |problem: String| McpProviderError::Start {
            command: config.command.clone(),
            problem,
        };
        let mut command = Command::new(&config.command);
        command
            .args(&config.arguments)
            .env_clear()
            .envs(&config.environment)
            .current_dir(&config.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|error| wrong(error.to_string()))?;
        let group = child.id().and_then(|id| i32::try_from(id).ok());
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let words: Arc<Mutex<VecDeque<u8>>> = Arc::default();
        let process = Self {
            group: group.and_then(Pid::from_raw),
            _child: child,
            words: Arc::clone(&words),
        };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(wrong("it has no pipes".into()));
        };
        tokio::spawn(listen(stderr, words));
        Ok((process, stdin, stdout))
    }

    /// The end of what it has written to stderr, in one line.
    pub(super) fn last_words(&self) -> String {
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = words.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        lines.join(" ").trim().to_owned()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(group) = self.group {
            // It may have ended by itself.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Reads all that it writes, so that it never waits for us, and keeps the end.
async fn listen(mut stderr: ChildStderr, words: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = [0; 4_096];
    while let Ok(count @ 1..) = stderr.read(&mut piece).await {
        let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
        words.extend(&piece[..count]);
        let excess = words.len().saturating_sub(LAST_WORDS_BYTES_MAX);
        words.drain(..excess);
    }
}
