//! The protocol's side, on `rmcp`.

use crate::{
    answer,
    tools::{ExecuteInput, InvokeInput, Mode, ResultInput, SearchInput, instructions, tools},
};
use coracle_codemode::Limits;
use coracle_executor::{ExecuteOptions, Execution, Executor, Toolbox};
use coracle_runs::{Progress, RunState, Runs, RunsError};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
    },
    service::RequestContext,
    transport::async_rw::AsyncRwTransport,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::Semaphore,
};

/// Bytes of one message of the peer's. A longer one is dropped, and answered with an error.
pub(crate) const MESSAGE_BYTES_MAX: usize = 4 << 20;
/// Programs that run at once; further ones wait.
const PROGRAMS_MAX: usize = 4;

/// Why serving ended other than by the peer's leaving.
#[derive(Debug, thiserror::Error)]
#[error("the MCP session: {0}")]
pub struct ServeError(String);

/// A server of one or two tools, over one toolbox.
#[derive(Clone)]
pub struct CodeServer {
    executor: Executor,
    toolbox: Arc<Mutex<Arc<Toolbox>>>,
    options: ExecuteOptions,
    mode: Mode,
    runs: Option<Runs>,
    turns: Arc<Semaphore>,
}

impl CodeServer {
    /// One that runs programs with that executor.
    #[must_use]
    pub fn new(
        executor: Executor,
        toolbox: Arc<Toolbox>,
        options: ExecuteOptions,
        mode: Mode,
    ) -> Self {
        Self {
            executor,
            toolbox: Arc::new(Mutex::new(toolbox)),
            options,
            mode,
            runs: None,
            turns: Arc::new(Semaphore::new(PROGRAMS_MAX)),
        }
    }

    /// Programs may wait for approval, and are kept there meanwhile: the agent sees `result`, which goes on with one.
    #[must_use]
    pub fn with_runs(self, runs: Runs) -> Self {
        Self {
            runs: Some(runs),
            ..self
        }
    }

    /// Serves one peer, a message a line, until it leaves.
    ///
    /// # Errors
    /// The peer does not speak the protocol.
    pub async fn serve<R, W>(self, read: R, write: W) -> Result<(), ServeError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let transport = AsyncRwTransport::<RoleServer, R, W>::new(read, write)
            .with_max_line_length(MESSAGE_BYTES_MAX);
        let failed = |error: &dyn std::fmt::Display| ServeError(error.to_string());
        let running = ServiceExt::serve(self, transport).await;
        let running = running.map_err(|error| failed(&error))?;
        running.waiting().await.map_err(|error| failed(&error))?;
        Ok(())
    }

    /// The tools as their servers have them now.
    fn toolbox(&self) -> Arc<Toolbox> {
        let mut toolbox = self.toolbox.lock().unwrap_or_else(PoisonError::into_inner);
        match toolbox.renewed() {
            Ok(None) => {}
            Ok(Some(renewed)) => *toolbox = Arc::new(renewed),
            Err(error) => tracing::warn!("tools have changed, the former ones are kept: {error}"),
        }
        Arc::clone(&toolbox)
    }

    fn search(&self, input: &SearchInput) -> CallToolResult {
        let toolbox = self.toolbox();
        let mut text = String::new();
        if input.query.is_some() || input.describe.is_none() {
            let query = input.query.as_deref().unwrap_or_default();
            text += &answer::found(&toolbox.search(query, input.offset));
        }
        if let Some(targets) = &input.describe {
            let targets: Vec<&str> = targets.iter().map(|target| &target[..]).collect();
            text += &answer::described(&toolbox.describe(&targets));
        }
        CallToolResult::success(vec![ContentBlock::text(text)])
    }

    async fn execute(&self, code: &str) -> CallToolResult {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let toolbox = self.toolbox();
        let Some(runs) = &self.runs else {
            let execution = self.executor.execute(code, &toolbox, &self.options).await;
            return executed(execution, toolbox.limits());
        };
        let begun = runs.begin(code, &toolbox, &self.options).await;
        progressed(begun.map(|(_, progress)| progress), toolbox.limits())
    }

    /// Goes on with a run if it may, and answers how far it is.
    async fn result(&self, run: &str) -> CallToolResult {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let toolbox = self.toolbox();
        let Some(runs) = &self.runs else {
            return failed("no runs are kept");
        };
        let progress = runs.go_on(run, &toolbox, &self.options).await;
        progressed(progress, toolbox.limits())
    }

    async fn invoke(&self, input: InvokeInput) -> CallToolResult {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let toolbox = self.toolbox();
        let InvokeInput { tool, arguments } = input;
        match toolbox.call(&tool, Value::Object(arguments)).await {
            Ok(output) => answer::invoked(output, toolbox.limits()),
            Err(error) => {
                let told = json!({ "error": { "code": error.code, "message": error.message } });
                answered(told, true)
            }
        }
    }

    fn tools(&self) -> Vec<Tool> {
        let declarations = || answer::described(&self.toolbox().types());
        tools(self.mode, self.runs.is_some(), declarations)
    }
}

