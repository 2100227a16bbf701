//! What a guest says of workers that it loads: read, bounded and checked.

use crate::{
    loading::{Child, ChildEntrypoint, Loading, load_message},
    message::{Bytes, External},
};
use coracle_abi::{
    self as abi, ChildLimits, ModuleKind, NAME_BYTES_MAX, PROPS_BYTES_MAX, operation,
};
use coracle_loader::{
    Encoded, Form, LimitName, Limits, LimitsRequest, Module, ModuleBody, Outbound, ProblemCode,
    Problems, WorkerCode, check,
};
use std::sync::Arc;
use wasmtime::Result;

/// Bytes of a message about loading besides modules and `env`: names, flags and tables.
const HEAD_BYTES_MAX: u64 = 16 << 20;

/// Bytes that a message may have; the guest's own code keeps below that.
pub(super) fn bytes_max(kind: u32, limits: &Limits) -> usize {
    let bytes = match kind {
        operation::LOAD => limits
            .code_bytes_max
            .saturating_add(limits.env_bytes_max)
            .saturating_add(HEAD_BYTES_MAX),
        _ => PROPS_BYTES_MAX as u64 + HEAD_BYTES_MAX,
    };
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// Reads a message. `limits` are the isolate's.
pub(super) fn read(kind: u32, bytes: &[u8], limits: &Limits) -> Result<Loading> {
    let request = match kind {
        operation::LOAD => minicbor::decode(bytes).map(|child| load(&child, limits)),
        operation::ENTRYPOINT => minicbor::decode(bytes).map(entrypoint),
        operation::GET => minicbor::decode(bytes).map(get),
        _ => minicbor::decode(bytes).map(not_provided),
    };
    request
        .ok()
        .flatten()
        .ok_or_else(|| wasmtime::Error::msg("the guest uses a loader in a way that can't be read"))
}

fn load(child: &abi::Child<'_>, limits: &Limits) -> Option<Loading> {
    let code = worker_code(child)?;
    let load = match check(&code, limits) {
        Ok(()) => Ok(message(&code, child, limits)),
        Err(problems) => Err(first(&problems)),
    };
    Some(Loading::Load(Box::new(Child {
        loader: child.loader,
        get: (child.get != 0).then_some(child.get),
        load,
        env: child.env.externals.clone(),
        outbound: child.outbound.clone(),
        tails: child.tails.clone(),
        asked: asked(child.limits),
        limits: *limits,
    })))
}

fn message(code: &WorkerCode, child: &abi::Child<'_>, limits: &Limits) -> Arc<[u8]> {
    let kinds = child.env.externals.iter().map(|external| match external {
        External::Export(_, kind) | External::Import(_, kind) => *kind,
        External::Loopback { .. } => abi::Kind::Entrypoint,
    });
    load_message(code, kinds, limits, !child.tails.is_empty())
}

/// None where a text is not one.
fn worker_code(child: &abi::Child<'_>) -> Option<WorkerCode> {
    let text = |body: &[u8]| String::from_utf8(body.to_vec()).ok();
    let module = |module: &abi::Module<'_>| {
        Some(Module {
            name: module.name.to_owned(),
            body: match module.kind {
                ModuleKind::EsModule => ModuleBody::EsModule(text(module.body)?),
                ModuleKind::CommonJs => ModuleBody::CommonJs(text(module.body)?),
                ModuleKind::Text => ModuleBody::Text(text(module.body)?),
                ModuleKind::Json => ModuleBody::Json(text(module.body)?),
                ModuleKind::Data => ModuleBody::Data(module.body.to_vec()),
            },
        })
    };
    let flags = child.compatibility_flags.iter();
    Some(WorkerCode {
        compatibility_date: child.compatibility_date.to_owned(),
        compatibility_flags: flags.map(|flag| (*flag).to_owned()).collect(),
        main_module: child.main_module.to_owned(),
        modules: child.modules.iter().map(module).collect::<Option<_>>()?,
        env: Encoded {
            form: match child.env.form {
                abi::Form::Undefined => Form::Undefined,
                abi::Form::Cbor => Form::Cbor,
                abi::Form::Json => Form::Json,
            },
            bytes: child.env.bytes.to_vec(),
            externals: u32::try_from(child.env.externals.len()).ok()?,
        },
        // Not looked at: it is the service's to decide.
        outbound: Outbound::None,
        limits: LimitsRequest::default(),
    })
}

/// What is wrong with the code, in a sentence. What Workers find only as they start one is told in the words for that.
fn first(problems: &Problems) -> String {
    let Some(problem) = problems.listed().first() else {
        return "The worker can't be loaded.".into();
    };
    let name = match problem.code {
        ProblemCode::MainModuleMissing => "Error",
        ProblemCode::MainModuleNotEsModule => "TypeError",
        _ => return problem.message.clone(),
    };
    format!(
        "Failed to start Worker:\nUncaught {name}: {}",
        problem.message
    )
}

fn entrypoint(entrypoint: abi::ChildEntrypoint<'_>) -> Option<Loading> {
    let abi::ChildEntrypoint {
        worker,
        name,
        props,
        limits,
    } = entrypoint;
    let is_bounded = name.len() <= NAME_BYTES_MAX && props.bytes.len() <= PROPS_BYTES_MAX;
    is_bounded.then(|| {
        Loading::Entrypoint(Box::new(ChildEntrypoint {
            worker,
            name: name.to_owned(),
            props: Bytes {
                form: props.form,
                bytes: props.bytes.to_vec(),
                externals: props.externals,
            },
            asked: asked(limits),
        }))
    })
}

fn get(get: abi::Get<'_>) -> Option<Loading> {
    (get.id.len() <= NAME_BYTES_MAX).then(|| Loading::Get {
        loader: get.loader,
        id: get.id.to_owned(),
    })
}

fn not_provided(not_provided: abi::NotProvided) -> Option<Loading> {
    Some(Loading::NotProvided {
        get: not_provided.get,
        thrown: Box::new(not_provided.thrown),
    })
}

fn asked(limits: ChildLimits) -> LimitsRequest {
    let mut asked = LimitsRequest::default();
    for (name, value) in [
        (LimitName::CpuMsMax, limits.cpu_ms),
        (LimitName::SubrequestsMax, limits.subrequests),
    ] {
        if value > 0 {
            // Both can be asked for.
            let _ = asked.set(name, u64::from(value));
        }
    }
    asked
}
