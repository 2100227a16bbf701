//! `coracle exec`: a program of Code Mode, in this process or on a server, and what came of it.

use crate::{
    commands::runs,
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    json,
    limits::{self, LimitArgs, LimitValue},
    logging,
    modules::{ModuleFile, ModuleFiles},
    report,
    sandbox::{self, ConnectArgs},
    terminal::{self, Terminal},
    text::visible,
    tools::ToolsArgs,
};
use clap::{Args, ValueEnum};
use coracle_client::{Coracle, ModuleBody, Thrown};
use coracle_codemode::Limits;
use coracle_executor::{
    CallStatus, ErrorCode, ExecuteOptions, Execution, ExecutionError, Executor,
};
use coracle_loader::LimitName;
use coracle_runs::{Progress, Runs};
use std::{
    fs::File,
    io::{self, Read},
    path::PathBuf,
    sync::Arc,
};

/// Read of a program at most, whatever the limit on its characters: four bytes for each of its ceiling.
const PROGRAM_BYTES_MAX: u64 = 64 << 20;

/// Run a program that calls tools, in a sandbox inside this command or on a server.
///
/// The program is TypeScript or JavaScript in any shape that models write: statements whose last
/// expression is the result, a function, an object, a module with a default export, with a fence
/// around it or without. Tools are global objects by namespace. The result goes to stdout as JSON;
/// what the program wrote to the console, errors and what the run cost go to stderr.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  coracle exec -e '6 * 7'
  coracle exec report.ts --tools tools.json
  cat program.md | coracle exec --tools tools.json --json | jq .calls

Exit codes: 0 a result, 1 thrown or no program, 2 usage or too long, 3 stopped by a limit, 4 server trouble,
5 it waits for approval.")]
pub(crate) struct ExecArgs {
    /// The program; - or nothing reads it from stdin
    #[arg(value_name = "FILE", conflicts_with = "eval")]
    file: Option<PathBuf>,

    /// The program itself
    #[arg(short = 'e', long = "eval", value_name = "CODE")]
    eval: Option<String>,

    #[command(flatten)]
    tools: ToolsArgs,

    /// Keep the run in this file, so that it can wait for approval of tools whose policy says "ask"
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,

    /// Bounds on the program and on what is shown of its result
    #[arg(long, value_enum)]
    preset: Option<Preset>,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    guest: GuestArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// 20,000 characters of program and 12,000 of result
    Article,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write one JSON document with result, error, calls, usage and console to stdout, and nothing to stderr
    #[arg(long)]
    json: bool,

    /// Write all of a result, however large
    #[arg(long, conflicts_with = "json")]
    whole: bool,

    /// Write what the run cost to stderr, as is done on a terminal
    #[arg(long)]
    usage: bool,

    /// Write neither console lines nor usage
    #[arg(long, conflicts_with = "usage")]
    quiet: bool,
}

/// The program, and what it is called.
struct Source {
    name: String,
    path: PathBuf,
    code: String,
}

pub(crate) async fn exec(args: ExecArgs) -> Result<Exit, Failure> {
    let terminal = Terminal::detect();
    if !args.output.json && !args.output.quiet {
        logging::install_for_command(terminal);
    }
    let asked = args.limits.asked()?;
    let preset = args.preset;
    let source = args.source()?;
    let adjust = |limits: &mut Limits| {
        if preset == Some(Preset::Article) {
            let article = Limits::article();
            limits.program_chars_max = article.program_chars_max;
            limits.result_chars_max = article.result_chars_max;
        }
    };
    let tools = args.tools.open(adjust).await?;
    let toolbox = Arc::clone(&tools.toolbox);
    let (coracle, limits) = open(&args.connect, &args.guest, &asked, toolbox.limits()).await?;
    let options = ExecuteOptions {
        name: source.name.clone(),
        limits,
        ..ExecuteOptions::default()
    };
    let executor = Executor::new(coracle);
    let execution = match &args.runs {
        None => executor.execute(&source.code, &toolbox, &options).await,
        Some(file) => {
            let runs = Runs::new(runs::open(file)?, executor);
            let begun = runs.begin(&source.code, &toolbox, &options).await;
            match begun {
                Ok((_, Progress::Ended(execution))) => *execution,
                Ok((_, Progress::Paused(paused))) => {
                    tools.close().await;
                    return Ok(runs::tell_paused(&paused, file));
                }
                Ok((id, Progress::Over(_))) => {
                    tools.close().await;
                    return Err(Failure::server(format!("the run {id} has ended already")));
                }
                Err(error) => {
                    tools.close().await;
                    return Err(error.into());
                }
            }
        }
    };
    tools.close().await;
    args.output.write(&execution, source, terminal)
}

