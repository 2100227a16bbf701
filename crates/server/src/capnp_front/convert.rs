//! Between the schema's structs and the session's types. Everything read here comes from a stranger.

use super::{Connected, TargetServer};
use crate::{
    loading::{ENTRYPOINT_NAME_BYTES_MAX, MODULES_LISTED_MAX},
    outcome::{THROWN_TEXT_BYTES_MAX, THROWN_VALUE_BYTES_MAX},
    router::{Address, Payload},
    session::Grants,
    tails::TAILS_MAX,
};
use capnp::{Error, text};
use coracle_abi::{PATH_BYTES_MAX, PATH_LENGTH_MAX};
use coracle_isolate::{
    Bytes, FUEL_SCHEDULE, Form as IsolateForm, Kind, LogLevel, Outcome, Report, Thrown, Usage,
    Verdict, VerdictKind,
};
use coracle_loader::{
    Encoded, Form, LimitName, LimitsRequest, Module, ModuleBody, Outbound, PolicyAsked, WorkerCode,
};
use coracle_schema as schema;
use std::{rc::Rc, sync::Arc};

/// Entries that one table of externals may have.
const EXTERNALS_MAX: u32 = 10_000;

pub(super) fn text(reader: text::Reader<'_>) -> Result<String, Error> {
    Ok(reader
        .to_str()
        .map_err(|_| Error::failed("a text is not UTF-8".into()))?
        .to_owned())
}

/// Whether there may be loaders in a table of externals.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loaders {
    Accepted,
    Refused,
}

/// A value with what it refers to.
pub(super) fn payload(
    connected: &Rc<Connected>,
    reader: schema::value::Reader<'_>,
) -> Result<Payload, Error> {
    payload_with(connected, reader, Loaders::Refused)
}

fn payload_with(
    connected: &Rc<Connected>,
    reader: schema::value::Reader<'_>,
    loaders: Loaders,
) -> Result<Payload, Error> {
    let externals = match reader.has_externals() {
        true => externals(connected, reader.get_externals()?, loaders)?,
        false => Vec::new(),
    };
    let (form, bytes) = match reader.which()? {
        schema::value::Undefined(()) => (IsolateForm::Undefined, Vec::new()),
        schema::value::Cbor(bytes) => (IsolateForm::Cbor, bytes?.to_vec()),
        schema::value::Json(json) => (IsolateForm::Json, json?.as_bytes().to_vec()),
    };
    Ok(Payload {
        form,
        bytes,
        externals,
    })
}

fn externals(
    connected: &Rc<Connected>,
    list: capnp::struct_list::Reader<'_, schema::external::Owned>,
    loaders: Loaders,
) -> Result<Vec<Address>, Error> {
    use schema::external;
    at_most("externals", list.len(), EXTERNALS_MAX)?;
    let refused = |index, what: &str| Error::failed(format!("external {index} {what}"));
    let address = |(index, external): (usize, external::Reader<'_>)| {
        let (target, kind) = match external.which() {
            Ok(external::Target(target)) => (target, Kind::Target),
            Ok(external::Source(source)) => (source, Kind::Source),
            Ok(external::Sink(sink)) => (sink, Kind::Sink),
            Ok(external::Loader(_)) if loaders == Loaders::Refused => {
                let what = "is a loader: those can be passed in env only";
                return Err(refused(index, what));
            }
            Ok(external::Loader(loader)) => {
                return match loader.is_ok_and(|loader| connected.is_own_loader(loader)) {
                    true => Ok(Address::Loader(Arc::default())),
                    false => {
                        let what = "is not the loader that this session was given";
                        Err(refused(index, what))
                    }
                };
            }
            Ok(external::Invalid(())) => {
                return Err(refused(index, "is not set: each must say what it is"));
            }
            Err(_) => {
                return Err(refused(
                    index,
                    "is of a kind that this server does not know",
                ));
            }
        };
        let target = target.map_err(|_| refused(index, NO_CAPABILITY))?;
        address(connected, target, kind)
    };
    list.iter().enumerate().map(address).collect()
}

