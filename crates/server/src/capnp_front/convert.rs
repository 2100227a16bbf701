//! Between the schema's structs and the session's types. Everything read here comes from a stranger.

use capnp::{Error, text};
use coracle_isolate::{
    Bytes, FUEL_SCHEDULE, Form as IsolateForm, LogLevel, Outcome, Report, Thrown, Usage, Verdict,
    VerdictKind,
};
use coracle_loader::{
    Encoded, Form, LimitName, LimitsRequest, Module, ModuleBody, Outbound, WorkerCode,
};
use coracle_schema as schema;

/// Names that the path of one call may have, and bytes of all of them.
const PATH_LENGTH_MAX: u32 = 64;
const PATH_BYTES_MAX: usize = 64 << 10;
/// Bytes that the name of an entrypoint may have.
const ENTRYPOINT_NAME_BYTES_MAX: usize = 1024;
/// Modules that are looked at; the check of the code allows fewer, and says so in its own words.
const MODULES_LISTED_MAX: u32 = 2 * coracle_loader::MODULES_MAX as u32;

pub(super) fn text(reader: text::Reader<'_>) -> Result<String, Error> {
    Ok(reader
        .to_str()
        .map_err(|_| Error::failed("a text is not UTF-8".into()))?
        .to_owned())
}

pub(super) fn value(reader: schema::value::Reader<'_>) -> Result<Encoded, Error> {
    if reader.has_externals() && !reader.get_externals()?.is_empty() {
        return Err(Error::failed(
            "the value has externals (functions, streams, capabilities), which this version does not pass yet".into(),
        ));
    }
    Ok(match reader.which()? {
        schema::value::Undefined(()) => Encoded::default(),
        schema::value::Cbor(bytes) => Encoded {
            form: Form::Cbor,
            bytes: bytes?.to_vec(),
        },
        schema::value::Json(json) => Encoded {
            form: Form::Json,
            bytes: json?.as_bytes().to_vec(),
        },
    })
}

pub(super) fn path(reader: capnp::text_list::Reader<'_>) -> Result<Vec<String>, Error> {
    at_most("path", reader.len(), PATH_LENGTH_MAX)?;
    let mut bytes = 0;
    let steps = reader.iter().map(|step| {
        let step = step?;
        bytes += step.as_bytes().len();
        if bytes > PATH_BYTES_MAX {
            return Err(Error::failed(format!(
                "path: its names have more than {PATH_BYTES_MAX} bytes together"
            )));
        }
        text(step)
    });
    steps.collect()
}

/// What a path holds of memory.
pub(super) fn path_bytes(path: &[String]) -> u64 {
    path.iter().map(|step| step.len() as u64).sum()
}

pub(super) fn entrypoint_name(reader: text::Reader<'_>) -> Result<String, Error> {
    let length = reader.as_bytes().len();
    if length > ENTRYPOINT_NAME_BYTES_MAX {
        return Err(Error::failed(format!(
            "name: it has {length} bytes, {ENTRYPOINT_NAME_BYTES_MAX} are allowed"
        )));
    }
    text(reader)
}

pub(super) fn form(form: schema::Form) -> Form {
    match form {
        schema::Form::Cbor => Form::Cbor,
        schema::Form::Json => Form::Json,
    }
}

pub(super) fn limits(reader: schema::limits::Reader<'_>) -> LimitsRequest {
    let mut request = LimitsRequest::default();
    for (name, asked) in [
        (LimitName::FuelMax, reader.get_fuel_max()),
        (LimitName::CpuMsMax, reader.get_cpu_ms_max()),
        (LimitName::StartupFuelMax, reader.get_startup_fuel_max()),
        (LimitName::WallMsMax, reader.get_wall_ms_max()),
        (LimitName::MemoryBytesMax, reader.get_memory_bytes_max()),
        (LimitName::SubrequestsMax, reader.get_subrequests_max()),
        (
            LimitName::SubrequestsInFlightMax,
            reader.get_subrequests_in_flight_max(),
        ),
        (LimitName::ArgsBytesMax, reader.get_args_bytes_max()),
        (LimitName::ResultBytesMax, reader.get_result_bytes_max()),
        (LimitName::LogBytesMax, reader.get_log_bytes_max()),
        (LimitName::ValueDepthMax, reader.get_value_depth_max()),
        (LimitName::ExportsMax, reader.get_exports_max()),
    ] {
        if asked > 0 {
            // Each of these can be asked for; the two that can't are not on the wire.
            let _ = request.set(name, asked);
        }
    }
    request
}

