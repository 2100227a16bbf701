//! Requests and responses, as values that travel to and from workers.

use crate::{ByteStream, Entrypoint, Error, Payload, Stub, Value, answer::Thrown, stubs::Target};
use coracle_value::Interface;
use futures::future::BoxFuture;

/// Names and values in order; names may repeat.
pub type Headers = Vec<(String, String)>;

/// What a request or response carries.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// These bytes.
    Bytes(Vec<u8>),
    /// A stream: a stub of the kind [`Source`](crate::Kind::Source), such as
    /// [`Coracle::byte_stream`](crate::Coracle::byte_stream) makes.
    Stream(Stub),
}

impl Body {
    /// All of it, if it has no more than `bytes_max`.
    ///
    /// # Errors
    /// As for [`ByteStream::read_to_end`].
    pub async fn bytes(self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Bytes(bytes) => Ok(bytes),
            Self::Stream(stub) => match ByteStream::new(stub) {
                Some(mut stream) => stream.read_to_end(bytes_max).await,
                None => Err(Error::Malformed("a body that is no stream".into())),
            },
        }
    }

    fn into_value(self, payload: &mut Payload) -> Value {
        match self {
            Self::None => Value::Null,
            Self::Bytes(bytes) => Value::ArrayBuffer(bytes),
            Self::Stream(stub) => payload.external(&stub),
        }
    }

    fn of(value: Option<&Value>, payload: &Payload) -> Option<Self> {
        match value {
            None | Some(Value::Null | Value::Undefined) => Some(Self::None),
            Some(Value::ArrayBuffer(bytes)) => Some(Self::Bytes(bytes.clone())),
            Some(value) => payload.stub(value).cloned().map(Self::Stream),
        }
    }
}

/// A `Request`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Request {
    /// "GET" unless it says otherwise.
    pub method: String,
    /// An absolute URL.
    pub url: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body; GET and HEAD have none.
    pub body: Body,
}

impl Request {
    /// A GET of that URL.
    #[must_use]
    pub fn get(url: impl Into<String>) -> Self {
        Self {
            method: "GET".into(),
            url: url.into(),
            ..Self::default()
        }
    }

    /// What stands for it in a payload.
    #[must_use]
    pub fn into_value(self, payload: &mut Payload) -> Value {
        let body = self.body.into_value(payload);
        let fields = [
            ("url", self.url.into()),
            ("method", self.method.into()),
            ("headers", headers_value(self.headers)),
            ("body", body),
        ];
        Value::Interface(Interface::Request, Box::new(Value::object(fields)))
    }

    /// The request that a value in a payload is, if it is one.
    #[must_use]
    pub fn of(value: &Value, payload: &Payload) -> Option<Self> {
        let content = value.as_interface(Interface::Request)?;
        Some(Self {
            method: text(content, "method").unwrap_or("GET").into(),
            url: text(content, "url")?.into(),
            headers: headers_of(content)?,
            body: Body::of(content.get("body"), payload)?,
        })
    }
}

/// A `Response`.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// 200 to 599.
    pub status: u16,
    /// Its reason phrase; HTTP/2 has none.
    pub status_text: String,
    /// Its headers.
    pub headers: Headers,
    /// Its body.
    pub body: Body,
}

impl Response {
    /// A response of that status with these bytes.
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self {
            status,
            status_text: String::new(),
            headers: Vec::new(),
            body: Body::Bytes(body.into()),
        }
    }

    /// What stands for it in a payload.
    #[must_use]
    pub fn into_value(self, payload: &mut Payload) -> Value {
        let body = self.body.into_value(payload);
        let fields = [
            ("status", f64::from(self.status).into()),
            ("statusText", self.status_text.into()),
            ("headers", headers_value(self.headers)),
            ("body", body),
        ];
        Value::Interface(Interface::Response, Box::new(Value::object(fields)))
    }

    /// The response that a value in a payload is, if it is one.
    #[must_use]
    pub fn of(value: &Value, payload: &Payload) -> Option<Self> {
        let content = value.as_interface(Interface::Response)?;
        let status = content
            .get("status")
            .and_then(Value::as_f64)
            .unwrap_or(200.0);
        Some(Self {
            status: status as u16,
            status_text: text(content, "statusText").unwrap_or_default().into(),
            headers: headers_of(content)?,
            body: Body::of(content.get("body"), payload)?,
        })
    }
}

fn text<'a>(content: &'a Value, field: &str) -> Option<&'a str> {
    content.get(field).and_then(Value::as_str)
}

fn headers_value(headers: Headers) -> Value {
    let pair = |(name, value): (String, String)| Value::array([name, value]);
    Value::Array(headers.into_iter().map(pair).collect())
}

fn headers_of(content: &Value) -> Option<Headers> {
    let Some(headers) = content.get("headers") else {
        return Some(Vec::new());
    };
    let pair = |pair: &Value| {
        let name = pair.index(0)?.as_str()?;
        Some((name.to_owned(), pair.index(1)?.as_str()?.to_owned()))
    };
    headers.as_array()?.iter().map(pair).collect()
}

impl Entrypoint {
    /// Calls its `fetch` handler.
    ///
    /// # Errors
    /// What keeps the server from taking the call on, what the handler throws and what a limit stops.
    pub async fn fetch(&self, request: Request) -> Result<Response, Error> {
        let mut args = Payload::default();
        args.value = Value::Array(vec![request.into_value(&mut args)]);
        let answer = self.call("fetch", args).await?.payload()?;
        Response::of(&answer.value, &answer)
            .ok_or_else(|| Error::Malformed("a fetch that was not answered with a response".into()))
    }
}

/// See [`Coracle::gateway`](crate::Coracle::gateway).
pub(crate) struct Gateway<F>(pub(crate) F);

impl<F, R> Target for Gateway<F>
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Response, Thrown>> + Send + 'static,
{
    fn call(
        &self,
        path: Vec<String>,
        args: Payload,
    ) -> BoxFuture<'static, Result<Payload, Thrown>> {
        let is_fetch = path.len() == 1 && path[0] == "fetch";
        let request = args
            .value
            .index(0)
            .and_then(|value| Request::of(value, &args));
        let answered = match request {
            Some(request) if is_fetch => (self.0)(request),
            _ => {
                let thrown = Thrown::new("TypeError", "This gateway takes requests only.");
                return Box::pin(std::future::ready(Err(thrown)));
            }
        };
        Box::pin(async move {
            let mut payload = Payload::default();
            payload.value = answered.await?.into_value(&mut payload);
            Ok(payload)
        })
    }
}
