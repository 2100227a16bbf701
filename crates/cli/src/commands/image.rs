//! `coracle image`: how a release gets its compiled guest. Hidden: it is for `make build`.

use crate::{
    document,
    exit::Exit,
    failure::Failure,
    terminal::{self, Terminal},
};
use clap::{Args, Subcommand};
use coracle_client::Value;
use coracle_isolate::{CPU_BASELINE, Guest, Image};
use std::{
    env,
    path::{Path, PathBuf},
};

/// The compiled guest that an executable carries behind its own end.
#[derive(Args)]
pub(crate) struct ImageCommandArgs {
    #[command(subcommand)]
    command: ImageCommand,
}

#[derive(Subcommand)]
enum ImageCommand {
    /// Compile the guest, and write a copy of this executable that carries it
    Append {
        /// The copy
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
    },
    /// Say what this executable carries
    Info {
        /// As a JSON document
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn image(args: &ImageCommandArgs) -> Result<Exit, Failure> {
    match &args.command {
        ImageCommand::Append { output } => append(output),
        ImageCommand::Info { json } => info(*json),
    }
}

fn append(output: &Path) -> Result<Exit, Failure> {
    let own = own_executable()?;
    if Image::is_behind(&own) {
        return Err(Failure::usage("this executable carries an image already"));
    }
    // Not from a cache: what is released is made from what is built in.
    let image = Image::compile(&Guest::embedded()).map_err(Failure::server)?;
    image.append_to(&own, output).map_err(Failure::server)?;
    Ok(Exit::Ok)
}

fn info(json: bool) -> Result<Exit, Failure> {
    let guest = Guest::embedded().hash();
    let carried = Image::is_behind(&own_executable()?);
    let text = if json {
        let document = Value::object([
            ("guest", Value::from(guest)),
            ("cpuBaseline", CPU_BASELINE.into()),
            ("carried", carried.into()),
        ]);
        document::text(&document, Terminal::detect().stdout)?
    } else {
        let image = if carried {
            "in this executable"
        } else {
            "compiled at the first start"
        };
        format!("guest         {guest}\nCPU baseline  {CPU_BASELINE}\nimage         {image}\n")
    };
    terminal::write_stdout(&text)?;
    Ok(Exit::Ok)
}

fn own_executable() -> Result<PathBuf, Failure> {
    env::current_exe()
        .map_err(|error| Failure::server(format!("this executable can't be found: {error}")))
}
