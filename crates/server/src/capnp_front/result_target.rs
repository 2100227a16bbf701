//! `Target` on the result of a call, for those who pipeline into it.
//!
//! After an exception or a verdict it answers everything with the same outcome. Of a value the properties can be read; what
//! in it is passed by reference can be called.
//!
//! A result is as large as a worker likes to make it, and is read on a thread that serves many. So what is read is cut
//! out of the bytes; a tree, which takes tens of times their memory that nobody counts, is built of little only.

use super::{
    Connected, convert,
    pipelined::pipelined,
    target::{Asked, call_for},
};
use crate::{
    outcome::Answered,
    router::{Address, Owner},
};
use capnp::Error;
use coracle_isolate::{Bytes, CallAccess, Form, Outcome, Thrown};
use coracle_schema::{call_results, target};
use coracle_transport::Held;
use coracle_value::{Bounds, Selected, Value};
use std::{borrow::Cow, fmt::Display, rc::Rc};

/// Bytes that are made a tree of: to make JSON of CBOR or the other way round, and to read JSON.
const TREE_BYTES_MAX: usize = 1 << 20;
/// Bytes of a result from which something is read that refers to shared objects: it takes a tree of all of it.
const ENTANGLED_BYTES_MAX: usize = 64 << 10;

/// Bytes that a reference into the table of externals may take: its tag, its index, and the mark of a shared object.
const EXTERNAL_BYTES_MAX: usize = 16;

/// Answers a call with its report. It is refused where a client leaves so much of what it is told unread, or holds on
/// to so much, that there is no room for more.
pub(super) fn answer_report(
    connected: &Rc<Connected>,
    answered: Answered,
    mut results: call_results::Builder<'_>,
) -> Result<(), Error> {
    let Answered { report, externals } = answered;
    let held = connected.hold(outcome_bytes(&report.outcome))?;
    convert::write_report(connected, &report, &externals, results.reborrow())?;
    let pipeline = ResultServer {
        connected: Rc::clone(connected),
        owner: connected.owner.borrow().clone(),
        outcome: report.outcome,
        externals,
        _held: held,
    };
    results.set_pipeline(capnp_rpc::new_client(pipeline));
    Ok(())
}

fn outcome_bytes(outcome: &Outcome) -> u64 {
    let bytes = match outcome {
        Outcome::Value(bytes) => bytes.bytes.len(),
        Outcome::Threw(thrown) => thrown.message.len() + thrown.stack.len() + thrown.value.len(),
        Outcome::Verdict(verdict) => verdict.detail.len(),
    };
    bytes as u64
}

struct ResultServer {
    connected: Rc<Connected>,
    /// The login that it was given to.
    owner: Option<Owner>,
    outcome: Outcome,
    /// What the result refers to.
    externals: Vec<Address>,
    _held: Held,
}

impl ResultServer {
    /// The object on the way along `path`, and how many names lead to it: what is left of the path is the object's.
    fn object_at(&self, path: &[String]) -> Option<(Address, usize)> {
        let Outcome::Value(result) = &self.outcome else {
            return None;
        };
        if self.externals.is_empty() || result.form != Form::Cbor {
            return None;
        }
        let bounds = self.bounds();
        // Two looks whatever the path's length, as each reads all of the result: how far the path leads, and what is
        // there. An object ends it, so it is the last thing on the way.
        let length = match coracle_value::select(&result.bytes, path, &bounds).ok()? {
            Selected::Item(_) => path.len(),
            Selected::Missing { index } => index,
            Selected::Entangled => return None,
        };
        let Selected::Item(item) =
            coracle_value::select(&result.bytes, &path[..length], &bounds).ok()?
        else {
            return None;
        };
        if item.len() > EXTERNAL_BYTES_MAX {
            return None;
        }
        match coracle_value::decode(&item, &bounds) {
            Ok(Value::External(index)) => {
                Some((self.externals.get(index as usize)?.clone(), length))
            }
            _ => None,
        }
    }

    /// What reading `path` of the result comes to, and what it refers to.
    fn read_at(&self, path: &[String], form: Form) -> (Outcome, &[Address]) {
        let Outcome::Value(result) = &self.outcome else {
            return (self.outcome.clone(), &[]);
        };
        let bounds = self.bounds();
        match Found::at(result, path, &bounds).and_then(|found| found.into_form(form)) {
            Ok(bytes) => {
                // A part refers to entries by their indexes in the whole, or to none.
                let refers = bytes.form == Form::Cbor
                    && coracle_value::validate(&bytes.bytes, &bounds)
                        .is_ok_and(|summary| !summary.externals_used.is_empty());
                let externals: &[Address] = if refers { &self.externals } else { &[] };
                (Outcome::Value(bytes), externals)
            }
            Err(thrown) => (Outcome::Threw(thrown), &[]),
        }
    }

