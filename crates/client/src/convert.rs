//! Between the schema's structs and the client's types.

use crate::{
    Error, Kind, Narrowed, NarrowedBy, Outbound, Payload, Stub, Value,
    answer::{Answer, LogLevel, LogLine, Outcome, Thrown, Usage, Verdict},
    code::{Limits, ModuleBody, WorkerCode},
    connection::{Held, Shared},
};
use coracle_schema::{self as schema, call_results, module, worker_code};
use coracle_value::{Bounds, DEPTH_CEILING};

pub(crate) fn write_code(held: &Held, code: &WorkerCode, mut builder: worker_code::Builder<'_>) {
    builder.set_compatibility_date(&code.compatibility_date[..]);
    let mut flags = builder
        .reborrow()
        .init_compatibility_flags(code.compatibility_flags.len() as u32);
    for (index, flag) in code.compatibility_flags.iter().enumerate() {
        flags.set(index as u32, &flag[..]);
    }
    builder.set_main_module(&code.main_module[..]);
    let mut modules = builder.reborrow().init_modules(code.modules.len() as u32);
    for (index, (name, body)) in code.modules.iter().enumerate() {
        let mut module: module::Builder<'_> = modules.reborrow().get(index as u32);
        module.set_name(&name[..]);
        let mut builder = module.init_body();
        match body {
            ModuleBody::EsModule(text) => builder.set_es_module(&text[..]),
            ModuleBody::CommonJs(text) => builder.set_common_js(&text[..]),
            ModuleBody::Text(text) => builder.set_text(&text[..]),
            ModuleBody::Json(text) => builder.set_json(&text[..]),
            ModuleBody::Data(bytes) => builder.set_data(bytes),
        }
    }
    let env = builder.reborrow().init_env();
    write_payload(held, &code.env, &code.env_externals, env);
    write_outbound(held, &code.outbound, builder.reborrow().init_outbound());
    if !code.tails.is_empty() {
        let list = builder.reborrow().init_tails(code.tails.len() as u32);
        write_targets(held, &code.tails, list);
    }
    if !code.streaming_tails.is_empty() {
        let list = builder
            .reborrow()
            .init_streaming_tails(code.streaming_tails.len() as u32);
        write_targets(held, &code.streaming_tails, list);
    }
    write_limits(&code.limits, builder.init_limits());
}

pub(crate) fn write_outbound(
    held: &Held,
    outbound: &Outbound,
    mut builder: schema::outbound::Builder<'_>,
) {
    match outbound {
        Outbound::Policy => builder.set_policy(()),
        Outbound::Narrowed(Narrowed { by, ask }) => {
            match by {
                NarrowedBy::Nothing => builder.set_policy(()),
                NarrowedBy::Name(name) => builder.set_policy_named(name),
                NarrowedBy::Rules(rules) => builder.set_policy_given(rules),
            }
            if let Some(ask) = ask {
                builder.set_ask(target_of(held, ask, "who is asked"));
            }
        }
        Outbound::None => builder.set_none(()),
        Outbound::Gateway(stub) => builder.set_gateway(target_of(held, stub, "the gateway")),
    }
}

/// One of another connection's can't be named here: calls of it fail.
fn target_of(held: &Held, stub: &Stub, what: &'static str) -> schema::target::Client {
    held.target_of(stub).unwrap_or_else(|| {
        capnp_rpc::new_future_client(async move {
            Err(capnp::Error::failed(format!(
                "{what} is a stub of another connection"
            )))
        })
    })
}

/// One of another connection's is left out, which the server refuses.
fn write_targets(
    held: &Held,
    stubs: &[Stub],
    mut list: capnp::capability_list::Builder<'_, schema::target::Client>,
) {
    for (index, stub) in stubs.iter().enumerate() {
        if let Some(client) = held.target_of(stub) {
            list.set(index as u32, client.client.hook);
        }
    }
}

/// Writes a value and what it refers to. A stub of another connection's is left out, which the server refuses.
pub(crate) fn write_payload(
    held: &Held,
    value: &Value,
    externals: &[Stub],
    mut builder: schema::value::Builder<'_>,
) {
    match value {
        Value::Undefined => builder.set_undefined(()),
        value => builder.set_cbor(&coracle_value::encode(value)),
    }
    if externals.is_empty() {
        return;
    }
    let mut list = builder.init_externals(externals.len() as u32);
    for (index, stub) in externals.iter().enumerate() {
        let mut external = list.reborrow().get(index as u32);
        if stub.kind() == Kind::Loader && held.is_ours(stub) {
            external.set_loader(held.loader.clone());
            continue;
        }
        match held.target_of(stub) {
            Some(client) => match stub.kind() {
                Kind::Target => external.set_target(client),
                Kind::Source => external.set_source(client),
                Kind::Sink => external.set_sink(client),
                Kind::Loader => external.set_invalid(()),
            },
            None => external.set_invalid(()),
        }
    }
}

