//! Parameters, and how their values are spelled in a request.

use super::request::RequestError;
use crate::json::text;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

/// Where a parameter stands in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// In the path.
    Path,
    /// In the query.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// How arrays and objects are spelled, by OpenAPI's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// `a,b`
    Simple,
    /// `.a.b`
    Label,
    /// `;name=a;name=b`
    Matrix,
    /// `name=a&name=b`
    Form,
    /// `name=a%20b`
    SpaceDelimited,
    /// `name=a%7Cb`
    PipeDelimited,
    /// `name=a%09b`, which Swagger 2 has
    TabDelimited,
    /// `name[key]=value`
    DeepObject,
}

/// How a parameter's value becomes text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serialization {
    /// By a style.
    Style {
        /// Which.
        style: Style,
        /// Whether each item or member has a name of its own.
        explode: bool,
        /// Whether what means something in URLs stays as it is.
        allow_reserved: bool,
    },
    /// As JSON.
    Json,
}

/// What an operation takes besides its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// What it is called among the arguments: its name, or name and location where two have the same name.
    pub argument: String,
    /// What it is called in the request.
    pub name: String,
    /// Where it stands.
    pub location: Location,
    /// Whether it has to be there.
    pub is_required: bool,
    /// Whether it should not be used any more.
    pub is_deprecated: bool,
    /// What it is for.
    pub description: String,
    /// How it becomes text.
    pub serialization: Serialization,
    /// Its schema, whose references are looked up in the document.
    pub schema: Value,
}

/// All that has no meaning of its own in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');
/// With `allowReserved`: what would end the value or the query is still escaped, and so is what is read as a space.
const UNRESERVED_ONLY_WHERE_NEEDED: &AsciiSet = &RESERVED
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

impl Location {
    /// As OpenAPI spells it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Query => "query",
            Self::Header => "header",
            Self::Cookie => "cookie",
        }
    }

    pub(super) fn of(text: &str) -> Option<Self> {
        let all = [Self::Path, Self::Query, Self::Header, Self::Cookie];
        all.into_iter().find(|location| location.as_str() == text)
    }

    fn default_style(self) -> Style {
        match self {
            Self::Path | Self::Header => Style::Simple,
            Self::Query | Self::Cookie => Style::Form,
        }
    }
}

impl Serialization {
    /// What a parameter of OpenAPI 3 says, or an encoding of a form.
    pub(super) fn of_openapi_3(parameter: &Value, location: Location) -> Self {
        if parameter.get("content").is_some() {
            return Self::Json;
        }
        let style = match text(parameter, "style") {
            Some("simple") => Style::Simple,
            Some("label") => Style::Label,
            Some("matrix") => Style::Matrix,
            Some("form") => Style::Form,
            Some("spaceDelimited") => Style::SpaceDelimited,
            Some("pipeDelimited") => Style::PipeDelimited,
            Some("deepObject") => Style::DeepObject,
            _ => location.default_style(),
        };
        let explode = parameter.get("explode").and_then(Value::as_bool);
        Self::Style {
            style,
            explode: explode.unwrap_or(style == Style::Form),
            allow_reserved: crate::json::is_true(parameter, "allowReserved"),
        }
    }

    /// What a parameter of Swagger 2 says.
    pub(super) fn of_swagger_2(parameter: &Value, location: Location) -> Self {
        let (style, explode) = match text(parameter, "collectionFormat") {
            Some("ssv") => (Style::SpaceDelimited, false),
            Some("tsv") => (Style::TabDelimited, false),
            Some("pipes") => (Style::PipeDelimited, false),
            Some("multi") => (Style::Form, true),
            _ => (location.default_style(), false),
        };
        Self::Style {
            style,
            explode,
            allow_reserved: false,
        }
    }
}

/// A value's parts, as texts.
enum Parts {
    One(String),
    Items(Vec<String>),
    Members(Vec<(String, String)>),
}

impl Parts {
    /// What is nested deeper than styles can say is JSON.
    fn of(value: &Value) -> Self {
        match value {
            Value::Array(items) => {
                let items = items.iter().filter(|item| !item.is_null());
                Self::Items(items.map(plain).collect())
            }
            Value::Object(members) => {
                let members = members.iter().filter(|(_, member)| !member.is_null());
                Self::Members(
                    members
                        .map(|(name, member)| (name.clone(), plain(member)))
                        .collect(),
                )
            }
            one => Self::One(plain(one)),
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Self::One(_) => false,
            Self::Items(items) => items.is_empty(),
            Self::Members(members) => members.is_empty(),
        }
    }

    /// Items, or names and values in turn.
    fn flat(self) -> Vec<String> {
        match self {
            Self::One(text) => vec![text],
            Self::Items(items) => items,
            Self::Members(members) => members
                .into_iter()
                .flat_map(|(name, value)| [name, value])
                .collect(),
        }
    }
}

/// A value as text: a text as itself, all else as JSON.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn encode(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

impl Parameter {
    fn wrong(&self, problem: &'static str) -> RequestError {
        RequestError::Argument {
            argument: self.argument.clone(),
            problem,
        }
    }

    fn encoder(&self) -> impl Fn(&str) -> String + use<> {
        let set = match self.serialization {
            Serialization::Style {
                allow_reserved: true,
                ..
            } => UNRESERVED_ONLY_WHERE_NEEDED,
            _ => RESERVED,
        };
        move |text| utf8_percent_encode(text, set).to_string()
    }

