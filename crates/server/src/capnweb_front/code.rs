//! What a worker is made of, as clients hand it over: the object that the Workers documentation calls `WorkerCode`.

use super::{client::Client, convert::Arguments, object::Object, rejection::Rejection};
use crate::{loading::MODULES_LISTED_MAX, router::Address, session::Grants, tails::TAILS_MAX};
use coracle_capnweb::Capability;
use coracle_loader::{
    Encoded, Form, LimitName, LimitsRequest, MODULES_MAX, Module, ModuleBody, Outbound,
    PolicyAsked, WorkerCode,
};
use coracle_value::{Text, Value, to_json};

/// The limits by the names that clients give them; those of the Workers documentation come first.
const LIMIT_NAMES: [(&str, LimitName); 15] = [
    ("cpuMs", LimitName::CpuMsMax),
    ("subRequests", LimitName::SubrequestsMax),
    ("fuelMax", LimitName::FuelMax),
    ("cpuMsMax", LimitName::CpuMsMax),
    ("startupFuelMax", LimitName::StartupFuelMax),
    ("wallMsMax", LimitName::WallMsMax),
    ("memoryBytesMax", LimitName::MemoryBytesMax),
    ("subrequestsMax", LimitName::SubrequestsMax),
    ("subrequestsInFlightMax", LimitName::SubrequestsInFlightMax),
    ("subrequestMsMax", LimitName::SubrequestMsMax),
    ("argsBytesMax", LimitName::ArgsBytesMax),
    ("resultBytesMax", LimitName::ResultBytesMax),
    ("logBytesMax", LimitName::LogBytesMax),
    ("valueDepthMax", LimitName::ValueDepthMax),
    ("exportsMax", LimitName::ExportsMax),
];

/// The whole of it, and what the worker is given.
pub(super) fn worker_code(
    client: &Client,
    arguments: &Arguments,
    code: Value,
) -> Result<(WorkerCode, Grants), Rejection> {
    let Value::Object(fields) = code else {
        return Err(Rejection::type_error(
            "WorkerCode: an object is expected, with mainModule and modules",
        ));
    };
    let mut read = WorkerCode::default();
    let mut grants = Grants::default();
    for (name, value) in fields {
        if value.is_undefined() {
            continue;
        }
        match name.as_str().unwrap_or("") {
            "compatibilityDate" => {
                read.compatibility_date = text("compatibilityDate", value)?;
            }
            "compatibilityFlags" => {
                read.compatibility_flags = list("compatibilityFlags", value)?
                    .into_iter()
                    .map(|flag| text("compatibilityFlags", flag))
                    .collect::<Result<_, _>>()?;
            }
            "mainModule" => read.main_module = text("mainModule", value)?,
            "modules" => read.modules = modules(value)?,
            "env" => (read.env, grants.env) = env(client, arguments, value)?,
            "globalOutbound" => {
                (read.outbound, grants.outbound) = outbound(client, arguments, value)?;
            }
            "limits" => read.limits = limits(&value)?,
            "tails" => grants.tails = tails(client, arguments, "tails", value)?,
            "streamingTails" => {
                grants.streaming_tails = tails(client, arguments, "streamingTails", value)?;
            }
            // As in Workers, what is not known is not looked at.
            _ => {}
        }
    }
    let tails = grants.tails.len() + grants.streaming_tails.len();
    if tails > TAILS_MAX as usize {
        return Err(Rejection::type_error(format!(
            "tails: {tails} are listed, {TAILS_MAX} are allowed"
        )));
    }
    Ok((read, grants))
}

fn wrong(field: &str, expected: &str) -> Rejection {
    Rejection::type_error(format!("{field}: {expected} is expected"))
}

pub(super) fn text(field: &str, value: Value) -> Result<String, Rejection> {
    match value {
        Value::String(text) => Ok(text.into_string_lossy()),
        _ => Err(wrong(field, "a string")),
    }
}

fn list(field: &str, value: Value) -> Result<Vec<Value>, Rejection> {
    match value {
        Value::Array(members) => Ok(members),
        _ => Err(wrong(field, "an array")),
    }
}

fn modules(value: Value) -> Result<Vec<Module>, Rejection> {
    let Value::Object(listed) = value else {
        return Err(wrong("modules", "an object of modules by their names"));
    };
    if listed.len() > MODULES_LISTED_MAX {
        return Err(Rejection::type_error(format!(
            "modules: {} are listed, {MODULES_MAX} are allowed",
            listed.len()
        )));
    }
    listed
        .into_iter()
        .map(|(name, value)| {
            let name = name.into_string_lossy();
            let body = module(&name, value)?;
            Ok(Module { name, body })
        })
        .collect()
}

fn module(name: &str, value: Value) -> Result<ModuleBody, Rejection> {
    let fields = match value {
        Value::String(source) => return Ok(ModuleBody::EsModule(source.into_string_lossy())),
        Value::Object(fields) => fields,
        _ => Vec::new(),
    };
    let given = fields.into_iter().filter(|(_, body)| !body.is_undefined());
    let [(kind, body)]: [(Text, Value); 1] = given
        .collect::<Vec<_>>()
        .try_into()
        .map_err(|_| unknown_module(name))?;
    let source = |body: Value| text(&format!("modules: {name:?}"), body);
    Ok(match kind.as_str().unwrap_or("") {
        "js" => ModuleBody::EsModule(source(body)?),
        "cjs" => ModuleBody::CommonJs(source(body)?),
        "text" => ModuleBody::Text(source(body)?),
        "json" => ModuleBody::Json(
            to_json(&body)
                .map_err(|error| Rejection::type_error(format!("modules: {name:?}: {error}")))?,
        ),
        "data" => ModuleBody::Data(octets(name, &body)?),
        "wasm" => ModuleBody::Wasm(octets(name, &body)?),
        _ => return Err(unknown_module(name)),
    })
}