    fn bounds(&self) -> Bounds {
        Bounds {
            externals: self.externals.len() as u32,
            ..Bounds::default()
        }
    }

    fn call_at(&self, path: &[String]) -> Outcome {
        let Outcome::Value(result) = &self.outcome else {
            return self.outcome.clone();
        };
        Outcome::Threw(
            match (Found::at(result, path, &self.bounds()), path.last()) {
                (Err(thrown), _) => thrown,
                (Ok(_), Some(name)) => type_error(format!("\"{name}\" is not a function.")),
                (Ok(_), None) => type_error("the result is not a function.".into()),
            },
        )
    }
}

/// What a path leads to, in the form that the result has.
struct Found<'a> {
    form: Form,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Found<'a> {
    fn at(result: &'a Bytes, path: &[String], bounds: &Bounds) -> Result<Self, Box<Thrown>> {
        let bytes = match (path.first(), result.form) {
            (None, _) => Cow::Borrowed(&result.bytes[..]),
            (Some(name), Form::Undefined) => return Err(not_implemented(name)),
            (Some(_), Form::Cbor) => cut_cbor(&result.bytes, path, bounds)?,
            (Some(_), Form::Json) => Cow::Owned(cut_json(&result.bytes, path)?.into_bytes()),
        };
        Ok(Self {
            form: result.form,
            bytes,
        })
    }

    fn into_form(self, wanted: Form) -> Result<Bytes, Box<Thrown>> {
        const CBOR_UNDEFINED: [u8; 1] = [0xf7];
        let (form, bytes) = match (self.form, wanted) {
            (Form::Undefined, _) | (_, Form::Undefined) => return Ok(Bytes::UNDEFINED),
            (Form::Cbor, _) if *self.bytes == CBOR_UNDEFINED => return Ok(Bytes::UNDEFINED),
            (Form::Cbor, Form::Cbor) | (Form::Json, Form::Json) => {
                (self.form, self.bytes.into_owned())
            }
            (Form::Cbor, Form::Json) => (Form::Json, json_of_cbor(&self.bytes)?.into_bytes()),
            (Form::Json, Form::Cbor) => {
                let value = tree_of_json(&self.bytes, "be given as CBOR")?;
                (Form::Cbor, coracle_value::encode(&value))
            }
        };
        Ok(Bytes::data(form, bytes))
    }
}

/// The bytes of what `path` leads to, which are a value by themselves.
fn cut_cbor<'a>(
    bytes: &'a [u8],
    path: &[String],
    bounds: &Bounds,
) -> Result<Cow<'a, [u8]>, Box<Thrown>> {
    let selected = match coracle_value::select(bytes, path, bounds) {
        Ok(Selected::Entangled) if bytes.len() <= ENTANGLED_BYTES_MAX => {
            coracle_value::extract(bytes, path, bounds)
        }
        selected => selected,
    };
    match selected.map_err(unreadable)? {
        Selected::Item(item) => Ok(item),
        Selected::Missing { index } => Err(not_implemented(&path[index])),
        Selected::Entangled => Err(range_error(format!(
            "results with shared objects above {} KiB can't be read by path; this one has {} bytes.",
            ENTANGLED_BYTES_MAX >> 10,
            bytes.len()
        ))),
    }
}

/// The JSON text of what `path` leads to in JSON text.
fn cut_json(text: &[u8], path: &[String]) -> Result<String, Box<Thrown>> {
    let root = tree_of_json(text, "be read by path")?;
    let part = root
        .find(path)
        .map_err(|index| not_implemented(&path[index]))?;
    coracle_value::to_json(part).map_err(unreadable)
}

fn json_of_cbor(bytes: &[u8]) -> Result<String, Box<Thrown>> {
    check_tree("values", bytes, "be given as JSON")?;
    let value = coracle_value::decode(bytes, &Bounds::default()).map_err(unreadable)?;
    coracle_value::to_json(&value).map_err(|error| type_error(error.to_string()))
}

/// The value that JSON text of a guest's is; the text is UTF-8 by its word only, which is not trusted.
fn tree_of_json(text: &[u8], use_of_it: &str) -> Result<Value, Box<Thrown>> {
    check_tree("JSON results", text, use_of_it)?;
    coracle_value::from_json(&String::from_utf8_lossy(text), &Bounds::default()).map_err(unreadable)
}

fn check_tree(what: &str, bytes: &[u8], use_of_it: &str) -> Result<(), Box<Thrown>> {
    if bytes.len() > TREE_BYTES_MAX {
        return Err(range_error(format!(
            "{what} above {} MiB can't {use_of_it}; this one has {} bytes.",
            TREE_BYTES_MAX >> 20,
            bytes.len()
        )));
    }
    Ok(())
}

