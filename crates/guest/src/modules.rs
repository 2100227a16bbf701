//! The worker's modules: what the engine's module loader may see, which is the worker's own names and nothing else.
//!
//! Owns the table of modules, the resolving of specifiers and the declaring of modules. `coracle_loader` holds the rule
//! for specifiers; what both must agree on is `crates/loader/tests/specifiers.json`. Only a NUL in a specifier is lost
//! here: the engine hands specifiers over as C strings. The engine never learns of a file, a URL or a network.

use crate::{
    common_js::{self, Graph},
    engine::js::{Ctx, Error, Exception, Persistent, Result, Value, qjs},
    json,
    lines::Lines,
    raw::{self, Source},
    source_map::{Place, SourceMap},
    state,
};
use coracle_abi::{Load, ModuleKind};
use std::{
    collections::BTreeMap,
    ffi::{CStr, CString, c_char, c_int, c_void},
    ptr::{self, NonNull},
    rc::Rc,
};

/// The modules that the guest itself provides; evaluated before the snapshot.
pub(crate) const BUILT_IN: [&str; 2] = ["cloudflare:workers", "cloudflare:sockets"];

/// Two empty lines stand before every module's first line: the engine counts columns of the first line of a source
/// from 0, of all others from 1. They have the numbers -1 and 0 (0 alone can't be asked for).
pub(crate) const FIRST_LINE: i32 = -1;
const LINES_BEFORE: &[u8] = b"\n\n";

#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) kind: ModuleKind,
    pub(crate) bytes: Rc<[u8]>,
}

/// Name to body, filled by the load message; and what has been made of the modules.
pub(crate) struct ModuleTable {
    bodies: BTreeMap<Rc<str>, Body>,
    values: BTreeMap<Rc<str>, Kept>,
    lines: BTreeMap<Rc<str>, Lines>,
    /// Of the modules that the transpiler has rewritten.
    mappings: BTreeMap<Rc<str>, Rc<str>>,
    /// Of the modules that a frame has been shown of; `None` where there is none.
    maps: BTreeMap<Rc<str>, Option<Rc<SourceMap>>>,
    /// The exports of the ES modules that have been required.
    pub(crate) namespaces: BTreeMap<Rc<str>, Kept>,
    pub(crate) graph: Graph,
}

pub(crate) type Kept = Persistent<Value<'static>>;

impl ModuleTable {
    pub(crate) const fn new() -> Self {
        Self {
            bodies: BTreeMap::new(),
            values: BTreeMap::new(),
            lines: BTreeMap::new(),
            mappings: BTreeMap::new(),
            maps: BTreeMap::new(),
            namespaces: BTreeMap::new(),
            graph: Graph::new(),
        }
    }

    pub(crate) fn fill(&mut self, load: &Load<'_>) {
        for module in &load.modules {
            let body = Body {
                kind: module.kind,
                bytes: Rc::from(&module.body[..]),
            };
            let name: Rc<str> = Rc::from(module.name);
            if !module.mappings.is_empty() {
                let mappings = Rc::from(module.mappings);
                self.mappings.insert(Rc::clone(&name), mappings);
            }
            self.bodies.insert(name, body);
        }
    }
}

/// The body of a module of the worker.
pub(crate) fn body(name: &str) -> Option<Body> {
    state::modules().borrow().bodies.get(name).cloned()
}

/// Whether `name` is a module of the worker.
pub(crate) fn is_known(name: &str) -> bool {
    state::modules().borrow().bodies.contains_key(name)
}

/// The column in UTF-16 code units, from 1, of a column in bytes, from 1, of a module's line.
pub(crate) fn utf16_column(module: &str, line: u32, column: u32) -> u32 {
    let Some(body) = body(module) else {
        return column;
    };
    let table = &mut *state::modules().borrow_mut();
    let lines = table.lines.entry(Rc::from(module));
    let lines = lines.or_insert_with(|| Lines::of(&body.bytes));
    lines.utf16_column(&body.bytes, line, column)
}

/// Where a place of a module's comes from, as its source map says; columns count UTF-16 code units.
pub(crate) fn origin(module: &str, line: u32, column: u32) -> Option<Place> {
    source_map(module)?.find(line, column)
}

fn source_map(module: &str) -> Option<Rc<SourceMap>> {
    if let Some(known) = state::modules().borrow().maps.get(module) {
        return known.clone();
    }
    let name: Rc<str> = Rc::from(module);
    let mappings = state::modules().borrow().mappings.get(module).cloned();
    let map = match mappings {
        Some(mappings) => Some(SourceMap::of_transpiled(Rc::clone(&name), &mappings)),
        None => SourceMap::named_by(module, &body(module)?.bytes),
    };
    let map = map.map(Rc::new);
    state::modules().borrow_mut().maps.insert(name, map.clone());
    map
}

