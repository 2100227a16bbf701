//! The worker that `run` and `check` are about, from their common flags.

use crate::{
    failure::Failure,
    json,
    modules::{ModuleFiles, Named, parse_named},
    terminal::Paint,
};
use clap::{Args, ValueEnum};
use coracle_client::{Value, WorkerCode};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerArgs {
    /// The main module; or a folder with one main.js or index.js, all of which is loaded
    #[arg(value_name = "FILE")]
    main: PathBuf,

    /// Further modules; of a folder all files below it, but hidden ones and node_modules
    ///
    /// A module is called by its path below the main module's folder, and is by its extension an ES
    /// module (.js, .mjs), a CommonJS module (.cjs), text (.txt, .md), JSON (.json), or data (any other).
    #[arg(value_name = "MODULE")]
    more: Vec<PathBuf>,

    /// A module under another name; may be repeated
    #[arg(long = "module", value_name = "NAME=PATH", value_parser = parse_named)]
    named: Vec<Named>,

    /// The worker's bindings, a JSON object
    #[arg(long, value_name = "JSON")]
    env: Option<String>,

    /// The compatibility date, YYYY-MM-DD [default: the newest]
    #[arg(long = "compat-date", value_name = "DATE")]
    compatibility_date: Option<String>,

    /// A compatibility flag; may be repeated
    #[arg(long = "compat-flag", value_name = "FLAG")]
    compatibility_flags: Vec<String>,

    /// Where the worker's fetch() goes: where the session's policy allows, or nowhere at all
    #[arg(long, value_enum, default_value_t = Outbound::Policy)]
    outbound: Outbound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Outbound {
    Policy,
    None,
}

/// A worker's code, and the files that it came from.
pub(crate) struct Worker {
    pub(crate) code: WorkerCode,
    pub(crate) files: ModuleFiles,
}

impl WorkerArgs {
    pub(crate) fn read(&self, paint: Paint) -> Result<Worker, Failure> {
        let env = match &self.env {
            Some(text) => json::object("--env", text, paint)?,
            None => Value::Undefined,
        };
        let files = ModuleFiles::read(&self.main, &self.more, &self.named)?;
        let modules = files
            .files
            .iter()
            .map(|file| (file.name.clone(), file.body.clone()))
            .collect();
        let code = WorkerCode {
            compatibility_date: self.compatibility_date.clone().unwrap_or_default(),
            compatibility_flags: self.compatibility_flags.clone(),
            modules,
            env,
            outbound: match self.outbound {
                Outbound::Policy => coracle_client::Outbound::Policy,
                Outbound::None => coracle_client::Outbound::None,
            },
            ..WorkerCode::new(files.main.clone())
        };
        Ok(Worker { code, files })
    }
}
