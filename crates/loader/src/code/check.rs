//! The check of a worker's code, from the first field to the last.

use super::{Problems, WorkerCode, compatibility, encoded, modules};
use crate::limits::Limits;

/// Checks everything about `code` that can be known without running it, and reports all problems at
/// once.
///
/// `limits` are those of the server and the tenant, before the worker's own wishes. The work is
/// bounded: linear in what the limits let through, and what is too large is not looked into. It
/// does not promise that the code will start: syntax and imports are the guest's to judge.
///
/// # Errors
///
/// All that was found, if anything was.
pub fn check(code: &WorkerCode, limits: &Limits) -> Result<(), Problems> {
    let mut problems = Problems::default();
    compatibility::check_date(&code.compatibility_date, &mut problems);
    compatibility::check_flags(&code.compatibility_flags, &mut problems);
    modules::check_modules(code, limits, &mut problems);
    encoded::check_env(&code.env, limits, &mut problems);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(problems)
    }
}
