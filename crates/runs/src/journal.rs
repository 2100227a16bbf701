//! The calls of one run, written down as they are made, and answered again when the run is gone on with.

use crate::store::{Call, CallState, Store, StoreError};
use coracle_executor::{Beginning, Comes, Journal, Outcome, ToolError};
use futures::future::BoxFuture;
use serde_json::Value as Json;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::watch;

/// What a program gets to make its other calls, when one waits for approval and nothing is underway: so that somebody is
/// asked once for several.
const GATHERING: Duration = Duration::from_millis(50);

pub(crate) struct RunJournal {
    store: Arc<Store>,
    run: String,
    beginning: Beginning,
    known: HashMap<usize, Call>,
    /// How many of the known answers have been given.
    given: watch::Sender<u64>,
    waiting: watch::Sender<Waiting>,
    failure: Mutex<Option<String>>,
}

/// What a run waits for.
#[derive(Clone, Copy, Debug, Default)]
struct Waiting {
    /// Calls that have no approval.
    asked: usize,
    /// Calls that are being made, or written down.
    underway: usize,
    /// Changes of either, so that a pause begins when there are none.
    changes: u64,
}

impl RunJournal {
    pub(crate) fn new(
        store: &Arc<Store>,
        run: &str,
        beginning: Beginning,
        calls: Vec<Call>,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            run: run.into(),
            beginning,
            known: calls.into_iter().map(|call| (call.number, call)).collect(),
            given: watch::Sender::new(0),
            waiting: watch::Sender::default(),
            failure: Mutex::default(),
        }
    }

    /// Why the run can't be gone on with, if it can't.
    pub(crate) fn failure(&self) -> Option<String> {
        self.lock_failure().clone()
    }

    fn lock_failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn fail(&self, message: String) {
        self.lock_failure().get_or_insert(message);
        // Whoever waits for a pause looks.
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        self.waiting.send_modify(|waiting| {
            change(waiting);
            waiting.changes += 1;
        });
    }

    /// Something with the file, off the threads that others wait for.
    async fn store<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Store, &str) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (store, run) = (Arc::clone(&self.store), self.run.clone());
        let acted = tokio::task::spawn_blocking(move || act(&store, &run)).await;
        let failed = |problem: String| ToolError::new("run_unwritten", problem);
        match acted {
            Ok(acted) => acted.map_err(|error| failed(error.to_string())),
            Err(error) => Err(failed(error.to_string())),
        }
    }

    async fn note(
        &self,
        number: usize,
        tool: &str,
        arguments: &Json,
        (state, reason): (CallState, &str),
    ) -> Result<(), ToolError> {
        let (tool, arguments, reason) = (tool.to_owned(), arguments.clone(), reason.to_owned());
        self.store(move |store, run| store.note(run, (number, &tool, &arguments), state, &reason))
            .await
    }
}

impl Journal for RunJournal {
    fn beginning(&self) -> Beginning {
        self.beginning
    }

