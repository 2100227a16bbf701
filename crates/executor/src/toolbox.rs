//! All tools that a program can call, and what is decided about a call before it is made.

use coracle_codemode::{
    ArgumentsError, CallCount, CallsTooMany, Description, Effect, Found, Index, LimitExceeded,
    Limits, NameError, SchemaSource, ToolEntry, ToolNames, ToolPath, ToolPolicy, ToolPolicyConfig,
    ToolPolicyError, ToolSchemas, Validator, namespace_names,
};
use futures::future::BoxFuture;
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

/// Schemas that have been made ready are kept, so many of them.
const VALIDATORS_MAX: usize = 1_000;

/// Who has the tools of a namespace.
pub trait Provider: Send + Sync + 'static {
    /// All its tools. Schemas are not read for it.
    fn tools(&self) -> Vec<ToolInfo>;

    /// What a tool takes and what comes back, by its own name.
    ///
    /// # Errors
    /// In words, what is wrong with its schemas.
    fn schemas(&self, tool: &str) -> Result<ToolSchemas, String>;

    /// Calls a tool, by its own name. Its arguments have been judged. Dropping the future means that nobody waits for it any
    /// more.
    fn call(&self, tool: &str, arguments: Json) -> BoxFuture<'static, Result<Output, ToolError>>;

    /// Another number than before where its tools have changed.
    fn revision(&self) -> u64 {
        0
    }
}

/// A tool as its provider lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolInfo {
    /// Its own name, whatever that is.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The names of its parameters, as far as they are known without reading schemas.
    pub parameters: Vec<String>,
}

/// What a tool answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// JSON.
    Json(Json),
    /// Bytes, which are a `Uint8Array` for the program.
    Bytes(Vec<u8>),
}

impl Output {
    /// Its size as JSON, or as bytes.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Json(json) => json_bytes(json),
            Self::Bytes(bytes) => bytes.len(),
        }
    }
}

/// Bytes of a value as JSON, without making it.
pub(crate) fn json_bytes(json: &Json) -> usize {
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // Counting can't fail.
    let _ = serde_json::to_writer(&mut count, json);
    count.0
}

/// Why a call of a tool has no result. The program catches it as an `Error` with this name, message and `code`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// What kind of error it is, for programs: `tool_missing`, `tool_needs_approval`, `calls_too_many`, `arguments_invalid`,
    /// `limit`, or of the provider's own, such as `tool_failed`.
    pub code: String,
    /// What went wrong, and what can be done about it.
    pub message: String,
}