    /// The value in the place of `{name}` in a path.
    pub(super) fn in_path(&self, value: &Value) -> Result<String, RequestError> {
        let name = encode(&self.name);
        let (parts, style, explode) = match self.serialization {
            Serialization::Json => (Parts::One(value.to_string()), Style::Simple, false),
            Serialization::Style { style, explode, .. } => (Parts::of(value), style, explode),
        };
        if parts.is_empty() {
            return Err(self.wrong("is empty, and a path needs something in its place"));
        }
        let join = |all: Vec<String>, separator: &str| {
            let all: Vec<_> = all.iter().map(|one| encode(one)).collect();
            all.join(separator)
        };
        let pairs = |members: Vec<(String, String)>, separator: &str| {
            let all: Vec<_> = members
                .iter()
                .map(|(name, value)| format!("{}={}", encode(name), encode(value)))
                .collect();
            all.join(separator)
        };
        let spelled = match (style, parts, explode) {
            (Style::Label, Parts::Members(members), true) => format!(".{}", pairs(members, ".")),
            (Style::Label, parts, explode) => {
                format!(".{}", join(parts.flat(), if explode { "." } else { "," }))
            }
            (Style::Matrix, Parts::Members(members), true) => format!(";{}", pairs(members, ";")),
            (Style::Matrix, Parts::Items(items), true) => {
                let items = items.into_iter().map(|item| (self.name.clone(), item));
                format!(";{}", pairs(items.collect(), ";"))
            }
            (Style::Matrix, parts, _) => match join(parts.flat(), ",") {
                none if none.is_empty() => format!(";{name}"),
                some => format!(";{name}={some}"),
            },
            (_, Parts::Members(members), true) => pairs(members, ","),
            (_, parts, _) => join(parts.flat(), ","),
        };
        if spelled.is_empty() {
            return Err(self.wrong("is empty, and a path needs something in its place"));
        }
        Ok(spelled)
    }

    /// The value as parts of a query, each a name and a value, escaped.
    pub(super) fn in_query(&self, value: &Value) -> Result<Vec<String>, RequestError> {
        match self.serialization {
            Serialization::Json => Ok(vec![pair(&encode(&self.name), &encode(&value.to_string()))]),
            Serialization::Style { style, explode, .. } => {
                let encoder = self.encoder();
                form(&self.name, value, style, explode, &encoder)
                    .ok_or_else(|| self.wrong("is nested deeper than its style can say"))
            }
        }
    }

    /// The value as a header's.
    pub(super) fn in_header(&self, value: &Value) -> Result<String, RequestError> {
        let explode = matches!(
            self.serialization,
            Serialization::Style { explode: true, .. }
        );
        let spelled = match (&self.serialization, Parts::of(value)) {
            (Serialization::Json, _) => value.to_string(),
            (_, Parts::Members(members)) if explode => {
                let all = members.iter().map(|(name, value)| pair(name, value));
                all.collect::<Vec<_>>().join(",")
            }
            (_, parts) => parts.flat().join(","),
        };
        let is_sendable = spelled
            .chars()
            .all(|character| character == '\t' || !character.is_control());
        if !is_sendable {
            return Err(
                self.wrong("has a line break or a control character, and is sent as a header")
            );
        }
        Ok(spelled)
    }

    /// The value as cookies, each a name and a value.
    pub(super) fn in_cookie(&self, value: &Value) -> Result<Vec<String>, RequestError> {
        self.in_query(value)
    }
}

fn pair(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// How a value is spelled in a query or a form: parts to be joined with `&`. Nothing where it is nested too deep.
pub(super) fn form(
    name: &str,
    value: &Value,
    style: Style,
    explode: bool,
    encoder: &dyn Fn(&str) -> String,
) -> Option<Vec<String>> {
    if style == Style::DeepObject {
        let mut parts = Vec::new();
        deep(&encode(name), value, encoder, &mut parts, 0)?;
        return Some(parts);
    }
    let parts = Parts::of(value);
    if parts.is_empty() {
        return Some(Vec::new());
    }
    let key = encode(name);
    let separator = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::TabDelimited => "%09",
        _ => ",",
    };
    Some(match parts {
        Parts::One(one) => vec![pair(&key, &encoder(&one))],
        Parts::Items(items) if explode => items
            .iter()
            .map(|item| pair(&key, &encoder(item)))
            .collect(),
        Parts::Members(members) if explode => members
            .iter()
            .map(|(name, value)| pair(&encode(name), &encoder(value)))
            .collect(),
        parts => {
            let all: Vec<_> = parts.flat().iter().map(|one| encoder(one)).collect();
            vec![pair(&key, &all.join(separator))]
        }
    })
}

/// `name[key]=value`, and `name[key][other]=value` for what is nested. Items of an array repeat the name.
fn deep(
    name: &str,
    value: &Value,
    encoder: &dyn Fn(&str) -> String,
    parts: &mut Vec<String>,
    depth: usize,
) -> Option<()> {
    if depth > 8 {
        return None;
    }
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                let name = format!("{name}%5B{}%5D", encode(key));
                deep(&name, member, encoder, parts, depth + 1)?;
            }
        }
        Value::Array(items) => {
            for item in items.iter().filter(|item| !item.is_null()) {
                parts.push(pair(name, &encoder(&plain(item))));
            }
        }
        Value::Null => {}
        one => parts.push(pair(name, &encoder(&plain(one)))),
    }
    Some(())
}