/// Reads a value and what it refers to.
pub(crate) fn payload(
    held: &Shared,
    reader: schema::value::Reader<'_>,
) -> Result<Payload, capnp::Error> {
    read_payload(held, reader).map_err(|error| capnp::Error::failed(error.to_string()))
}

fn read_payload(held: &Shared, reader: schema::value::Reader<'_>) -> Read<Payload> {
    let mut externals = Vec::new();
    for external in reader.get_externals().map_err(malformed)? {
        use schema::external;
        let (target, kind) = match external.which().map_err(malformed)? {
            external::Target(target) => (target, Kind::Target),
            external::Source(source) => (source, Kind::Source),
            external::Sink(sink) => (sink, Kind::Sink),
            external::Loader(_) => {
                return Err(malformed("a loader, which is never passed to clients"));
            }
            external::Invalid(()) => return Err(malformed("an external that is not set")),
        };
        let stub = held.borrow_mut().keep(target.map_err(malformed)?, kind);
        externals.push(stub.ok_or_else(|| malformed("the connection is closed"))?);
    }
    Ok(Payload {
        value: value(reader, externals.len())?,
        externals,
    })
}

pub(crate) fn path(reader: capnp::text_list::Reader<'_>) -> Result<Vec<String>, capnp::Error> {
    reader
        .iter()
        .map(|name| Ok(name?.to_str()?.to_owned()))
        .collect()
}

/// Writes what an object of this process answers.
pub(crate) fn write_outcome(
    held: &Shared,
    outcome: Result<Payload, Thrown>,
    results: call_results::Builder<'_>,
) -> Result<(), capnp::Error> {
    let builder = results.init_outcome();
    match outcome {
        Ok(Payload { value, externals }) => {
            write_payload(&held.borrow(), &value, &externals, builder.init_value());
        }
        Err(thrown) => {
            let mut builder = builder.init_threw();
            builder.set_name(&thrown.name[..]);
            builder.set_message(&thrown.message[..]);
            if thrown.value != Value::Undefined {
                builder
                    .init_value()
                    .set_cbor(&coracle_value::encode(&thrown.value));
            }
        }
    }
    Ok(())
}

pub(crate) fn write_limits(limits: &Limits, mut builder: schema::limits::Builder<'_>) {
    builder.set_fuel_max(limits.fuel_max);
    builder.set_cpu_ms_max(limits.cpu_ms_max);
    builder.set_startup_fuel_max(limits.startup_fuel_max);
    builder.set_wall_ms_max(limits.wall_ms_max);
    builder.set_memory_bytes_max(limits.memory_bytes_max);
    builder.set_subrequests_max(limits.subrequests_max);
    builder.set_subrequests_in_flight_max(limits.subrequests_in_flight_max);
    builder.set_subrequest_ms_max(limits.subrequest_ms_max);
    builder.set_args_bytes_max(limits.args_bytes_max);
    builder.set_result_bytes_max(limits.result_bytes_max);
    builder.set_log_bytes_max(limits.log_bytes_max);
    builder.set_value_depth_max(limits.value_depth_max);
    builder.set_exports_max(limits.exports_max);
}

type Read<T> = Result<T, Error>;

fn malformed(error: impl ToString) -> Error {
    Error::Malformed(error.to_string())
}

fn text(reader: capnp::Result<capnp::text::Reader<'_>>) -> Read<String> {
    Ok(reader
        .map_err(malformed)?
        .to_str()
        .map_err(malformed)?
        .to_owned())
}

fn value(reader: schema::value::Reader<'_>, externals: usize) -> Read<Value> {
    let bounds = Bounds {
        // What the server's limits let through.
        bytes_max: usize::MAX,
        depth_max: DEPTH_CEILING,
        externals: u32::try_from(externals).unwrap_or(u32::MAX),
    };
    match reader.which().map_err(malformed)? {
        schema::value::Undefined(()) => Ok(Value::Undefined),
        schema::value::Cbor(bytes) => {
            coracle_value::decode(bytes.map_err(malformed)?, &bounds).map_err(malformed)
        }
        schema::value::Json(json) => {
            let json = text(json)?;
            coracle_value::from_json(&json, &bounds).map_err(malformed)
        }
    }
}

