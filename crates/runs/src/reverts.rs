//! What takes back what a tool has done.

use coracle_executor::Output;
use serde::Deserialize;
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;

/// For each tool, by its path, what takes back a call of it.
pub type Reverts = BTreeMap<String, Revert>;

/// A call that takes back another.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revert {
    /// The tool to call, by its path.
    pub call: String,
    /// Its arguments, each by where its value stands: a JSON pointer (RFC 6901) into `{"arguments": …, "result": …}` of the
    /// call that is taken back.
    #[serde(default)]
    pub with: BTreeMap<String, String>,
}

/// What became of a call that was to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reverted {
    /// Its number.
    pub number: usize,
    /// The tool that was called.
    pub tool: String,
    /// Why it was not taken back; none if it was.
    pub problem: Option<String>,
}

impl Revert {
    /// The arguments of the call that takes back one with those arguments and that result.
    ///
    /// # Errors
    /// In words, what is not there.
    pub(crate) fn arguments(&self, arguments: &Json, result: &Output) -> Result<Json, String> {
        let result = match result {
            Output::Json(result) => result.clone(),
            Output::Bytes(_) => Json::Null,
        };
        let call = json!({ "arguments": arguments, "result": result });
        let value = |(name, pointer): (&String, &String)| {
            let value = call.pointer(pointer);
            let value = value.ok_or_else(|| format!("{name}: there is nothing at {pointer}"))?;
            Ok((name.clone(), value.clone()))
        };
        let values = self.with.iter().map(value);
        Ok(Json::Object(values.collect::<Result<Map<_, _>, String>>()?))
    }
}
