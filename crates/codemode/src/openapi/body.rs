//! Bodies of requests: what media types there are, and how a value becomes bytes of each.

use super::{
    parameter::{Serialization, Style, encode, form, plain},
    request::RequestError,
};
use crate::{json::text, types::is_bytes_schema};
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::collections::BTreeMap;

/// The key of an object that stands for bytes among arguments, where JSON has none: `{"$bytes": "aGk="}`, in base64. The
/// keys `type` and `name` beside it are the media type and the file name of a part of a form.
pub const BYTES_KEY: &str = "$bytes";

/// What a body can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// What it is called among the arguments.
    pub argument: String,
    /// The argument that says which media type is meant, where there are several.
    pub media_type_argument: Option<String>,
    /// Whether it has to be there.
    pub is_required: bool,
    /// What it is for.
    pub description: String,
    /// What it can be; the first where nobody says.
    pub contents: Vec<Content>,
}

/// A body of one media type.
#[derive(Clone, Debug, PartialEq)]
pub struct Content {
    /// The media type, as the document has it; it can be a range such as `image/*`.
    pub media_type: String,
    /// How a value becomes one.
    pub kind: ContentKind,
    /// Its schema.
    pub schema: Value,
    pub(super) encodings: BTreeMap<String, PropertyEncoding>,
}

/// How a value becomes a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentKind {
    /// As JSON.
    Json,
    /// As a form in a URL's spelling.
    Form,
    /// As a form in parts, which can be files.
    Multipart,
    /// A text as it is.
    Text,
    /// Bytes as they are.
    Bytes,
}

/// How one property of a form is sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PropertyEncoding {
    pub(super) media_type: Option<String>,
    pub(super) serialization: Option<Serialization>,
}

impl ContentKind {
    /// How a media type is sent.
    #[must_use]
    pub fn of(media_type: &str) -> Self {
        let essence = media_type.split(';').next().unwrap_or_default();
        let essence = essence.trim().to_ascii_lowercase();
        match essence.as_str() {
            "application/x-www-form-urlencoded" => Self::Form,
            "application/xml"
            | "application/yaml"
            | "application/graphql"
            | "application/sql"
            | "application/x-ndjson"
            | "application/jsonl"
            | "application/javascript" => Self::Text,
            json if json == "*/*" || json.ends_with("/json") || json.ends_with("+json") => {
                Self::Json
            }
            parts if parts.starts_with("multipart/") => Self::Multipart,
            text if text.starts_with("text/") || text.ends_with("+xml") => Self::Text,
            _ => Self::Bytes,
        }
    }

    /// Which is taken where there are several: the smaller.
    pub(super) fn rank(self) -> u8 {
        match self {
            Self::Json => 0,
            Self::Form => 1,
            Self::Multipart => 2,
            Self::Text => 3,
            Self::Bytes => 4,
        }
    }
}

impl Content {
    pub(super) fn new(media_type: &str, schema: Option<&Value>, encodings: Option<&Value>) -> Self {
        let kind = ContentKind::of(media_type);
        let schema = match (schema, kind) {
            (Some(schema), _) if schema.as_object().is_none_or(|keys| !keys.is_empty()) => {
                schema.clone()
            }
            (_, ContentKind::Text) => serde_json::json!({"type": "string"}),
            (_, ContentKind::Bytes) => serde_json::json!({"type": "string", "format": "binary"}),
            _ => Value::Bool(true),
        };
        // Bytes of any kind are bytes.
        let is_bytes = schema
            .as_object()
            .is_some_and(|keywords| is_bytes_schema(keywords, crate::Dialect::OpenApi30));
        let kind = match kind {
            ContentKind::Json if is_bytes => ContentKind::Bytes,
            other => other,
        };
        let encodings = encodings.and_then(Value::as_object).into_iter().flatten();
        let encodings = encodings.map(|(name, encoding)| {
            let has_style = ["style", "explode", "allowReserved"]
                .iter()
                .any(|keyword| encoding.get(keyword).is_some());
            let of = |encoding| Serialization::of_openapi_3(encoding, super::Location::Query);
            let encoding = PropertyEncoding {
                media_type: text(encoding, "contentType").map(str::to_owned),
                serialization: has_style.then(|| of(encoding)),
            };
            (name.clone(), encoding)
        });
        Self {
            media_type: media_type.to_owned(),
            kind,
            schema,
            encodings: encodings.collect(),
        }
    }

