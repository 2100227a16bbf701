//! Where the code comes from of a worker that is got by an id.

use crate::{Thrown, code::WorkerCode, connection::Shared, convert};
use coracle_schema::code_source;
use futures::future::BoxFuture;
use std::{rc::Rc, sync::Arc};

/// Makes a worker's code.
pub(crate) type CodeSource =
    Arc<dyn Fn() -> BoxFuture<'static, Result<WorkerCode, Thrown>> + Send + Sync>;

/// The Cap'n Proto side of a [`CodeSource`].
pub(crate) struct Served {
    pub(crate) source: CodeSource,
    pub(crate) held: Shared,
}

impl code_source::Server for Served {
    async fn code(
        self: Rc<Self>,
        _params: code_source::CodeParams,
        mut results: code_source::CodeResults,
    ) -> Result<(), capnp::Error> {
        let made = (self.source)().await;
        let code = made.map_err(|thrown| capnp::Error::failed(thrown.to_string()))?;
        convert::write_code(&self.held.borrow(), &code, results.get().init_code());
        Ok(())
    }
}
