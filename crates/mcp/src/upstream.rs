//! Tools that another server of the Model Context Protocol has, as a provider of a toolbox.
//!
//! A server is a process of ours, or a place that an outbound policy lets requests out to. It is a stranger either way: its
//! list, its schemas, its answers and its errors are bounded, and nothing that it asks for (to ask somebody, a model, a
//! folder) is done. A call is made once: where the connection ends underneath it, nobody knows what became of it, and the
//! program is told so.

mod answer;
mod http;
mod process;
mod session;

pub use process::ProcessConfig;

use crate::upstream::{http::ChannelClient, process::Process, session::Session};
use coracle_codemode::{Limits, Schema, ToolSchemas};
use coracle_executor::{Output, Provider, ToolError, ToolInfo};
use coracle_outbound::Channel;
use futures::future::BoxFuture;
use rmcp::{
    model::{CallToolRequestParams, CallToolResponse, Tool},
    service::ServiceError,
};
use serde_json::Value as Json;
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// After an attempt to connect that has failed, the next comes no sooner.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// What is told of a server's error.
const ERROR_CHARS_MAX: usize = 2_000;
/// Names beyond it are left out: nothing that is meant to be called has one.
const TOOL_NAME_BYTES_MAX: usize = 1_024;

/// Where a server is.
pub enum McpServer {
    /// A process that is started, spoken to over its stdin and stdout, and ended.
    Process(ProcessConfig),
    /// A URL of streamable HTTP.
    Http {
        /// Where it listens.
        url: String,
        /// Where requests may go, and with which credential.
        channel: Arc<Channel>,
    },
}

/// Why a server gives no tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpProviderError {
    /// It can't be started.
    #[error("{command:?} can't be started: {problem}")]
    Start {
        /// What was to be started.
        command: String,
        /// The system's words.
        problem: String,
    },
    /// It can't be reached, has ended, or does not speak the protocol.
    #[error("there is no connection: {0}")]
    Connect(String),
    /// It has taken too long.
    #[error("it did not answer within {0} ms (server_connect_ms_max)")]
    Silent(usize),
    /// What it lists can't be used.
    #[error("its list of tools: {0}")]
    List(String),
}

/// See the module.
pub struct McpProvider(Arc<Shared>);

struct Shared {
    server: McpServer,
    limits: Limits,
    /// The connection, if there is one, and when the last attempt to have one was made.
    connection: tokio::sync::Mutex<Connection>,
    /// Apart from the connection, so that it can be ended without waiting for anybody.
    process: Mutex<Option<Process>>,
    listed: RwLock<Arc<Listed>>,
    revision: AtomicU64,
}

#[derive(Default)]
struct Connection {
    session: Option<Session>,
    failed: Option<(Instant, McpProviderError)>,
    is_over: bool,
}

/// What a server has listed last.
#[derive(Default)]
struct Listed {
    tools: Vec<Arc<Tool>>,
    by_name: HashMap<String, Arc<Tool>>,
}

impl McpProvider {
    /// One that is not connected, and has no tools.
    #[must_use]
    pub fn new(server: McpServer, limits: &Limits) -> Self {
        Self(Arc::new(Shared {
            server,
            limits: limits.clone(),
            connection: tokio::sync::Mutex::default(),
            process: Mutex::default(),
            listed: RwLock::default(),
            revision: AtomicU64::new(0),
        }))
    }

    /// Connects to the server and reads its list. Where the connection ends later, the next call makes another.
    ///
    /// # Errors
    /// There is no such server, or its list can't be used.
    pub async fn connect(&self) -> Result<(), McpProviderError> {
        self.0.session().await.map(drop)
    }

    /// Takes leave of the server; a process of ours is ended, with all that it has started in its group. There is no call
    /// afterwards.
    pub async fn close(&self) {
        let mut connection = self.0.connection.lock().await;
        connection.is_over = true;
        if let Some(session) = connection.session.take() {
            session.close().await;
        }
        self.end();
    }

    /// Ends a process of ours at once.
    pub fn end(&self) {
        self.0.process().take();
    }
}

impl Drop for McpProvider {
    fn drop(&mut self) {
        self.end();
    }
}