    fn comes<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
    ) -> BoxFuture<'a, Comes> {
        Box::pin(async move {
            self.change(|waiting| waiting.underway += 1);
            let Some(call) = self.known.get(&number) else {
                return Comes::New;
            };
            if call.tool != tool || call.arguments != *arguments {
                self.fail(format!(
                    "the program does not repeat itself: its call {number} was {} with {}, and is {tool} with {} now",
                    call.tool,
                    shown(&call.arguments),
                    shown(arguments)
                ));
                return std::future::pending().await;
            }
            let (Some((place, ended_ms)), Some(outcome)) = (call.place, &call.outcome) else {
                return Comes::New;
            };
            let mut given = self.given.subscribe();
            // Its sender is here.
            let _ = given.wait_for(|given| *given >= place).await;
            self.given
                .send_modify(|given| *given = (*given).max(place + 1));
            self.change(|waiting| waiting.underway -= 1);
            Comes::Known(outcome.clone(), ended_ms)
        })
    }

    fn asks<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
        reason: &'a str,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            let state = self.known.get(&number).map(|call| call.state);
            if state == Some(CallState::Approved) {
                return Ok(());
            }
            self.note(number, tool, arguments, (CallState::Asked, reason))
                .await?;
            self.change(|waiting| {
                waiting.asked += 1;
                waiting.underway -= 1;
            });
            std::future::pending().await
        })
    }

    fn begins<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
    ) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(self.note(number, tool, arguments, (CallState::Begun, "")))
    }

    fn ends<'a>(
        &'a self,
        number: usize,
        tool: &'a str,
        arguments: &'a Json,
        outcome: &'a Outcome,
    ) -> BoxFuture<'a, Result<u64, ToolError>> {
        Box::pin(async move {
            let (tool, arguments, outcome) = (tool.to_owned(), arguments.clone(), outcome.clone());
            let ended = self
                .store(move |store, run| store.end(run, (number, &tool, &arguments), &outcome))
                .await;
            self.change(|waiting| waiting.underway -= 1);
            let (_, ended_ms) = ended?;
            Ok(ended_ms)
        })
    }

    fn pauses(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut waiting = self.waiting.subscribe();
            loop {
                let now = *waiting.borrow_and_update();
                if self.failure().is_some() {
                    return;
                }
                let is_still = now.asked > 0 && now.underway == 0;
                // Its sender is here, so that a change is all it can be woken by.
                let changed = waiting.changed();
                match is_still {
                    false => drop(changed.await),
                    true => {
                        if tokio::time::timeout(GATHERING, changed).await.is_err() {
                            return;
                        }
                    }
                }
            }
        })
    }
}

/// The beginning of some arguments, for people.
pub(crate) fn shown(arguments: &Json) -> String {
    const CHARS: usize = 200;
    let text = arguments.to_string();
    match text.char_indices().nth(CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coracle_executor::Output;
    use futures::FutureExt as _;
    use serde_json::json;
    use tempfile::TempDir;

    fn ended(number: usize, place: u64) -> Call {
        Call {
            number,
            tool: "a.b".into(),
            arguments: json!({ "n": number }),
            state: CallState::Ended,
            reason: String::new(),
            place: Some((place, 1_000 + place)),
            outcome: Some(Ok(Output::Json(number.into()))),
        }
    }

    fn journal(calls: Vec<Call>) -> (TempDir, RunJournal) {
        let folder = TempDir::new().expect("a folder");
        let store = Arc::new(Store::open(&folder.path().join("runs")).expect("a file"));
        let beginning = Beginning {
            at_ms: 1,
            seed: [0; 4],
        };
        (folder, RunJournal::new(&store, "r1", beginning, calls))
    }

    /// What came second is answered second, whatever is asked first.
    #[tokio::test]
    async fn answers_come_in_the_order_in_which_they_came() {
        let (_folder, journal) = journal(vec![ended(0, 1), ended(1, 0)]);
        let (first, second) = (json!({ "n": 0 }), json!({ "n": 1 }));
        let mut early = journal.comes(0, "a.b", &first);
        assert!((&mut early).now_or_never().is_none());
        let known = journal.comes(1, "a.b", &second).await;
        assert_eq!(known, Comes::Known(Ok(Output::Json(json!(1))), 1_000));
        assert_eq!(early.await, Comes::Known(Ok(Output::Json(json!(0))), 1_001));
        assert_eq!(journal.comes(2, "a.b", &first).await, Comes::New);
    }

    /// A program that calls something else than before is not answered, and the run has failed.
    #[tokio::test]
    async fn a_program_has_to_repeat_itself() {
        for (tool, arguments) in [("a.c", json!({ "n": 0 })), ("a.b", json!({ "n": 1 }))] {
            let (_folder, journal) = journal(vec![ended(0, 0)]);
            let other = journal.comes(0, tool, &arguments);
            assert!(other.now_or_never().is_none());
            journal.pauses().await;
            let failure = journal.failure().expect("it has failed");
            assert!(failure.contains("does not repeat itself"), "{failure}");
        }
    }
}
