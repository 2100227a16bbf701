//! Workers that isolates load: what they ask for, checked and made ready on the isolate's thread, so that the others
//! only have to pass it on.

use crate::{
    message::{Bytes, External, Form},
    wire,
};
use coracle_abi::{self as abi, ChildOutbound, Thrown};
use coracle_loader::{Limits, LimitsRequest, ModuleBody, WorkerCode};
use minicbor::{Decode, Encode};
use std::sync::Arc;

/// What an isolate asks its loader for. Everything in it is the guest's word, within bounds.
#[derive(Debug, Encode, Decode)]
pub enum Loading {
    /// A worker, which becomes the import that follows from the operation.
    #[n(0)]
    Load(#[n(0)] Box<Child>),
    /// An entrypoint of one, which becomes the import that follows from the operation.
    #[n(1)]
    Entrypoint(#[n(0)] Box<ChildEntrypoint>),
    /// The worker with an id. It is answered.
    #[n(2)]
    Get {
        /// An import that the isolate should hold.
        #[n(0)]
        loader: u64,
        /// The id.
        #[n(1)]
        id: String,
    },
    /// A worker that the isolate was asked for can't be provided.
    #[n(3)]
    NotProvided {
        /// The operation of the `Get`.
        #[n(0)]
        get: u64,
        /// Why.
        #[n(1)]
        thrown: Box<Thrown>,
    },
}

/// A worker that an isolate loads.
#[derive(Debug, Encode, Decode)]
pub struct Child {
    /// An import that the isolate should hold.
    #[n(0)]
    pub loader: u64,
    /// The operation of the `Get` that it is provided for.
    #[n(1)]
    pub get: Option<u64>,
    /// A `coracle_abi::Load` message, or why it can't be loaded.
    #[cbor(n(2), with = "wire::octets_or_reason")]
    pub load: Result<Arc<[u8]>, String>,
    /// What `env` refers to, in order.
    #[cbor(n(3), with = "wire::externals")]
    pub env: Vec<External>,
    /// Where its requests go.
    #[n(4)]
    pub outbound: ChildOutbound,
    /// What is told of its invocations.
    #[cbor(n(5), with = "wire::externals")]
    pub tails: Vec<External>,
    /// What it asks for.
    #[cbor(n(6), with = "wire::limits_request")]
    pub asked: LimitsRequest,
    /// What holds for it: never more than for the invocation that loads it.
    #[cbor(n(7), with = "wire::limits")]
    pub limits: Limits,
}

/// An entrypoint of a worker that an isolate has loaded.
#[derive(Debug, Encode, Decode)]
pub struct ChildEntrypoint {
    /// An import that the isolate should hold.
    #[n(0)]
    pub worker: u64,
    /// The export of the worker's main module.
    #[n(1)]
    pub name: String,
    /// `ctx.props`.
    #[n(2)]
    pub props: Bytes,
    /// What it asks for.
    #[cbor(n(3), with = "wire::limits_request")]
    pub asked: LimitsRequest,
}

impl Loading {
    /// The tables of what is given out with it.
    pub(crate) fn given_out(&self) -> Vec<&[External]> {
        match self {
            Self::Load(child) => {
                let mut tables = vec![&child.env[..], &child.tails[..]];
                if let ChildOutbound::Gateway(gateway) = &child.outbound {
                    tables.push(std::slice::from_ref(gateway));
                }
                tables
            }
            Self::Entrypoint(entrypoint) => vec![&entrypoint.props.externals],
            Self::Get { .. } | Self::NotProvided { .. } => Vec::new(),
        }
    }
}

/// The message that loads a worker, which has been checked, with what its `env` refers to, and whether its console is to give
/// values.
pub fn load_message(
    code: &WorkerCode,
    env: impl IntoIterator<Item = abi::Kind>,
    limits: &Limits,
    log_arguments: bool,
) -> Arc<[u8]> {
    let modules = code.modules.iter().filter_map(|module| {
        let (kind, body) = match &module.body {
            ModuleBody::EsModule(text) => (abi::ModuleKind::EsModule, text.as_bytes()),
            ModuleBody::CommonJs(text) => (abi::ModuleKind::CommonJs, text.as_bytes()),
            ModuleBody::Text(text) => (abi::ModuleKind::Text, text.as_bytes()),
            ModuleBody::Json(text) => (abi::ModuleKind::Json, text.as_bytes()),
            ModuleBody::Data(bytes) => (abi::ModuleKind::Data, &bytes[..]),
            // Refused by the check.
            ModuleBody::Unset | ModuleBody::Wasm(_) => return None,
        };
        Some(abi::Module {
            name: &module.name,
            kind,
            body: body.into(),
            mappings: "",
        })
    });
    let message = abi::Load {
        main_module: &code.main_module,
        modules: modules.collect(),
        env: abi::Encoded {
            form: form(code.env.form),
            bytes: code.env.bytes[..].into(),
            externals: (1..)
                .zip(env)
                .map(|(id, kind)| External::Import(id, kind))
                .collect(),
        },
        value_depth_max: u32::try_from(limits.value_depth_max).unwrap_or(u32::MAX),
        code_bytes_max: limits.code_bytes_max,
        env_bytes_max: limits.env_bytes_max,
        log_arguments,
    };
    let size: usize = code
        .modules
        .iter()
        .map(|module| module.body.bytes() as usize + module.name.len() + 16)
        .sum();
    let mut bytes = Vec::with_capacity(size + code.env.bytes.len() + 64);
    // Encoding into a Vec can't fail.
    let _ = minicbor::encode(&message, &mut bytes);
    bytes.into()
}

fn form(form: coracle_loader::Form) -> Form {
    match form {
        coracle_loader::Form::Undefined => Form::Undefined,
        coracle_loader::Form::Cbor => Form::Cbor,
        coracle_loader::Form::Json => Form::Json,
    }
}
