//! Loading workers: from what the prelude's `loader.js` has made of a worker's code to the messages for the host.

use crate::{
    encode::{self, EncodeError, Instances, Manner, References},
    engine::js::{Array, Ctx, Exception, Result, Value},
    externals, host, raw, state, thrown,
};
use coracle_abi::{
    Child, ChildEntrypoint, ChildLimits, ChildOutbound, Encoded, External, FLAGS_MAX, Form, Get,
    MODULES_MAX, Module, ModuleKind, NAME_BYTES_MAX, NotProvided, PROPS_BYTES_MAX, TAILS_MAX,
    import_of, operation,
};
use std::cell::Cell;

/// Nesting of `env` and props; the host has limits of its own.
const DEPTH_MAX: usize = 512;

/// Bytes that a worker's modules, and its `env`, may have.
#[derive(Clone, Copy)]
pub(crate) struct SizesMax {
    pub(crate) code: u64,
    pub(crate) env: u64,
}

struct Global(Cell<SizesMax>);
// SAFETY: the guest has one thread.
unsafe impl Sync for Global {}
static SIZES_MAX: Global = Global(Cell::new(SizesMax { code: 0, env: 0 }));

/// Notes what the host allows.
pub(crate) fn set_sizes_max(sizes: SizesMax) {
    SIZES_MAX.0.set(sizes);
}

/// A module's body, copied out of the engine.
struct Body {
    name: String,
    kind: ModuleKind,
    bytes: Vec<u8>,
}

/// `host.startLoad(loader, get, head, env)`: starts loading a worker; answers its import. `head` is [compatibilityDate,
/// compatibilityFlags, mainModule, [name, kind, body, …], outbound, gateway, tails, cpuMs, subRequests].
pub(crate) fn start_load<'js>(
    ctx: Ctx<'js>,
    loader: f64,
    get: f64,
    head: Array<'js>,
    env: Value<'js>,
) -> Result<f64> {
    let date = raw::text_lossy(&head.get(0)?);
    let flags: Vec<String> = texts(&head.get(1)?)?;
    let main_module = raw::text_lossy(&head.get(2)?);
    let bodies = bodies(&ctx, &head.get(3)?)?;
    at_most(&ctx, "modules", bodies.len(), MODULES_MAX)?;
    at_most(&ctx, "compatibility flags", flags.len(), FLAGS_MAX)?;
    let size: u64 = bodies.iter().map(|body| body.bytes.len() as u64).sum();
    let sizes_max = SIZES_MAX.0.get();
    if size > sizes_max.code {
        return Err(too_large(&ctx, "code", size, sizes_max.code));
    }
    let limits = ChildLimits {
        cpu_ms: head.get::<f64>(7)? as u32,
        subrequests: head.get::<f64>(8)? as u32,
    };
    // Last, because it gives references out.
    let (env_bytes, env_externals) = encoded(&ctx, "env", &env, sizes_max.env)?;
    let outbound = outbound(&ctx, &head);
    let tails = head.get(6).and_then(|tails| references(&ctx, &tails));
    let tails = tails.and_then(|tails| {
        at_most(&ctx, "tails", tails.len(), TAILS_MAX)?;
        Ok(tails)
    });
    let (outbound, tails) = match (outbound, tails) {
        (Ok(outbound), Ok(tails)) => (outbound, tails),
        (Err(error), _) | (_, Err(error)) => {
            externals::release(&ctx, &env_externals);
            return Err(error);
        }
    };
    let child = Child {
        loader: loader as u64,
        get: get as u64,
        compatibility_date: &date,
        compatibility_flags: flags.iter().map(String::as_str).collect(),
        main_module: &main_module,
        modules: bodies.iter().map(Body::as_module).collect(),
        env: value(&env_bytes, env_externals),
        outbound,
        tails,
        limits,
    };
    Ok(start(operation::LOAD, &child))
}

/// `host.startEntrypoint(worker, name, props, cpuMs, subRequests)`: answers the entrypoint's import.
pub(crate) fn start_entrypoint<'js>(
    ctx: Ctx<'js>,
    worker: f64,
    name: Value<'js>,
    props: Value<'js>,
    cpu_ms: f64,
    subrequests: f64,
) -> Result<f64> {
    let name = name_of(&ctx, &name)?;
    let (props, externals) = encoded(&ctx, "props", &props, PROPS_BYTES_MAX as u64)?;
    let entrypoint = ChildEntrypoint {
        worker: worker as u64,
        name: &name,
        props: value(&props, externals),
        limits: ChildLimits {
            cpu_ms: cpu_ms as u32,
            subrequests: subrequests as u32,
        },
    };
    Ok(start(operation::ENTRYPOINT, &entrypoint))
}

/// `host.startGet(loader, id)`: answers the operation.
pub(crate) fn start_get<'js>(ctx: Ctx<'js>, loader: f64, id: Value<'js>) -> Result<f64> {
    let get = Get {
        loader: loader as u64,
        id: &name_of(&ctx, &id)?,
    };
    Ok(host::start(operation::GET, &message(&get)) as f64)
}

fn name_of<'js>(ctx: &Ctx<'js>, name: &Value<'js>) -> Result<String> {
    let name = raw::text_lossy(name);
    if name.len() > NAME_BYTES_MAX {
        let message = format!(
            "A name has {} bytes, {NAME_BYTES_MAX} are allowed.",
            name.len()
        );
        return Err(Exception::throw_type(ctx, &message));
    }
    Ok(name)
}

fn at_most(ctx: &Ctx<'_>, what: &str, count: usize, count_max: usize) -> Result<()> {
    if count <= count_max {
        return Ok(());
    }
    let message = format!(
        "Dynamic Worker code contains {count} {what}, which exceeds the maximum of {count_max}."
    );
    Err(Exception::throw_type(ctx, &message))
}

