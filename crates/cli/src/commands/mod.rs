//! The commands, one module each.

pub(crate) mod check;
pub(crate) mod completions;
pub(crate) mod cordon;
pub(crate) mod exec;
pub(crate) mod image;
pub(crate) mod mcp;
pub(crate) mod policy;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod token;
pub(crate) mod tools;
pub(crate) mod usage;
pub(crate) mod version;

use crate::{cli::Command, exit::Exit, failure::Failure};

pub(crate) fn execute(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Serve(args) => wait(serve::serve(*args)),
        Command::Run(args) => wait(run::run(*args)),
        Command::Check(args) => wait(check::check(*args)),
        Command::Exec(args) => wait(exec::exec(*args)),
        Command::Tools(args) => wait(tools::tools(args)),
        Command::Mcp(args) => wait(mcp::mcp(*args)),
        Command::Runs(args) => wait(runs::runs(args)),
        Command::Policy(args) => policy::policy(&args),
        Command::Token(args) => token::token(&args),
        Command::Usage(args) => usage::usage(&args),
        Command::Completions(args) => completions::completions(&args),
        Command::Version(args) => version::version(&args),
        Command::Cordon(args) => cordon::cordon(&args),
        Command::Image(args) => image::image(&args),
    }
}

/// Servers bring their own threads; the command itself waits on this one.
fn wait(command: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime
        .map_err(|error| Failure::server(format!("can't start: {error}")))?
        .block_on(command)
}
