//! The file: runs, and the calls of each.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use coracle_executor::{Beginning, Outcome, Output, ToolError};
use rusqlite::{Connection, Row, params};
use serde_json::{Value as Json, json};
use std::{
    fs::OpenOptions,
    io,
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// Runs that a file keeps. For a further one the oldest that are over are forgotten; it is refused where none is.
pub const RUNS_MAX: u64 = 10_000;
/// How many are forgotten at once.
const FORGOTTEN: u64 = 100;
/// Bytes of arguments and answers that are kept of one run.
pub const RUN_BYTES_MAX: u64 = 64 << 20;
/// How long a process may be silent that goes on with a run, before another may.
pub(crate) const LEASE: Duration = Duration::from_secs(10);
/// How long a process waits for another that writes to the file.
const BUSY: Duration = Duration::from_secs(10);
/// The layout below.
const VERSION: i64 = 1;
const LAYOUT: &str = "
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        program TEXT NOT NULL,
        seed TEXT NOT NULL,
        created_ms INTEGER NOT NULL,
        expires_ms INTEGER NOT NULL,
        state TEXT NOT NULL,
        lease_ms INTEGER NOT NULL,
        outcome TEXT
    ) STRICT;
    CREATE TABLE calls (
        run TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT NOT NULL,
        place INTEGER,
        ended_ms INTEGER,
        outcome TEXT,
        PRIMARY KEY (run, number)
    ) STRICT;
";

/// What went wrong with the file.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It can't be opened or made.
    #[error("{path}: {cause}")]
    File {
        /// Which.
        path: String,
        /// Why.
        cause: io::Error,
    },
    /// It can't be read or written.
    #[error("the file of runs: {0}")]
    Sqlite(#[from] rusqlite::Error),
    /// It was made by a later version.
    #[error("the file of runs has layout {0}, and this version knows {VERSION}")]
    Version(i64),
    /// What is in it is not what was written.
    #[error("the file of runs is damaged: {0}")]
    Damaged(String),
    /// There is no such run.
    #[error("there is no run {0}")]
    Missing(String),
    /// It is full.
    #[error(
        "{RUNS_MAX} runs are waiting or underway in the file: decide about some, or delete them (coracle runs delete)"
    )]
    TooMany,
    /// A run has too much to keep.
    #[error("arguments and answers of the run have more than {RUN_BYTES_MAX} bytes")]
    TooLarge,
}

/// How far a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunState {
    /// A process is at it.
    Running,
    /// It waits for approval.
    Paused,
    /// It has ended, with a result or an error.
    Ended,
    /// Somebody has rejected what it was to do.
    Rejected,
    /// Nobody has decided in time.
    Expired,
}

impl RunState {
    const ALL: [Self; 5] = [
        Self::Running,
        Self::Paused,
        Self::Ended,
        Self::Rejected,
        Self::Expired,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Ended => "ended",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }

    /// Whether nothing comes any more.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Rejected | Self::Expired)
    }
}

/// How far a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallState {
    /// It waits for approval.
    Asked,
    /// It may be made.
    Approved,
    /// It may not.
    Rejected,
    /// It is underway.
    Begun,
    /// It has ended.
    Ended,
    /// It is being taken back.
    Reverting,
    /// It was taken back.
    Reverted,
}

impl CallState {
    const ALL: [Self; 7] = [
        Self::Asked,
        Self::Approved,
        Self::Rejected,
        Self::Begun,
        Self::Ended,
        Self::Reverting,
        Self::Reverted,
    ];

    /// Its name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Begun => "begun",
            Self::Ended => "ended",
            Self::Reverting => "reverting",
            Self::Reverted => "reverted",
        }
    }
}

/// A run, without its calls.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// What it is called in commands.
    pub id: String,
    /// What errors call its program.
    pub name: String,
    /// Its program.
    pub program: String,
    /// What time and chance are made of.
    pub beginning: Beginning,
    /// Until when somebody may approve: milliseconds since 1970.
    pub expires_ms: u64,
    /// How far it is.
    pub state: RunState,
    /// What came of it, as [`coracle_executor::Execution::to_json`] says it, or why it was rejected.
    pub outcome: Option<Json>,
}

/// A call of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// From 0, in the order in which the program made them.
    pub number: usize,
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Json,
    /// How far it is.
    pub state: CallState,
    /// The rule that asks for approval, or why somebody said no; empty where nothing was asked.
    pub reason: String,
    /// Which of the calls that have ended it is, from 0, and when it did.
    pub place: Option<(u64, u64)>,
    /// What came of it.
    pub outcome: Option<Outcome>,
}

