//! `coracle mcp`: Code Mode for agents that speak the Model Context Protocol, over stdin and stdout or over HTTP.

use crate::{
    commands::{exec, runs, serve::Signals},
    exit::Exit,
    failure::Failure,
    guest::GuestArgs,
    limits::LimitArgs,
    logging,
    sandbox::ConnectArgs,
    terminal::{self, Terminal},
    tools::ToolsArgs,
};
use clap::{Args, ValueEnum};
use coracle_executor::{ExecuteOptions, Executor};
use coracle_mcp::{CodeServer, ListenOptions, Mode, PATH};
use coracle_runs::Runs;
use coracle_server::Tokens;
use std::{net::SocketAddr, path::PathBuf, sync::Arc};
use tokio::net::TcpListener;

/// Serve Code Mode to agents by the Model Context Protocol, over stdin and stdout or over HTTP.
///
/// The agent sees two tools, however many there are in the file: `search` finds and describes them,
/// `execute` runs a program that calls them, in a sandbox inside this command or on a server.
#[derive(Args)]
#[command(after_long_help = "\
In an agent's configuration:
  {\"mcpServers\": {\"code\": {\"command\": \"coracle\", \"args\": [\"mcp\", \"--tools\", \"/path/tools.json\"]}}}
  {\"mcpServers\": {\"code\": {\"url\": \"http://127.0.0.1:8080/mcp\"}}}     (with --listen 127.0.0.1:8080)

Exit codes: 0 the agent has left or a signal came, 2 usage, 4 server trouble or a peer that does not speak the protocol.")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    tools: ToolsArgs,

    /// What the agent sees of the tools
    #[arg(long, value_enum, default_value_t = ModeArg::Search)]
    mode: ModeArg,

    /// Keep runs in this file, so that programs can wait for approval of tools whose policy says "ask"
    #[arg(long, value_name = "FILE")]
    runs: Option<PathBuf>,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    guest: GuestArgs,
}

/// What the agent sees of the tools.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModeArg {
    /// `search` and `execute`, whatever the number of tools
    Search,
    /// `code` alone, with the declarations of all tools in its description
    Code,
    /// `search` and `invoke`, which calls one tool: no programs
    PassThrough,
}

impl From<ModeArg> for Mode {
    fn from(arg: ModeArg) -> Self {
        match arg {
            ModeArg::Search => Self::Search,
            ModeArg::Code => Self::Code,
            ModeArg::PassThrough => Self::PassThrough,
        }
    }
}

#[derive(Args)]
#[command(next_help_heading = "HTTP")]
struct HttpArgs {
    /// Serve streamable HTTP at this address, under /mcp, instead of stdin and stdout
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,

    /// Tokens of which an agent has to bring one: a file as for `serve`; needed beyond the loopback
    #[arg(long, value_name = "FILE", requires = "listen")]
    token_file: Option<PathBuf>,

    /// A name, with its port or without, under which it is reached besides localhost; may be repeated
    #[arg(long, value_name = "NAME", requires = "listen")]
    host: Vec<String>,

    /// An origin whose pages may speak to it, such as https://app.example; may be repeated [default: none]
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    origin: Vec<String>,
}

pub(crate) async fn mcp(args: McpArgs) -> Result<Exit, Failure> {
    logging::install_for_command(Terminal::detect());
    let asked = args.limits.asked()?;
    let tools = args.tools.open(|_| ()).await?;
    let toolbox = Arc::clone(&tools.toolbox);
    let (coracle, limits) =
        exec::open(&args.connect, &args.guest, &asked, toolbox.limits()).await?;
    let options = ExecuteOptions {
        limits,
        ..ExecuteOptions::default()
    };
    let mode = args.mode.into();
    let executor = Executor::new(coracle);
    let mut server = CodeServer::new(executor.clone(), toolbox, options, mode);
    if let Some(file) = &args.runs {
        server = server.with_runs(Runs::new(runs::open(file)?, executor));
    }
    let served = match args.http.listen {
        Some(address) => args.http.serve(server, address).await,
        None => {
            let served = server.serve(tokio::io::stdin(), tokio::io::stdout());
            served.await.map_err(Failure::server)
        }
    };
    tools.close().await;
    served?;
    Ok(Exit::Ok)
}

impl HttpArgs {
    async fn serve(self, server: CodeServer, address: SocketAddr) -> Result<(), Failure> {
        let tokens = match &self.token_file {
            Some(path) => Some(Tokens::read(path).map_err(Failure::usage)?),
            None if address.ip().is_loopback() => None,
            None => {
                return Err(Failure::usage(format!(
                    "{address} is reachable from other machines, and whoever comes there could run programs with all \
                     tools: give --token-file, or listen on 127.0.0.1"
                )));
            }
        };
        let mut signals = Signals::new()?;
        let failed = |error: std::io::Error| Failure::server(format!("{address}: {error}"));
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let bound = listener.local_addr().map_err(failed)?;
        // A name for people to reach it by is one for the whole address too.
        let mut hosts = self.host;
        if !bound.ip().is_unspecified() {
            hosts.push(bound.ip().to_string());
        }
        let options = ListenOptions {
            admits: tokens.map(|tokens| -> coracle_mcp::Admits {
                Arc::new(move |token: &str| tokens.admit(token))
            }),
            hosts,
            origins: self.origin,
        };
        terminal::write_stderr(&format!("coracle mcp: http://{bound}{PATH}\n"));
        let stop = async move {
            signals.next().await;
        };
        let served = server.listen(listener, options, stop);
        served.await.map_err(failed)
    }
}
