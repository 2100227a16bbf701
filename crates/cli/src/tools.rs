//! The file that says which tools programs have, made a toolbox.

use crate::{failure::Failure, outbound};
use clap::Args;
use coracle_codemode::{Limits, ToolPolicyConfig};
use coracle_executor::{Namespace, OpenApiProvider, Toolbox};
use coracle_outbound::{Asked, Audit, Channel, Config, Outbound, OwnAddresses, Record};
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
}

/// Where the tools of a namespace come from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceConfig {
    /// An OpenAPI document, in JSON or YAML, beside the file.
    openapi: PathBuf,
    /// Where the API is, if not where the document says.
    server: Option<String>,
}

/// Requests of tools are in the log where somebody asks for it, and told nobody else.
struct Unrecorded;

impl Audit for Unrecorded {
    fn record(&self, _record: Record) {}
}

impl ToolsArgs {
    /// The toolbox. In a tokio runtime, which its connections are of.
    pub(crate) fn toolbox(
        &self,
        adjust: impl FnOnce(&mut Limits),
    ) -> Result<Arc<Toolbox>, Failure> {
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
        let namespaces = namespaces
            .into_iter()
            .map(|(name, config)| namespace(name, &config, &folder, &channel, &limits));
        let namespaces = namespaces.collect::<Result<Vec<_>, _>>()?;
        let toolbox = Toolbox::new(namespaces, policy, limits).map_err(Failure::usage)?;
        Ok(Arc::new(toolbox))
    }
}

fn read(path: &Path) -> Result<ToolsFile, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))
}

fn namespace(
    name: String,
    config: &NamespaceConfig,
    folder: &Path,
    channel: &Arc<Channel>,
    limits: &Limits,
) -> Result<Namespace, Failure> {
    let path = folder.join(&config.openapi);
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let document = bounded(&path, limits.document_bytes_max).map_err(wrong)?;
    let provider = OpenApiProvider::new(
        &document,
        config.server.as_deref(),
        Arc::clone(channel),
        limits,
    );
    let provider = provider.map_err(|error| wrong(error.to_string()))?;
    for problem in &provider.api().problems {
        tracing::warn!("{}: left out: {problem}", path.display());
    }
    Ok(Namespace {
        name,
        provider: Arc::new(provider),
    })
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
