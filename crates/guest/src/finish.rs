//! Reporting results, and `structuredClone`: the codec's two users inside the prelude.

use crate::{
    decode,
    encode::{self, EncodeError, EncodedValue, Instances, Manner, References},
    engine::js::{Array, Ctx, Exception, Result, Value},
    externals, host, json, raw, state, thrown,
};
use coracle_abi::{
    Access, Call, Encoded, External, Form, Kind, LOG_ARGUMENTS, LOG_ARGUMENTS_MAX, PATH_BYTES_MAX,
    finish, operation,
};
use coracle_value::DEPTH_CEILING;

/// How a result is to be reported. Travels through the prelude as an array.
pub(crate) struct Reply {
    pub(crate) invocation: f64,
    pub(crate) form: Form,
    pub(crate) result_bytes_max: u32,
    pub(crate) value_depth_max: u32,
}

impl Reply {
    pub(crate) fn into_array<'js>(self, ctx: &Ctx<'js>) -> Result<Value<'js>> {
        let is_json = f64::from(u8::from(self.form == Form::Json));
        let numbers = [
            self.invocation,
            is_json,
            f64::from(self.result_bytes_max),
            f64::from(self.value_depth_max),
        ];
        raw::array(ctx, &numbers.map(|number| raw::number(ctx, number)))
    }
}

/// `host.finish(invocation, isJson, bytesMax, depthMax, value, disposer)`: encodes the result and reports it, or why it
/// can't be. `disposer` is the export, or 0, that whoever gets the result lets go of when it is disposed of. Stubs in the
/// result are whoever's gets it: here they are disposed of.
pub(crate) fn finish_with_value<'js>(
    ctx: Ctx<'js>,
    invocation: f64,
    is_json: f64,
    bytes_max: f64,
    depth_max: f64,
    value: Value<'js>,
    disposer: f64,
) {
    state::rejections().borrow_mut().mark();
    let invocation = invocation as u64;
    let (bytes_max, depth_max) = (bytes_max as usize, depth_max as usize);
    let mut disposer = disposer as u64;
    let mut referred = Vec::new();
    let outcome = if value.is_undefined() {
        Ok((finish::UNDEFINED, Vec::new()))
    } else if is_json != 0.0 {
        json::stringify(&ctx, &value, bytes_max, depth_max).map(|text| match text {
            Some(text) => (finish::JSON, text),
            None => (finish::UNDEFINED, Vec::new()),
        })
    } else {
        let manner = Manner {
            root: "result",
            bytes_max,
            depth_max,
            instances: Instances::Refused,
            references: References::GivenOut,
        };
        encode::cbor(&ctx, &value, manner).map(|mut encoded| {
            referred = std::mem::take(&mut encoded.referred);
            result_message(encoded, std::mem::take(&mut disposer))
        })
    };
    match outcome {
        Ok((kind, bytes)) => host::finish(invocation, kind, bytes),
        Err(EncodeError::TooDeep) => host::finish(invocation, finish::VALUE_TOO_DEEP, vec![1]),
        Err(EncodeError::TooLarge(size)) => {
            let size = (size as u64).to_le_bytes();
            host::finish(invocation, finish::RESULT_TOO_LARGE, size.to_vec());
        }
        Err(EncodeError::Threw(error)) => {
            thrown::finish_with_engine_error(&ctx, invocation, error, false)
        }
    }
    // After the host has heard of the result, which refers to them.
    externals::dispose_returned(&ctx, &referred);
    if disposer != 0 {
        externals::release_export(&ctx, disposer);
    }
}

fn result_message(value: EncodedValue<'_>, disposer: u64) -> (u32, Vec<u8>) {
    let EncodedValue {
        bytes,
        mut externals,
        ..
    } = value;
    if disposer != 0 {
        externals.push(External::Export(disposer, Kind::Target));
    }
    if externals.is_empty() {
        return (finish::CBOR, bytes);
    }
    let message = Encoded {
        form: Form::Cbor,
        bytes: bytes[..].into(),
        externals,
    };
    // Encoding into a Vec can't fail.
    let message = minicbor::to_vec(&message).unwrap_or_default();
    (finish::WITH_EXTERNALS, message)
}

/// `host.copyReferences(value)`: a copy as if it had gone out and come back, the stubs in it, and what they are copies of.
pub(crate) fn copy_references<'js>(ctx: Ctx<'js>, value: Value<'js>) -> Result<Value<'js>> {
    let manner = Manner {
        root: "value",
        bytes_max: RPC_BYTES_MAX,
        depth_max: RPC_DEPTH_MAX,
        instances: Instances::Refused,
        references: References::Copied,
    };
    let encoded =
        encode::cbor(&ctx, &value, manner).map_err(|error| encode::thrown(&ctx, error))?;
    let copy = decode::cbor(&ctx, &encoded.bytes, RPC_DEPTH_MAX, &encoded.copies)
        .map_err(|error| decode::thrown(&ctx, error))?;
    let stubs = raw::array(&ctx, &encoded.copies)?;
    let referred = raw::array(&ctx, &encoded.referred)?;
    raw::array(&ctx, &[copy, stubs, referred])
}