impl ToolError {
    /// An error.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

impl From<LimitExceeded> for ToolError {
    fn from(exceeded: LimitExceeded) -> Self {
        Self::new("limit", exceeded.to_string())
    }
}

/// A namespace of tools.
#[derive(Clone)]
pub struct Namespace {
    /// What whoever configures it calls it. Programs use it as a name, with what is no part of one replaced.
    pub name: String,
    /// Who has its tools.
    pub provider: Arc<dyn Provider>,
}

/// Why there can be no such toolbox.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ToolboxError {
    /// A namespace's name, or those of its tools.
    #[error("{0}")]
    Name(#[from] NameError),
    /// The policy.
    #[error("the policy: {0}")]
    Policy(#[from] ToolPolicyError),
}

struct Known {
    provider: Arc<dyn Provider>,
    names: ToolNames,
    /// That of the provider when its tools were read.
    revision: u64,
    /// As it was configured.
    own_name: String,
}

/// See the module. It never changes, so a run sees the same tools from its beginning to its end.
pub struct Toolbox {
    namespaces: BTreeMap<String, Known>,
    index: Index,
    policy: ToolPolicy,
    policy_config: Option<ToolPolicyConfig>,
    limits: Limits,
    validators: Mutex<HashMap<String, Option<Arc<Validator>>>>,
}

impl Toolbox {
    /// A toolbox of namespaces. Without a policy, all that is there may be called.
    ///
    /// # Errors
    /// Names that collide, or a policy that can't be.
    pub fn new(
        namespaces: Vec<Namespace>,
        policy: Option<ToolPolicyConfig>,
        limits: Limits,
    ) -> Result<Self, ToolboxError> {
        let names = namespace_names(namespaces.iter().map(|it| &it.name[..]), &limits)?;
        let mut known = BTreeMap::new();
        let mut entries = Vec::new();
        for (namespace, name) in namespaces.into_iter().zip(names) {
            // Read first: a change underway makes another toolbox, and is not missed.
            let revision = namespace.provider.revision();
            let tools = namespace.provider.tools();
            let names = ToolNames::new(tools.iter().map(|tool| &tool.name[..]), &limits)?;
            for tool in tools {
                entries.push(ToolEntry {
                    namespace: name.clone(),
                    identifier: names.identifier(&tool.name).unwrap_or_default().to_owned(),
                    description: tool.description,
                    parameters: tool.parameters,
                });
            }
            let of_namespace = Known {
                provider: namespace.provider,
                names,
                revision,
                own_name: namespace.name,
            };
            known.insert(name, of_namespace);
        }
        let policy_config = policy.clone();
        let policy = match policy {
            Some(config) => ToolPolicy::new(config, &limits)?,
            None => ToolPolicy::allow_all(&limits),
        };
        Ok(Self {
            namespaces: known,
            index: Index::new(entries),
            policy,
            policy_config,
            limits,
            validators: Mutex::default(),
        })
    }

    /// One without any tool.
    #[must_use]
    pub fn empty() -> Arc<Self> {
        let limits = Limits::default();
        Arc::new(Self {
            namespaces: BTreeMap::new(),
            index: Index::default(),
            policy: ToolPolicy::allow_all(&limits),
            policy_config: None,
            limits,
            validators: Mutex::default(),
        })
    }

    /// Another one with what the providers have now; none where nothing has changed.
    ///
    /// # Errors
    /// Names that collide.
    pub fn renewed(&self) -> Result<Option<Self>, ToolboxError> {
        let mut known = self.namespaces.values();
        if known.all(|known| known.provider.revision() == known.revision) {
            return Ok(None);
        }
        let namespaces = self.namespaces.values().map(|known| Namespace {
            name: known.own_name.clone(),
            provider: Arc::clone(&known.provider),
        });
        let policy = self.policy_config.clone();
        Self::new(namespaces.collect(), policy, self.limits.clone()).map(Some)
    }

    /// The limits that it was made with.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The namespaces, each with the tools that there are for programs.
    pub fn namespaces(&self) -> impl Iterator<Item = (&str, Vec<&str>)> {
        self.namespaces.keys().map(|name| {
            let tools = self.index.of_namespace(name);
            let tools = tools.filter(|tool| self.is_visible(tool));
            (&name[..], tools.map(|tool| &tool.identifier[..]).collect())
        })
    }

    /// Finds tools by words. `offset` is where the page begins.
    #[must_use]
    pub fn search(&self, query: &str, offset: usize) -> Found<'_> {
        let is_visible = |tool: &ToolEntry| self.is_visible(tool);
        self.index.search(query, offset, &self.limits, &is_visible)
    }

    /// Declares tools, by their paths or the names of their namespaces.
    #[must_use]
    pub fn describe(&self, targets: &[&str]) -> Description {
        let is_visible = |tool: &ToolEntry| self.is_visible(tool);
        self.index
            .describe(targets, self, &self.limits, &is_visible)
    }

    /// The types of all tools, as far as they fit.
    #[must_use]
    pub fn types(&self) -> Description {
        let names: Vec<&str> = self.namespaces.keys().map(|name| &name[..]).collect();
        self.describe(&names)
    }

    fn own<'a>(&'a self, tool: &'a ToolEntry) -> Option<(&'a Known, ToolPath<'a>)> {
        let known = self.namespaces.get(&tool.namespace)?;
        let path = ToolPath {
            namespace: &tool.namespace,
            identifier: &tool.identifier,
            own: known.names.own(&tool.identifier)?,
        };
        Some((known, path))
    }

    fn is_visible(&self, tool: &ToolEntry) -> bool {
        self.own(tool)
            .is_some_and(|(_, path)| self.policy.is_visible(&path))
    }