/// What is wrong with a null pointer in a capability's place.
const NO_CAPABILITY: &str = "has no capability";

/// The address of a capability: what is ours is known, of its own kind; what is the client's is kept.
fn address(
    connected: &Rc<Connected>,
    target: schema::target::Client,
    kind: Kind,
) -> Result<Address, Error> {
    let ours = connected
        .targets
        .borrow()
        .get_local_server_of_resolved(&target);
    match ours {
        Some(server) => Ok(server.address.clone()),
        None => Ok(connected.remotes.address(target, kind, connected.hold(0)?)),
    }
}

fn addresses(
    connected: &Rc<Connected>,
    list: capnp::capability_list::Reader<'_, schema::target::Client>,
) -> Result<Vec<Address>, Error> {
    at_most("tails", list.len(), TAILS_MAX)?;
    let tail = |(index, target): (usize, capnp::Result<schema::target::Client>)| {
        let missing = |_| Error::failed(format!("tail {index} {NO_CAPABILITY}"));
        address(connected, target.map_err(missing)?, Kind::Target)
    };
    list.iter().enumerate().map(tail).collect()
}

pub(super) fn write_payload(
    connected: &Rc<Connected>,
    payload: &Payload,
    mut builder: schema::value::Builder<'_>,
) -> Result<(), Error> {
    write_externals(connected, &payload.externals, builder.reborrow())?;
    let value = Bytes::data(payload.form, payload.bytes.clone());
    write_value(&value, builder);
    Ok(())
}

pub(super) fn write_externals(
    connected: &Rc<Connected>,
    externals: &[Address],
    builder: schema::value::Builder<'_>,
) -> Result<(), Error> {
    if externals.is_empty() {
        return Ok(());
    }
    let mut list = builder.init_externals(externals.len() as u32);
    for (index, address) in externals.iter().enumerate() {
        let client = TargetServer::client(connected, address.clone(), address.data_bytes())?;
        let mut external = list.reborrow().get(index as u32);
        match address.kind() {
            Kind::Target | Kind::Loader | Kind::Entrypoint => external.set_target(client),
            Kind::Source => external.set_source(client),
            Kind::Sink => external.set_sink(client),
        }
    }
    Ok(())
}

pub(super) fn write_path<'a>(
    path: &[String],
    init: impl FnOnce(u32) -> capnp::text_list::Builder<'a>,
) {
    let mut list = init(path.len() as u32);
    for (index, step) in path.iter().enumerate() {
        list.set(index as u32, &step[..]);
    }
}

/// What a client's object threw. Texts that are too long are cut, and a value that is too large is left out.
pub(super) fn thrown(reader: schema::thrown::Reader<'_>) -> Result<Thrown, Error> {
    let value = match reader.get_value()?.which()? {
        schema::value::Cbor(bytes) => Some(bytes?).filter(|it| it.len() <= THROWN_VALUE_BYTES_MAX),
        _ => None,
    };
    let cut = |reader| {
        let mut text = text(reader)?;
        text.truncate(text.floor_char_boundary(THROWN_TEXT_BYTES_MAX));
        Ok::<_, Error>(text)
    };
    let value = value.unwrap_or_default().to_vec();
    Ok(Thrown {
        name: cut(reader.get_name()?)?,
        message: cut(reader.get_message()?)?,
        value,
        ..Thrown::default()
    })
}

