//! Arguments to a request.

use super::{Location, Operation, parameter::plain};
use crate::{LimitExceeded, Limits};
use serde_json::Value;
use url::Url;

/// A request that has been made of arguments. It has no credential.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The method, in capitals.
    pub method: String,
    /// The whole URL.
    pub url: String,
    /// Headers, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
}

/// Why arguments make no request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// They are no object.
    #[error("the arguments are no object")]
    ArgumentsNotAnObject,
    /// One that is needed is missing.
    #[error("input.{0} is missing")]
    ArgumentMissing(String),
    /// One that the operation does not have.
    #[error("input.{0} is not known there")]
    ArgumentUnknown(String),
    /// One that can't be sent.
    #[error("input.{argument} {problem}")]
    Argument {
        /// Which.
        argument: String,
        /// Why not.
        problem: &'static str,
    },
    /// A path that would lead elsewhere.
    #[error("{0:?} in a path means another path")]
    PathSegment(String),
    /// A server that is none.
    #[error("the server: {0}")]
    Server(String),
    /// It would be too large.
    #[error(transparent)]
    Limit(#[from] LimitExceeded),
}

impl Operation {
    /// Makes a request of arguments. `server` is where to, as [`super::Server::resolve`] gives it. Arguments are judged by
    /// the schema before; here they only have to be of a shape that can be sent.
    ///
    /// # Errors
    ///
    /// An argument is missing, unknown, or can't be sent where it belongs; or the request would be too large.
    pub fn request(
        &self,
        server: &str,
        arguments: &Value,
        limits: &Limits,
    ) -> Result<Request, RequestError> {
        let nothing = serde_json::Map::new();
        let arguments = match arguments {
            Value::Null => &nothing,
            Value::Object(arguments) => arguments,
            _ => return Err(RequestError::ArgumentsNotAnObject),
        };
        self.refuse_unknown(arguments)?;
        let mut path = self.path.clone();
        let mut query = Vec::new();
        let mut headers = Vec::new();
        let mut cookies = Vec::new();
        for parameter in &self.parameters {
            let value = arguments.get(&parameter.argument);
            let Some(value) = value.filter(|value| !value.is_null()) else {
                if parameter.is_required {
                    return Err(RequestError::ArgumentMissing(parameter.argument.clone()));
                }
                continue;
            };
            match parameter.location {
                // Put in below, so that no value is taken for a place.
                Location::Path => {}
                Location::Query => query.extend(parameter.in_query(value)?),
                Location::Header => {
                    let name = parameter.name.to_ascii_lowercase();
                    headers.push((name, parameter.in_header(value)?));
                }
                Location::Cookie => cookies.extend(parameter.in_cookie(value)?),
            }
        }
        path = self.filled(&path, arguments)?;
        if !cookies.is_empty() {
            headers.push(("cookie".into(), cookies.join("; ")));
        }
        if !self.accepts.is_empty() {
            headers.push(("accept".into(), self.accepts.join(", ")));
        }
        let mut body = None;
        if let Some((media_type, bytes)) = self.encoded_body(arguments)? {
            limits.body_bytes_max(bytes.len(), "the body")?;
            headers.push(("content-type".into(), media_type));
            body = Some(bytes);
        }
        let mut url = format!("{server}{path}");
        if !query.is_empty() {
            // A path of the document can have a query of its own.
            url.push(if path.contains('?') { '&' } else { '?' });
            url.push_str(&query.join("&"));
        }
        limits.url_bytes_max(url.len(), "the URL")?;
        let parsed = Url::parse(&url).map_err(|error| RequestError::Server(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(RequestError::Server(format!(
                "{server:?} is not http or https"
            )));
        }
        Ok(Request {
            method: self.method.clone(),
            url,
            headers,
            body,
        })
    }

    fn refuse_unknown(
        &self,
        arguments: &serde_json::Map<String, Value>,
    ) -> Result<(), RequestError> {
        let is_known = |name: &String| {
            let of_body = self.body.as_ref().is_some_and(|body| {
                body.argument == *name || body.media_type_argument.as_ref() == Some(name)
            });
            of_body || self.parameters.iter().any(|one| one.argument == *name)
        };
        match arguments.keys().find(|name| !is_known(name)) {
            Some(unknown) => Err(RequestError::ArgumentUnknown(unknown.clone())),
            None => Ok(()),
        }
    }

    /// The path with its parameters in place.
    fn filled(
        &self,
        path: &str,
        arguments: &serde_json::Map<String, Value>,
    ) -> Result<String, RequestError> {
        let mut filled = String::new();
        let mut rest = path;
        while let Some((before, name, after)) = next_place(rest) {
            filled.push_str(before);
            let parameter = self
                .parameters
                .iter()
                .find(|one| one.location == Location::Path && one.name == name)
                .ok_or_else(|| RequestError::ArgumentMissing(name.to_owned()))?;
            let value = arguments
                .get(&parameter.argument)
                .filter(|value| !value.is_null())
                .ok_or_else(|| RequestError::ArgumentMissing(parameter.argument.clone()))?;
            filled.push_str(&parameter.in_path(value)?);
            rest = after;
        }
        filled.push_str(rest);
        // Escaping does not help: URLs treat `%2E%2E` as `..` too. So `..` as a value would change what is asked for.
        for segment in filled.split(['/', '?', '#']) {
            let plain_dots = segment.to_ascii_lowercase().replace("%2e", ".");
            if matches!(plain_dots.as_str(), "." | "..") {
                return Err(RequestError::PathSegment(segment.to_owned()));
            }
        }
        Ok(filled)
    }

    fn encoded_body(
        &self,
        arguments: &serde_json::Map<String, Value>,
    ) -> Result<Option<(String, Vec<u8>)>, RequestError> {
        let Some(body) = &self.body else {
            return Ok(None);
        };
        let Some(value) = arguments.get(&body.argument) else {
            if body.is_required {
                return Err(RequestError::ArgumentMissing(body.argument.clone()));
            }
            return Ok(None);
        };
        let asked = body
            .media_type_argument
            .as_ref()
            .and_then(|name| Some((name, arguments.get(name)?)));
        let content = match asked {
            None => body.contents.first(),
            Some((name, asked)) => {
                let asked = plain(asked);
                let found = body.contents.iter().find(|one| one.media_type == asked);
                Some(found.ok_or_else(|| RequestError::Argument {
                    argument: name.clone(),
                    problem: "is no media type of the body",
                })?)
            }
        };
        content
            .map(|content| content.encode(&body.argument, value))
            .transpose()
    }
}

/// What is before the next parameter of a path, its name, and what is after.
pub(super) fn next_place(path: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = path.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}