/// `host.startCall(import, path, isGet, args, isStream)`: starts a call of something outside; answers the operation's id.
pub(crate) fn start_call<'js>(
    ctx: Ctx<'js>,
    import: f64,
    path: Array<'js>,
    is_get: bool,
    args: Value<'js>,
    is_stream: bool,
) -> Result<f64> {
    let names: Vec<String> = path
        .iter::<Value>()
        .map(|name| Ok(raw::text_lossy(&name?)))
        .collect::<Result<_>>()?;
    if names.iter().map(String::len).sum::<usize>() > PATH_BYTES_MAX {
        let message =
            format!("The names of an RPC property path have more than {PATH_BYTES_MAX} bytes.");
        return Err(Exception::throw_type(&ctx, &message));
    }
    let manner = Manner {
        root: "arguments",
        bytes_max: RPC_BYTES_MAX,
        depth_max: RPC_DEPTH_MAX,
        instances: Instances::Refused,
        references: References::GivenOut,
    };
    let encoded = encode::cbor(&ctx, &args, manner).map_err(|error| encode::thrown(&ctx, error))?;
    let call = Call {
        import: import as u64,
        path: names.iter().map(String::as_str).collect(),
        access: if is_get { Access::Get } else { Access::Call },
        args: Encoded {
            form: Form::Cbor,
            bytes: encoded.bytes[..].into(),
            externals: encoded.externals,
        },
    };
    // Encoding into a Vec can't fail.
    let message = minicbor::to_vec(&call).unwrap_or_default();
    let operation = match is_stream {
        true => operation::STREAM,
        false => operation::CALL,
    };
    Ok(host::start(operation, &message) as f64)
}

/// Bytes and nesting of arguments and results of calls that a worker makes. The host has limits of its own.
const RPC_BYTES_MAX: usize = 32 << 20;
const RPC_DEPTH_MAX: usize = 512;

/// Bytes that `structuredClone` may take on the way: more than any isolate's memory leaves room for.
const CLONE_BYTES_MAX: usize = 1 << 28;

/// `host.clone(value, transferred)`: `structuredClone`, through the codec, so that both agree. The buffers in
/// `transferred` are copied like others, and then detached.
pub(crate) fn structured_clone<'js>(
    ctx: Ctx<'js>,
    value: Value<'js>,
    transferred: Array<'js>,
) -> Result<Value<'js>> {
    let transferred: Vec<Value> = transferred.iter().collect::<Result<_>>()?;
    let array_buffer = state::get().hooks.samples().array_buffer;
    for buffer in &transferred {
        let is_buffer = raw::class_id(buffer) == array_buffer;
        if !is_buffer || raw::with_buffer(buffer, |_| ()).is_none() {
            let message = "A value in transfer is not an ArrayBuffer that can be detached.";
            return Err(encode::data_clone_error(&ctx, message));
        }
    }
    let copy = copy(&ctx, value)?;
    transferred.iter().for_each(raw::detach);
    Ok(copy)
}

fn copy<'js>(ctx: &Ctx<'js>, value: Value<'js>) -> Result<Value<'js>> {
    let manner = Manner {
        root: "value",
        bytes_max: CLONE_BYTES_MAX,
        depth_max: DEPTH_CEILING,
        instances: Instances::Cloned,
        references: References::Refused,
    };
    let encoded = encode::cbor(ctx, &value, manner).map_err(|error| match error {
        EncodeError::Threw(error) => error,
        EncodeError::TooDeep => {
            Exception::throw_range(ctx, "The value is nested too deeply to be cloned.")
        }
        EncodeError::TooLarge(_) => {
            Exception::throw_range(ctx, "The value is too large to be cloned.")
        }
    })?;
    decode::cbor(ctx, &encoded.bytes, DEPTH_CEILING, &[])
        .map_err(|error| decode::thrown(ctx, error))
}

/// A value that is written to the console; what is larger or nested deeper is given as text.
const LOGGED: Manner = Manner {
    root: "argument",
    bytes_max: 16 << 10,
    depth_max: 64,
    instances: Instances::Plain,
    references: References::Refused,
};

/// `host.logArguments(args)`: gives the values of the console line that comes next.
pub(crate) fn log_arguments<'js>(ctx: Ctx<'js>, args: Array<'js>) {
    let values: Vec<Vec<u8>> = args
        .iter::<Value>()
        .take(LOG_ARGUMENTS_MAX)
        .flatten()
        .map(|value| logged(&ctx, &value))
        .collect();
    let mut message = minicbor::Encoder::new(Vec::new());
    // Encoding into a Vec can't fail.
    let _ = message.array(values.len() as u64);
    for value in &values {
        let _ = message.bytes(value);
    }
    host::log_bytes(LOG_ARGUMENTS, message.writer());
}

fn logged<'js>(ctx: &Ctx<'js>, value: &Value<'js>) -> Vec<u8> {
    let error = match encode::cbor(ctx, value, LOGGED) {
        Ok(encoded) => return encoded.bytes,
        Err(error) => error,
    };
    if let EncodeError::Threw(_) = error {
        raw::forget_exception(ctx);
    }
    let text = thrown::inspected(ctx, value);
    // Encoding into a Vec can't fail.
    minicbor::to_vec(text).unwrap_or_default()
}
