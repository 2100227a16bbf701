//! The file that says which tools programs have, made a toolbox.

use crate::{
    failure::Failure,
    outbound,
    servers::{McpConfig, Servers},
};
use clap::Args;
use coracle_codemode::{Limits, ToolPolicyConfig};
use coracle_executor::{Namespace, OpenApiProvider, Provider, Toolbox};
use coracle_outbound::{Asked, Audit, Channel, Config, Outbound, OwnAddresses, Record};
use coracle_runs::Reverts;
use serde::Deserialize;
use std::{
    collections::BTreeMap,
    fs,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Who the requests of tools are of, in the outbound file.
const TENANT: &str = "default";

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Tools")]
pub(crate) struct ToolsArgs {
    /// Which tools programs have: a file as in docs/codemode.md [default: none]
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
}

/// The file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ToolsFile {
    /// By the name that programs use.
    #[serde(default)]
    namespaces: BTreeMap<String, NamespaceConfig>,
    /// Which tools may be called. All, if nothing is said.
    policy: Option<ToolPolicyConfig>,
    /// Limits of Code Mode that are not to have their defaults.
    #[serde(default)]
    limits: Limits,
    /// Where requests of tools may go: a file as in docs/outbound.md, beside this one. Nowhere, if nothing is said.
    outbound: Option<PathBuf>,
    /// By tool, what takes back a call of it.
    #[serde(default)]
    reverts: Reverts,
}

/// Where the tools of a namespace come from: one of `openapi` and `mcp`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceConfig {
    /// An OpenAPI document, in JSON or YAML, beside the file.
    openapi: Option<PathBuf>,
    /// Where the API is, if not where the document says.
    server: Option<String>,
    /// A server of the Model Context Protocol.
    mcp: Option<McpConfig>,
}

/// The toolbox, and the servers that are to be left when nothing is called any more. Dropping it ends those that are processes.
pub(crate) struct Tools {
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) reverts: Reverts,
    servers: Servers,
}

impl Tools {
    /// Takes leave of the servers.
    pub(crate) async fn close(self) {
        self.servers.close().await;
    }
}

/// Requests of tools are in the log where somebody asks for it, and told nobody else.
struct Unrecorded;

impl Audit for Unrecorded {
    fn record(&self, _record: Record) {}
}

impl ToolsArgs {
    /// The tools. In a tokio runtime, which its connections are of.
    pub(crate) async fn open(&self, adjust: impl FnOnce(&mut Limits)) -> Result<Tools, Failure> {
        let (file, folder) = match &self.tools {
            Some(path) => (
                read(path)?,
                path.parent().unwrap_or(Path::new("")).to_owned(),
            ),
            None => (ToolsFile::default(), PathBuf::new()),
        };
        let ToolsFile {
            namespaces,
            policy,
            mut limits,
            outbound,
            reverts,
        } = file;
        adjust(&mut limits);
        let outbound = match outbound {
            Some(path) => outbound::read(&folder.join(path))?,
            None => Config::default(),
        };
        let outbound = Outbound::new(outbound, OwnAddresses::default(), Arc::new(Unrecorded));
        let outbound =
            outbound.map_err(|error| Failure::usage(format!("the outbound file: {error}")))?;
        let channel = outbound.channel(TENANT, Asked::Session, None);
        let channel = Arc::new(channel.map_err(Failure::usage)?);
        let mut known = Vec::new();
        let mut servers = Vec::new();
        for (name, config) in namespaces {
            let wrong = |problem: &str| Failure::usage(format!("the namespace {name:?} {problem}"));
            match config {
                NamespaceConfig {
                    openapi: Some(path),
                    server,
                    mcp: None,
                } => {
                    let path = folder.join(path);
                    let provider = openapi(&path, server.as_deref(), &channel, &limits)?;
                    known.push(Namespace { name, provider });
                }
                NamespaceConfig {
                    openapi: None,
                    server: None,
                    mcp: Some(config),
                } => {
                    let server = config.server(&folder, &channel);
                    servers.push((name.clone(), server.map_err(|problem| wrong(&problem))?));
                }
                _ => return Err(wrong("has either openapi, with or without server, or mcp")),
            }
        }
        let (servers, of_servers) = Servers::connect(servers, &limits).await?;
        let namespaces = [known, of_servers].concat();
        let toolbox = Toolbox::new(namespaces, policy, limits).map_err(Failure::usage)?;
        let toolbox = Arc::new(toolbox);
        Ok(Tools {
            toolbox,
            reverts,
            servers,
        })
    }
}

fn read(path: &Path) -> Result<ToolsFile, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

fn openapi(
    path: &Path,
    server: Option<&str>,
    channel: &Arc<Channel>,
    limits: &Limits,
) -> Result<Arc<dyn Provider>, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let document = bounded(path, limits.document_bytes_max).map_err(wrong)?;
    let provider = OpenApiProvider::new(&document, server, Arc::clone(channel), limits);
    let provider = provider.map_err(|error| wrong(error.to_string()))?;
    for problem in &provider.api().problems {
        tracing::warn!("{}: left out: {problem}", path.display());
    }
    Ok(Arc::new(provider))
}

/// A text file of at most so many bytes.
fn bounded(path: &Path, bytes_max: usize) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(bytes_max as u64 + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() > bytes_max {
        return Err(format!(
            "it has more than {bytes_max} bytes (document_bytes_max)"
        ));
    }
    Ok(text)
}