/// Whether a source map that has been read has a source of this name.
pub(crate) fn is_source(name: &str) -> bool {
    let table = state::modules().borrow();
    table
        .maps
        .values()
        .flatten()
        .any(|map| map.has_source(name))
}

/// The name that `specifier` means in `importer`: relative to its folder, from the root, or as it stands.
pub(crate) fn resolve(importer: &str, specifier: &str) -> String {
    let base = if specifier.starts_with("./") || specifier.starts_with("../") {
        importer.rsplit_once('/').map_or("", |(folder, _)| folder)
    } else if specifier.starts_with('/') {
        ""
    } else {
        return specifier.to_owned();
    };
    let mut segments: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for segment in specifier.split('/') {
        match segment {
            "" | "." => {}
            // Clamped at the root, so that nothing outside of the worker can be named.
            ".." => drop(segments.pop()),
            name => segments.push(name),
        }
    }
    segments.join("/")
}

/// Throws the error for a module that is not there. It says the same whatever the specifier looks like.
pub(crate) fn no_such_module(ctx: &Ctx<'_>, specifier: &str, importer: &str) -> Error {
    let mut message = format!("No such module \"{specifier}\".");
    if !importer.is_empty() {
        message += &format!("\n  imported from \"{importer}\"");
    }
    match Exception::from_message(ctx.clone(), &message) {
        Ok(exception) => exception.throw(),
        Err(error) => error,
    }
}

/// Makes the engine load modules from here.
pub(crate) fn install_loader(ctx: &Ctx<'_>) {
    // SAFETY: the runtime lives as long as the instance, and the functions have the types that the engine expects.
    unsafe {
        let runtime = qjs::JS_GetRuntime(ctx.as_raw().as_ptr());
        qjs::JS_SetModuleLoaderFunc2(runtime, None, Some(load), None, ptr::null_mut());
        qjs::JS_SetModuleNormalizeFunc2(runtime, Some(normalize));
    }
}

/// The engine's question for the name that a specifier means.
unsafe extern "C" fn normalize(
    ctx: *mut qjs::JSContext,
    importer: *const c_char,
    specifier: *const c_char,
    _attributes: qjs::JSValue,
    _opaque: *mut c_void,
) -> *mut c_char {
    // SAFETY: the engine passes its context and two C strings.
    let (ctx, importer, specifier) = unsafe {
        (
            context(ctx),
            CStr::from_ptr(importer).to_string_lossy(),
            CStr::from_ptr(specifier).to_string_lossy(),
        )
    };
    let name = match common_js::bridged(&importer) {
        Some(name) => name.to_owned(),
        None => resolve(&importer, &specifier),
    };
    if !BUILT_IN.contains(&&name[..]) && !is_known(&name) {
        no_such_module(&ctx, &specifier, &importer);
        return ptr::null_mut();
    }
    state::modules().borrow_mut().graph.import(&importer, &name);
    // SAFETY: the engine copies the name.
    unsafe { qjs::js_strndup(ctx.as_raw().as_ptr(), name.as_ptr().cast(), name.len() as _) }
}

/// The engine's question for a module that it has not loaded yet.
unsafe extern "C" fn load(
    ctx: *mut qjs::JSContext,
    name: *const c_char,
    _opaque: *mut c_void,
    _attributes: qjs::JSValue,
) -> *mut qjs::JSModuleDef {
    // SAFETY: the engine passes its context and a C string.
    let (ctx, name) = unsafe { (context(ctx), CStr::from_ptr(name).to_string_lossy()) };
    match declare(&ctx, &name) {
        Ok(module) => module.as_ptr(),
        Err(error) => {
            throw(&ctx, error);
            ptr::null_mut()
        }
    }
}

/// # Safety
/// `raw` is the engine's context.
unsafe fn context<'js>(raw: *mut qjs::JSContext) -> Ctx<'js> {
    // SAFETY: promised by the caller.
    unsafe { Ctx::from_raw(NonNull::new(raw).expect("the engine has a context")) }
}

/// Makes an error that is not pending yet the pending exception.
fn throw(ctx: &Ctx<'_>, error: Error) {
    if !matches!(error, Error::Exception) {
        Exception::throw_type(ctx, &error.to_string());
    }
}

/// A module of the engine's, which lives as long as the context.
pub(crate) type ModulePointer = NonNull<qjs::JSModuleDef>;