/// What somebody says of a call that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It may be made.
    Approve,
    /// It may not, for that reason.
    Reject(String),
}

/// A file of runs. Any number of processes may use it at once.
pub struct Store(Mutex<Connection>);

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

impl Store {
    /// Opens a file, and makes it where there is none, for its owner only.
    ///
    /// # Errors
    /// It is not there, not ours, or no such file.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let made = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path);
        made.map_err(|cause| StoreError::File {
            path: path.display().to_string(),
            cause,
        })?;
        let connection = Connection::open(path)?;
        connection.busy_timeout(BUSY)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // What is told is on the disk.
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let store = Self(Mutex::new(connection));
        store.lay_out()?;
        Ok(store)
    }

    fn lay_out(&self) -> Result<(), StoreError> {
        let mut connection = self.lock();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let version: i64 = transaction.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        match version {
            0 => {
                transaction.execute_batch(LAYOUT)?;
                transaction.pragma_update(None, "user_version", VERSION)?;
            }
            VERSION => {}
            other => return Err(StoreError::Version(other)),
        }
        transaction.commit()?;
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new run, which this process is at.
    pub(crate) fn create(&self, run: &Run) -> Result<(), StoreError> {
        let connection = self.lock();
        let count = || -> Result<u64, StoreError> {
            Ok(connection.query_row("SELECT count(*) FROM runs", [], |row| row.get(0))?)
        };
        if count()? >= RUNS_MAX {
            connection.execute(
                "DELETE FROM runs WHERE id IN (SELECT id FROM runs WHERE state NOT IN ('running', 'paused')
                 ORDER BY created_ms LIMIT ?1)",
                [FORGOTTEN],
            )?;
            if count()? >= RUNS_MAX {
                return Err(StoreError::TooMany);
            }
        }
        let seed = json!(run.beginning.seed).to_string();
        connection.execute(
            "INSERT INTO runs VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, NULL)",
            params![
                run.id,
                run.name,
                run.program,
                seed,
                run.beginning.at_ms,
                run.expires_ms,
                run.state.as_str(),
                lease()
            ],
        )?;
        Ok(())
    }

    /// All runs, the newest first. Those whose time is over are over.
    ///
    /// # Errors
    /// The file.
    pub fn runs(&self) -> Result<Vec<Run>, StoreError> {
        let connection = self.lock();
        expire(&connection)?;
        let mut statement =
            connection.prepare("SELECT * FROM runs ORDER BY created_ms DESC, id")?;
        let rows = statement.query_and_then([], run_of)?;
        rows.collect()
    }

    /// A run and its calls.
    ///
    /// # Errors
    /// There is none, or the file.
    pub fn run(&self, id: &str) -> Result<(Run, Vec<Call>), StoreError> {
        let connection = self.lock();
        expire(&connection)?;
        let run = read_run(&connection, id)?;
        let mut statement =
            connection.prepare("SELECT * FROM calls WHERE run = ?1 ORDER BY number")?;
        let calls = statement.query_and_then([id], call_of)?;
        Ok((run, calls.collect::<Result<_, _>>()?))
    }

    /// Says something of calls that wait: of one, or of all. Saying the same again changes nothing. Answers how many
    /// were waiting. A run of which a call is rejected is over.
    ///
    /// # Errors
    /// There is no such run, or the file.
    pub fn decide(
        &self,
        id: &str,
        number: Option<usize>,
        decision: &Decision,
    ) -> Result<usize, StoreError> {
        let mut connection = self.lock();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        expire(&transaction)?;
        let run = read_run(&transaction, id)?;
        if run.state.is_over() {
            return Ok(0);
        }
        let (state, reason) = match decision {
            Decision::Approve => (CallState::Approved, None),
            Decision::Reject(reason) => (CallState::Rejected, Some(reason)),
        };
        let changed = transaction.execute(
            "UPDATE calls SET state = ?1, reason = coalesce(?2, reason)
             WHERE run = ?3 AND state = 'asked' AND (?4 IS NULL OR number = ?4)",
            params![state.as_str(), reason, id, number],
        )?;
        if let (Decision::Reject(reason), true) = (decision, changed > 0) {
            let outcome = json!({ "rejected": reason }).to_string();
            transaction.execute(
                "UPDATE runs SET state = 'rejected', outcome = ?1 WHERE id = ?2",
                params![outcome, id],
            )?;
        }
        transaction.commit()?;
        Ok(changed)
    }

    /// Forgets a run.
    ///
    /// # Errors
    /// There is none, or the file.
    pub fn delete(&self, id: &str) -> Result<(), StoreError> {
        match self
            .lock()
            .execute("DELETE FROM runs WHERE id = ?1", [id])?
        {
            0 => Err(StoreError::Missing(id.into())),
            _ => Ok(()),
        }
    }

    /// Goes on with a run: answers it and its calls where this process is the one to do so. Calls during which another has
    /// died have ended, and nobody knows how.
    pub(crate) fn take(&self, id: &str) -> Result<Option<(Run, Vec<Call>)>, StoreError> {
        let mut connection = self.lock();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        expire(&transaction)?;
        let taken = transaction.execute(
            "UPDATE runs SET state = 'running', lease_ms = ?1
             WHERE id = ?2 AND (state = 'paused' OR state = 'running' AND lease_ms < ?3)",
            params![lease(), id, now_ms()],
        )?;
        let run = read_run(&transaction, id)?;
        if taken == 0 {
            return Ok(None);
        }
        let unknown: Outcome = Err(ToolError::new(
            "outcome_unknown",
            "the call was underway when the process that made it died, and nobody knows what became of it",
        ));
        let calls: Vec<Call> = {
            let mut statement =
                transaction.prepare("SELECT * FROM calls WHERE run = ?1 ORDER BY number")?;
            let calls = statement.query_and_then([id], call_of)?;
            calls.collect::<Result<_, StoreError>>()?
        };
        let underway = calls.iter().filter(|call| call.state == CallState::Begun);
        for (place, call) in (next_place(&transaction, id)?..).zip(underway) {
            transaction.execute(
                "UPDATE calls SET state = 'ended', place = ?1, ended_ms = ?2, outcome = ?3
                 WHERE run = ?4 AND number = ?5",
                params![place, now_ms(), text_of(&unknown), id, call.number],
            )?;
        }
        transaction.commit()?;
        drop(connection);
        let (_, calls) = self.run(id)?;
        Ok(Some((run, calls)))
    }

    /// This process is still at it.
    pub(crate) fn renew(&self, id: &str) -> Result<(), StoreError> {
        let renewed = "UPDATE runs SET lease_ms = ?1 WHERE id = ?2 AND state = 'running'";
        self.lock().execute(renewed, params![lease(), id])?;
        Ok(())
    }

    /// The run waits, or is over. One that was rejected meanwhile stays so.
    pub(crate) fn settle(
        &self,
        id: &str,
        state: RunState,
        outcome: Option<&Json>,
    ) -> Result<(), StoreError> {
        self.lock().execute(
            "UPDATE runs SET state = ?1, outcome = ?2 WHERE id = ?3 AND state = 'running'",
            params![state.as_str(), outcome.map(Json::to_string), id],
        )?;
        Ok(())
    }

    /// Writes down how far a call is that has not ended.
    pub(crate) fn note(
        &self,
        id: &str,
        (number, tool, arguments): (usize, &str, &Json),
        state: CallState,
        reason: &str,
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let arguments = arguments.to_string();
        check_room(&connection, id, arguments.len())?;
        connection.execute(
            "INSERT INTO calls VALUES (?1, ?2, ?3, ?4, ?5, ?6, NULL, NULL, NULL)
             ON CONFLICT DO UPDATE SET state = excluded.state",
            params![id, number, tool, arguments, state.as_str(), reason],
        )?;
        Ok(())
    }

    /// Writes down what came of a call; answers when that was, and which it is of those that have ended.
    pub(crate) fn end(
        &self,
        id: &str,
        (number, tool, arguments): (usize, &str, &Json),
        outcome: &Outcome,
    ) -> Result<(u64, u64), StoreError> {
        let mut connection = self.lock();
        let transaction =
            connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        let (outcome, arguments) = (text_of(outcome), arguments.to_string());
        check_room(&transaction, id, outcome.len() + arguments.len())?;
        let (place, ended_ms) = (next_place(&transaction, id)?, now_ms());
        transaction.execute(
            "INSERT INTO calls VALUES (?1, ?2, ?3, ?4, 'ended', '', ?5, ?6, ?7)
             ON CONFLICT DO UPDATE SET state = 'ended', place = ?5, ended_ms = ?6, outcome = ?7",
            params![id, number, tool, arguments, place, ended_ms, outcome],
        )?;
        transaction.commit()?;
        Ok((place, ended_ms))
    }

    /// Sets how far the taking back of a call is, if it was that far before.
    pub(crate) fn revert(
        &self,
        id: &str,
        number: usize,
        from: CallState,
        to: CallState,
    ) -> Result<bool, StoreError> {
        let changed = self.lock().execute(
            "UPDATE calls SET state = ?1 WHERE run = ?2 AND number = ?3 AND state = ?4",
            params![to.as_str(), id, number, from.as_str()],
        )?;
        Ok(changed > 0)
    }
}

