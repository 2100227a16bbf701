//! Beginning runs, going on with them, and ending them.

use crate::{
    journal::{RunJournal, shown},
    reverts::{Reverted, Reverts},
    store::{Call, CallState, LEASE, Run, RunState, Store, StoreError, now_ms},
};
use coracle_executor::{
    Beginning, ErrorCode, ExecuteOptions, Execution, ExecutionError, Executor, Toolbox,
};
use std::{sync::Arc, time::Duration};
use tokio::task::JoinHandle;

/// How long somebody may think about an approval: a day.
const APPROVAL_TIME: Duration = Duration::from_secs(24 * 60 * 60);

/// Why a run could not be begun or gone on with.
#[derive(Debug, thiserror::Error)]
pub enum RunsError {
    /// The file.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no random number.
    #[error("no random number is to be had: {0}")]
    Random(std::io::Error),
    /// A process is at it.
    #[error("another process is at the run {0} at this moment")]
    Busy(String),
    /// Calls can only be taken back when no more are made.
    #[error("the run {0} is {1}, and only what is over can be taken back: reject it first")]
    NotOver(String, &'static str),
}

/// How far a run has come.
#[derive(Debug)]
pub enum Progress {
    /// It has ended.
    Ended(Box<Execution>),
    /// It waits.
    Paused(Paused),
    /// It was over before.
    Over(Box<Run>),
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct Paused {
    /// The run.
    pub id: String,
    /// The calls that need approval.
    pub calls: Vec<Call>,
    /// Until when somebody may approve: milliseconds since 1970.
    pub expires_ms: u64,
}

/// Runs of one file, with the tools that they call.
#[derive(Clone)]
pub struct Runs {
    store: Arc<Store>,
    executor: Executor,
}

/// Says that this process is still at a run, until it is dropped.
struct Heart(JoinHandle<()>);

impl Drop for Heart {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Runs {
    /// Those of that file, run by that executor.
    #[must_use]
    pub fn new(store: Arc<Store>, executor: Executor) -> Self {
        Self { store, executor }
    }

    /// The file.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Begins a run; answers when it has ended or waits.
    ///
    /// # Errors
    /// It could not be begun. What the program does is in [`Progress`].
    pub async fn begin(
        &self,
        code: &str,
        toolbox: &Arc<Toolbox>,
        options: &ExecuteOptions,
    ) -> Result<(String, Progress), RunsError> {
        let words = random()?;
        let [a, b, seed @ ..] = words;
        let at_ms = now_ms();
        let run = Run {
            id: format!("r{a:08x}{b:08x}"),
            name: options.name.clone(),
            program: code.into(),
            beginning: Beginning { at_ms, seed },
            expires_ms: at_ms + APPROVAL_TIME.as_millis() as u64,
            state: RunState::Running,
            outcome: None,
        };
        self.store.create(&run)?;
        let progress = self.go(&run, Vec::new(), toolbox, options).await?;
        Ok((run.id, progress))
    }

    /// Goes on with a run that waits; answers when it has ended or waits again. Where nothing was approved meanwhile it waits
    /// for the same.
    ///
    /// # Errors
    /// There is none, or another process is at it.
    pub async fn go_on(
        &self,
        id: &str,
        toolbox: &Arc<Toolbox>,
        options: &ExecuteOptions,
    ) -> Result<Progress, RunsError> {
        let (run, calls) = self.store.run(id)?;
        if run.state.is_over() {
            return Ok(Progress::Over(Box::new(run)));
        }
        if run.state == RunState::Paused && asked(&calls).next().is_some() {
            // Somebody has to say something of each first: what can be gathered is asked once.
            return Ok(Progress::Paused(Paused {
                calls: asked(&calls).cloned().collect(),
                id: run.id,
                expires_ms: run.expires_ms,
            }));
        }
        let Some((run, calls)) = self.store.take(id)? else {
            return Err(RunsError::Busy(id.into()));
        };
        self.go(&run, calls, toolbox, options).await
    }