    /// The body and its `content-type`.
    pub(super) fn encode(
        &self,
        argument: &str,
        value: &Value,
    ) -> Result<(String, Vec<u8>), RequestError> {
        let wrong = |problem| RequestError::Argument {
            argument: argument.to_owned(),
            problem,
        };
        let is_range = self.media_type.contains('*');
        match self.kind {
            ContentKind::Json => {
                let name = if is_range {
                    "application/json"
                } else {
                    &self.media_type
                };
                Ok((name.to_owned(), value.to_string().into_bytes()))
            }
            ContentKind::Form => {
                let members = value
                    .as_object()
                    .ok_or_else(|| wrong("is sent as a form, and is no object"))?;
                let mut parts = Vec::new();
                for (name, member) in members {
                    let spelled = self.form_member(name, member);
                    parts.extend(spelled.ok_or_else(|| wrong("is nested too deep for a form"))?);
                }
                Ok((self.media_type.clone(), parts.join("&").into_bytes()))
            }
            ContentKind::Multipart => {
                let members = value
                    .as_object()
                    .ok_or_else(|| wrong("is sent as a form, and is no object"))?;
                let mut parts = Vec::new();
                for (name, member) in members {
                    self.push_parts(name, member, &mut parts).map_err(|()| {
                        wrong("has bytes that are no base64, or a media type that is none")
                    })?;
                }
                Ok(multipart(&self.media_type, &parts))
            }
            ContentKind::Text => match value {
                Value::String(text) => Ok((self.media_type.clone(), text.clone().into_bytes())),
                value if is_bytes_value(value) => {
                    let bytes =
                        bytes_of(value).ok_or_else(|| wrong("has bytes that are no base64"))?;
                    Ok((self.media_type.clone(), bytes))
                }
                _ => Err(wrong("is sent as it is, and is no text")),
            },
            ContentKind::Bytes => {
                let bytes = match value {
                    Value::String(text) => Some(text.clone().into_bytes()),
                    other => bytes_of(other),
                };
                let bytes = bytes.ok_or_else(|| wrong("is sent as it is, and is no bytes"))?;
                let own = text(value, "type").filter(|own| is_media_type(own));
                let name = match own {
                    Some(own) if is_range => own,
                    _ if is_range => "application/octet-stream",
                    _ => &self.media_type,
                };
                Ok((name.to_owned(), bytes))
            }
        }
    }

    fn form_member(&self, name: &str, member: &Value) -> Option<Vec<String>> {
        if member.is_null() {
            return Some(Vec::new());
        }
        let encoding = self.encodings.get(name);
        let (style, explode) = match encoding.and_then(|encoding| encoding.serialization.as_ref()) {
            Some(Serialization::Style { style, explode, .. }) => (*style, *explode),
            // Objects are JSON, and arrays repeat the name.
            _ if member.is_object() => {
                return Some(vec![format!(
                    "{}={}",
                    encode(name),
                    encode(&member.to_string())
                )]);
            }
            _ => (Style::Form, true),
        };
        form(name, member, style, explode, &encode)
    }

    fn push_parts(&self, name: &str, member: &Value, parts: &mut Vec<Part>) -> Result<(), ()> {
        if let Value::Array(items) = member {
            return items
                .iter()
                .try_for_each(|item| self.push_part(name, item, parts));
        }
        self.push_part(name, member, parts)
    }

    fn push_part(&self, name: &str, value: &Value, parts: &mut Vec<Part>) -> Result<(), ()> {
        if value.is_null() {
            return Ok(());
        }
        let encoding = self.encodings.get(name);
        // Of several media types that are allowed, the first that is one.
        let declared = encoding.and_then(|encoding| encoding.media_type.as_deref());
        let declared = declared.into_iter().flat_map(|all| all.split(','));
        let mut declared = declared.map(str::trim).filter(|one| is_media_type(one));
        let declared = declared.next().map(str::to_owned);
        let part = if is_bytes_value(value) {
            let own = text(value, "type").map(str::to_owned);
            if own.as_deref().is_some_and(|own| !is_media_type(own)) {
                return Err(());
            }
            let media_type = own.or(declared);
            Part {
                name: name.to_owned(),
                file_name: Some(text(value, "name").unwrap_or(name).to_owned()),
                media_type: media_type.unwrap_or_else(|| "application/octet-stream".into()),
                bytes: bytes_of(value).ok_or(())?,
            }
        } else if value.is_object() || value.is_array() {
            Part {
                name: name.to_owned(),
                file_name: None,
                media_type: declared.unwrap_or_else(|| "application/json".into()),
                bytes: value.to_string().into_bytes(),
            }
        } else {
            let is_file = self.is_file(name);
            Part {
                name: name.to_owned(),
                file_name: is_file.then(|| name.to_owned()),
                media_type: declared.unwrap_or_else(|| {
                    let kind = if is_file {
                        "application/octet-stream"
                    } else {
                        "text/plain"
                    };
                    kind.to_owned()
                }),
                bytes: plain(value).into_bytes(),
            }
        };
        parts.push(part);
        Ok(())
    }