fn unknown_module(name: &str) -> Rejection {
    Rejection::type_error(format!(
        "modules: {name:?} must be a string, or an object with one of js, cjs, text, json, data and wasm"
    ))
}

fn octets(name: &str, value: &Value) -> Result<Vec<u8>, Rejection> {
    let bytes = value.as_bytes().map(<[u8]>::to_vec);
    bytes.ok_or_else(|| wrong(&format!("modules: {name:?}"), "an ArrayBuffer or a view"))
}

fn env(
    client: &Client,
    arguments: &Arguments,
    value: Value,
) -> Result<(Encoded, Vec<Address>), Rejection> {
    if !matches!(value, Value::Object(_) | Value::Shared(_)) {
        return Err(wrong("env", "an object"));
    }
    let (bytes, capabilities) = arguments.part(value);
    let addresses: Vec<Address> = capabilities
        .into_iter()
        .map(|capability| match &capability {
            Capability::Host {
                target: Object::Session(session),
                ..
            } => session.loader_address(),
            _ => client.address(capability),
        })
        .collect::<Result<_, _>>()?;
    let encoded = Encoded {
        form: Form::Cbor,
        bytes,
        externals: addresses.len() as u32,
    };
    Ok((encoded, addresses))
}

fn outbound(
    client: &Client,
    arguments: &Arguments,
    value: Value,
) -> Result<(Outbound, Option<Address>), Rejection> {
    if value.is_null() {
        return Ok((Outbound::None, None));
    }
    if let Some(name) = value.get("policy") {
        let name = text("globalOutbound.policy", name.clone())?;
        return Ok((Outbound::Policy(PolicyAsked::Named(name)), None));
    }
    let gateway = arguments.capability(&value).ok_or_else(|| {
        wrong(
            "globalOutbound",
            "null, an object with a method fetch, or { policy: name }",
        )
    })?;
    Ok((Outbound::Gateway, Some(client.address(gateway)?)))
}

fn tails(
    client: &Client,
    arguments: &Arguments,
    field: &str,
    value: Value,
) -> Result<Vec<Address>, Rejection> {
    let tail = |tail: Value| {
        let capability = arguments.capability(&tail);
        client.address(capability.ok_or_else(|| wrong(field, "an array of objects with a method"))?)
    };
    list(field, value)?.into_iter().map(tail).collect()
}

/// Limits by name. What is zero or not there asks for nothing.
pub(super) fn limits(value: &Value) -> Result<LimitsRequest, Rejection> {
    let mut request = LimitsRequest::default();
    if value.is_undefined() {
        return Ok(request);
    }
    let asked = value
        .as_object()
        .ok_or_else(|| wrong("limits", "an object"))?;
    for (name, value) in asked {
        let Some((field, limit)) = LIMIT_NAMES.iter().find(|(field, _)| name == *field) else {
            return Err(Rejection::type_error(format!(
                "limits: there is none that is called {:?}",
                name.to_string_lossy()
            )));
        };
        match value {
            Value::Undefined => {}
            Value::Number(number) if is_whole(*number) => {
                // The lower one, where a limit is asked for by both of its names.
                let number = *number as u64;
                let asked = request
                    .get(*limit)
                    .map_or(number, |asked| asked.min(number));
                let _ = request.set(*limit, asked);
            }
            _ => return Err(wrong(&format!("limits.{field}"), "a whole number")),
        }
    }
    Ok(request)
}

fn is_whole(number: f64) -> bool {
    number >= 0.0 && number.fract() == 0.0 && number <= coracle_value::SAFE_INTEGER_MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_the_names_of_workers_and_ours() {
        let asked = Value::object([("cpuMs", Value::from(50)), ("wallMsMax", Value::from(7))]);
        let read = limits(&asked).expect("good");
        assert_eq!((read.cpu_ms_max, read.wall_ms_max), (Some(50), Some(7)));
        for (name, value, told) in [
            (
                "cpuMs",
                Value::from(-1),
                "limits.cpuMs: a whole number is expected",
            ),
            (
                "cpuMs",
                Value::from("1"),
                "limits.cpuMs: a whole number is expected",
            ),
            (
                "cpums",
                Value::from(1),
                "limits: there is none that is called \"cpums\"",
            ),
        ] {
            let refused = limits(&Value::object([(name, value)])).expect_err("bad");
            assert_eq!(refused.message(), told);
        }
    }

    #[test]
    fn a_module_is_one_thing() {
        let of = |value| module("m", value);
        assert!(matches!(of("x".into()), Ok(ModuleBody::EsModule(source)) if source == "x"));
        let json = of(Value::object([("json", Value::object([("a", 1)]))]));
        assert!(matches!(json, Ok(ModuleBody::Json(text)) if text == "{\"a\":1}"));
        for bad in [
            Value::from(1),
            Value::object([("js", "x"), ("text", "y")]),
            Value::object([("py", "x")]),
        ] {
            assert!(of(bad).is_err());
        }
    }
}
