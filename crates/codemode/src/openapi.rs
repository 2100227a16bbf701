//! OpenAPI 3.0, 3.1 and Swagger 2: every operation as a tool, and its arguments as a request.
//!
//! [`Api::read`] takes a document apart; an [`Operation`] says what its arguments are ([`Operation::input`]), what comes back
//! ([`Operation::output`]), and makes a request of arguments ([`Operation::request`]). Nothing is sent from here, and nothing
//! has a credential: which schemes of authentication an operation wants is told by name, and putting them in is the work of
//! the outbound policy, as is judging where the request goes.
//!
//! A document is a stranger's. What can't be used of it is left out and told of in [`Api::problems`]; the rest works.

mod body;
mod operations;
mod parameter;
mod read;
mod request;
mod server;

pub(crate) use body::is_bytes_value;
pub use body::{BYTES_KEY, Body, Content, ContentKind};
pub use parameter::{Location, Parameter, Serialization, Style};
pub use request::{Request, RequestError};
pub use server::{Server, ServerVariable};

use crate::{
    Dialect, Document, LimitExceeded, Limits, Schema,
    json::{check_extent, text},
};
use serde_json::{Value, json};
use std::{fmt, sync::Arc};

/// What a document describes.
#[derive(Clone, Debug)]
pub struct Api {
    /// Its title.
    pub title: String,
    /// Its version, not that of OpenAPI.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// Where it is to be had.
    pub servers: Vec<Server>,
    /// What can be done, in the order of the document.
    pub operations: Vec<Operation>,
    /// How it wants to know who asks.
    pub security_schemes: Vec<SecurityScheme>,
    /// What could not be used.
    pub problems: Vec<ApiProblem>,
}

/// A scheme of authentication, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecurityScheme {
    /// What operations call it.
    pub name: String,
    /// `http`, `apiKey`, `oauth2`, `openIdConnect`, `mutualTLS` or `basic`.
    pub kind: String,
    /// Where a key goes, such as `header X-Api-Key`, or the scheme of `http`, such as `bearer`.
    pub detail: String,
}

/// Something of a document that could not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiProblem {
    /// Where, such as `GET /pets`.
    pub place: String,
    /// What is wrong.
    pub problem: String,
}

impl fmt::Display for ApiProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.problem)
    }
}

/// Something that can be done: a method of a path.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Its own name: the `operationId`, or made of method and path where there is none. No two are the same.
    pub name: String,
    /// The method, in capitals.
    pub method: String,
    /// The path, with its parameters in braces.
    pub path: String,
    /// What it does, in a line.
    pub summary: String,
    /// What it does, at length.
    pub description: String,
    /// Whether it should not be used any more.
    pub is_deprecated: bool,
    /// Its groups.
    pub tags: Vec<String>,
    /// What it takes besides a body.
    pub parameters: Vec<Parameter>,
    /// Its body.
    pub body: Option<Body>,
    /// Its own servers; where there are none, those of the document.
    pub servers: Vec<Server>,
    /// The schemes of authentication that do, each a list of those that are needed together. An empty list among them
    /// means that none is needed.
    pub security: Vec<Vec<String>>,
    /// The media types of what comes back.
    pub accepts: Vec<String>,
    output: Option<Value>,
    document: Arc<Document>,
}

/// Why a document can't be used at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApiError {
    /// It is neither JSON nor YAML.
    #[error("line {line}: {problem}")]
    Syntax {
        /// Where.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// It is none of the kinds that are read here.
    #[error("it is no document of OpenAPI 3.0 or 3.1 or Swagger 2.0: {0}")]
    Version(String),
    /// It is too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl Api {
    /// Reads a document in JSON or YAML.
    ///
    /// # Errors
    ///
    /// It is neither, of no version that is read here, or too large.
    pub fn read(text: &str, limits: &Limits) -> Result<Self, ApiError> {
        Self::of_value(read::read(text, limits)?, limits)
    }

    /// Takes a document apart.
    ///
    /// # Errors
    ///
    /// It is of no version that is read here, or too large.
    pub fn of_value(root: Value, limits: &Limits) -> Result<Self, ApiError> {
        check_extent(&root, |depth, nodes| {
            limits.document_depth_max(depth, "the document")?;
            limits.document_nodes_max(nodes, "the document")
        })?;
        operations::read(root, limits)
    }
}