/// Declares a module of the worker: compiles it and everything that it imports.
fn declare(ctx: &Ctx<'_>, name: &str) -> Result<ModulePointer> {
    state::modules().borrow_mut().graph.declare(name);
    match body(name) {
        None => Err(no_such_module(ctx, name, "")),
        Some(body) if body.kind == ModuleKind::EsModule => compile(ctx, name, &body.bytes),
        Some(_) => {
            let name = CString::new(name)?;
            // SAFETY: the engine copies the name; the function has the type that it expects.
            let module = unsafe {
                let raw = ctx.as_raw().as_ptr();
                let module = qjs::JS_NewCModule(raw, name.as_ptr(), Some(evaluate_value));
                if module.is_null() || qjs::JS_AddModuleExport(raw, module, DEFAULT.as_ptr()) < 0 {
                    return Err(Error::Exception);
                }
                module
            };
            NonNull::new(module).ok_or(Error::Exception)
        }
    }
}

const DEFAULT: &CStr = c"default";

/// Compiles an ES module.
pub(crate) fn compile(ctx: &Ctx<'_>, name: &str, source: &[u8]) -> Result<ModulePointer> {
    // A first line for Unix shells is a comment to JavaScript, but only at the very start.
    let (comment, rest) = match source.strip_prefix(b"#!") {
        Some(rest) => (&b"//"[..], rest),
        None => (&[][..], source),
    };
    let pieces = [LINES_BEFORE, comment, rest];
    let module = raw::compile(ctx, name, &pieces, FIRST_LINE, Source::Module)?;
    // SAFETY: a module value points to its module, which the context keeps.
    let pointer = unsafe { qjs::JS_VALUE_GET_PTR(module.as_raw()) };
    NonNull::new(pointer.cast()).ok_or(Error::Exception)
}

/// Evaluates a module and what it imports. Answers with a promise.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, module: ModulePointer) -> Result<Value<'js>> {
    // SAFETY: the call takes a reference of its own over and answers with an owned value.
    unsafe {
        let raw_ctx = ctx.as_raw().as_ptr();
        let value = qjs::JS_MKPTR(qjs::JS_TAG_MODULE, module.as_ptr().cast());
        let result = qjs::JS_EvalFunction(raw_ctx, qjs::JS_DupValue(raw_ctx, value));
        raw::owned(ctx, result)
    }
}

/// The exports of a module.
pub(crate) fn namespace<'js>(ctx: &Ctx<'js>, module: ModulePointer) -> Result<Value<'js>> {
    // SAFETY: answers with an owned value.
    unsafe {
        let namespace = qjs::JS_GetModuleNamespace(ctx.as_raw().as_ptr(), module.as_ptr());
        raw::owned(ctx, namespace)
    }
}

/// Declares the main module.
pub(crate) fn declare_main(ctx: &Ctx<'_>, name: &str) -> Result<ModulePointer> {
    declare(ctx, name)
}

/// The engine's call to evaluate a module that is no ES module: its default export is its value.
unsafe extern "C" fn evaluate_value(
    ctx: *mut qjs::JSContext,
    module: *mut qjs::JSModuleDef,
) -> c_int {
    // SAFETY: the engine passes its context.
    let ctx = unsafe { context(ctx) };
    let outcome = module_name(&ctx, module).and_then(|name| {
        let modules = state::modules();
        modules.borrow_mut().graph.begin_value(&name);
        let outcome = value(&ctx, &name);
        modules.borrow_mut().graph.end_value();
        outcome
    });
    match outcome {
        // SAFETY: the call takes a reference of its own over.
        Ok(value) => unsafe {
            let raw = ctx.as_raw().as_ptr();
            let value = qjs::JS_DupValue(raw, value.as_raw());
            qjs::JS_SetModuleExport(raw, module, DEFAULT.as_ptr(), value)
        },
        Err(error) => {
            throw(&ctx, error);
            -1
        }
    }
}

fn module_name(ctx: &Ctx<'_>, module: *mut qjs::JSModuleDef) -> Result<String> {
    // SAFETY: answers with an owned atom.
    let key =
        unsafe { raw::Key::owned(ctx, qjs::JS_GetModuleName(ctx.as_raw().as_ptr(), module)) }?;
    key.with_text(|text| String::from_utf8_lossy(text).into_owned())
}

/// The value of a module that is no ES module. Every importer gets the same one.
pub(crate) fn value<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    let Some(body) = body(name) else {
        return Err(no_such_module(ctx, name, ""));
    };
    if body.kind == ModuleKind::CommonJs {
        // Keeps its own books, because a module that threw may be tried again.
        return common_js::exports(ctx, name);
    }
    let known = state::modules().borrow().values.get(name).cloned();
    if let Some(known) = known {
        return known.restore(ctx);
    }
    let value = match body.kind {
        ModuleKind::Json => json::parse_module(ctx, name, &body.bytes)?,
        ModuleKind::Data => raw::array_buffer(ctx, &body.bytes)?,
        _ => raw::string(ctx, &body.bytes)?,
    };
    let kept = Persistent::save(ctx, value.clone());
    state::modules()
        .borrow_mut()
        .values
        .insert(Rc::from(name), kept);
    Ok(value)
}
