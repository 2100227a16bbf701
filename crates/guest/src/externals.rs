//! Tables of externals: what is passed by reference, between the codec and the prelude's `stubs.js`.
//!
//! The prelude knows what is held, by whom and of what kind it is; this turns its answers into the border's entries and
//! back.

use crate::{
    encode::{self, Instances, Manner, References},
    engine::js::{Array, Ctx, Result, Value},
    raw, state,
};
use coracle_abi::{External, Kind};

/// Whose something is, as `stubs.js` has it.
const EXPORT: u32 = 0;
const IMPORT: u32 = 1;

/// Kinds by the numbers that `stubs.js` has for them.
const KINDS: [Kind; 5] = [
    Kind::Target,
    Kind::Source,
    Kind::Sink,
    Kind::Loader,
    Kind::Entrypoint,
];

/// Bytes of the props of a loopback stub.
const LOOPBACK_PROPS_BYTES_MAX: usize = 64 << 10;

/// The entry for an object that can be passed by reference. An object of the isolate's own is given out with it.
pub(crate) fn of_value<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Option<External>> {
    let hooks = &state::get().hooks;
    let found: Value = hooks
        .external_of(ctx)?
        .call((value.clone(), value.is_proxy()))?;
    let Some(parts) = found.as_array() else {
        return Ok(None);
    };
    let id = || -> Result<u64> { Ok(parts.get::<f64>(1)? as u64) };
    let kind = || -> Result<Kind> {
        let number: usize = parts.get(2)?;
        Ok(KINDS.get(number).copied().unwrap_or(Kind::Target))
    };
    Ok(Some(match parts.get::<u32>(0)? {
        EXPORT => External::Export(id()?, kind()?),
        IMPORT => External::Import(id()?, kind()?),
        _ => loopback(ctx, parts)?,
    }))
}

/// A stub of an object's own, or of what a stub is of.
pub(crate) fn copy_of<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Option<Value<'js>>> {
    let hooks = &state::get().hooks;
    let copy: Value = hooks
        .copy_stub(ctx)?
        .call((value.clone(), value.is_proxy()))?;
    Ok((!copy.is_undefined()).then_some(copy))
}

fn loopback<'js>(ctx: &Ctx<'js>, parts: &Array<'js>) -> Result<External> {
    let entrypoint: Value = parts.get(1)?;
    let props: Value = parts.get(2)?;
    let manner = Manner {
        root: "props",
        bytes_max: LOOPBACK_PROPS_BYTES_MAX,
        depth_max: 64,
        instances: Instances::Refused,
        references: References::Refused,
    };
    let props = if props.is_undefined() {
        Vec::new()
    } else {
        encode::cbor(ctx, &props, manner)
            .map_err(|error| encode::thrown(ctx, error))?
            .bytes
    };
    Ok(External::Loopback {
        entrypoint: raw::text_lossy(&entrypoint),
        props,
    })
}

/// The stubs that stand for a table's entries here.
pub(crate) fn stubs<'js>(ctx: &Ctx<'js>, externals: &[External]) -> Result<Vec<Value<'js>>> {
    let hooks = &state::get().hooks;
    let stub = |external: &External| {
        let (whose, id, kind) = match external {
            External::Export(id, kind) => (EXPORT, *id, kind),
            External::Import(id, kind) => (IMPORT, *id, kind),
            // The host makes an import of it.
            External::Loopback { .. } => return Ok(Value::new_undefined(ctx.clone())),
        };
        let kind = KINDS.iter().position(|known| known == kind);
        hooks
            .stub_of(ctx)?
            .call((whose, id as f64, kind.unwrap_or_default() as u32))
    };
    externals.iter().map(stub).collect()
}

/// Disposes of the stubs among what a result refers to.
pub(crate) fn dispose_returned<'js>(ctx: &Ctx<'js>, stubs: &[Value<'js>]) {
    if stubs.is_empty() {
        return;
    }
    let disposed = || -> Result<()> {
        let list = raw::array(ctx, stubs)?;
        state::get().hooks.dispose_returned(ctx)?.call((list,))
    };
    if disposed().is_err() {
        raw::forget_exception(ctx);
    }
}

/// Takes back what was given out.
pub(crate) fn release(ctx: &Ctx<'_>, externals: &[External]) {
    for external in externals {
        if let External::Export(id, _) = external {
            release_export(ctx, *id);
        }
    }
}

/// Nobody outside holds an export any more.
pub(crate) fn release_export(ctx: &Ctx<'_>, id: u64) {
    let release = state::get().hooks.release_export(ctx);
    let outcome: Result<()> = release.and_then(|release| release.call((id as f64,)));
    if outcome.is_err() {
        raw::forget_exception(ctx);
    }
}