/// A sandbox for programs, and the limits that each is to ask for.
pub(crate) async fn open(
    connect: &ConnectArgs,
    guest: &GuestArgs,
    asked: &[LimitValue],
    limits: &Limits,
) -> Result<(Coracle, coracle_client::Limits), Failure> {
    if let Some(address) = connect.server() {
        return Ok((connect.connect(address).await?, limits::as_request(asked)?));
    }
    // Calls are counted and have their turns outside of the sandbox, whose own limits are not to come before.
    let calls_max = limits.calls_max as u64 + 1;
    let mut asked = asked.to_vec();
    for (name, value) in [
        (LimitName::SubrequestsMax, calls_max.saturating_mul(2)),
        (LimitName::SubrequestsInFlightMax, calls_max),
    ] {
        if !asked.iter().any(|(known, _)| *known == name) {
            asked.push((name, value.min(name.ceiling())));
        }
    }
    let coracle = sandbox::embedded(guest, &asked, None).await?;
    Ok((coracle, coracle_client::Limits::default()))
}

impl ExecArgs {
    fn source(&self) -> Result<Source, Failure> {
        if let Some(code) = &self.eval {
            return Ok(Source {
                name: "program.ts".into(),
                path: "-e".into(),
                code: code.clone(),
            });
        }
        let path = self.file.as_ref().filter(|path| path.as_os_str() != "-");
        let Some(path) = path else {
            return Ok(Source {
                name: "program.ts".into(),
                path: "stdin".into(),
                code: program("stdin", io::stdin().lock())?,
            });
        };
        let shown = path.display().to_string();
        let file = File::open(path)
            .map_err(|error| Failure::usage(format!("can't read {shown}: {error}")))?;
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        Ok(Source {
            name: name.unwrap_or_else(|| "program.ts".into()),
            code: program(&shown, file)?,
            path: path.clone(),
        })
    }
}

fn program(shown: &str, file: impl Read) -> Result<String, Failure> {
    let mut code = String::new();
    let read = file.take(PROGRAM_BYTES_MAX + 1).read_to_string(&mut code);
    read.map_err(|error| Failure::usage(format!("can't read {shown}: {error}")))?;
    if code.len() as u64 > PROGRAM_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{shown} has more than {PROGRAM_BYTES_MAX} bytes"
        )));
    }
    Ok(code)
}

impl OutputArgs {
    fn write(
        &self,
        execution: &Execution,
        source: Source,
        terminal: Terminal,
    ) -> Result<Exit, Failure> {
        let exit = exit_of(execution.error.as_ref());
        if self.json {
            write_json(&execution.to_json(), terminal)?;
            return Ok(exit);
        }
        let paint = terminal.paint;
        if !self.quiet {
            terminal::write_stderr(&report::logs(
                &execution.logs,
                execution.log_bytes_dropped,
                paint,
            ));
        }
        match &execution.error {
            Some(error) if exit == Exit::Threw => {
                terminal::write_stderr(&report::thrown(
                    &thrown(error, &source),
                    &files(source),
                    paint,
                ));
            }
            Some(error) => {
                let text = format!("{}: {}", error.name, error.message);
                terminal::write_stderr(&format!("{}\n", visible(&text)));
            }
            None if self.whole => write_json(&execution.result_whole, terminal)?,
            None => write_json(&execution.result, terminal)?,
        }
        if let Some(error) = execution
            .error
            .as_ref()
            .filter(|error| !error.hint.is_empty())
        {
            terminal::write_stderr(&format!("hint: {}\n", visible(&error.hint)));
        }
        if let Some(truncated) = execution.truncated.as_ref().filter(|_| !self.whole) {
            let summary = visible(&truncated.summary);
            terminal::write_stderr(&format!("note: {summary}; --whole shows all\n"));
        }
        for call in execution.unawaited() {
            let how = match call.status {
                CallStatus::Ok => "and has succeeded since",
                CallStatus::Failed => "and has failed since",
                CallStatus::Unfinished => "and was given up",
            };
            let tool = visible(&call.tool);
            terminal::write_stderr(&format!(
                "warning: the program did not wait for {tool}, {how}\n"
            ));
        }
        if self.usage || (terminal.stderr && !self.quiet) {
            terminal::write_stderr(&report::usage(&execution.usage));
        }
        Ok(exit)
    }
}

/// A document, laid out where people read it.
pub(crate) fn write_json(document: &serde_json::Value, terminal: Terminal) -> Result<(), Failure> {
    let text = document.to_string();
    let text = match terminal.stdout {
        true => json::pretty(&text),
        false => text,
    };
    terminal::write_stdout(&(text + "\n"))
}

pub(crate) fn exit_of(error: Option<&ExecutionError>) -> Exit {
    match error {
        None => Exit::Ok,
        Some(error) if error.limit == "program_chars_max" => Exit::Usage,
        Some(error) if error.code.is_limit() => Exit::Stopped,
        Some(error) if error.code == ErrorCode::Internal => Exit::Server,
        Some(_) => Exit::Threw,
    }
}

/// The error as `run` shows one, with the code around it.
fn thrown(error: &ExecutionError, source: &Source) -> Thrown {
    Thrown {
        name: error.name.clone(),
        message: error.message.clone(),
        stack: error.stack.clone(),
        module: match error.line {
            0 => String::new(),
            _ => source.name.clone(),
        },
        line: error.line,
        column: error.column,
        ..Thrown::default()
    }
}

fn files(source: Source) -> ModuleFiles {
    ModuleFiles {
        main: source.name.clone(),
        files: vec![ModuleFile {
            name: source.name,
            path: source.path,
            body: ModuleBody::EsModule(source.code),
        }],
    }
}
