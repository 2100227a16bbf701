//! `coracle run`: one call, in this process or on a server, and what came of it.

use crate::{
    document,
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    json,
    limits::{self, LimitArgs, LimitValue},
    logging,
    modules::ModuleFiles,
    outbound,
    report::{self, Authority},
    sandbox::{self, ConnectArgs},
    terminal::{self, Paint, Terminal},
    worker::{Worker, WorkerArgs},
};
use clap::Args;
use coracle_client::{Answer, Coracle, EntrypointOptions, Outcome, Value, WorkerCode};
use std::path::PathBuf;

/// Call a worker once, in a sandbox inside this command or on a server.
///
/// FILE is an ES module that exports what can be called: an object with methods, or a class that
/// extends WorkerEntrypoint from "cloudflare:workers". The result goes to stdout as JSON; what the
/// code wrote to the console, errors and the usage go to stderr.
///
/// A method of a plain object is called with exactly one argument, then `env` and `ctx`; so without
/// --args, one argument is sent, which is undefined. Methods of a class take as many as there are.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  hello.js:
    export default {
      run(name) { return `Hello, ${name ?? \"you\"}!`; },
    };

  coracle run hello.js                            call run(undefined)
  coracle run hello.js --args '[\"world\"]'         call run(\"world\")
  coracle run src --call report.monthly           load all files of a folder, call a nested method
  coracle run main.js lib/*.js data.json          further modules, named as main.js imports them
  coracle run main.js --env '{\"KEY\": \"value\"}'    with bindings
  coracle run main.js --cpu-ms 50 --memory-mb 16  with less than the default limits
  coracle run main.js --json | jq .usage          one document with outcome, usage and console
  coracle run main.js --connect 127.0.0.1:7070    on a server
  coracle run main.js --outbound-file rules.json  with requests that may leave, see docs/outbound.md

What JSON can't express follows JSON.stringify: undefined is null, a Date its ISO string, a Map {}.
A bigint or a cycle is an error that says where it is; exit code 1.

Exit codes: 0 a result, 1 thrown, 2 usage or code refused, 3 stopped by a limit, 4 server trouble.")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    worker: WorkerArgs,

    /// The method to call; a.b calls b of property a
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "run",
        conflicts_with = "get"
    )]
    call: String,

    /// The arguments, a JSON array [default: one, which is undefined]
    #[arg(long, value_name = "JSON", conflicts_with = "get")]
    args: Option<String>,

    /// Read a property instead of calling a method
    #[arg(long, value_name = "PROPERTY")]
    get: Option<String>,

    /// The export of the main module that is called
    #[arg(long, value_name = "NAME", default_value = "default")]
    entrypoint: String,

    /// What a class finds as `ctx.props`, a JSON object
    #[arg(long, value_name = "JSON")]
    props: Option<String>,

    /// Where its requests may go, in a sandbox in this command: a file as in docs/outbound.md [default: nowhere]
    #[arg(long, value_name = "FILE", conflicts_with = "connect")]
    outbound_file: Option<PathBuf>,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    guest: GuestArgs,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Args)]
#[command(next_help_heading = "Output")]
struct OutputArgs {
    /// Write one JSON document with outcome, usage and console to stdout, and nothing to stderr
    #[arg(long)]
    json: bool,

    /// Write what the call cost to stderr, as is done on a terminal
    #[arg(long)]
    usage: bool,

    /// Write neither console lines nor usage
    #[arg(long, conflicts_with = "usage")]
    quiet: bool,
}

/// What is done with the entrypoint.
enum Access {
    Call(String, Vec<Value>),
    Get(String),
}

pub(crate) async fn run(args: RunArgs) -> Result<Exit, Failure> {
    let terminal = Terminal::detect();
    if !args.output.json && !args.output.quiet {
        logging::install_for_command(terminal);
    }
    // What is wrong with the command line is said before anything is started.
    let asked = args.limits.asked()?;
    let access = args.access(terminal.paint)?;
    let props = match &args.props {
        Some(text) => json::object("--props", text, terminal.paint)?,
        None => Value::Undefined,
    };
    let Worker { mut code, files } = args.worker.read(terminal.paint)?;

    let (coracle, authority) = args.open(&asked, &mut code).await?;
    let options = EntrypointOptions {
        props,
        ..EntrypointOptions::default()
    };
    let entrypoint = coracle
        .load(code)
        .entrypoint_with(&args.entrypoint, options);
    let answer = match access {
        Access::Call(method, arguments) => entrypoint.call(&method, arguments).await?,
        Access::Get(property) => entrypoint.get(&property).await?,
    };
    args.output.write(answer, &files, authority, terminal)
}

impl RunArgs {
    fn access(&self, paint: Paint) -> Result<Access, Failure> {
        if let Some(property) = &self.get {
            return Ok(Access::Get(property.clone()));
        }
        let arguments = match &self.args {
            Some(text) => json::array("--args", text, paint)?,
            None => vec![Value::Undefined],
        };
        Ok(Access::Call(self.call.clone(), arguments))
    }

    fn outbound(&self) -> Result<Option<coracle_outbound::Config>, Failure> {
        self.outbound_file
            .as_deref()
            .map(outbound::read)
            .transpose()
    }

    /// A sandbox with these limits. A server is asked for them by the worker's code.
    async fn open(
        &self,
        asked: &[LimitValue],
        code: &mut WorkerCode,
    ) -> Result<(Coracle, Authority), Failure> {
        match self.connect.server() {
            Some(address) => {
                code.limits = limits::as_request(asked)?;
                Ok((self.connect.connect(address).await?, Authority::Server))
            }
            None => Ok((
                sandbox::embedded(&self.guest, asked, self.outbound()?).await?,
                Authority::Flags,
            )),
        }
    }
}

impl OutputArgs {
    fn write(
        &self,
        answer: Answer,
        files: &ModuleFiles,
        authority: Authority,
        terminal: Terminal,
    ) -> Result<Exit, Failure> {
        if self.json {
            let (document, exit) = document::of_answer(answer);
            terminal::write_stdout(&document::text(&document, terminal.stdout)?)?;
            return Ok(exit);
        }
        let paint = terminal.paint;
        if !self.quiet {
            terminal::write_stderr(&report::logs(&answer.logs, answer.log_bytes_dropped, paint));
        }
        let exit = match &answer.outcome {
            Outcome::Value(value) => write_value(value, terminal)?,
            Outcome::Threw(thrown) => {
                terminal::write_stderr(&report::thrown(thrown, files, paint));
                Exit::Threw
            }
            Outcome::Verdict(verdict) => {
                terminal::write_stderr(&report::verdict(verdict, authority, paint));
                Exit::Stopped
            }
        };
        if self.usage || (terminal.stderr && !self.quiet) {
            terminal::write_stderr(&report::usage(&answer.usage));
        }
        Ok(exit)
    }
}

fn write_value(value: &Value, terminal: Terminal) -> Result<Exit, Failure> {
    match json::text_of(value) {
        Ok(text) => {
            let text = if terminal.stdout {
                json::pretty(&text)
            } else {
                text
            };
            terminal::write_stdout(&(text + "\n"))?;
            Ok(Exit::Ok)
        }
        Err(error) => {
            terminal::write_stderr(&format!("the result can't be written as JSON: {error}\n"));
            Ok(Exit::Threw)
        }
    }
}
