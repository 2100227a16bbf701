//! The worker's modules: resolving specifiers and declaring modules, inside the worker's own names only.

use crate::{
    decode,
    engine::js::{
        ArrayBuffer, Ctx, Error, Exception, Function, Module, Object, Result, Value,
        function::{Func, This},
        loader::{ImportAttributes, Loader, Resolver},
        module::Declared,
    },
    state,
};
use coracle_abi::{Load, ModuleKind};
use std::{collections::BTreeMap, rc::Rc};

/// The modules that the guest itself provides; evaluated before the snapshot.
pub(crate) const WORKERS_MODULE: &str = "cloudflare:workers";

#[derive(Clone)]
struct Body {
    kind: ModuleKind,
    bytes: Rc<[u8]>,
}

/// Name to body. Filled by the load message, read by the engine's loader.
pub(crate) struct ModuleTable(BTreeMap<Rc<str>, Body>);

impl ModuleTable {
    pub(crate) const fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn fill(&mut self, load: &Load<'_>) {
        for module in &load.modules {
            let body = Body {
                kind: module.kind,
                bytes: Rc::from(&module.body[..]),
            };
            self.0.insert(Rc::from(module.name), body);
        }
    }

    fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

/// The name that `specifier` means in `importer`: relative to its folder, from the root, or as it stands.
pub(crate) fn resolve(importer: &str, specifier: &str) -> String {
    let (base, rest) = if let Some(rest) = specifier.strip_prefix('/') {
        ("", rest)
    } else if specifier.starts_with("./") || specifier.starts_with("../") {
        (
            importer.rsplit_once('/').map_or("", |(folder, _)| folder),
            specifier,
        )
    } else {
        return specifier.to_owned();
    };
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            // Clamped at the root, so that nothing outside of the worker can be named.
            ".." => drop(parts.pop()),
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

fn no_such_module(ctx: &Ctx<'_>, specifier: &str, importer: &str) -> Error {
    let mut message = format!("No such module \"{specifier}\".");
    if !importer.is_empty() {
        message += &format!("\n  imported from \"{importer}\"");
    }
    match Exception::from_message(ctx.clone(), &message) {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

pub(crate) struct WorkerResolver;

impl Resolver for WorkerResolver {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        let resolved = resolve(base, name);
        if resolved == WORKERS_MODULE || state::modules().borrow().contains(&resolved) {
            Ok(resolved)
        } else {
            Err(no_such_module(ctx, name, base))
        }
    }
}

pub(crate) struct WorkerLoader;

impl Loader for WorkerLoader {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let body = state::modules().borrow().0.get(name).cloned();
        match body {
            Some(body) => declare(ctx, name, &body),
            None => Err(no_such_module(ctx, name, "")),
        }
    }
}

/// Declares the main module.
pub(crate) fn declare_main<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Module<'js, Declared>> {
    WorkerLoader.load(ctx, name, None)
}

fn declare<'js>(ctx: &Ctx<'js>, name: &str, body: &Body) -> Result<Module<'js, Declared>> {
    match body.kind {
        ModuleKind::EsModule => Module::declare(ctx.clone(), name, &body.bytes[..]),
        // `import.meta` of these modules is theirs alone: no worker code runs in them.
        ModuleKind::CommonJs => {
            let module =
                Module::declare(ctx.clone(), name, "export default import.meta.evaluate();")?;
            let name = name.to_owned();
            let evaluate = move |ctx: Ctx<'js>| require(&ctx, &name);
            module.meta()?.set("evaluate", Func::from(evaluate))?;
            Ok(module)
        }
        ModuleKind::Text => declare_value(ctx, name, text(ctx, &body.bytes)?),
        ModuleKind::Json => declare_value(ctx, name, parse_json(ctx, &body.bytes)?),
        ModuleKind::Data => declare_value(
            ctx,
            name,
            ArrayBuffer::new_copy(ctx.clone(), &body.bytes)?.into_value(),
        ),
    }
}

fn declare_value<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    value: Value<'js>,
) -> Result<Module<'js, Declared>> {
    let module = Module::declare(ctx.clone(), name, "export default import.meta.value;")?;
    module.meta()?.set("value", value)?;
    Ok(module)
}

