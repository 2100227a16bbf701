//! The rules for modules: how many, what they may be called, what they may be made of, how large
//! they may be.

use super::encoded::json_fault;
use super::problem::{ProblemCode, Problems, pointer, shown};
use super::{Module, ModuleBody, WorkerCode};
use crate::limits::Limits;
use std::collections::BTreeMap;

/// How many modules a worker may have.
pub use coracle_abi::MODULES_MAX;

/// How long a module's name may be.
pub const MODULE_NAME_BYTES_MAX: usize = 1_024;

/// Names that start like this are the runtime's own modules.
const RESERVED_PREFIXES: [&str; 3] = ["cloudflare:", "coracle:", "node:"];

/// How many of the modules' names an error about the main module repeats.
const NAMES_SUGGESTED_MAX: usize = 5;

pub(super) fn check_modules(code: &WorkerCode, limits: &Limits, problems: &mut Problems) {
    if code.modules.is_empty() {
        problems.push(
            "/modules".to_owned(),
            ProblemCode::ModulesMissing,
            "Dynamic Worker code must contain at least one module.".to_owned(),
            String::new(),
        );
        return;
    }
    if code.modules.len() > MODULES_MAX {
        // Not looked at one by one: the number alone is the problem.
        problems.push(
            "/modules".to_owned(),
            ProblemCode::ModulesTooMany,
            format!(
                "Dynamic Worker code contains {} modules, which exceeds the maximum of {MODULES_MAX}.",
                code.modules.len()
            ),
            "bundle them into fewer".to_owned(),
        );
        return;
    }
    let size_fits = check_size(&code.modules, limits, problems);
    let mut by_name: BTreeMap<&str, &ModuleBody> = BTreeMap::new();
    for module in &code.modules {
        check_name(&module.name, problems);
        check_body(module, size_fits, limits, problems);
        if by_name.insert(&module.name, &module.body).is_some() {
            problems.push(
                pointer("/modules", &module.name),
                ProblemCode::ModuleNameRepeated,
                format!(
                    "Module name \"{}\" is used more than once.",
                    shown(&module.name)
                ),
                "give each module a name of its own".to_owned(),
            );
        }
    }
    check_main_module(&code.main_module, &by_name, problems);
}

/// Returns whether the bodies may be looked into: parsing what is too large already would be work
/// for nothing.
fn check_size(modules: &[Module], limits: &Limits, problems: &mut Problems) -> bool {
    let size: u64 = modules.iter().map(|module| module.body.bytes()).sum();
    let fits = size <= limits.code_bytes_max;
    if !fits {
        problems.push(
            "/modules".to_owned(),
            ProblemCode::CodeTooLarge,
            format!(
                "Dynamic Worker code size ({size} bytes) exceeds the maximum allowed size of {} bytes.",
                limits.code_bytes_max
            ),
            "leave out modules that are not needed, or minify them; the server's code_bytes_max sets the size"
                .to_owned(),
        );
    }
    fits
}

fn check_name(name: &str, problems: &mut Problems) {
    let fault = if name.is_empty() {
        "is empty".to_owned()
    } else if name.len() > MODULE_NAME_BYTES_MAX {
        format!(
            "has {} bytes, which exceeds the maximum of {MODULE_NAME_BYTES_MAX}",
            name.len()
        )
    } else if name.contains('\0') {
        "contains a NUL character".to_owned()
    } else if name.contains(char::is_control) {
        "contains a control character".to_owned()
    } else if let Some(prefix) = RESERVED_PREFIXES
        .into_iter()
        .find(|prefix| name.starts_with(prefix))
    {
        problems.push(
            pointer("/modules", name),
            ProblemCode::ModuleNameReserved,
            format!(
                "Module name \"{}\" is reserved: \"{prefix}\" belongs to the runtime.",
                shown(name)
            ),
            "rename the module".to_owned(),
        );
        return;
    } else {
        return;
    };
    problems.push(
        pointer("/modules", name),
        ProblemCode::ModuleNameInvalid,
        format!("Module name \"{}\" {fault}.", shown(name)),
        "rename the module".to_owned(),
    );
}

fn check_body(module: &Module, size_fits: bool, limits: &Limits, problems: &mut Problems) {
    let name = shown(&module.name);
    let (code, message, fix) = match &module.body {
        ModuleBody::Unset => (
            ProblemCode::ModuleBodyMissing,
            format!("Module \"{name}\" has no body."),
            "set exactly one of esModule, commonJs, text, json and data",
        ),
        ModuleBody::Wasm(_) => (
            ProblemCode::ModuleWasm,
            format!("Module \"{name}\" is WebAssembly, which is not available yet."),
            "leave it out, or pass the same code as JavaScript",
        ),
        ModuleBody::Json(text) if size_fits => match json_fault(text, limits) {
            Some(fault) => (
                ProblemCode::ModuleJsonInvalid,
                format!("Module \"{name}\" is not valid JSON: {fault}"),
                "pass what JSON.stringify() makes, or pass it as text",
            ),
            None => return,
        },
        _ => return,
    };
    problems.push(
        pointer("/modules", &module.name),
        code,
        message,
        fix.to_owned(),
    );
}

fn check_main_module(
    main_module: &str,
    by_name: &BTreeMap<&str, &ModuleBody>,
    problems: &mut Problems,
) {
    let (code, message, fix) = match by_name.get(main_module) {
        Some(ModuleBody::EsModule(_)) => return,
        Some(body) => (
            ProblemCode::MainModuleNotEsModule,
            "Main module must be an ES module.".to_owned(),
            format!("\"{}\" is {}", shown(main_module), body.kind()),
        ),
        None => (
            ProblemCode::MainModuleMissing,
            format!("No such module: {}", shown(main_module)),
            format!("name one of the modules: {}", some_names(by_name)),
        ),
    };
    problems.push("/mainModule".to_owned(), code, message, fix);
}

fn some_names(by_name: &BTreeMap<&str, &ModuleBody>) -> String {
    let names: Vec<String> = by_name
        .keys()
        .take(NAMES_SUGGESTED_MAX)
        .map(|name| shown(name))
        .collect();
    let more = if by_name.len() > NAMES_SUGGESTED_MAX {
        ", …"
    } else {
        ""
    };
    format!("{}{more}", names.join(", "))
}
