//! Runs the programs of Code Mode: each in a sandbox of its own, with tools as objects in it.
//!
//! `coracle-codemode` decides without I/O (names, types, search, policies, arguments, previews); this crate does what it
//! decides, over the Rust client, so that a program runs in this process or on a server, all the same. A [`Toolbox`] is made
//! of namespaces, each with a [`Provider`]; an [`Executor`] runs programs against it, and an [`Execution`] is all that is to
//! be known afterwards. [`OpenApiProvider`] is a provider whose calls are requests that an outbound policy lets out.
//!
//! Programs are strangers' and so are the tools' descriptions and answers: a program names any tool and passes anything, and
//! every call is checked here, outside of the sandbox. Nothing that a program does is an error of [`Executor::execute`].
//!
//! ```no_run
//! use coracle_client::{ConnectOptions, Coracle};
//! use coracle_executor::{ExecuteOptions, Executor, Toolbox};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let coracle = Coracle::connect("127.0.0.1:7070", ConnectOptions::default()).await?;
//! let tools = Toolbox::empty();
//! let execution = Executor::new(coracle).execute("```js\n6 * 7\n```", &tools, &ExecuteOptions::default()).await;
//! assert_eq!(execution.result, 42);
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod convert;
mod execute;
mod execution;
mod hint;
mod journal;
mod openapi;
mod run;
mod toolbox;

pub use convert::{ConvertError, NODES_MAX};
pub use execute::{ExecuteOptions, Executor};
pub use execution::{CallRecord, CallStatus, ErrorCode, Execution, ExecutionError, Truncated};
pub use journal::{Beginning, Comes, Journal, Outcome};
pub use openapi::{OpenApiProvider, OpenApiProviderError};
pub use toolbox::{Namespace, Output, Provider, ToolError, ToolInfo, Toolbox, ToolboxError};