impl Shared {
    fn process(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listed(&self) -> Arc<Listed> {
        let listed = self.listed.read();
        Arc::clone(&listed.unwrap_or_else(PoisonError::into_inner))
    }

    fn milliseconds(limit: usize) -> Duration {
        Duration::from_millis(limit as u64)
    }

    /// The connection, made again where it has ended.
    async fn session(self: &Arc<Self>) -> Result<session::Peer, McpProviderError> {
        let mut connection = self.connection.lock().await;
        if connection.is_over {
            return Err(McpProviderError::Connect("it has been closed".into()));
        }
        if let Some(session) = connection.session.as_ref().filter(|it| it.is_open()) {
            return Ok(session.peer());
        }
        connection.session = None;
        if let Some((when, error)) = &connection.failed
            && when.elapsed() < RETRY_INTERVAL
        {
            return Err(error.clone());
        }
        let max = self.limits.server_connect_ms_max;
        let opened = tokio::time::timeout(Self::milliseconds(max), self.open()).await;
        let opened = opened.unwrap_or(Err(McpProviderError::Silent(max)));
        let session = opened.map_err(|error| {
            let error = self.with_last_words(error);
            self.process().take();
            connection.failed = Some((Instant::now(), error.clone()));
            error
        })?;
        connection.failed = None;
        let peer = session.peer();
        connection.session = Some(session);
        Ok(peer)
    }

    async fn open(self: &Arc<Self>) -> Result<Session, McpProviderError> {
        let session = match &self.server {
            McpServer::Process(config) => {
                let (process, stdin, stdout) = Process::start(config)?;
                *self.process() = Some(process);
                Session::over_pipes(stdout, stdin, self).await?
            }
            McpServer::Http { url, channel } => {
                let bytes_max = self.limits.server_message_bytes_max;
                let client = ChannelClient::new(Arc::clone(channel), bytes_max);
                Session::over_http(url, client, self).await?
            }
        };
        self.list(&session.peer()).await?;
        Ok(session)
    }

    /// What a process wrote to stderr often says why it has ended.
    fn with_last_words(&self, error: McpProviderError) -> McpProviderError {
        let words = self.process().as_ref().map(Process::last_words);
        match (error, words) {
            (McpProviderError::Connect(text), Some(words)) if !words.is_empty() => {
                McpProviderError::Connect(format!("{text}; it wrote: {words}"))
            }
            (error, _) => error,
        }
    }

    /// Reads the list, page by page, and has it from now on.
    async fn list(&self, peer: &session::Peer) -> Result<(), McpProviderError> {
        let wrong = |problem: String| McpProviderError::List(problem);
        let mut listed = Listed::default();
        let mut cursors = BTreeSet::new();
        let mut cursor = None;
        let mut bytes = 0;
        loop {
            let params = rmcp::model::PaginatedRequestParams::default().with_cursor(cursor);
            let page = peer.list_tools(Some(params)).await;
            let page = page.map_err(|error| wrong(cause(&error)))?;
            for tool in page.tools {
                let size = serde_json::to_vec(&tool).map_or(usize::MAX, |text| text.len());
                bytes = size.saturating_add(bytes);
                let limits = &self.limits;
                let place = "it";
                let within = limits.server_list_bytes_max(bytes, place);
                let within = within.and(limits.tools_max(listed.tools.len() + 1, place));
                within.map_err(|exceeded| wrong(exceeded.to_string()))?;
                listed.add(tool);
            }
            cursor = page.next_cursor.filter(|cursor| !cursor.is_empty());
            let Some(next) = &cursor else { break };
            if !cursors.insert(next.clone()) {
                return Err(wrong("its pages go round in a circle".into()));
            }
            let pages = self.limits.server_pages_max(cursors.len() + 1, "it");
            pages.map_err(|exceeded| wrong(exceeded.to_string()))?;
        }
        let has_changed = listed.tools != self.listed().tools;
        if has_changed {
            let mut kept = self.listed.write().unwrap_or_else(PoisonError::into_inner);
            *kept = Arc::new(listed);
            self.revision.fetch_add(1, Ordering::Release);
        }
        Ok(())
    }

    async fn call(self: Arc<Self>, tool: String, arguments: Json) -> Result<Output, ToolError> {
        let peer = self.session().await;
        let peer = peer.map_err(|error| {
            ToolError::new(
                "server_disconnected",
                format!("the server of {tool}: {error}"),
            )
        })?;
        let params = CallToolRequestParams::new(tool.clone());
        let params = match arguments {
            Json::Object(members) => params.with_arguments(members),
            _ => params,
        };
        // Dropping the call tells the server that nobody waits any more.
        let max = self.limits.server_call_ms_max;
        let answered = tokio::time::timeout(Self::milliseconds(max), peer.call_tool_once(params));
        let Ok(answered) = answered.await else {
            let message = format!(
                "{tool} did not answer within {max} ms (server_call_ms_max); what it was to do may have been done"
            );
            return Err(ToolError::new("timeout", message));
        };
        match answered {
            Ok(CallToolResponse::Complete(result)) => answer::of_result(&tool, result),
            Ok(CallToolResponse::InputRequired(_)) => {
                let message = format!("{tool} wants to ask somebody, and there is nobody to ask");
                Err(ToolError::new("elicitation_unavailable", message))
            }
            // A task that is to be asked for again and again, or what a later version of the protocol has.
            Ok(_) => {
                let message = format!("{tool} does not answer with a result");
                Err(ToolError::new("tool_failed", message))
            }
            Err(error) => Err(self.failed(&tool, &error).await),
        }
    }

    async fn failed(&self, tool: &str, error: &ServiceError) -> ToolError {
        let text = cause(error);
        match error {
            ServiceError::McpError(error) => ToolError::new(
                "tool_failed",
                format!("{tool}: {}", shortened(&error.message)),
            ),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                // The next call makes another.
                self.connection.lock().await.session = None;
                let message = format!(
                    "the connection to the server of {tool} has ended ({text}); what it was to do may have been done"
                );
                ToolError::new("server_disconnected", message)
            }
            _ => ToolError::new("tool_failed", format!("{tool}: {text}")),
        }
    }
}

