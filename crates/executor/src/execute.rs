//! Running a program: a fresh sandbox, its tools, its outcome.

use crate::{
    convert::to_json,
    execution::{ErrorCode, Execution, ExecutionError},
    hint::hint,
    journal::Journal,
    run::Run,
    toolbox::Toolbox,
};
use coracle_client::{
    Answer, Coracle, Error, Limits, ModuleBody, Outbound, Outcome, Payload, Thrown, Usage, Value,
    Verdict, WorkerCode,
};
use std::sync::Arc;

/// The module that runs the program.
const MAIN: &str = "executor.js";
/// The program, whose name makes it one.
const PROGRAM: &str = "code.program.ts";
/// Of a namespace with more tools, the program can't list them.
const LISTED_TOOLS_MAX: usize = 500;

/// What a program is given besides its tools.
#[derive(Clone)]
pub struct ExecuteOptions {
    /// What errors call the program.
    pub name: String,
    /// Limits of its sandbox. What is not set is the server's default.
    pub limits: Limits,
    /// Modules that it can import.
    pub modules: Vec<(String, ModuleBody)>,
    /// Where its own `fetch()` goes. Calls of tools do not go there.
    pub outbound: Outbound,
    /// What writes down its calls, so that it can be paused. Without one, a tool that needs approval is refused.
    pub journal: Option<Arc<dyn Journal>>,
}

impl Default for ExecuteOptions {
    fn default() -> Self {
        Self {
            name: "program.ts".into(),
            limits: Limits::default(),
            modules: Vec::new(),
            outbound: Outbound::None,
            journal: None,
        }
    }
}

/// Runs programs, each in a sandbox of its own: in this process or on a server, as the client has it.
#[derive(Clone)]
pub struct Executor(Coracle);

impl Executor {
    /// One whose sandboxes are that client's.
    #[must_use]
    pub fn new(coracle: Coracle) -> Self {
        Self(coracle)
    }

    /// Runs a program. Whatever goes wrong is in the [`Execution`]. Dropping the future ends the program.
    pub async fn execute(
        &self,
        code: &str,
        toolbox: &Arc<Toolbox>,
        options: &ExecuteOptions,
    ) -> Execution {
        let mut execution = Execution {
            result: serde_json::Value::Null,
            truncated: None,
            result_whole: serde_json::Value::Null,
            error: None,
            logs: Vec::new(),
            log_bytes_dropped: 0,
            calls: Vec::new(),
            usage: Usage::default(),
        };
        if let Err(exceeded) = toolbox.limits().check_program(code) {
            execution.error = Some(ExecutionError {
                code: ErrorCode::Limit,
                name: "RangeError".into(),
                message: exceeded.to_string(),
                limit: exceeded.limit.into(),
                ..ExecutionError::default()
            });
            return execution;
        }
        if let Some((name, _)) = options
            .modules
            .iter()
            .find(|(name, _)| name == MAIN || name == PROGRAM)
        {
            execution.error = Some(ExecutionError {
                name: "TypeError".into(),
                message: format!("a module can't be called {name:?}: that is the executor's own"),
                ..ExecutionError::default()
            });
            return execution;
        }
        let run = Arc::new(Run::new(Arc::clone(toolbox), options.journal.clone()));
        let answer = tokio::select! {
            answer = self.run(code, toolbox, options, &run) => Some(answer),
            () = paused(options.journal.as_ref()) => None,
        };
        execution.calls = run.end();
        let Some(answer) = answer else {
            execution.error = Some(ExecutionError {
                code: ErrorCode::Paused,
                name: "Paused".into(),
                message: "the program waits for somebody's approval".into(),
                ..ExecutionError::default()
            });
            return execution;
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => {
                execution.error = Some(of_client(&error));
                return execution;
            }
        };
        let Answer {
            outcome,
            usage,
            logs,
            log_bytes_dropped,
            ..
        } = answer;
        (execution.usage, execution.logs) = (usage, logs);
        execution.log_bytes_dropped = log_bytes_dropped;
        match outcome {
            Outcome::Value(value) => match to_json(&value, "result") {
                Ok(result) => execution.show(result, toolbox.limits()),
                Err(error) => {
                    execution.error = Some(ExecutionError {
                        code: ErrorCode::ResultInvalid,
                        name: "TypeError".into(),
                        message: error.to_string(),
                        ..ExecutionError::default()
                    });
                }
            },
            Outcome::Threw(thrown) => {
                let mut error = of_thrown(*thrown, &options.name);
                error.hint = hint(&error, &execution.calls, toolbox);
                execution.error = Some(error);
            }
            Outcome::Verdict(verdict) => execution.error = Some(of_verdict(*verdict)),
        }
        execution
    }

