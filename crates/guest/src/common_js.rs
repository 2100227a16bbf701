//! CommonJS modules: compiling them, and `require`.
//!
//! The prelude's `commonjs.js` keeps the modules that have been evaluated and calls them; this is what it can't do in
//! JavaScript.

use crate::{
    engine::js::{Ctx, Exception, Persistent, Result, Value, promise::PromiseState, qjs},
    modules::{self, BUILT_IN, FIRST_LINE},
    raw::{self, Key, Source},
    state,
};
use coracle_abi::ModuleKind;
use std::{
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

/// Stands on a line of its own, so that lines and columns of the module are those of its source.
const HEAD: &[u8] = b"(function (exports, require, module, __filename, __dirname) {\n\n";
const TAIL: &[u8] = b"\n})";

/// `module.exports` of a CommonJS module, which is evaluated if it was not yet.
pub(crate) fn exports<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    state::get()
        .hooks
        .require_common_js(ctx)?
        .call((raw::string(ctx, name.as_bytes())?,))
}

/// `host.compileCommonJs(name)`: the function that a CommonJS module is the body of.
pub(crate) fn compile<'js>(ctx: Ctx<'js>, name: Value<'js>) -> Result<Value<'js>> {
    let name = raw::text_lossy(&name);
    let Some(body) = modules::body(&name) else {
        return Err(modules::no_such_module(&ctx, &name, ""));
    };
    let pieces = [HEAD, &body.bytes[..], TAIL];
    raw::compile(&ctx, &name, &pieces, FIRST_LINE, Source::Script)
}

/// `host.require(importer, specifier)`: `module.exports` of CommonJS, the default export of ES modules, the value of the
/// rest.
pub(crate) fn require<'js>(
    ctx: Ctx<'js>,
    importer: Value<'js>,
    specifier: Value<'js>,
) -> Result<Value<'js>> {
    let (importer, specifier) = (raw::text_lossy(&importer), raw::text_lossy(&specifier));
    let name = modules::resolve(&importer, &specifier);
    if BUILT_IN.contains(&&name[..]) {
        return namespace(&ctx, &name);
    }
    match modules::body(&name) {
        None => Err(modules::no_such_module(&ctx, &specifier, &importer)),
        Some(body) if body.kind == ModuleKind::EsModule => {
            let namespace = namespace(&ctx, &name)?;
            // A module without a default export has undefined here.
            raw::get(&namespace, &Key::new(&ctx, b"default")?)
        }
        Some(_) => modules::value(&ctx, &name),
    }
}

/// The exports of an ES module, which is evaluated if it was not yet. A module of our own that imports it lets the engine
/// link and evaluate it.
fn namespace<'js>(ctx: &Ctx<'js>, name: &str) -> Result<Value<'js>> {
    let known = state::modules().borrow().namespaces.get(name).cloned();
    if let Some(known) = known {
        return known.restore(ctx);
    }
    let source = b"import * as all from 'bridged'; export { all };";
    let bridge = modules::compile(ctx, &format!("{BRIDGE}{name}"), source)?;
    // Now the engine has asked for all that the module imports.
    if state::modules()
        .borrow()
        .graph
        .is_evaluating(name, &names_on_stack(ctx)?)
    {
        let message = format!(
            "The module \"{name}\" can't be required now: it is still being evaluated, or imports a module that is."
        );
        return Err(Exception::throw_message(ctx, &message));
    }
    let promise = modules::evaluate(ctx, bridge)?;
    let Some(promise) = promise.as_promise() else {
        return Err(Exception::throw_type(ctx, "the module can't be evaluated"));
    };
    match promise.state() {
        PromiseState::Resolved => {}
        PromiseState::Rejected => {
            state::rejections().borrow_mut().forget(promise.as_value());
            return promise.finish();
        }
        PromiseState::Pending => {
            let message =
                format!("The module \"{name}\" can't be required: it uses top-level await.");
            return Err(Exception::throw_message(ctx, &message));
        }
    }
    let all = raw::get(&modules::namespace(ctx, bridge)?, &Key::new(ctx, b"all")?)?;
    let kept = Persistent::save(ctx, all.clone());
    let modules = &mut state::modules().borrow_mut().namespaces;
    modules.insert(Rc::from(name), kept);
    Ok(all)
}