fn not_implemented(name: &str) -> Box<Thrown> {
    type_error(format!(
        "The RPC receiver does not implement the method \"{name}\"."
    ))
}

/// The result is larger or deeper than values may be, or its bytes are none, which no sound guest makes.
fn unreadable(error: impl Display) -> Box<Thrown> {
    range_error(format!("the result can't be read: {error}."))
}

fn type_error(message: String) -> Box<Thrown> {
    thrown("TypeError", message)
}

fn range_error(message: String) -> Box<Thrown> {
    thrown("RangeError", message)
}

fn thrown(name: &str, message: String) -> Box<Thrown> {
    Box::new(Thrown {
        name: name.into(),
        message,
        ..Thrown::default()
    })
}

impl target::Server for ResultServer {
    async fn call(
        self: Rc<Self>,
        params: target::CallParams,
        results: target::CallResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        let metrics = self.connected.service.metrics();
        pipelined(metrics, results, async move |results| {
            let mut asked = Asked::to_call(&this.connected, &params)?;
            drop(params);
            let Some((object, used)) = this.object_at(&asked.path) else {
                let outcome = this.call_at(&asked.path);
                return answer(&this.connected, outcome, &[], results.get());
            };
            asked.path.drain(..used);
            let answered = call_for(this.owner.as_ref(), &object, CallAccess::Call, asked).await?;
            answer_report(&this.connected, answered, results.get())
        })
        .await
    }

    async fn get(
        self: Rc<Self>,
        params: target::GetParams,
        results: target::GetResults,
    ) -> Result<(), Error> {
        let this = Rc::clone(&self);
        let metrics = self.connected.service.metrics();
        pipelined(metrics, results, async move |results| {
            let mut asked = Asked::to_get(&this.connected, &params)?;
            drop(params);
            if let Some((object, used)) = this.object_at(&asked.path)
                && used < asked.path.len()
            {
                asked.path.drain(..used);
                let call = call_for(this.owner.as_ref(), &object, CallAccess::Get, asked);
                return answer_report(&this.connected, call.await?, results.get());
            }
            let (outcome, externals) = this.read_at(&asked.path, asked.form);
            answer(&this.connected, outcome, externals, results.get())
        })
        .await
    }
}