    async fn run(
        &self,
        code: &str,
        toolbox: &Toolbox,
        options: &ExecuteOptions,
        run: &Arc<Run>,
    ) -> Result<Answer, Error> {
        let worker = WorkerCode {
            outbound: options.outbound.clone(),
            ..WorkerCode::new(MAIN)
                .es_module(MAIN, include_str!("../guest/executor.js"))
                .es_module(PROGRAM, code)
                .limits(options.limits)
        };
        let worker = options.modules.iter().fold(worker, |worker, (name, body)| {
            worker.module(name, body.clone())
        });
        let answering = Arc::clone(run);
        let call = self.0.function(move |args| {
            let run = Arc::clone(&answering);
            async move { run.answer(args).await }
        });
        let mut input = Payload::default();
        let call = input.external(&call);
        let namespaces = toolbox.namespaces().map(|(name, tools)| {
            let tools = match tools.len() <= LISTED_TOOLS_MAX {
                true => Value::array(tools),
                false => Value::Undefined,
            };
            Value::object([("name", Value::from(name)), ("tools", tools)])
        });
        let unawaited_ms = toolbox.limits().unawaited_ms_max;
        let beginning = options.journal.as_ref().map(|journal| journal.beginning());
        let beginning = beginning.map_or(Value::Undefined, |beginning| {
            let seed = beginning.seed.map(|word| Value::Number(word.into()));
            Value::object([
                ("at", Value::Number(beginning.at_ms as f64)),
                ("seed", Value::array(seed)),
            ])
        });
        input.value = Value::array([Value::object([
            ("call", call),
            ("namespaces", Value::Array(namespaces.collect())),
            ("unawaitedMs", Value::Number(unawaited_ms as f64)),
            ("beginning", beginning),
        ])]);
        self.0
            .load(worker)
            .entrypoint("default")
            .call("run", input)
            .await
    }
}

async fn paused(journal: Option<&Arc<dyn Journal>>) {
    match journal {
        Some(journal) => journal.pauses().await,
        None => std::future::pending().await,
    }
}

/// An error of the program's, with its places in the program.
fn of_thrown(thrown: Thrown, name: &str) -> ExecutionError {
    let tool_code = match thrown.value.unshared() {
        Value::Error(error) => error
            .props
            .iter()
            .find(|(key, _)| key.as_str() == Some("code")),
        _ => None,
    };
    let tool_code = tool_code
        .and_then(|(_, code)| code.as_str())
        .unwrap_or_default();
    let code = match &thrown.name[..] {
        "SyntaxError" if thrown.during_load => ErrorCode::SyntaxError,
        "ToolError" => ErrorCode::ToolError,
        _ => ErrorCode::Exception,
    };
    // What runs the program is none of its business.
    let frames = thrown.stack.lines().filter(|frame| !frame.contains(MAIN));
    let frames: Vec<String> = frames.map(|frame| frame.replace(PROGRAM, name)).collect();
    let (line, column) = match &thrown.module[..] {
        PROGRAM => (thrown.line, thrown.column),
        _ => frames
            .iter()
            .find_map(|frame| place_in(frame, name))
            .unwrap_or_default(),
    };
    ExecutionError {
        code,
        name: thrown.name,
        message: thrown.message.replace(PROGRAM, name),
        stack: frames.join("\n"),
        line,
        column,
        tool_code: tool_code.to_owned(),
        ..ExecutionError::default()
    }
}

/// The place that a frame such as `    at f (program.ts:1:2)` says.
fn place_in(frame: &str, name: &str) -> Option<(u32, u32)> {
    let frame = frame.strip_suffix(')').unwrap_or(frame);
    let mut parts = frame.rsplitn(3, ':');
    let (column, line, module) = (parts.next()?, parts.next()?, parts.next()?);
    let is_program = module.ends_with(name);
    is_program.then_some((line.parse().ok()?, column.parse().ok()?))
}

fn of_verdict(verdict: Verdict) -> ExecutionError {
    let code = match &verdict.kind[..] {
        "wall" => ErrorCode::Timeout,
        "fuel" | "cpu" | "startup" => ErrorCode::CpuLimit,
        "memory" => ErrorCode::MemoryLimit,
        "hung" => ErrorCode::PendingPromise,
        "isolate_lost" | "isolate_evicted" | "trap" | "cancelled" => ErrorCode::Internal,
        _ => ErrorCode::Limit,
    };
    let limit = verdict.limit_name;
    let message = match limit.is_empty() || verdict.message.contains(&limit) {
        true => verdict.message,
        false => format!("{} ({limit})", verdict.message),
    };
    ExecutionError {
        code,
        name: "LimitError".into(),
        message,
        limit,
        ..ExecutionError::default()
    }
}

fn of_client(error: &Error) -> ExecutionError {
    ExecutionError {
        code: ErrorCode::Internal,
        name: "Error".into(),
        message: error.to_string(),
        ..ExecutionError::default()
    }
}
