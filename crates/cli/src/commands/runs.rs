//! `coracle runs`: programs that wait for somebody, in a file.

use crate::{
    commands::exec::{self, write_json},
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    limits::LimitArgs,
    logging,
    sandbox::ConnectArgs,
    terminal::{self, Terminal},
    text::visible,
    tools::ToolsArgs,
};
use clap::{Args, Subcommand};
use coracle_executor::{ExecuteOptions, Execution, Executor, Outcome, Output};
use coracle_runs::{Call, Decision, Paused, Progress, Run, Runs, RunsError, Store};
use serde_json::{Value as Json, json};
use std::{path::PathBuf, sync::Arc};

/// Look at runs that wait for approval, and decide about them.
///
/// Runs are begun by `coracle exec --runs FILE` and by agents of `coracle mcp --runs FILE`: a program
/// that calls a tool whose policy says "ask" is let go, and gone on with when somebody has approved.
#[derive(Args)]
pub(crate) struct RunsArgs {
    #[command(subcommand)]
    command: RunsCommand,
}

#[derive(Subcommand)]
enum RunsCommand {
    /// List all runs, the newest first
    List {
        #[command(flatten)]
        file: FileArgs,
    },
    /// Show a run with its calls
    Show {
        #[command(flatten)]
        run: RunArgs,
    },
    /// Approve of calls of a run, and go on with it
    Approve(Box<ApproveArgs>),
    /// Go on with a run that somebody has approved of, or whose process has died
    Resume(Box<ResumeArgs>),
    /// Reject calls of a run, which ends it
    Reject {
        #[command(flatten)]
        run: RunArgs,

        /// Only this call, by its number [default: all that wait]
        #[arg(long, value_name = "NUMBER")]
        call: Option<usize>,

        /// Why
        #[arg(long, value_name = "TEXT", default_value = "rejected")]
        reason: String,
    },
    /// Take back what a run has done that is over: by the tools that the tools file names in "reverts"
    Rollback {
        #[command(flatten)]
        run: RunArgs,

        #[command(flatten)]
        tools: ToolsArgs,
    },
    /// Forget a run
    Delete {
        #[command(flatten)]
        run: RunArgs,
    },
}

#[derive(Args)]
struct FileArgs {
    /// The file of runs
    #[arg(long, value_name = "FILE")]
    runs: PathBuf,
}

#[derive(Args)]
struct RunArgs {
    /// The run, as `list` names it
    #[arg(value_name = "RUN")]
    id: String,

    #[command(flatten)]
    file: FileArgs,
}

#[derive(Args)]
struct ApproveArgs {
    /// Only this call, by its number [default: all that wait]
    #[arg(long, value_name = "NUMBER")]
    call: Option<usize>,

    /// Leave it to another process to go on
    #[arg(long)]
    later: bool,

    #[command(flatten)]
    resume: ResumeArgs,
}

#[derive(Args)]
struct ResumeArgs {
    #[command(flatten)]
    run: RunArgs,

    #[command(flatten)]
    tools: ToolsArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    guest: GuestArgs,
}

impl From<RunsError> for Failure {
    fn from(error: RunsError) -> Self {
        let message = visible(&error.to_string());
        match error {
            RunsError::Store(_) | RunsError::Random(_) | RunsError::Busy(_) => {
                Self::server(message)
            }
            RunsError::NotOver(..) => Self::usage(message),
        }
    }
}

/// The file of runs.
pub(crate) fn open(path: &std::path::Path) -> Result<Arc<Store>, Failure> {
    let store = Store::open(path).map_err(Failure::server)?;
    Ok(Arc::new(store))
}

pub(crate) async fn runs(args: RunsArgs) -> Result<Exit, Failure> {
    let terminal = Terminal::detect();
    logging::install_for_command(terminal);
    let failed = |error| Failure::from(RunsError::Store(error));
    match args.command {
        RunsCommand::List { file } => {
            let runs = open(&file.runs)?.runs().map_err(failed)?;
            write_json(&runs.iter().map(summary).collect(), terminal)?;
        }
        RunsCommand::Show { run } => {
            let (run, calls) = open(&run.file.runs)?.run(&run.id).map_err(failed)?;
            let mut document = summary(&run);
            document["program"] = run.program.into();
            document["outcome"] = run.outcome.into();
            document["calls"] = calls.iter().map(call_document).collect();
            write_json(&document, terminal)?;
        }
        RunsCommand::Approve(args) => return args.approve(terminal).await,
        RunsCommand::Resume(args) => return args.resume(terminal).await,
        RunsCommand::Reject { run, call, reason } => {
            let store = open(&run.file.runs)?;
            let decision = Decision::Reject(reason);
            let changed = store.decide(&run.id, call, &decision).map_err(failed)?;
            terminal::write_stderr(&format!("{changed} calls rejected\n"));
        }
        RunsCommand::Rollback { run, tools } => return roll_back(&run, &tools, terminal).await,
        RunsCommand::Delete { run } => open(&run.file.runs)?.delete(&run.id).map_err(failed)?,
    }
    Ok(Exit::Ok)
}