fn lease() -> u64 {
    now_ms() + LEASE.as_millis() as u64
}

/// Runs that nobody has decided about in time are over.
fn expire(connection: &Connection) -> Result<(), StoreError> {
    let expired = "UPDATE runs SET state = 'expired' WHERE state = 'paused' AND expires_ms < ?1";
    connection.execute(expired, [now_ms()])?;
    Ok(())
}

fn check_room(connection: &Connection, id: &str, more: usize) -> Result<(), StoreError> {
    let kept: u64 = connection.query_row(
        "SELECT coalesce(sum(length(arguments) + coalesce(length(outcome), 0)), 0) FROM calls WHERE run = ?1",
        [id],
        |row| row.get(0),
    )?;
    match kept + more as u64 > RUN_BYTES_MAX {
        true => Err(StoreError::TooLarge),
        false => Ok(()),
    }
}

fn next_place(connection: &Connection, id: &str) -> Result<u64, StoreError> {
    let next = "SELECT coalesce(max(place) + 1, 0) FROM calls WHERE run = ?1";
    Ok(connection.query_row(next, [id], |row| row.get(0))?)
}

fn read_run(connection: &Connection, id: &str) -> Result<Run, StoreError> {
    let mut statement = connection.prepare("SELECT * FROM runs WHERE id = ?1")?;
    let mut rows = statement.query_and_then([id], run_of)?;
    rows.next()
        .unwrap_or_else(|| Err(StoreError::Missing(id.into())))
}

