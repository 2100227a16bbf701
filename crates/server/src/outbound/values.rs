//! Requests and responses as values (`schema/value.md`).

use crate::host::{Failure, HostCall};
use coracle_outbound::{Question, Redirect};
use coracle_value::{Interface, Value};

/// What a request says of itself, without its body.
pub(super) struct RequestHead {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) redirect: Redirect,
}

/// Reads the request that is the first argument; answers its body's value too.
pub(super) fn request(args: Vec<Value>) -> Result<(RequestHead, Value), Failure> {
    let malformed = || Failure::type_error("The Request that was passed is malformed.");
    let first = args.into_iter().next().map(unshared);
    let Some(Value::Interface(Interface::Request, content)) = first else {
        return Err(Failure::type_error("fetch takes a Request."));
    };
    let Value::Object(fields) = unshared(*content) else {
        return Err(malformed());
    };
    let mut head = RequestHead {
        method: "GET".into(),
        url: String::new(),
        headers: Vec::new(),
        redirect: Redirect::Follow,
    };
    let mut body = Value::Null;
    for (name, value) in fields {
        match name.as_str() {
            Some("method") => head.method = text(&value).ok_or_else(malformed)?,
            Some("url") => head.url = text(&value).ok_or_else(malformed)?,
            Some("headers") => head.headers = headers(&value).ok_or_else(malformed)?,
            Some("body") => body = unshared(value),
            Some("redirect") => {
                head.redirect = match value.as_str() {
                    Some("follow") => Redirect::Follow,
                    Some("error") => Redirect::Error,
                    Some("manual") => Redirect::Manual,
                    _ => return Err(malformed()),
                }
            }
            _ => {}
        }
    }
    Ok((head, body))
}

/// The value itself, whether it is referred to again or not.
fn unshared(value: Value) -> Value {
    match value {
        Value::Shared(inner) => *inner,
        other => other,
    }
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn headers(value: &Value) -> Option<Vec<(String, String)>> {
    let content = value.as_interface(Interface::Headers).unwrap_or(value);
    let pair = |pair: &Value| Some((text(pair.index(0)?)?, text(pair.index(1)?)?));
    content.as_array()?.iter().map(pair).collect()
}

fn headers_value(headers: Vec<(String, String)>) -> Value {
    let pair = |(name, value): (String, String)| Value::array([name, value]);
    Value::Array(headers.into_iter().map(pair).collect())
}

/// A request as it is shown to whoever decides.
pub(super) fn question(question: Question) -> Value {
    let Question {
        method,
        url,
        headers,
    } = question;
    let content = Value::object([
        ("url", Value::from(url)),
        ("method", method.into()),
        ("headers", headers_value(headers)),
    ]);
    Value::Interface(Interface::Request, Box::new(content))
}

/// What a response says of itself.
pub(super) struct ResponseHead {
    pub(super) status: u16,
    pub(super) status_text: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) url: String,
    pub(super) redirected: bool,
}

/// A response with that body, or that socket.
pub(super) fn response(head: ResponseHead, body: Value, socket: Option<Value>) -> Value {
    let mut fields = vec![
        ("status", Value::from(u32::from(head.status))),
        ("statusText", head.status_text.into()),
        ("headers", headers_value(head.headers)),
        ("body", body),
        ("url", head.url.into()),
        ("redirected", head.redirected.into()),
    ];
    if let Some(socket) = socket {
        fields.push(("webSocket", socket));
    }
    Value::Interface(Interface::Response, Box::new(Value::object(fields)))
}

/// The options of a connection.
pub(super) struct ConnectOptions {
    pub(super) address: String,
    pub(super) with_tls: bool,
    pub(super) may_start_tls: bool,
}

pub(super) fn connect_options(args: &[Value]) -> Result<ConnectOptions, Failure> {
    let address = args.first().and_then(text);
    let address = address.ok_or_else(|| Failure::type_error("connect takes an address."))?;
    let transport = args
        .get(1)
        .and_then(|options| options.get("secureTransport"));
    let (with_tls, may_start_tls) = match transport.map(Value::as_str) {
        None | Some(Some("off")) => (false, false),
        Some(Some("on")) => (true, false),
        Some(Some("starttls")) => (false, true),
        Some(_) => {
            let message = "secureTransport is none of \"off\", \"on\" and \"starttls\".";
            return Err(Failure::type_error(message));
        }
    };
    Ok(ConnectOptions {
        address,
        with_tls,
        may_start_tls,
    })
}

/// `{expectedServerHostname}` of `startTls`.
pub(super) fn expected_name(call: &HostCall) -> Result<Option<String>, Failure> {
    let args = call.arguments()?;
    let name = args
        .first()
        .and_then(|options| options.get("expectedServerHostname"));
    Ok(name.and_then(text))
}
