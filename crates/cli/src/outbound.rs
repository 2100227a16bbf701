//! The file that says where requests may go.

use crate::failure::Failure;
use coracle_outbound::Config;
use std::path::Path;

/// Reads the file. Whether what it says holds together shows when it is used.
pub(crate) fn read(path: &Path) -> Result<Config, Failure> {
    let wrong = |problem: String| Failure::usage(format!("{}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Config::of_json(&text).map_err(|error| wrong(error.to_string()))
}
