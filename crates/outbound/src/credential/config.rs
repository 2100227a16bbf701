//! A credential, as the configuration says it.

use crate::{Destination, Pattern, Scheme, SecretSource, secret::is_plain};
use http::HeaderName;
use serde::{
    Deserialize, Deserializer,
    de::{self, value::MapAccessDeserializer},
};
use std::fmt;

/// Headers that say how a message is framed, or what part of an answer is wanted. They are the HTTP client's.
const RESERVED: [&str; 14] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "if-range",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// A credential in JSON: `{"secret": …, "to": ["api.example.com"], "as": …, "plain_http": false}`.
///
/// `secret` is a [`SecretSource`]; `to` is at least one [`Pattern`], and the credential is sent nowhere else; over plain
/// http it is sent only with `plain_http`. `as` is one of
///
/// - `{"header": {"name": "X-Api-Key", "prefix": ""}}`;
/// - `{"query": {"name": "key"}}`: as a parameter of the query;
/// - `{"basic": {"user": "u"}}`: the secret is the password, or `user:password` where there is no `user`;
/// - `"bearer"`;
/// - `{"aws_sigv4": {"region": "eu-central-1", "service": "s3", "access_key_id": …, "session_token": …}}`: signs with the
///   secret; `access_key_id` is a text or a [`SecretSource`], `session_token`, which may be left out, is the latter;
/// - `{"oauth2_client_credentials": {"token_url": "https://…", "client_id": "…", "scope": "…", "audience": "…",
///   "authentication": "basic", "plain_http": false}}`: the secret is the client's, and what is sent is the access token
///   that it is given for it; `authentication` is `basic` (unless given) or `post`, `scope` and `audience` may be left
///   out.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialConfig {
    pub(super) secret: SecretSource,
    pub(super) to: Vec<Pattern>,
    #[serde(rename = "as")]
    pub(super) form: Form,
    #[serde(default)]
    pub(super) plain_http: bool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Form {
    Header {
        name: Name,
        #[serde(default)]
        prefix: String,
    },
    Query {
        name: String,
    },
    Basic {
        user: Option<String>,
    },
    Bearer,
    AwsSigv4(Box<Aws>),
    Oauth2ClientCredentials(Grant),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Aws {
    pub(super) region: String,
    pub(super) service: String,
    pub(super) access_key_id: TextOrSecret,
    pub(super) session_token: Option<SecretSource>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Grant {
    pub(super) token_url: Url,
    pub(super) client_id: String,
    pub(super) scope: Option<String>,
    pub(super) audience: Option<String>,
    #[serde(default)]
    pub(super) authentication: Authentication,
    #[serde(default)]
    pub(super) plain_http: bool,
}

/// How a client says to an OAuth2 server who it is (RFC 6749, section 2.3.1).
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Authentication {
    #[default]
    Basic,
    Post,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Name(pub(super) HeaderName);

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let name = text.parse().map_err(|_| "not the name of a header")?;
        Ok(Self(name))
    }
}

#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Url(pub(super) Destination);

/// Without the query, which may hold what is not to be shown.
impl fmt::Debug for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0.to_string())
    }
}

impl TryFrom<String> for Url {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let destination = Destination::of_url(&text);
        Ok(Self(destination.map_err(|_| "not a URL of https:")?))
    }
}

#[derive(Clone, Debug)]
pub(super) enum TextOrSecret {
    Text(String),
    Secret(SecretSource),
}

impl<'de> Deserialize<'de> for TextOrSecret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> de::Visitor<'de> for Visitor {
            type Value = TextOrSecret;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a text, or where a secret is read")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOrSecret, E> {
                Ok(TextOrSecret::Text(text.into()))
            }

            fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<TextOrSecret, A::Error> {
                let source = SecretSource::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TextOrSecret::Secret(source))
            }
        }

        deserializer.deserialize_any(Visitor)
    }
}

impl CredentialConfig {
    /// Finds what could never apply.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.to.is_empty() {
            return Err(
                "\"to\" is empty: a credential is bound to one destination at least".into(),
            );
        }
        for pattern in &self.to {
            match pattern.scheme() {
                Scheme::Tcp => return Err(format!("\"{pattern}\" is not http: or https:")),
                Scheme::Http if !self.plain_http => {
                    return Err(format!(
                        "\"{pattern}\" is plain http: say \"plain_http\": true where that is meant"
                    ));
                }
                Scheme::Http | Scheme::Https => {}
            }
        }
        self.form.check().map_err(String::from)
    }
}

impl Form {
    fn check(&self) -> Result<(), &'static str> {
        match self {
            Self::Header { name, prefix } => {
                if RESERVED.contains(&name.0.as_str()) {
                    return Err("that header is the HTTP client's own");
                }
                let is_visible = prefix.bytes().all(|byte| matches!(byte, 0x20..=0x7e));
                match is_visible && !prefix.starts_with(' ') {
                    true => Ok(()),
                    false => Err("the \"prefix\" can't be in a header"),
                }
            }
            Self::Query { name } if name.is_empty() => Err("the \"name\" is empty"),
            Self::Basic { user: Some(user) } => {
                match user.contains(':') || user.contains(|letter: char| letter.is_ascii_control())
                {
                    true => Err("the \"user\" has a colon or a character that is not visible"),
                    false => Ok(()),
                }
            }
            Self::Query { .. } | Self::Basic { user: None } | Self::Bearer => Ok(()),
            Self::AwsSigv4(aws) => aws.check(),
            Self::Oauth2ClientCredentials(grant) => grant.check(),
        }
    }
}

impl Aws {
    fn check(&self) -> Result<(), &'static str> {
        let is_word = |text: &String| {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            !text.is_empty() && text.bytes().all(is_known)
        };
        match (&self.region, &self.service, &self.access_key_id) {
            (region, _, _) if !is_word(region) => Err("the \"region\" is no word"),
            (_, service, _) if !is_word(service) => Err("the \"service\" is no word"),
            (_, _, TextOrSecret::Text(id)) if !is_key_id(id.as_bytes()) => {
                Err("the \"access_key_id\" can't be in a signature")
            }
            _ => Ok(()),
        }
    }
}

/// Whether a text can be told from what stands around it in a signature.
pub(super) fn is_key_id(text: &[u8]) -> bool {
    let is_known = |byte: &u8| byte.is_ascii_graphic() && !b"/,=".contains(byte);
    !text.is_empty() && text.iter().all(is_known)
}

impl Grant {
    fn check(&self) -> Result<(), &'static str> {
        if is_plain(&self.token_url.0) && !self.plain_http {
            return Err(
                "the \"token_url\" is plain http: say \"plain_http\": true where that is meant",
            );
        }
        match self.client_id.is_empty() {
            true => Err("the \"client_id\" is empty"),
            false => Ok(()),
        }
    }
}