impl Listed {
    /// Of tools with one name, the first is the one that is called.
    fn add(&mut self, tool: Tool) {
        let name = tool.name.to_string();
        if name.len() > TOOL_NAME_BYTES_MAX || self.by_name.contains_key(&name) {
            let shown = &name[..name.floor_char_boundary(80)];
            tracing::warn!(
                tool = shown,
                "left out a tool whose name is too long or taken"
            );
            return;
        }
        let tool = Arc::new(tool);
        self.tools.push(Arc::clone(&tool));
        self.by_name.insert(name, tool);
    }
}

impl Provider for McpProvider {
    fn tools(&self) -> Vec<ToolInfo> {
        let listed = self.0.listed();
        let tools = listed.tools.iter().map(|tool| {
            let description = tool.description.as_deref().or(tool.title.as_deref());
            let properties = tool
                .input_schema
                .get("properties")
                .and_then(Json::as_object);
            let parameters = properties.into_iter().flat_map(|it| it.keys().cloned());
            ToolInfo {
                name: tool.name.to_string(),
                description: description.unwrap_or_default().to_owned(),
                parameters: parameters.take(self.0.limits.parameters_max).collect(),
            }
        });
        tools.collect()
    }

    fn schemas(&self, tool: &str) -> Result<ToolSchemas, String> {
        let listed = self.0.listed();
        let tool = listed.by_name.get(tool).ok_or("it is gone")?;
        let schema = |object: &rmcp::model::JsonObject| {
            let schema = Schema::new(Json::Object(object.clone()), &self.0.limits);
            schema.map_err(|error| error.to_string())
        };
        let output = tool.output_schema.as_ref();
        Ok(ToolSchemas {
            input: Some(schema(&tool.input_schema)?),
            output: output.map(|object| schema(object)).transpose()?,
            is_deprecated: false,
        })
    }

    fn call(&self, tool: &str, arguments: Json) -> BoxFuture<'static, Result<Output, ToolError>> {
        let shared = Arc::clone(&self.0);
        Box::pin(shared.call(tool.to_owned(), arguments))
    }

    fn revision(&self) -> u64 {
        self.0.revision.load(Ordering::Acquire)
    }
}

/// What an error comes from: what is above it only says where it passed through.
fn cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    shortened(&cause.to_string())
}

/// A server's words, as far as they are told.
fn shortened(text: &str) -> String {
    text.chars().take(ERROR_CHARS_MAX).collect()
}
