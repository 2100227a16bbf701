//! The file that says what each tenant may have.

use crate::failure::Failure;
use coracle_loader::Tenancy;
use std::path::Path;

/// Reads the file.
pub(crate) fn read(path: &Path) -> Result<Tenancy, Failure> {
    let wrong =
        |problem: String| Failure::usage(format!("tenants file {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    Tenancy::of_json(&text).map_err(|error| wrong(error.to_string()))
}