fn damaged(what: impl std::fmt::Display) -> StoreError {
    StoreError::Damaged(what.to_string())
}

fn run_of(row: &Row<'_>) -> Result<Run, StoreError> {
    let (seed, state): (String, String) = (row.get("seed")?, row.get("state")?);
    let outcome: Option<String> = row.get("outcome")?;
    let outcome = outcome.map(|text| serde_json::from_str(&text)).transpose();
    Ok(Run {
        id: row.get("id")?,
        name: row.get("name")?,
        program: row.get("program")?,
        beginning: Beginning {
            at_ms: row.get("created_ms")?,
            seed: serde_json::from_str(&seed).map_err(damaged)?,
        },
        expires_ms: row.get("expires_ms")?,
        state: RunState::ALL
            .into_iter()
            .find(|known| known.as_str() == state)
            .ok_or_else(|| damaged(format!("a run is {state:?}")))?,
        outcome: outcome.map_err(damaged)?,
    })
}

fn call_of(row: &Row<'_>) -> Result<Call, StoreError> {
    let (arguments, state): (String, String) = (row.get("arguments")?, row.get("state")?);
    let outcome: Option<String> = row.get("outcome")?;
    let (place, ended_ms): (Option<u64>, Option<u64>) = (row.get("place")?, row.get("ended_ms")?);
    Ok(Call {
        number: row.get("number")?,
        tool: row.get("tool")?,
        arguments: serde_json::from_str(&arguments).map_err(damaged)?,
        state: CallState::ALL
            .into_iter()
            .find(|known| known.as_str() == state)
            .ok_or_else(|| damaged(format!("a call is {state:?}")))?,
        reason: row.get("reason")?,
        place: place.zip(ended_ms),
        outcome: outcome.map(|text| outcome_of(&text)).transpose()?,
    })
}

fn text_of(outcome: &Outcome) -> String {
    let told = match outcome {
        Ok(Output::Json(value)) => json!({ "value": value }),
        Ok(Output::Bytes(bytes)) => json!({ "bytes": BASE64_STANDARD.encode(bytes) }),
        Err(error) => json!({ "code": error.code, "message": error.message }),
    };
    told.to_string()
}

fn outcome_of(text: &str) -> Result<Outcome, StoreError> {
    let mut told: Json = serde_json::from_str(text).map_err(damaged)?;
    if let Some(value) = told.get_mut("value") {
        return Ok(Ok(Output::Json(value.take())));
    }
    let said = |name: &str| told.get(name).and_then(Json::as_str);
    if let Some(bytes) = said("bytes") {
        let bytes = BASE64_STANDARD.decode(bytes).map_err(damaged)?;
        return Ok(Ok(Output::Bytes(bytes)));
    }
    match (said("code"), said("message")) {
        (Some(code), Some(message)) => Ok(Err(ToolError::new(code, message))),
        _ => Err(damaged("a call has ended with nothing")),
    }
}

#[cfg(test)]
mod tests;