pub(crate) fn answer(held: &Shared, reader: call_results::Reader<'_>) -> Read<Answer> {
    use schema::call_results::outcome;
    let mut externals = Vec::new();
    let outcome = match reader.get_outcome().which().map_err(malformed)? {
        outcome::Value(reader) => {
            let payload = read_payload(held, reader.map_err(malformed)?)?;
            externals = payload.externals;
            Outcome::Value(payload.value)
        }
        outcome::Threw(reader) => Outcome::Threw(Box::new(thrown(reader.map_err(malformed)?)?)),
        outcome::Verdict(reader) => {
            Outcome::Verdict(Box::new(verdict(reader.map_err(malformed)?)?))
        }
    };
    let logs = reader
        .get_logs()
        .map_err(malformed)?
        .iter()
        .map(log_line)
        .collect::<Read<_>>()?;
    Ok(Answer {
        outcome,
        externals,
        usage: usage(reader.get_usage().map_err(malformed)?),
        logs,
        log_bytes_dropped: reader.get_log_bytes_dropped(),
    })
}

fn thrown(reader: schema::thrown::Reader<'_>) -> Read<Thrown> {
    Ok(Thrown {
        name: text(reader.get_name())?,
        message: text(reader.get_message())?,
        stack: text(reader.get_stack())?,
        module: text(reader.get_module())?,
        line: reader.get_line(),
        column: reader.get_column(),
        value: value(reader.get_value().map_err(malformed)?, 0)?,
        during_load: reader.get_during_load(),
    })
}

fn verdict(reader: schema::verdict::Reader<'_>) -> Read<Verdict> {
    use schema::VerdictKind as Kind;
    // A kind that this client is too old for is still a verdict, with a sentence that says the rest.
    let kind = match reader.get_kind() {
        Ok(Kind::Fuel) => "fuel",
        Ok(Kind::Cpu) => "cpu",
        Ok(Kind::Startup) => "startup",
        Ok(Kind::Wall) => "wall",
        Ok(Kind::Memory) => "memory",
        Ok(Kind::Stack) => "stack",
        Ok(Kind::Subrequests) => "subrequests",
        Ok(Kind::Timers) => "timers",
        Ok(Kind::ArgsSize) => "args_size",
        Ok(Kind::ResultSize) => "result_size",
        Ok(Kind::ValueDepth) => "value_depth",
        Ok(Kind::Hung) => "hung",
        Ok(Kind::Cancelled) => "cancelled",
        Ok(Kind::IsolateLost) => "isolate_lost",
        Ok(Kind::IsolateEvicted) => "isolate_evicted",
        Ok(Kind::Trap) => "trap",
        Ok(Kind::Exports) => "exports",
        Err(_) => "unknown",
    };
    Ok(Verdict {
        kind: kind.to_owned(),
        limit_name: text(reader.get_limit_name())?,
        used: reader.get_used(),
        limit: reader.get_limit(),
        message: text(reader.get_message())?,
        started: reader.get_started(),
        subrequests_sent: reader.get_subrequests_sent(),
    })
}

fn usage(reader: schema::usage::Reader<'_>) -> Usage {
    Usage {
        fuel_load: reader.get_fuel_load(),
        fuel_run: reader.get_fuel_run(),
        fuel_schedule: reader.get_fuel_schedule(),
        cpu_micros: reader.get_cpu_micros(),
        wall_micros: reader.get_wall_micros(),
        memory_peak_bytes: reader.get_memory_peak_bytes(),
        memory_denied: reader.get_memory_denied(),
        subrequests: reader.get_subrequests(),
        bytes_in: reader.get_bytes_in(),
        bytes_out: reader.get_bytes_out(),
        isolate_reused: reader.get_isolate_reused(),
    }
}

fn log_line(reader: schema::log_line::Reader<'_>) -> Read<LogLine> {
    let level = match reader.get_level().map_err(malformed)? {
        schema::LogLevel::Debug => LogLevel::Debug,
        schema::LogLevel::Info => LogLevel::Info,
        schema::LogLevel::Log => LogLevel::Log,
        schema::LogLevel::Warn => LogLevel::Warn,
        schema::LogLevel::Error => LogLevel::Error,
    };
    Ok(LogLine {
        level,
        message: text(reader.get_message())?,
        timestamp_ms: reader.get_timestamp_ms(),
    })
}
