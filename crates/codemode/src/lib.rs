//! Code Mode without I/O: what lies between a model that writes programs and the tools that those programs call.
//!
//! A model is shown two functions instead of a thousand tools: one finds and describes tools, one runs a program that calls
//! them. This crate has what both need and what can be decided without a network, a clock or an engine: tools' [names] and
//! [types], the [search], the [policies](policy), the [judging](validate) of arguments, the [reading](openapi) of OpenAPI
//! documents, and the [previews](truncate) of results. The server connects to providers, runs programs in isolates, and asks
//! here.
//!
//! Tools, their schemas and their descriptions come from strangers, and so do the arguments of programs. Everything here is
//! bounded by [`Limits`]; recursion is, wherever there is any, in depth; nothing is fetched.
//!
//! ```
//! use coracle_codemode::{Limits, NamespaceSignature, Schema, ToolSignature, Validator, declare};
//! use serde_json::json;
//!
//! let limits = Limits::default();
//! let input = Schema::new(
//!     json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}),
//!     &limits,
//! )?;
//! let tool = ToolSignature {
//!     identifier: "forecast",
//!     description: "The weather of tomorrow.",
//!     is_deprecated: false,
//!     input: Some(&input),
//!     output: None,
//! };
//! let weather = NamespaceSignature { name: "weather", description: "", tools: vec![tool] };
//! assert_eq!(
//!     declare(&[weather], &limits).text,
//!     "declare namespace weather {\n  /** The weather of tomorrow. */\n  \
//!      function forecast(input: { city: string }): Promise<unknown>;\n}\n"
//! );
//! let problem = Validator::new(&input, &limits)?.validate(&json!({})).unwrap_err();
//! assert_eq!(problem.to_string(), "input.city is missing (required)");
//! # Ok::<(), coracle_codemode::SchemaError>(())
//! ```

#![forbid(unsafe_code)]

mod json;
pub mod limits;
pub mod names;
pub mod openapi;
pub mod policy;
mod schema;
pub mod search;
pub mod truncate;
pub mod types;
pub mod validate;

pub use limits::{LIMIT_SPECS, LimitExceeded, LimitSpec, Limits, limits_table_markdown};
pub use names::{NameError, ToolNames, is_identifier, namespace_names, sanitize};
pub use openapi::{Api, ApiError, ApiProblem, BYTES_KEY, Operation, Request, RequestError};
pub use policy::{
    BudgetsConfig, CallCount, CallsTooMany, Effect, Glob, GlobError, RuleConfig, ToolBudgetConfig,
    ToolDecision, ToolPath, ToolPolicy, ToolPolicyConfig, ToolPolicyError,
};
pub use schema::{Dialect, Document, Schema, SchemaError};
pub use search::{Description, Found, Index, SchemaSource, ToolEntry, ToolSchemas};
pub use truncate::{Cut, CutKind, Preview, preview, preview_text};
pub use types::{Declarations, NamespaceSignature, ToolSignature, declare, tokens_estimated};
pub use validate::{ArgumentsError, Problem, Unchecked, Validator};