fn answered(told: Value, is_error: bool) -> CallToolResult {
    let content = vec![ContentBlock::text(told.to_string())];
    let mut result = match is_error {
        false => CallToolResult::success(content),
        true => CallToolResult::error(content),
    };
    result.structured_content = Some(told);
    result
}

fn failed(problem: &str) -> CallToolResult {
    let told = json!({ "error": { "code": "internal", "message": problem } });
    answered(told, true)
}

fn executed(execution: Execution, limits: &Limits) -> CallToolResult {
    let (media, execution) = answer::without_media(execution, limits);
    let told = answer::executed(&execution, limits);
    let mut result = answered(told, execution.error.is_some());
    result.content.extend(media);
    result
}

fn progressed(progress: Result<Progress, RunsError>, limits: &Limits) -> CallToolResult {
    match progress {
        Ok(Progress::Ended(execution)) => executed(*execution, limits),
        Ok(Progress::Paused(paused)) => answered(answer::paused(&paused), false),
        Ok(Progress::Over(run)) => {
            let (state, outcome) = (run.state, run.outcome.unwrap_or_default());
            let told = json!({ "state": state.as_str(), "outcome": outcome });
            answered(told, state != RunState::Ended)
        }
        Err(error) => failed(&error.to_string()),
    }
}

fn input<T: DeserializeOwned>(request: CallToolRequestParams) -> Result<T, ErrorData> {
    let arguments = request.arguments.unwrap_or_default();
    let input = serde_json::from_value(Value::Object(arguments));
    input.map_err(|error| ErrorData::invalid_params(format!("{}: {error}", request.name), None))
}

impl ServerHandler for CodeServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("coracle", env!("CARGO_PKG_VERSION")))
            .with_instructions(instructions(self.mode))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let asked = async {
            Ok(match (self.mode, &request.name[..]) {
                (Mode::Search | Mode::PassThrough, "search") => self.search(&input(request)?),
                (Mode::Search, "execute") | (Mode::Code, "code") => {
                    let ExecuteInput { code } = input(request)?;
                    self.execute(&code).await
                }
                (Mode::Search | Mode::Code, "result") if self.runs.is_some() => {
                    let ResultInput { run } = input(request)?;
                    self.result(&run).await
                }
                (Mode::PassThrough, "invoke") => self.invoke(input(request)?).await,
                (_, name) => {
                    let tools = self.tools();
                    let names: Vec<&str> = tools.iter().map(|tool| &tool.name[..]).collect();
                    let message =
                        format!("there is no tool {name:?}, only {}", names.join(" and "));
                    return Err(ErrorData::invalid_params(message, None));
                }
            })
        };
        tokio::select! {
            result = asked => Ok(result?.into()),
            // Dropping the program ends it.
            () = context.ct.cancelled() => {
                Err(ErrorData::internal_error("the program was cancelled", None))
            }
        }
    }
}
