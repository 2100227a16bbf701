//! `coracle mcp`: Code Mode for agents that speak the Model Context Protocol, over stdin and stdout.

use crate::{
    commands::exec, exit::Exit, failure::Failure, guest::GuestArgs, limits::LimitArgs, logging,
    sandbox::ConnectArgs, terminal::Terminal, tools::ToolsArgs,
};
use clap::Args;
use coracle_executor::{ExecuteOptions, Executor};
use coracle_mcp::CodeServer;
use std::sync::Arc;

/// Serve Code Mode to an agent over stdin and stdout, by the Model Context Protocol.
///
/// The agent sees two tools, however many there are in the file: `search` finds and describes them,
/// `execute` runs a program that calls them, in a sandbox inside this command or on a server.
#[derive(Args)]
#[command(after_long_help = "\
In an agent's configuration:
  {\"mcpServers\": {\"code\": {\"command\": \"coracle\", \"args\": [\"mcp\", \"--tools\", \"/path/tools.json\"]}}}

Exit codes: 0 the agent has left, 2 usage, 4 server trouble or a peer that does not speak the protocol.")]
pub(crate) struct McpArgs {
    #[command(flatten)]
    tools: ToolsArgs,

    #[command(flatten)]
    limits: LimitArgs,

    #[command(flatten)]
    connect: ConnectArgs,

    #[command(flatten)]
    guest: GuestArgs,
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
    let server = CodeServer::new(Executor::new(coracle), toolbox, options);
    let served = server.serve(tokio::io::stdin(), tokio::io::stdout()).await;
    tools.close().await;
    served.map_err(Failure::server)?;
    Ok(Exit::Ok)
}
