//! Text that becomes code or data: compiling, parsing JSON, and running the jobs that code has left.

use super::{given, owned, raw};
use crate::engine::js::{Ctx, Error, Result, Value, qjs};
use std::ffi::CString;

/// Parses JSON; `name` stands for it in the error.
pub(crate) fn parse_json<'js>(ctx: &Ctx<'js>, text: &str, name: &str) -> Result<Value<'js>> {
    let mut source = Vec::with_capacity(text.len() + 1);
    source.extend_from_slice(text.as_bytes());
    source.push(0);
    let name = CString::new(name)?;
    // SAFETY: both strings end in NUL and outlive the call.
    unsafe {
        let raw = qjs::JS_ParseJSON(
            raw(ctx),
            source.as_ptr().cast(),
            text.len() as _,
            name.as_ptr(),
        );
        owned(ctx, raw)
    }
}

/// What a piece of source is.
#[derive(Clone, Copy)]
pub(crate) enum Source {
    /// Evaluated at once, outside of any module.
    Script,
    /// The same, compiled only.
    ScriptUnevaluated,
    /// Compiled only; answers with the module.
    Module,
}

/// Compiles source under a name. The lines before `first_line` are not the author's.
pub(crate) fn compile<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    pieces: &[&[u8]],
    first_line: i32,
    kind: Source,
) -> Result<Value<'js>> {
    let mut source = pieces.concat();
    let length = source.len();
    source.push(0);
    let name = CString::new(name)?;
    let flags = match kind {
        Source::Script => qjs::JS_EVAL_TYPE_GLOBAL,
        Source::ScriptUnevaluated => qjs::JS_EVAL_TYPE_GLOBAL | qjs::JS_EVAL_FLAG_COMPILE_ONLY,
        Source::Module => qjs::JS_EVAL_TYPE_MODULE | qjs::JS_EVAL_FLAG_COMPILE_ONLY,
    };
    let mut options = qjs::JSEvalOptions {
        version: qjs::JS_EVAL_OPTIONS_VERSION as _,
        eval_flags: flags as _,
        filename: name.as_ptr(),
        line_num: first_line,
    };
    // SAFETY: source and name end in NUL and outlive the call.
    unsafe {
        let raw = qjs::JS_Eval2(
            raw(ctx),
            source.as_ptr().cast(),
            length as _,
            &raw mut options,
        );
        owned(ctx, raw)
    }
}

/// Evaluates a script of ours, whose functions then show no source, like those of the engine.
pub(crate) fn eval_without_source<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    source: &str,
) -> Result<Value<'js>> {
    let script = compile(
        ctx,
        name,
        &[source.as_bytes()],
        1,
        Source::ScriptUnevaluated,
    )?;
    let write_flags = qjs::JS_WRITE_OBJ_BYTECODE | qjs::JS_WRITE_OBJ_STRIP_SOURCE;
    let mut length = 0;
    // SAFETY: the bytecode is the engine's own, written a moment ago, and freed after it was read; evaluating takes the
    // reference of the read script over.
    unsafe {
        let bytecode =
            qjs::JS_WriteObject(raw(ctx), &raw mut length, script.as_raw(), write_flags as _);
        if bytecode.is_null() {
            return Err(Error::Exception);
        }
        let read_flags = qjs::JS_READ_OBJ_BYTECODE;
        let read = qjs::JS_ReadObject(raw(ctx), bytecode, length, read_flags as _);
        qjs::js_free(raw(ctx), bytecode.cast());
        let script = owned(ctx, read)?;
        owned(ctx, qjs::JS_EvalFunction(raw(ctx), given(&script)))
    }
}

/// What became of a job.
pub(crate) enum Job<'js> {
    None,
    Done,
    /// It threw, and nothing else will say so.
    Threw(Value<'js>),
}

/// Runs the next job that is due.
pub(crate) fn run_job<'js>(ctx: &Ctx<'js>) -> Job<'js> {
    let mut of = std::ptr::null_mut();
    // SAFETY: the context that the job ran in is an out parameter, and there is only one.
    match unsafe { qjs::JS_ExecutePendingJob(qjs::JS_GetRuntime(raw(ctx)), &raw mut of) } {
        0 => Job::None,
        1.. => Job::Done,
        _ => Job::Threw(ctx.catch()),
    }
}
