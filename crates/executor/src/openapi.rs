//! Tools that are the operations of an OpenAPI document. Their calls are requests that an outbound policy lets out.
//!
//! Where a request may go, and which credential it gets, is decided by the policy and not here: neither the document nor the
//! program nor this provider knows a secret. The answer is a stranger's.

use crate::toolbox::{Output, Provider, ToolError, ToolInfo};
use bytes::Bytes;
use coracle_codemode::{Api, ApiError, Limits, Operation, RequestError, ToolSchemas};
use coracle_outbound::{Body, Channel, Error, Redirect, Request, Response, Sender};
use futures::{StreamExt, future::BoxFuture};
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

/// What of an error's body is told.
const ERROR_CHARS_MAX: usize = 2_000;

/// Why a document gives no tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenApiProviderError {
    /// It can't be read.
    #[error("the document: {0}")]
    Document(#[from] ApiError),
    /// Nothing says where the API is.
    #[error("the document names no server; say which one")]
    ServerMissing,
    /// What says it is no URL of http or https.
    #[error("{0}")]
    Server(#[from] RequestError),
}

/// See the module.
pub struct OpenApiProvider {
    api: Api,
    by_name: HashMap<String, usize>,
    /// Where requests go, if not where the operations say.
    server: Option<String>,
    channel: Arc<Channel>,
    limits: Limits,
}

impl OpenApiProvider {
    /// Reads a document, in JSON or YAML. `server` goes before all servers that it names. Its requests leave by `channel`.
    ///
    /// # Errors
    /// The document can't be read, or there is no server.
    pub fn new(
        document: &str,
        server: Option<&str>,
        channel: Arc<Channel>,
        limits: &Limits,
    ) -> Result<Self, OpenApiProviderError> {
        let api = Api::read(document, limits)?;
        let server = server.map(|server| server.trim_end_matches('/').to_owned());
        if server.is_none() && !api.operations.is_empty() {
            let first = api.servers.first();
            let first = first.ok_or(OpenApiProviderError::ServerMissing)?;
            first.resolve(&BTreeMap::new(), None)?;
        }
        let names = api.operations.iter().enumerate();
        Ok(Self {
            by_name: names.map(|(index, it)| (it.name.clone(), index)).collect(),
            api,
            server,
            channel,
            limits: limits.clone(),
        })
    }

    /// What the document describes, with what of it could not be used.
    #[must_use]
    pub fn api(&self) -> &Api {
        &self.api
    }

    fn operation(&self, name: &str) -> Option<&Operation> {
        self.by_name
            .get(name)
            .map(|index| &self.api.operations[*index])
    }

    fn request(
        &self,
        tool: &str,
        arguments: &Json,
    ) -> Result<coracle_codemode::Request, ToolError> {
        let invalid = |error: RequestError| ToolError::new("arguments_invalid", error.to_string());
        let operation = self.operation(tool);
        let operation = operation.ok_or_else(|| ToolError::new("tool_missing", "it is gone"))?;
        let server = match &self.server {
            Some(server) => server.clone(),
            None => {
                let servers = operation.servers.first().or(self.api.servers.first());
                let server =
                    servers.ok_or_else(|| ToolError::new("tool_failed", "there is no server"))?;
                server.resolve(&BTreeMap::new(), None).map_err(invalid)?
            }
        };
        operation
            .request(&server, arguments, &self.limits)
            .map_err(invalid)
    }
}

impl Provider for OpenApiProvider {
    fn tools(&self) -> Vec<ToolInfo> {
        let tools = self.api.operations.iter().map(|operation| {
            let parameters = operation.parameters.iter().map(|it| it.argument.clone());
            let body = operation.body.iter().map(|body| body.argument.clone());
            ToolInfo {
                name: operation.name.clone(),
                description: operation.documentation(),
                parameters: parameters.chain(body).collect(),
            }
        });
        tools.collect()
    }

    fn schemas(&self, tool: &str) -> Result<ToolSchemas, String> {
        let operation = self.operation(tool).ok_or("there is no such operation")?;
        Ok(ToolSchemas {
            input: Some(operation.input()),
            output: operation.output(),
            is_deprecated: operation.is_deprecated,
        })
    }

    fn call(&self, tool: &str, arguments: Json) -> BoxFuture<'static, Result<Output, ToolError>> {
        let request = self.request(tool, &arguments);
        let channel = Arc::clone(&self.channel);
        let bytes_max = self.limits.call_result_bytes_max;
        Box::pin(async move {
            let request = request?;
            let shown = format!("{} {}", request.method, without_query(&request.url));
            let outgoing = Request {
                method: request.method,
                url: request.url,
                headers: request.headers,
                body: request
                    .body
                    .map_or(Body::Empty, |body| Body::Bytes(Bytes::from(body))),
                redirect: Redirect::Follow,
            };
            let response = channel.fetch(outgoing, &Sender::default()).await;
            let response = response.map_err(|error| failed(&shown, &error))?;
            answer(response, &shown, bytes_max).await
        })
    }
}

/// What a query says may be a secret of whoever wrote it.
fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or(url)
}

fn failed(shown: &str, error: &Error) -> ToolError {
    ToolError::new(error.code(), format!("{shown}: {error}"))
}

async fn answer(response: Response, shown: &str, bytes_max: usize) -> Result<Output, ToolError> {
    let status = response.status;
    let media_type = response.headers.iter();
    let media_type = media_type
        .filter(|(name, _)| name.eq_ignore_ascii_case("content-type"))
        .map(|(_, value)| {
            value
                .split(';')
                .next()
                .unwrap_or("")
                .trim()
                .to_ascii_lowercase()
        })
        .next()
        .unwrap_or_default();
    let mut body = Vec::new();
    if let Some(mut stream) = response.body {
        while let Some(piece) = stream.next().await {
            let piece = piece.map_err(|error| failed(shown, &error))?;
            if body.len() + piece.len() > bytes_max {
                let message = format!(
                    "{shown} answers with more than {bytes_max} bytes (call_result_bytes_max)"
                );
                return Err(ToolError::new("limit", message));
            }
            body.extend_from_slice(&piece);
        }
    }
    if !(200..300).contains(&status) {
        let text: String = String::from_utf8_lossy(&body)
            .chars()
            .take(ERROR_CHARS_MAX)
            .collect();
        let message = format!("{shown} answered {status} {}: {text}", response.status_text);
        return Err(ToolError::new(
            "http_status",
            message.trim_end_matches([' ', ':']),
        ));
    }
    if body.is_empty() {
        return Ok(Output::Json(Json::Null));
    }
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    if is_json {
        let json = serde_json::from_slice(&body);
        return json.map(Output::Json).map_err(|error| {
            ToolError::new(
                "tool_failed",
                format!("{shown} answered with what is no JSON: {error}"),
            )
        });
    }
    let is_text = media_type.starts_with("text/") || media_type.is_empty();
    Ok(match String::from_utf8(body) {
        Ok(text) if is_text => Output::Json(text.into()),
        Ok(text) => Output::Bytes(text.into_bytes()),
        Err(error) => Output::Bytes(error.into_bytes()),
    })
}