/// Which modules the engine may be in the middle of evaluating.
///
/// To link or evaluate a module that the engine is evaluating confuses it for good; it only asserts that nobody does,
/// and assertions are off. A module is being evaluated exactly while the code of some module that it imports, directly
/// or not, is on the stack, or its own is: so what must not be required is whatever imports a module whose code is on
/// the stack, unless that one was evaluated before.
pub(crate) struct Graph {
    /// Module to what it imports, statically or not.
    imports: BTreeMap<Rc<str>, BTreeSet<Rc<str>>>,
    /// Declared in this entry. What was declared in an earlier one has been evaluated: nothing is on the stack in
    /// between.
    fresh: BTreeSet<Rc<str>>,
    /// Modules that are no ES modules and that the engine is evaluating, innermost last.
    values: Vec<Rc<str>>,
}

impl Graph {
    pub(crate) const fn new() -> Self {
        Self {
            imports: BTreeMap::new(),
            fresh: BTreeSet::new(),
            values: Vec::new(),
        }
    }

    /// Nothing is on the stack.
    pub(crate) fn begin_entry(&mut self) {
        self.fresh.clear();
    }

    pub(crate) fn declare(&mut self, name: &str) {
        self.fresh.insert(Rc::from(name));
    }

    pub(crate) fn import(&mut self, importer: &str, name: &str) {
        let imports = self.imports.entry(Rc::from(importer)).or_default();
        imports.insert(Rc::from(name));
    }

    pub(crate) fn begin_value(&mut self, name: &str) {
        self.values.push(Rc::from(name));
    }

    pub(crate) fn end_value(&mut self) {
        self.values.pop();
    }

    /// Whether the engine may be evaluating `name` or a module that it imports.
    fn is_evaluating(&self, name: &str, on_stack: &BTreeSet<String>) -> bool {
        let is_value =
            |name: &str| modules::body(name).is_some_and(|body| body.kind != ModuleKind::EsModule);
        let is_evaluating = |name: &str| match is_value(name) {
            true => self.values.iter().any(|value| &**value == name),
            false => self.fresh.contains(name) && on_stack.contains(name),
        };
        let mut reached = BTreeSet::from([name]);
        let mut pending = vec![name];
        while let Some(name) = pending.pop() {
            if is_evaluating(name) {
                return true;
            }
            let imports = self.imports.get(name).into_iter().flatten();
            pending.extend(
                imports
                    .map(|name| &**name)
                    .filter(|name| reached.insert(name)),
            );
        }
        false
    }
}

/// More frames than the JavaScript stack has room for.
const FRAMES_MAX: i32 = 8192;
/// Frames in a row that have no name, native functions': after so many the stack has ended.
const NAMELESS_MAX: i32 = 512;

/// The names of the scripts and modules whose code is on the stack.
fn names_on_stack(ctx: &Ctx<'_>) -> Result<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut nameless = 0;
    for level in 0..FRAMES_MAX {
        // SAFETY: answers with an owned atom, or none.
        let atom = unsafe { qjs::JS_GetScriptOrModuleName(ctx.as_raw().as_ptr(), level) };
        if atom == 0 {
            nameless += 1;
            if nameless == NAMELESS_MAX {
                break;
            }
            continue;
        }
        nameless = 0;
        let name = Key::owned(ctx, atom)?;
        names.insert(name.with_text(|text| String::from_utf8_lossy(text).into_owned())?);
    }
    Ok(names)
}

/// Prefix of the bridging modules' names: it can't be a worker's, whose names have no control characters.
const BRIDGE: &str = "\u{1}require:";

/// The module that a bridging module is for.
pub(crate) fn bridged(importer: &str) -> Option<&str> {
    importer.strip_prefix(BRIDGE)
}