fn text<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    Ok(decode::string(ctx, bytes))
}

fn parse_json<'js>(ctx: &Ctx<'js>, bytes: &[u8]) -> Result<Value<'js>> {
    ctx.json_parse(bytes)
}

/// `require(name)` for a name that is known to be there: `module.exports` of CommonJS, the default export of the rest.
fn require<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    let body = state::modules().borrow().0.get(name).cloned();
    let Some(body) = body else {
        return Err(no_such_module(ctx, name, ""));
    };
    match body.kind {
        ModuleKind::CommonJs => require_common_js(ctx, name, &body),
        ModuleKind::Text => text(ctx, &body.bytes),
        ModuleKind::Json => parse_json(ctx, &body.bytes),
        ModuleKind::Data => Ok(ArrayBuffer::new_copy(ctx.clone(), &body.bytes)?.into_value()),
        ModuleKind::EsModule => {
            // A module of its own that imports the other one lets the engine link and evaluate it.
            let bridge = Module::declare(
                ctx.clone(),
                format!("{REQUIRE_BRIDGE}{name}"),
                format!("import * as all from {name:?}; export {{ all }};"),
            )?;
            let (bridge, promise) = bridge.eval()?;
            if let Some(outcome) = promise.result::<Value>() {
                outcome?;
            }
            let all: Object = bridge.get("all")?;
            all.get("default")
        }
    }
}

/// Prefix of the bridging modules' names: it can't be a worker's, whose names have no control characters.
const REQUIRE_BRIDGE: &str = "\u{1}require:";

fn require_common_js<'js>(ctx: &Ctx<'js>, name: &str, body: &Body) -> Result<Value<'js>> {
    let cache = state::get().hooks.common_js_cache(ctx)?;
    let known: Value = cache.get(name)?;
    if let Some(module) = known.as_object() {
        // Also for a module that is still being evaluated: a cycle sees what is exported so far.
        return module.get("exports");
    }
    let wrapper = wrap_common_js(ctx, name, &body.bytes)?;
    let module = Object::new(ctx.clone())?;
    let exports = Object::new(ctx.clone())?;
    module.set("exports", exports.clone())?;
    cache.set(name, module.clone())?;
    let importer = name.to_owned();
    let require_function = Function::new(
        ctx.clone(),
        move |ctx: Ctx<'js>, specifier: String| -> Result<Value<'js>> {
            let resolved = resolve(&importer, &specifier);
            if resolved == WORKERS_MODULE || !state::modules().borrow().contains(&resolved) {
                return Err(no_such_module(&ctx, &specifier, &importer));
            }
            require(&ctx, &resolved)
        },
    )?
    .with_name("require")?;
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let outcome = wrapper.call::<_, Value>((
        This(exports.clone()),
        exports,
        require_function,
        module.clone(),
        format!("/{name}"),
        format!("/{folder}"),
    ));
    if let Err(error) = outcome {
        cache.remove(name)?;
        return Err(error);
    }
    module.get("exports")
}

/// The head is on the source's first line, so that lines stay what they are; columns of the first line are shifted back
/// where errors are described.
pub(crate) const COMMON_JS_HEAD: &str =
    "(function (exports, require, module, __filename, __dirname) {";

fn wrap_common_js<'js>(ctx: &Ctx<'js>, name: &str, source: &[u8]) -> Result<Function<'js>> {
    let mut script = Vec::with_capacity(COMMON_JS_HEAD.len() + source.len() + 4);
    script.extend_from_slice(COMMON_JS_HEAD.as_bytes());
    script.extend_from_slice(source);
    script.extend_from_slice(b"\n})");
    decode::eval_script(ctx, name, script)?.get()
}

/// Whether `name` is a CommonJS module of the worker.
pub(crate) fn is_common_js(name: &str) -> bool {
    state::modules()
        .borrow()
        .0
        .get(name)
        .is_some_and(|body| body.kind == ModuleKind::CommonJs)
}

/// Whether `name` is a module of the worker.
pub(crate) fn is_known(name: &str) -> bool {
    state::modules().borrow().contains(name)
}