fn answer(
    connected: &Rc<Connected>,
    outcome: Outcome,
    externals: &[Address],
    mut results: call_results::Builder<'_>,
) -> Result<(), Error> {
    let held = connected.hold(outcome_bytes(&outcome))?;
    convert::write_outcome(connected, &outcome, externals, results.reborrow())?;
    let pipeline = ResultServer {
        connected: Rc::clone(connected),
        owner: connected.owner.borrow().clone(),
        outcome,
        externals: externals.to_vec(),
        _held: held,
    };
    results.set_pipeline(capnp_rpc::new_client(pipeline));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test may fail that way")]

    use super::*;

    fn cbor(value: &Value) -> Bytes {
        Bytes {
            form: Form::Cbor,
            bytes: coracle_value::encode(value),
            externals: Vec::new(),
        }
    }

    fn json(text: &str) -> Bytes {
        Bytes {
            form: Form::Json,
            bytes: text.into(),
            externals: Vec::new(),
        }
    }

    fn read(result: &Bytes, path: &[&str], form: Form) -> Result<Bytes, String> {
        let path: Vec<String> = path.iter().copied().map(String::from).collect();
        Found::at(result, &path, &Bounds::default())
            .and_then(|found| found.into_form(form))
            .map_err(|thrown| format!("{}: {}", thrown.name, thrown.message))
    }

    fn ship() -> Value {
        Value::object([
            ("crew", Value::array(["Ann", "Bo"])),
            ("sail", Value::Undefined),
            ("cargo", Value::Array(vec![Value::Hole])),
        ])
    }

    #[test]
    fn a_member_is_read_from_either_form_in_either_form() {
        let text = "{\"crew\":[\"Ann\",\"Bo\"]}";
        for result in [cbor(&ship()), json(text)] {
            for (path, value, text) in [
                (
                    &["crew"][..],
                    Value::array(["Ann", "Bo"]),
                    "[\"Ann\",\"Bo\"]",
                ),
                (&["crew", "1"], Value::from("Bo"), "\"Bo\""),
            ] {
                assert_eq!(read(&result, path, Form::Cbor), Ok(cbor(&value)));
                assert_eq!(read(&result, path, Form::Json), Ok(json(text)));
            }
        }
        assert_eq!(read(&json(text), &[], Form::Json), Ok(json(text)));
        assert_eq!(read(&cbor(&ship()), &[], Form::Cbor), Ok(cbor(&ship())));
    }

    #[test]
    fn data_beside_what_is_passed_by_reference_is_read() {
        let result = cbor(&Value::object([
            ("sail", Value::External(1)),
            ("crew", Value::array(["Ann"])),
        ]));
        let bounds = Bounds {
            externals: 2,
            ..Bounds::default()
        };
        let read = |name: &str| {
            let path = [name.to_owned()];
            let found = Found::at(&result, &path, &bounds);
            found.and_then(|found| found.into_form(Form::Cbor))
        };
        assert_eq!(read("crew"), Ok(cbor(&Value::array(["Ann"]))));
        assert_eq!(read("sail"), Ok(cbor(&Value::External(1))));
    }

    #[test]
    fn undefined_and_holes_are_undefined_in_either_form() {
        for form in [Form::Cbor, Form::Json] {
            for path in [&["sail"][..], &["cargo", "0"]] {
                assert_eq!(read(&cbor(&ship()), path, form), Ok(Bytes::UNDEFINED));
            }
            assert_eq!(read(&Bytes::UNDEFINED, &[], form), Ok(Bytes::UNDEFINED));
            assert_eq!(
                read(&cbor(&Value::Undefined), &[], form),
                Ok(Bytes::UNDEFINED)
            );
        }
    }

    #[test]
    fn a_name_that_leads_nowhere_is_a_method_that_there_is_not() {
        let expected = Err(String::from(
            "TypeError: The RPC receiver does not implement the method \"mast\".",
        ));
        for result in [cbor(&ship()), json("{\"crew\":[]}"), Bytes::UNDEFINED] {
            let path = &["mast", "height"];
            assert_eq!(read(&result, path, Form::Cbor), expected);
        }
    }

    /// Two references to one object, and as many bytes besides.
    fn entangled(bytes: usize) -> Value {
        Value::object([
            ("filling", Value::uint8_array(vec![0; bytes])),
            ("a", Value::Shared(Box::new(Value::object([("x", 1)])))),
            ("b", Value::Reference(0)),
        ])
    }

    #[test]
    fn shared_objects_are_followed_in_small_results_and_refused_in_large_ones() {
        let small = cbor(&entangled(60_000));
        let x = cbor(&Value::from(1));
        assert_eq!(read(&small, &["b", "x"], Form::Cbor), Ok(x.clone()));
        let object = json("{\"x\":1}");
        assert_eq!(read(&small, &["b"], Form::Json), Ok(object));

        let large = cbor(&entangled(70_000));
        let refused = format!(
            "RangeError: results with shared objects above 64 KiB can't be read by path; this one has {} bytes.",
            large.bytes.len()
        );
        assert_eq!(read(&large, &["b", "x"], Form::Cbor), Err(refused));
        // What refers to nothing is read all the same.
        assert_eq!(read(&large, &["a", "x"], Form::Cbor), Ok(x));
    }

    #[test]
    fn trees_are_built_of_little_only() {
        let text = "x".repeat(TREE_BYTES_MAX);
        let large = cbor(&Value::object([("text", text.as_str())]));
        let item = cbor(&Value::from(text.as_str()));
        let refused = |message: &str| Err(format!("RangeError: {message}"));
        assert_eq!(read(&large, &["text"], Form::Cbor), Ok(item));
        assert_eq!(
            read(&large, &["text"], Form::Json),
            refused("values above 1 MiB can't be given as JSON; this one has 1048581 bytes.")
        );
        let large = json(&format!("[\"{text}\",1]"));
        assert_eq!(read(&large, &[], Form::Json), Ok(large.clone()));
        assert_eq!(
            read(&large, &["1"], Form::Json),
            refused("JSON results above 1 MiB can't be read by path; this one has 1048582 bytes.")
        );
        assert_eq!(
            read(&large, &[], Form::Cbor),
            refused("JSON results above 1 MiB can't be given as CBOR; this one has 1048582 bytes.")
        );
    }

    #[test]
    fn a_result_that_is_too_large_or_none_is_refused_for_what_it_is() {
        let large = Value::uint8_array(vec![0; Bounds::default().bytes_max]);
        let large = cbor(&Value::object([("bytes", large)]));
        let message = read(&large, &["bytes"], Form::Cbor).unwrap_err();
        assert!(
            message.starts_with("RangeError: the result can't be read: 33554"),
            "{message}"
        );
        let broken = Bytes {
            form: Form::Cbor,
            bytes: vec![0xff],
            externals: Vec::new(),
        };
        assert_eq!(
            read(&broken, &["a"], Form::Cbor),
            Err("RangeError: the result can't be read: unexpected break at byte 0.".into())
        );
    }
}