/// Flags that a worker may list; there are a few dozen.
const FLAGS_MAX: u32 = 1_000;

/// A list of nothing takes no bytes, so a message may claim millions.
fn at_most(what: &str, length: u32, length_max: u32) -> Result<(), Error> {
    if length > length_max {
        return Err(Error::failed(format!(
            "{what}: {length} are listed, {length_max} are allowed"
        )));
    }
    Ok(())
}

pub(super) fn worker_code(reader: schema::worker_code::Reader<'_>) -> Result<WorkerCode, Error> {
    at_most(
        "compatibilityFlags",
        reader.get_compatibility_flags()?.len(),
        FLAGS_MAX,
    )?;
    at_most("modules", reader.get_modules()?.len(), MODULES_LISTED_MAX)?;
    let outbound = match reader.get_outbound()?.which()? {
        schema::outbound::Policy(()) => Outbound::Policy,
        schema::outbound::None(()) => Outbound::None,
    };
    Ok(WorkerCode {
        compatibility_date: text(reader.get_compatibility_date()?)?,
        compatibility_flags: reader
            .get_compatibility_flags()?
            .iter()
            .map(|flag| text(flag?))
            .collect::<Result<_, Error>>()?,
        main_module: text(reader.get_main_module()?)?,
        modules: reader
            .get_modules()?
            .iter()
            .map(module)
            .collect::<Result<_, Error>>()?,
        env: value(reader.get_env()?)?,
        outbound,
        limits: limits(reader.get_limits()?),
    })
}

fn module(reader: schema::module::Reader<'_>) -> Result<Module, Error> {
    use schema::module::body;
    let name = text(reader.get_name()?)?;
    let source = |source: text::Reader<'_>| {
        source
            .to_str()
            .map(str::to_owned)
            .map_err(|_| Error::failed(format!("module {name:?} is not UTF-8")))
    };
    let body = match reader.get_body().which()? {
        body::Unset(()) => ModuleBody::Unset,
        body::EsModule(text) => ModuleBody::EsModule(source(text?)?),
        body::CommonJs(text) => ModuleBody::CommonJs(source(text?)?),
        body::Text(text) => ModuleBody::Text(source(text?)?),
        body::Json(text) => ModuleBody::Json(source(text?)?),
        body::Data(data) => ModuleBody::Data(data?.to_vec()),
        body::Wasm(data) => ModuleBody::Wasm(data?.to_vec()),
    };
    Ok(Module { name, body })
}

pub(super) fn write_report(report: &Report, mut results: schema::call_results::Builder<'_>) {
    write_outcome(&report.outcome, results.reborrow());
    write_usage(&report.usage, results.reborrow().init_usage());
    let mut lines = results.reborrow().init_logs(report.logs.len() as u32);
    for (index, log) in report.logs.iter().enumerate() {
        let mut line = lines.reborrow().get(index as u32);
        line.set_level(match log.level {
            LogLevel::Debug => schema::LogLevel::Debug,
            LogLevel::Info => schema::LogLevel::Info,
            LogLevel::Log => schema::LogLevel::Log,
            LogLevel::Warn => schema::LogLevel::Warn,
            LogLevel::Error => schema::LogLevel::Error,
        });
        line.set_message(&log.message[..]);
        line.set_timestamp_ms(log.timestamp_ms);
    }
    results.set_log_bytes_dropped(report.log_bytes_dropped);
}