    /// Whether a property is bytes, so that a text for it is a file too.
    fn is_file(&self, name: &str) -> bool {
        let property = self.schema.get("properties").and_then(|all| all.get(name));
        let property = property.map(|property| property.get("items").unwrap_or(property));
        property.and_then(Value::as_object).is_some_and(|keywords| {
            is_bytes_schema(keywords, crate::Dialect::OpenApi30)
                || keywords.get("type").and_then(Value::as_str) == Some("file")
        })
    }
}

/// Whether a value stands for bytes; see [`BYTES_KEY`].
pub(crate) fn is_bytes_value(value: &Value) -> bool {
    text(value, BYTES_KEY).is_some()
}

fn bytes_of(value: &Value) -> Option<Vec<u8>> {
    STANDARD.decode(text(value, BYTES_KEY)?).ok()
}

/// Whether a text is a media type that can be sent as a header.
fn is_media_type(text: &str) -> bool {
    let is_token = |text: &str| {
        let is_of_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte);
        !text.is_empty() && text.bytes().all(is_of_token)
    };
    let (essence, parameters) = text.split_once(';').unwrap_or((text, ""));
    let is_essence = essence
        .trim()
        .split_once('/')
        .is_some_and(|(kind, of)| is_token(kind) && is_token(of));
    is_essence && parameters.bytes().all(|byte| (b' '..=b'~').contains(&byte))
}

struct Part {
    name: String,
    file_name: Option<String>,
    media_type: String,
    bytes: Vec<u8>,
}

fn multipart(media_type: &str, parts: &[Part]) -> (String, Vec<u8>) {
    let boundary = boundary(parts);
    // As browsers escape what would end a name.
    let escape = |name: &str| {
        name.replace('"', "%22")
            .replace('\r', "%0D")
            .replace('\n', "%0A")
    };
    let mut body = Vec::new();
    for part in parts {
        let mut head = format!(
            "--{boundary}\r\ncontent-disposition: form-data; name=\"{}\"",
            escape(&part.name)
        );
        if let Some(file_name) = &part.file_name {
            head.push_str(&format!("; filename=\"{}\"", escape(file_name)));
        }
        head.push_str(&format!("\r\ncontent-type: {}\r\n\r\n", part.media_type));
        body.extend_from_slice(head.as_bytes());
        body.extend_from_slice(&part.bytes);
        body.extend_from_slice(b"\r\n");
    }
    body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let essence = if essence.contains('*') {
        "multipart/form-data"
    } else {
        essence
    };
    (format!("{essence}; boundary={boundary}"), body)
}

/// A boundary that is in none of the parts. It needs no chance: what a part has is looked up.
fn boundary(parts: &[Part]) -> String {
    const STEM: &[u8] = b"coracle-form-";
    let mut taken = std::collections::BTreeSet::new();
    for part in parts {
        let mut rest = part.bytes.as_slice();
        while let Some(at) = find(rest, STEM) {
            rest = &rest[at + STEM.len()..];
            // Numbers have eight digits.
            taken.insert(rest.get(..8).unwrap_or_default().to_vec());
        }
    }
    let mut numbers = (0_u32..).map(|number| format!("{number:08x}"));
    let free = numbers.find(|number| !taken.contains(number.as_bytes()));
    format!("coracle-form-{}", free.unwrap_or_default())
}

fn find(within: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = wanted.first()?;
    let mut at = 0;
    loop {
        at += within.get(at..)?.iter().position(|byte| byte == first)?;
        if within[at..].starts_with(wanted) {
            return Some(at);
        }
        at += 1;
    }
}
