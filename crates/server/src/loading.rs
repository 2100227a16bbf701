//! Loading for clients, whatever they speak: large code is checked where waiting harms nobody.

use crate::session::{Grants, LoadError, Session, Worker};
use coracle_loader::{MODULES_MAX, WorkerCode};

/// Bytes that the name of an entrypoint may have.
pub(crate) const ENTRYPOINT_NAME_BYTES_MAX: usize = 1024;
/// Modules that are looked at; the check of the code allows fewer, and says so in its own words.
pub(crate) const MODULES_LISTED_MAX: usize = 2 * MODULES_MAX;
/// Code above this size is checked off the RPC thread.
const CHECK_INLINE_BYTES_MAX: u64 = 128 * 1024;

/// Checks a worker's code and takes it in, as [`Session::load`] does.
pub(crate) async fn load(
    session: &Session,
    code: WorkerCode,
    grants: Grants,
) -> Result<Worker, LoadError> {
    if code_bytes(&code) <= CHECK_INLINE_BYTES_MAX {
        return session.load(&code, grants);
    }
    let session = session.clone();
    blocking(move || session.load(&code, grants)).await
}

/// Runs what takes long elsewhere. A panic there is one here.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
    }
}

/// What a worker's code takes of memory as long as it may be called.
pub(crate) fn code_bytes(code: &WorkerCode) -> u64 {
    let modules: u64 = code
        .modules
        .iter()
        .map(|module| module.name.len() as u64 + module.body.bytes())
        .sum();
    modules + code.env.bytes.len() as u64
}
