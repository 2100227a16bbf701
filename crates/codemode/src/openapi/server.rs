//! Where an API is to be had.

use super::request::RequestError;
use crate::json::text;
use serde_json::Value;
use std::collections::BTreeMap;
use url::Url;

/// A server: a URL with variables in braces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// As it stands in the document; often only a path.
    pub url: String,
    /// What it is for.
    pub description: String,
    /// Its variables.
    pub variables: BTreeMap<String, ServerVariable>,
}

/// What a variable of a server's URL can be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerVariable {
    /// What it is where nobody says.
    pub default: String,
    /// What it can be; anything, if nothing is listed.
    pub values: Vec<String>,
}

impl Server {
    pub(super) fn of(value: &Value) -> Option<Self> {
        let url = text(value, "url")?.to_owned();
        let variables = value.get("variables").and_then(Value::as_object);
        let variables = variables.into_iter().flatten().map(|(name, variable)| {
            let default = match variable.get("default") {
                Some(Value::String(default)) => default.clone(),
                Some(Value::Null) | None => String::new(),
                Some(other) => other.to_string(),
            };
            let values = variable.get("enum").and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str);
            let variable = ServerVariable {
                default,
                values: values.map(str::to_owned).collect(),
            };
            (name.clone(), variable)
        });
        Some(Self {
            url,
            description: text(value, "description").unwrap_or_default().to_owned(),
            variables: variables.collect(),
        })
    }

    /// The URL with its variables set, without a slash at its end. `document_url` is where the document is from, for
    /// servers that are only a path.
    ///
    /// # Errors
    ///
    /// A variable has no value or none that is allowed, or no URL of `http` or `https` comes of it.
    pub fn resolve(
        &self,
        values: &BTreeMap<String, String>,
        document_url: Option<&str>,
    ) -> Result<String, RequestError> {
        let mut spelled = String::new();
        let mut rest = self.url.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            let (name, after) = after
                .split_once('}')
                .ok_or_else(|| RequestError::Server(format!("{} has no end of {{", self.url)))?;
            let variable = self.variables.get(name);
            let value = values
                .get(name)
                .or(variable.map(|variable| &variable.default));
            let value = value
                .ok_or_else(|| RequestError::Server(format!("the variable {name} has no value")))?;
            let is_allowed = variable.is_none_or(|variable| {
                variable.values.is_empty() || variable.values.contains(value)
            });
            if !is_allowed {
                let problem = format!("{value:?} is no value of the variable {name}");
                return Err(RequestError::Server(problem));
            }
            spelled.push_str(before);
            spelled.push_str(value);
            rest = after;
        }
        spelled.push_str(rest);
        let parsed = match document_url {
            Some(base) => Url::parse(base).and_then(|base| base.join(&spelled)),
            None => Url::parse(&spelled),
        };
        let parsed =
            parsed.map_err(|error| RequestError::Server(format!("{spelled:?}: {error}")))?;
        let has_more = parsed.query().is_some() || parsed.fragment().is_some();
        let has_user = !parsed.username().is_empty() || parsed.password().is_some();
        if !matches!(parsed.scheme(), "http" | "https") || has_more || has_user {
            let problem = format!("{spelled:?} is not a URL of http or https and a path alone");
            return Err(RequestError::Server(problem));
        }
        Ok(parsed.as_str().trim_end_matches('/').to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Variables have their defaults, can be set to what is allowed, and a path is one of the document's own server.
    #[test]
    fn servers_are_resolved() {
        let server = Server::of(&json!({
            "url": "https://{region}.example.com:{port}/{base}/",
            "variables": {
                "region": {"default": "eu", "enum": ["eu", "us"]},
                "port": {"default": 8443},
                "base": {"default": "v1"},
            },
        }))
        .unwrap();
        let set = |pairs: &[(&str, &str)]| {
            let values = pairs
                .iter()
                .map(|(name, value)| ((*name).into(), (*value).into()));
            server.resolve(&values.collect(), None)
        };
        assert_eq!(set(&[]).unwrap(), "https://eu.example.com:8443/v1");
        assert_eq!(
            set(&[("region", "us"), ("base", "v2")]).unwrap(),
            "https://us.example.com:8443/v2"
        );
        let error = set(&[("region", "evil.example.net/")]).unwrap_err();
        assert!(error.to_string().contains("region"), "{error}");
        let path = Server::of(&json!({"url": "/api"})).unwrap();
        let none = BTreeMap::new();
        assert_eq!(
            path.resolve(&none, Some("https://example.com/docs/openapi.json"))
                .unwrap(),
            "https://example.com/api"
        );
        assert!(path.resolve(&none, None).is_err());
    }

    /// Nothing but http and https, and no credential in a URL.
    #[test]
    fn other_urls_are_refused() {
        for url in [
            "file:///etc",
            "ftp://example.com",
            "https://user:secret@example.com",
            "https://example.com/?a=b",
            "https://{x}.example.com",
            "https://{x",
        ] {
            let server = Server::of(&json!({"url": url})).unwrap();
            assert!(server.resolve(&BTreeMap::new(), None).is_err(), "{url}");
        }
    }
}