/// `host.notProvided(get, error)`
pub(crate) fn not_provided<'js>(ctx: Ctx<'js>, get: f64, error: Value<'js>) {
    let thrown = thrown::describe(&ctx, &error, false);
    let not_provided = NotProvided {
        get: get as u64,
        thrown,
    };
    host::start(operation::NOT_PROVIDED, &message(&not_provided));
}

fn start<T: minicbor::Encode<()>>(kind: u32, argument: &T) -> f64 {
    import_of(host::start(kind, &message(argument))) as f64
}

fn message<T: minicbor::Encode<()>>(argument: &T) -> Vec<u8> {
    // Encoding into a Vec can't fail.
    minicbor::to_vec(argument).unwrap_or_default()
}

fn texts(list: &Array<'_>) -> Result<Vec<String>> {
    list.iter::<Value>()
        .map(|text| Ok(raw::text_lossy(&text?)))
        .collect()
}

impl Body {
    fn as_module(&self) -> Module<'_> {
        Module {
            name: &self.name,
            kind: self.kind,
            body: self.bytes[..].into(),
            mappings: "",
        }
    }
}

/// The modules of `[name, kind, body, …]`; kinds as `loader.js` has them.
fn bodies<'js>(ctx: &Ctx<'js>, flat: &Array<'js>) -> Result<Vec<Body>> {
    let mut bodies = Vec::with_capacity(flat.len() / 3);
    for index in (0..flat.len()).step_by(3) {
        let kind = match flat.get::<u32>(index + 1)? {
            0 => ModuleKind::EsModule,
            1 => ModuleKind::CommonJs,
            2 => ModuleKind::Text,
            3 => ModuleKind::Json,
            _ => ModuleKind::Data,
        };
        let body: Value = flat.get(index + 2)?;
        let bytes = match kind {
            ModuleKind::Data => data(ctx, &body)?,
            _ => raw::text_lossy(&body).into_bytes(),
        };
        bodies.push(Body {
            name: raw::text_lossy(&flat.get(index)?),
            kind,
            bytes,
        });
    }
    Ok(bodies)
}

/// A copy of the bytes of an `ArrayBuffer` or a view of one.
fn data<'js>(ctx: &Ctx<'js>, body: &Value<'js>) -> Result<Vec<u8>> {
    let hooks = &state::get().hooks;
    let samples = hooks.samples();
    let class = if body.is_object() {
        raw::class_id(body)
    } else {
        0
    };
    let (buffer, start, length) = if body.is_object() && class == samples.array_buffer {
        (body.clone(), 0, usize::MAX)
    } else if body.is_object()
        && (class == samples.data_view || raw::typed_array_kind(body).is_some())
    {
        let window: Array = hooks.view_window(ctx)?.call((body.clone(),))?;
        let (start, length) = (window.get::<f64>(1)?, window.get::<f64>(2)?);
        (window.get(0)?, start as usize, length as usize)
    } else {
        return Err(Exception::throw_type(
            ctx,
            "Incorrect type for the 'data' field on 'Module': the provided value is not of type 'ArrayBuffer or ArrayBufferView'.",
        ));
    };
    let copied = raw::with_buffer(&buffer, |bytes| {
        let end = start.saturating_add(length).min(bytes.len());
        bytes.get(start..end).map(<[u8]>::to_vec)
    });
    Ok(copied.flatten().unwrap_or_default())
}

fn outbound<'js>(ctx: &Ctx<'js>, head: &Array<'js>) -> Result<ChildOutbound> {
    Ok(match head.get::<u32>(4)? {
        0 => ChildOutbound::Inherit,
        1 => ChildOutbound::None,
        _ => ChildOutbound::Gateway(reference(ctx, &head.get(5)?)?),
    })
}

fn references<'js>(ctx: &Ctx<'js>, list: &Array<'js>) -> Result<Vec<External>> {
    list.iter::<Value>()
        .map(|stub| reference(ctx, &stub?))
        .collect()
}

/// The entry for a stub.
fn reference<'js>(ctx: &Ctx<'js>, stub: &Value<'js>) -> Result<External> {
    externals::of_value(ctx, stub)?.ok_or_else(|| {
        encode::data_clone_error(ctx, "A promise of a stub can't be passed; await it first.")
    })
}

/// The bytes of an object, and what they refer to; none of undefined.
fn encoded<'js>(
    ctx: &Ctx<'js>,
    root: &'static str,
    object: &Value<'js>,
    bytes_max: u64,
) -> Result<(Vec<u8>, Vec<External>)> {
    if object.is_undefined() {
        return Ok((Vec::new(), Vec::new()));
    }
    let manner = Manner {
        root,
        bytes_max: bytes_max as usize,
        depth_max: DEPTH_MAX,
        instances: Instances::Refused,
        references: References::GivenOut,
    };
    let encoded = encode::cbor(ctx, object, manner).map_err(|error| match error {
        EncodeError::TooLarge(size) => too_large(ctx, root, size as u64, bytes_max),
        error => encode::thrown(ctx, error),
    })?;
    Ok((encoded.bytes, encoded.externals))
}

fn value(bytes: &[u8], externals: Vec<External>) -> Encoded<'_> {
    Encoded {
        form: match bytes.is_empty() {
            true => Form::Undefined,
            false => Form::Cbor,
        },
        bytes: bytes.into(),
        externals,
    }
}

fn too_large(ctx: &Ctx<'_>, what: &str, size: u64, size_max: u64) -> crate::engine::js::Error {
    Exception::throw_message(
        ctx,
        &format!(
            "Dynamic Worker {what} size ({size} bytes) exceeds the maximum allowed size of {size_max} bytes."
        ),
    )
}