impl ApproveArgs {
    async fn approve(&self, terminal: Terminal) -> Result<Exit, Failure> {
        let run = &self.resume.run;
        let store = open(&run.file.runs)?;
        let decided = store.decide(&run.id, self.call, &Decision::Approve);
        let changed = decided.map_err(|error| Failure::from(RunsError::Store(error)))?;
        terminal::write_stderr(&format!("{changed} calls approved\n"));
        match self.later {
            true => Ok(Exit::Ok),
            false => self.resume.resume(terminal).await,
        }
    }
}

impl ResumeArgs {
    async fn resume(&self, terminal: Terminal) -> Result<Exit, Failure> {
        let asked = self.limits.asked()?;
        let store = open(&self.run.file.runs)?;
        let tools = self.tools.open(|_| ()).await?;
        let toolbox = Arc::clone(&tools.toolbox);
        let limits = toolbox.limits();
        let (coracle, limits) = exec::open(&self.connect, &self.guest, &asked, limits).await?;
        let options = ExecuteOptions {
            limits,
            ..ExecuteOptions::default()
        };
        let runs = Runs::new(store, Executor::new(coracle));
        let progress = runs.go_on(&self.run.id, &toolbox, &options).await;
        tools.close().await;
        match progress? {
            Progress::Paused(paused) => Ok(tell_paused(&paused, &self.run.file.runs)),
            // Saying the same twice is no fault: this is what came of it.
            Progress::Over(run) => {
                write_json(&run.outcome.unwrap_or_default(), terminal)?;
                Ok(Exit::Ok)
            }
            Progress::Ended(execution) => {
                write_json(&execution.to_json(), terminal)?;
                Ok(exit_of(&execution))
            }
        }
    }
}

async fn roll_back(run: &RunArgs, tools: &ToolsArgs, terminal: Terminal) -> Result<Exit, Failure> {
    let store = open(&run.file.runs)?;
    let tools = tools.open(|_| ()).await?;
    let reverted = Runs::roll_back(&store, &run.id, &tools.toolbox, &tools.reverts).await;
    tools.close().await;
    let reverted = reverted?;
    let is_whole = reverted.iter().all(|reverted| reverted.problem.is_none());
    let document = reverted.iter().map(|reverted| {
        json!({ "call": reverted.number, "tool": reverted.tool, "problem": reverted.problem })
    });
    write_json(&document.collect(), terminal)?;
    Ok(if is_whole { Exit::Ok } else { Exit::Threw })
}

fn exit_of(execution: &Execution) -> Exit {
    exec::exit_of(execution.error.as_ref())
}

/// Says what a run waits for.
pub(crate) fn tell_paused(paused: &Paused, file: &std::path::Path) -> Exit {
    let (id, lines) = (&paused.id, visible(&paused.lines()));
    let file = visible(&file.display().to_string());
    terminal::write_stderr(&format!(
        "the run {id} waits for approval of:\n{lines}approve with: coracle runs approve {id} --runs {file}\n"
    ));
    Exit::Paused
}

fn summary(run: &Run) -> Json {
    json!({
        "run": run.id,
        "name": run.name,
        "state": run.state.as_str(),
        "createdMs": run.beginning.at_ms,
        "expiresMs": run.expires_ms,
    })
}

fn call_document(call: &Call) -> Json {
    let mut document = json!({
        "call": call.number,
        "tool": call.tool,
        "arguments": call.arguments,
        "state": call.state.as_str(),
    });
    if !call.reason.is_empty() {
        document["reason"] = call.reason.clone().into();
    }
    if let Some((_, ended_ms)) = call.place {
        document["endedMs"] = ended_ms.into();
    }
    match &call.outcome {
        None => {}
        Some(Outcome::Ok(Output::Json(value))) => document["result"] = value.clone(),
        Some(Outcome::Ok(Output::Bytes(bytes))) => document["resultBytes"] = bytes.len().into(),
        Some(Outcome::Err(error)) => {
            document["error"] = json!({ "code": error.code, "message": error.message });
        }
    }
    document
}