pub(super) fn path(reader: capnp::text_list::Reader<'_>) -> Result<Vec<String>, Error> {
    at_most("path", reader.len(), PATH_LENGTH_MAX as u32)?;
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

pub(super) fn form(form: schema::Form) -> IsolateForm {
    match form {
        schema::Form::Cbor => IsolateForm::Cbor,
        schema::Form::Json => IsolateForm::Json,
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
        (LimitName::SubrequestMsMax, reader.get_subrequest_ms_max()),
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

/// Where a worker's requests go, and the gateway, or who is asked.
pub(super) fn outbound_of(
    connected: &Rc<Connected>,
    reader: schema::outbound::Reader<'_>,
) -> Result<(Outbound, Option<Address>), Error> {
    let asked = match reader.which()? {
        schema::outbound::Policy(()) => PolicyAsked::Session,
        schema::outbound::PolicyNamed(name) => PolicyAsked::Named(text(name?)?),
        schema::outbound::PolicyGiven(rules) => PolicyAsked::Given(text(rules?)?),
        schema::outbound::None(()) => return Ok((Outbound::None, None)),
        schema::outbound::Gateway(gateway) => {
            let missing = |_| Error::failed(format!("outbound: the gateway {NO_CAPABILITY}"));
            let gateway = address(connected, gateway.map_err(missing)?, Kind::Target)?;
            return Ok((Outbound::Gateway, Some(gateway)));
        }
    };
    let ask = match reader.has_ask() {
        true => Some(address(connected, reader.get_ask()?, Kind::Target)?),
        false => None,
    };
    Ok((Outbound::Policy(asked), ask))
}

/// A worker's `env`, and what it refers to.
pub(super) fn env_of(
    connected: &Rc<Connected>,
    reader: schema::value::Reader<'_>,
) -> Result<(Encoded, Vec<Address>), Error> {
    let env = payload_with(connected, reader, Loaders::Accepted)?;
    let encoded = Encoded {
        form: match env.form {
            IsolateForm::Undefined => Form::Undefined,
            IsolateForm::Cbor => Form::Cbor,
            IsolateForm::Json => Form::Json,
        },
        bytes: env.bytes,
        externals: env.externals.len() as u32,
    };
    Ok((encoded, env.externals))
}

/// A worker's code, and what it is given.
pub(super) fn worker_code(
    connected: &Rc<Connected>,
    reader: schema::worker_code::Reader<'_>,
) -> Result<(WorkerCode, Grants), Error> {
    at_most(
        "compatibilityFlags",
        reader.get_compatibility_flags()?.len(),
        FLAGS_MAX,
    )?;
    at_most(
        "modules",
        reader.get_modules()?.len(),
        MODULES_LISTED_MAX as u32,
    )?;
    let (outbound, gateway) = outbound_of(connected, reader.get_outbound()?)?;
    let (env, capabilities) = env_of(connected, reader.get_env()?)?;
    let code = WorkerCode {
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
        env,
        outbound,
        limits: limits(reader.get_limits()?),
    };
    let grants = Grants {
        env: capabilities,
        outbound: gateway,
        tails: addresses(connected, reader.get_tails()?)?,
        streaming_tails: addresses(connected, reader.get_streaming_tails()?)?,
    };
    let tails = grants.tails.len() + grants.streaming_tails.len();
    at_most("tails", tails as u32, TAILS_MAX)?;
    Ok((code, grants))
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

pub(super) fn write_report(
    connected: &Rc<Connected>,
    report: &Report,
    externals: &[Address],
    mut results: schema::call_results::Builder<'_>,
) -> Result<(), Error> {
    write_outcome(connected, &report.outcome, externals, results.reborrow())?;
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
    Ok(())
}

pub(super) fn write_outcome(
    connected: &Rc<Connected>,
    outcome: &Outcome,
    externals: &[Address],
    results: schema::call_results::Builder<'_>,
) -> Result<(), Error> {
    let outcome_builder = results.init_outcome();
    match outcome {
        Outcome::Value(bytes) => {
            let mut value = outcome_builder.init_value();
            write_externals(connected, externals, value.reborrow())?;
            write_value(bytes, value);
        }
        Outcome::Threw(thrown) => write_thrown(thrown, outcome_builder.init_threw()),
        Outcome::Verdict(verdict) => write_verdict(verdict, outcome_builder.init_verdict()),
    }
    Ok(())
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
        VerdictKind::Exports => Kind::Exports,
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