pub(super) fn write_outcome(outcome: &Outcome, results: schema::call_results::Builder<'_>) {
    let outcome_builder = results.init_outcome();
    match outcome {
        Outcome::Value(bytes) => write_value(bytes, outcome_builder.init_value()),
        Outcome::Threw(thrown) => write_thrown(thrown, outcome_builder.init_threw()),
        Outcome::Verdict(verdict) => write_verdict(verdict, outcome_builder.init_verdict()),
    }
}

pub(super) fn write_value(value: &Bytes, mut builder: schema::value::Builder<'_>) {
    match value.form {
        IsolateForm::Undefined => builder.set_undefined(()),
        IsolateForm::Cbor => builder.set_cbor(&value.bytes),
        // The guest's bytes are passed through; that they are UTF-8 is the engine's word, which is not trusted.
        IsolateForm::Json => match std::str::from_utf8(&value.bytes) {
            Ok(text) => builder.set_json(text),
            Err(_) => builder.set_json(&String::from_utf8_lossy(&value.bytes)[..]),
        },
    }
}

pub(super) fn write_thrown(thrown: &Thrown, mut builder: schema::thrown::Builder<'_>) {
    builder.set_name(&thrown.name[..]);
    builder.set_message(&thrown.message[..]);
    builder.set_stack(&thrown.stack[..]);
    builder.set_module(&thrown.module[..]);
    builder.set_line(thrown.line);
    builder.set_column(thrown.column);
    builder.set_during_load(thrown.during_load);
    let mut value = builder.init_value();
    if thrown.value.is_empty() {
        value.set_undefined(())
    } else {
        value.set_cbor(&thrown.value)
    }
}

fn write_verdict(verdict: &Verdict, mut builder: schema::verdict::Builder<'_>) {
    use schema::VerdictKind as Kind;
    builder.set_kind(match verdict.kind {
        VerdictKind::Fuel => Kind::Fuel,
        VerdictKind::Cpu => Kind::Cpu,
        VerdictKind::Startup => Kind::Startup,
        VerdictKind::Wall => Kind::Wall,
        VerdictKind::Memory => Kind::Memory,
        VerdictKind::Stack => Kind::Stack,
        VerdictKind::Subrequests => Kind::Subrequests,
        VerdictKind::Timers => Kind::Timers,
        VerdictKind::ArgsSize => Kind::ArgsSize,
        VerdictKind::ResultSize => Kind::ResultSize,
        VerdictKind::ValueDepth => Kind::ValueDepth,
        VerdictKind::Hung => Kind::Hung,
        VerdictKind::Cancelled => Kind::Cancelled,
        VerdictKind::IsolateLost => Kind::IsolateLost,
        VerdictKind::IsolateEvicted => Kind::IsolateEvicted,
        VerdictKind::Trap => Kind::Trap,
    });
    builder.set_limit_name(verdict.limit_name);
    builder.set_used(verdict.used);
    builder.set_limit(verdict.limit);
    builder.set_message(&verdict.message()[..]);
    builder.set_started(verdict.started);
    builder.set_subrequests_sent(verdict.subrequests_sent);
}

fn write_usage(usage: &Usage, mut builder: schema::usage::Builder<'_>) {
    builder.set_fuel_load(usage.fuel_load);
    builder.set_fuel_run(usage.fuel_run);
    builder.set_fuel_schedule(FUEL_SCHEDULE);
    builder.set_cpu_micros(usage.cpu_us);
    builder.set_wall_micros(usage.wall_us);
    builder.set_memory_peak_bytes(usage.memory_peak_bytes);
    builder.set_memory_denied(usage.memory_denied);
    builder.set_subrequests(usage.subrequests);
    builder.set_bytes_in(usage.bytes_in);
    builder.set_bytes_out(usage.bytes_out);
    builder.set_isolate_reused(usage.isolate_reused);
}