    /// Decides about a call: what is to be called is there, may be, is not called too often, and takes these arguments.
    pub(crate) fn prepare(
        &self,
        path: &str,
        arguments: &Json,
        count: &mut CallCount,
    ) -> Result<Prepared, ToolError> {
        let found = self.index.get(path).and_then(|tool| self.own(tool));
        let decided = found.map(|(known, tool)| (self.policy.decide(&tool), known, tool));
        let Some((decision, known, tool)) = decided.filter(|it| it.0.effect != Effect::Deny) else {
            return Err(self.missing(path));
        };
        let approval = (decision.effect == Effect::Ask).then(|| decision.to_string());
        count
            .charge(&self.policy, &tool)
            .map_err(|error: CallsTooMany| ToolError::new("calls_too_many", error.to_string()))?;
        if let Some(validator) = self.validator(path, known, tool.own)? {
            validator.validate(arguments).map_err(|error| {
                let message = format!("{path} does not take these arguments:\n{error}");
                match error {
                    ArgumentsError::Invalid(_) => ToolError::new("arguments_invalid", message),
                    ArgumentsError::Limit(_) => ToolError::new("limit", message),
                }
            })?;
        }
        Ok(Prepared {
            provider: Arc::clone(&known.provider),
            tool: tool.own.to_owned(),
            approval,
        })
    }

    /// Calls one tool for somebody who is no program, with everything decided as for one.
    ///
    /// # Errors
    /// Those that a program would catch.
    pub async fn call(&self, path: &str, arguments: Json) -> Result<Output, ToolError> {
        let arguments_bytes = json_bytes(&arguments);
        self.limits
            .call_arguments_bytes_max(arguments_bytes, "input")?;
        let prepared = self.prepare(path, &arguments, &mut CallCount::default())?;
        let prepared = prepared.unasked(path)?;
        let output = prepared.provider.call(&prepared.tool, arguments).await?;
        let place = format!("the result of {path}");
        self.limits.call_result_bytes_max(output.bytes(), &place)?;
        Ok(output)
    }

    fn missing(&self, path: &str) -> ToolError {
        let is_visible = |tool: &ToolEntry| self.is_visible(tool);
        let alike = self.index.suggest(path, &self.limits, &is_visible);
        let mut message = format!("there is no tool {path}");
        if !alike.is_empty() {
            message += &format!("; did you mean {}?", alike.join(" or "));
        }
        ToolError::new("tool_missing", message)
    }

    fn validator(
        &self,
        path: &str,
        known: &Known,
        own: &str,
    ) -> Result<Option<Arc<Validator>>, ToolError> {
        let broken = |problem: String| {
            ToolError::new(
                "tool_failed",
                format!("the schema of {path} can't be used: {problem}"),
            )
        };
        let kept = self.validators.lock();
        let kept = kept
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned();
        if let Some(validator) = kept {
            return Ok(validator);
        }
        let schemas = known.provider.schemas(own).map_err(broken)?;
        let validator = schemas
            .input
            .map(|schema| Validator::new(&schema, &self.limits));
        let validator = validator
            .transpose()
            .map_err(|error| broken(error.to_string()))?;
        let validator = validator.map(Arc::new);
        let validators = self.validators.lock();
        let mut validators = validators.unwrap_or_else(PoisonError::into_inner);
        if validators.len() < VALIDATORS_MAX {
            validators.insert(path.to_owned(), validator.clone());
        }
        Ok(validator)
    }
}

impl SchemaSource for Toolbox {
    fn schemas(&self, tool: &ToolEntry) -> Result<ToolSchemas, String> {
        let (known, path) = self.own(tool).ok_or("there is no such tool")?;
        known.provider.schemas(path.own)
    }
}

/// A call that may be made.
pub(crate) struct Prepared {
    pub(crate) provider: Arc<dyn Provider>,
    pub(crate) tool: String,
    /// The rule by which somebody has to approve of it first, if one does.
    pub(crate) approval: Option<String>,
}

impl Prepared {
    /// The same, where nobody can be asked.
    pub(crate) fn unasked(self, path: &str) -> Result<Self, ToolError> {
        match self.approval {
            None => Ok(self),
            Some(rule) => {
                let message = format!("{path} needs approval, and there is nobody to ask: {rule}");
                Err(ToolError::new("tool_needs_approval", message))
            }
        }
    }
}