impl Operation {
    /// What the operation takes: an object of its parameters and its body, and nothing else.
    #[must_use]
    pub fn input(&self) -> Schema {
        let mut properties = serde_json::Map::new();
        let mut required = Vec::new();
        for parameter in &self.parameters {
            let schema = documented(
                &parameter.schema,
                &parameter.description,
                parameter.is_deprecated,
            );
            properties.insert(parameter.argument.clone(), schema);
            if parameter.is_required {
                required.push(Value::from(parameter.argument.as_str()));
            }
        }
        if let Some(body) = &self.body {
            let schemas: Vec<_> = body.contents.iter().map(|one| &one.schema).collect();
            let schema = match schemas.as_slice() {
                [one] => (*one).clone(),
                all => json!({"anyOf": all}),
            };
            let schema = documented(&schema, &body.description, false);
            properties.insert(body.argument.clone(), schema);
            if body.is_required {
                required.push(Value::from(body.argument.as_str()));
            }
            if let Some(argument) = &body.media_type_argument {
                let names: Vec<_> = body.contents.iter().map(|one| &one.media_type).collect();
                let schema = json!({
                    "enum": names,
                    "default": names.first(),
                    "description": "The media type of the body.",
                });
                properties.insert(argument.clone(), schema);
            }
        }
        Schema::within(
            &self.document,
            json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            }),
        )
    }

    /// What comes back, where the document says.
    #[must_use]
    pub fn output(&self) -> Option<Schema> {
        let output = self.output.clone()?;
        Some(Schema::within(&self.document, output))
    }

    /// The summary and the description, as one text.
    #[must_use]
    pub fn documentation(&self) -> String {
        let all = [self.summary.as_str(), self.description.as_str()];
        if all[1].starts_with(all[0]) {
            return all[1].to_owned();
        }
        let all: Vec<_> = all.into_iter().filter(|text| !text.is_empty()).collect();
        all.join("\n")
    }
}

/// A schema with a description that stands beside it.
fn documented(schema: &Value, description: &str, is_deprecated: bool) -> Value {
    let mut schema = match schema {
        Value::Object(keywords) => keywords.clone(),
        Value::Bool(false) => return schema.clone(),
        _ => serde_json::Map::new(),
    };
    if !description.is_empty() {
        schema.insert("description".into(), description.into());
    }
    if is_deprecated {
        schema.insert("deprecated".into(), true.into());
    }
    Value::Object(schema)
}

/// The version of a document, and by which rules its schemas are read.
fn version(root: &Value) -> Result<(Version, Dialect), ApiError> {
    // Unquoted in YAML, a version is a number.
    let said = |name: &str| match root.get(name) {
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => text(root, name).map(str::to_owned),
    };
    match (said("openapi"), said("swagger")) {
        (Some(version), _) if version.starts_with("3.0") => {
            Ok((Version::OpenApi3, Dialect::OpenApi30))
        }
        (Some(version), _) if version.starts_with("3.") => {
            Ok((Version::OpenApi3, Dialect::OpenApi31))
        }
        (_, Some(_)) => Ok((Version::Swagger2, Dialect::OpenApi30)),
        (Some(version), None) => Err(ApiError::Version(format!("it says openapi: {version}"))),
        (None, None) => Err(ApiError::Version(
            "it says neither openapi nor swagger".into(),
        )),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    Swagger2,
    OpenApi3,
}

#[cfg(test)]
mod tests;
