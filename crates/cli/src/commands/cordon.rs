//! `coracle cordon`: what `serve` starts itself as, to hold sandboxes in a process without network, files or secrets.

use crate::{exit::Exit, failure::Failure};
use clap::Args;

/// Hold sandboxes for a server, which starts this and talks to it over standard input.
#[derive(Args)]
pub(crate) struct CordonArgs {}

pub(crate) fn cordon(_: &CordonArgs) -> Result<Exit, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::server(error.to_string());
    let (server, image) = coracle_cordon::standard_descriptors().map_err(|error| failed(&error))?;
    coracle_cordon::inside(server, image).map_err(|error| failed(&error))?;
    Ok(Exit::Ok)
}
