//! Making JavaScript of TypeScript and JSX, before a guest sees it.
//!
//! The transpiler is a Wasm module of its own beside the guest, with no imports. It runs where the guest is going to run and
//! on the same terms: the invocation's fuel, the worker's memory, slices. An isolate has one or the other, never both, so
//! that it takes one place of the pool. An instance lives for the modules of one worker. What comes out of it is taken as
//! hostile, like all that comes out of a sandbox. See docs/decisions/0018-typescript.md.

use crate::{
    border::{State, Stop},
    message::{Thrown, VerdictKind},
};
use coracle_abi::{self as abi, Language, TRANSPILE, Transpile, Transpiled};
use std::sync::Arc;
use wasmtime::{Engine, InstancePre, Linker, Memory, Module, Result, Store, Trap, TypedFunc};

/// The transpiler's own stack, which `build.rs` sets. What is nested so deeply that it does not hold it is refused.
pub(crate) const TRANSPILER_STACK_BYTES: u64 = 2 << 20;

/// The compiled transpiler in an engine.
pub(crate) struct Transpiler(InstancePre<State>);

/// What became of a worker's modules.
pub(crate) enum Outcome {
    /// The message that loads them.
    Load(Arc<[u8]>),
    /// One of them can't be transpiled, which is for the worker what a syntax error is.
    Threw(Box<Thrown>),
}

/// Whether some module of a worker has to be transpiled. `load` is one of our own `coracle_abi::Load` messages.
pub(crate) fn is_needed(load: &[u8]) -> bool {
    let load = minicbor::decode::<abi::Load<'_>>(load);
    load.is_ok_and(|load| load.modules.iter().any(|it| language(it).is_some()))
}

fn language(module: &abi::Module<'_>) -> Option<Language> {
    Language::of(module.name, module.kind)
}

/// One module's JavaScript.
struct Code {
    text: String,
    mappings: String,
}

impl Transpiler {
    pub(crate) fn new(engine: &Engine, module: &Module) -> Result<Self> {
        Ok(Self(Linker::new(engine).instantiate_pre(module)?))
    }

    /// Transpiles what has to be. The store's fuel and its limits are set.
    pub(crate) async fn run(&self, store: &mut Store<State>, load: &[u8]) -> Result<Outcome> {
        let mut load: abi::Load<'_> = minicbor::decode(load)?;
        let instance = Instance::make(&self.0, store).await?;
        let mut codes = Vec::with_capacity(load.modules.len());
        let mut bytes = 0;
        for module in &load.modules {
            let Some(language) = language(module) else {
                codes.push(None);
                continue;
            };
            let request = Transpile {
                language,
                is_common_js: module.kind == abi::ModuleKind::CommonJs,
                source: std::str::from_utf8(module.body)?,
            };
            match instance.transpile(store, &request, module.name).await? {
                Ok(code) => {
                    bytes += (code.text.len() + code.mappings.len()) as u64;
                    // They are held here until the guest has them, which has to have room for them all.
                    store.data().bound_memory(bytes)?;
                    codes.push(Some(code));
                }
                Err(thrown) => return Ok(Outcome::Threw(thrown)),
            }
        }
        for (module, code) in load.modules.iter_mut().zip(&codes) {
            if let Some(code) = code {
                module.body = code.text.as_bytes().into();
                module.mappings = &code.mappings;
            }
        }
        Ok(Outcome::Load(minicbor::to_vec(&load)?.into()))
    }
}

struct Instance {
    memory: Memory,
    allocate: TypedFunc<u32, u32>,
    transpile: TypedFunc<(u32, u32), u64>,
}

impl Instance {
    async fn make(template: &InstancePre<State>, store: &mut Store<State>) -> Result<Self> {
        let instance = template.instantiate_async(&mut *store).await?;
        let memory = instance.get_memory(&mut *store, "memory");
        let memory = memory.ok_or_else(|| broken("it has no memory"))?;
        Ok(Self {
            memory,
            allocate: instance.get_typed_func(&mut *store, abi::export::ALLOCATE)?,
            transpile: instance.get_typed_func(&mut *store, TRANSPILE)?,
        })
    }

    /// The inner error is the module's own.
    async fn transpile(
        &self,
        store: &mut Store<State>,
        request: &Transpile<'_>,
        name: &str,
    ) -> Result<Result<Code, Box<Thrown>>> {
        let message = minicbor::to_vec(request)?;
        let length = u32::try_from(message.len())?;
        let pointer = self.allocate.call_async(&mut *store, length).await?;
        if pointer == 0 {
            return Err(broken("it has no room for the module"));
        }
        self.memory.write(&mut *store, pointer as usize, &message)?;
        let answer = self
            .transpile
            .call_async(&mut *store, (pointer, length))
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) if is_overflow(&error) => return Ok(Err(Box::new(nested_too_deeply(name)))),
            Err(error) => return Err(error),
        };
        let (pointer, length) = ((answer >> 32) as usize, answer as u32 as usize);
        let bytes = self.memory.data(&*store).get(pointer..);
        let bytes = bytes.and_then(|bytes| bytes.get(..length));
        let bytes = bytes.ok_or_else(|| broken("it answers from outside of its memory"))?;
        Ok(match minicbor::decode(bytes)? {
            Transpiled::Code { text, mappings } => Ok(Code {
                text: text.to_owned(),
                mappings: mappings.to_owned(),
            }),
            Transpiled::Fault {
                message,
                line,
                column,
            } => Err(Box::new(syntax_error(name, message, line, column))),
        })
    }
}

/// Whether it has used up a stack: that of Wasm, or its own, which is at the beginning of the memory.
fn is_overflow(error: &wasmtime::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(Trap::StackOverflow | Trap::MemoryOutOfBounds)
    )
}

fn broken(how: &str) -> wasmtime::Error {
    wasmtime::Error::msg(format!("the transpiler is broken: {how}"))
}

fn nested_too_deeply(name: &str) -> Thrown {
    Thrown {
        name: "RangeError".into(),
        message: format!(
            "{name} is nested too deeply to be transpiled: it takes more than transpiler_stack_bytes, which is \
             {TRANSPILER_STACK_BYTES}"
        ),
        module: name.into(),
        during_load: true,
        ..Thrown::default()
    }
}

fn syntax_error(name: &str, message: &str, line: u32, column: u32) -> Thrown {
    Thrown {
        name: "SyntaxError".into(),
        message: bounded(message).into(),
        stack: format!("    at {name}:{line}:{column}"),
        module: name.into(),
        line,
        column,
        during_load: true,
        ..Thrown::default()
    }
}

/// For a server whose guest has none.
pub(crate) fn missing() -> Thrown {
    Thrown {
        name: "TypeError".into(),
        message: "TypeScript and JSX can't be loaded: this server's guest has no transpiler".into(),
        during_load: true,
        ..Thrown::default()
    }
}

/// A message may quote the source.
const MESSAGE_BYTES_MAX: usize = 4 * 1024;

fn bounded(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]
}

impl State {
    /// Ends the entry where so many bytes are more than the worker may have.
    fn bound_memory(&self, bytes: u64) -> Result<()> {
        let limit = self.memory_bytes_max();
        if bytes <= limit {
            return Ok(());
        }
        Err(Stop {
            kind: VerdictKind::Memory,
            limit_name: "memory_bytes_max",
            used: bytes,
            limit,
        }
        .into())
    }
}

#[cfg(test)]
mod tests;