    async fn go(
        &self,
        run: &Run,
        calls: Vec<Call>,
        toolbox: &Arc<Toolbox>,
        options: &ExecuteOptions,
    ) -> Result<Progress, RunsError> {
        let _heart = self.beat(&run.id);
        let journal = Arc::new(RunJournal::new(&self.store, &run.id, run.beginning, calls));
        let options = ExecuteOptions {
            name: run.name.clone(),
            journal: Some(journal.clone()),
            ..options.clone()
        };
        let execution = self.executor.execute(&run.program, toolbox, &options);
        let mut execution = execution.await;
        if let Some(message) = journal.failure() {
            execution.error = Some(ExecutionError {
                name: "RunError".into(),
                message,
                ..ExecutionError::default()
            });
        }
        let error = execution.error.as_ref().map(|error| error.code);
        if error == Some(ErrorCode::Paused) {
            self.store.settle(&run.id, RunState::Paused, None)?;
            let (run, calls) = self.store.run(&run.id)?;
            return Ok(Progress::Paused(Paused {
                calls: asked(&calls).cloned().collect(),
                id: run.id,
                expires_ms: run.expires_ms,
            }));
        }
        let outcome = execution.to_json();
        self.store
            .settle(&run.id, RunState::Ended, Some(&outcome))?;
        Ok(Progress::Ended(Box::new(execution)))
    }

    fn beat(&self, id: &str) -> Heart {
        let (store, id) = (Arc::clone(&self.store), id.to_owned());
        Heart(tokio::spawn(async move {
            loop {
                tokio::time::sleep(LEASE / 4).await;
                let (store, run) = (Arc::clone(&store), id.clone());
                let renewed = tokio::task::spawn_blocking(move || store.renew(&run)).await;
                if let Ok(Err(error)) = renewed {
                    tracing::warn!(run = id, "the run may be taken by another process: {error}");
                }
            }
        }))
    }

    /// Takes back what a run that is over has done, the last call first: those that have succeeded, whose tools have
    /// something that takes them back, each at most once.
    ///
    /// # Errors
    /// There is no such run, it is not over, or the file.
    pub async fn roll_back(
        store: &Store,
        id: &str,
        toolbox: &Arc<Toolbox>,
        reverts: &Reverts,
    ) -> Result<Vec<Reverted>, RunsError> {
        let (run, mut calls) = store.run(id)?;
        if !run.state.is_over() {
            return Err(RunsError::NotOver(run.id, run.state.as_str()));
        }
        calls.sort_by_key(|call| std::cmp::Reverse(call.place));
        let mut reverted = Vec::new();
        for call in calls {
            let (Some(Ok(output)), Some(revert)) = (&call.outcome, reverts.get(&call.tool)) else {
                continue;
            };
            let (from, to) = (CallState::Ended, CallState::Reverting);
            if !store.revert(id, call.number, from, to)? {
                continue;
            }
            let arguments = revert.arguments(&call.arguments, output);
            let outcome = match arguments {
                Ok(arguments) => {
                    let called = toolbox.call(&revert.call, arguments).await;
                    called.map_err(|error| error.message)
                }
                Err(problem) => Err(problem),
            };
            // One that has failed can be tried again; one during which we die is left as it is.
            let then = match &outcome {
                Ok(_) => CallState::Reverted,
                Err(_) => CallState::Ended,
            };
            store.revert(id, call.number, CallState::Reverting, then)?;
            reverted.push(Reverted {
                number: call.number,
                tool: revert.call.clone(),
                problem: outcome.err(),
            });
        }
        Ok(reverted)
    }
}

fn asked(calls: &[Call]) -> impl Iterator<Item = &Call> {
    calls.iter().filter(|call| call.state == CallState::Asked)
}

fn random() -> Result<[u32; 6], RunsError> {
    let mut bytes = [0; 24];
    let got = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    got.map_err(|error| RunsError::Random(error.into()))?;
    let mut words = [0; 6];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(4)) {
        *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
    }
    Ok(words)
}

impl Paused {
    /// What is waited for, a call a line.
    #[must_use]
    pub fn lines(&self) -> String {
        let lines = self.calls.iter().map(|call| {
            let Call {
                number,
                tool,
                arguments,
                reason,
                ..
            } = call;
            format!("  {number}: {tool} with {} ({reason})\n", shown(arguments))
        });
        lines.collect()
    }
}
