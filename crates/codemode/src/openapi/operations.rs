//! Documents taken apart.

use super::{
    Api, ApiError, ApiProblem, Body, Content, ContentKind, Location, Operation, Parameter,
    SecurityScheme, Serialization, Server, Style, Version, request::next_place, version,
};
use crate::{
    Document, Limits,
    json::{is_true, shown, text},
    openapi::parameter::plain,
};
use serde_json::{Value, json};
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

const METHODS: [&str; 8] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace",
];
/// Headers that are not parameters, whatever a document says: a request has them for other reasons.
const HEADERS_IGNORED: [&str; 3] = ["accept", "content-type", "authorization"];

struct Reader<'a> {
    document: &'a Arc<Document>,
    version: Version,
    limits: &'a Limits,
    problems: Vec<ApiProblem>,
}

pub(super) fn read(root: Value, limits: &Limits) -> Result<Api, ApiError> {
    let (version, dialect) = version(&root)?;
    let document = Arc::new(Document::new(Arc::new(root), dialect));
    let mut reader = Reader {
        document: &document,
        version,
        limits,
        problems: Vec::new(),
    };
    let root = document.root();
    let info = |name| {
        let info = root.get("info").and_then(|info| info.get(name));
        info.map(plain).unwrap_or_default()
    };
    let mut operations = Vec::new();
    let paths = root.get("paths").and_then(Value::as_object);
    for (path, item) in paths.into_iter().flatten() {
        // Extensions are beside the paths.
        if !path.starts_with('/') {
            continue;
        }
        let Some(item) = reader.resolved(item, path) else {
            continue;
        };
        for method in METHODS {
            if let Some(operation) = item.get(method).filter(|one| one.is_object()) {
                limits.operations_max(operations.len() + 1, "the document")?;
                let place = format!("{} {path}", method.to_uppercase());
                operations.extend(reader.operation(&place, method, path, item, operation));
            }
        }
    }
    name_apart(&mut operations);
    Ok(Api {
        title: info("title"),
        version: info("version"),
        description: info("description"),
        servers: reader.servers(root),
        security_schemes: reader.security_schemes(),
        operations,
        problems: reader.problems,
    })
}

/// Gives operations whose names are missing, or not theirs alone, names of method and path.
fn name_apart(operations: &mut [Operation]) {
    let mut count: BTreeMap<String, usize> = BTreeMap::new();
    for operation in &*operations {
        *count.entry(operation.name.clone()).or_default() += 1;
    }
    count.remove("");
    let is_own = |name: &str| count.get(name) == Some(&1);
    let mut taken: BTreeSet<String> = count.keys().filter(|name| is_own(name)).cloned().collect();
    for operation in operations {
        if is_own(&operation.name) {
            continue;
        }
        let is_of_word = |character: char| !character.is_alphanumeric();
        let words: Vec<_> = operation.path.split(is_of_word).collect();
        let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
        let name = format!("{}_{}", operation.method.to_lowercase(), words.join("_"));
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = [name.trim_end_matches('_').to_owned()]
            .into_iter()
            .chain(numbered);
        if let Some(free) = names.find(|name| !taken.contains(name)) {
            taken.insert(free.clone());
            operation.name = free;
        }
    }
}

impl<'a> Reader<'a> {
    fn problem(&mut self, place: &str, problem: impl Into<String>) {
        if self.problems.len() < self.limits.problems_max {
            self.problems.push(ApiProblem {
                place: place.to_owned(),
                problem: problem.into(),
            });
        }
    }

    /// What a value refers to, or the value itself. Nothing, and a problem, where that is not there.
    fn resolved(&mut self, value: &'a Value, place: &str) -> Option<&'a Value> {
        let mut value = value;
        for _ in 0..self.limits.reference_hops_max {
            let Some(reference) = text(value, "$ref") else {
                return Some(value);
            };
            value = match self.document.resolve(reference) {
                Ok((_, referred)) => referred,
                Err(error) => {
                    self.problem(place, error.to_string());
                    return None;
                }
            };
        }
        self.problem(
            place,
            "references lead in a circle, or too far (reference_hops_max)",
        );
        None
    }

    /// None where the operation could only be called wrongly.
    fn operation(
        &mut self,
        place: &str,
        method: &str,
        path: &str,
        item: &'a Value,
        operation: &'a Value,
    ) -> Option<Operation> {
        let said = |name| text(operation, name).unwrap_or_default().to_owned();
        let (mut parameters, body_parameters) = self.parameters(place, path, item, operation)?;
        name_arguments(&mut parameters);
        let mut body = match self.version {
            Version::OpenApi3 => self.body_3(place, operation)?,
            Version::Swagger2 => self.body_2(operation, &body_parameters),
        };
        if let Some(body) = &mut body {
            let taken = |name: &str| parameters.iter().any(|one| one.argument == name);
            let free = |names: [&str; 2]| {
                let own = names.into_iter().find(|name| !taken(name));
                own.map_or_else(|| format!("{}_of_request", names[0]), str::to_owned)
            };
            body.argument = free(["body", "request_body"]);
            body.media_type_argument =
                (body.contents.len() > 1).then(|| free(["contentType", "body_content_type"]));
        }
        let (output, accepts) = self.output(place, operation);
        let mut servers = self.servers(operation);
        if servers.is_empty() && self.version == Version::OpenApi3 {
            servers = self.servers(item);
        }
        let tags = operation.get("tags").and_then(Value::as_array);
        let tags = tags.into_iter().flatten().filter_map(Value::as_str);
        Some(Operation {
            name: said("operationId"),
            method: method.to_uppercase(),
            path: path.to_owned(),
            summary: said("summary"),
            description: said("description"),
            is_deprecated: is_true(operation, "deprecated"),
            tags: tags.map(str::to_owned).collect(),
            parameters,
            body,
            servers,
            security: self.security(operation),
            accepts,
            output,
            document: self.document.clone(),
        })
    }

    /// The parameters of an operation and of its path, those of Swagger's bodies apart.
    fn parameters(
        &mut self,
        place: &str,
        path: &str,
        item: &'a Value,
        operation: &'a Value,
    ) -> Option<(Vec<Parameter>, Vec<&'a Value>)> {
        let mut all: Vec<&'a Value> = Vec::new();
        // What the operation says goes before what its path says.
        for owner in [operation, item] {
            let own = owner.get("parameters").and_then(Value::as_array);
            for parameter in own.into_iter().flatten() {
                let Some(parameter) = self.resolved(parameter, place) else {
                    continue;
                };
                let key = |one: &Value| {
                    let of = |name| text(one, name).unwrap_or_default().to_owned();
                    (of("name"), of("in"))
                };
                if !all.iter().any(|one| key(one) == key(parameter)) {
                    all.push(parameter);
                }
            }
        }
        if let Err(error) = self.limits.parameters_max(all.len(), place) {
            self.problem(place, error.to_string());
            return None;
        }
        let mut parameters = Vec::new();
        let mut of_body = Vec::new();
        for parameter in all {
            let name = text(parameter, "name").unwrap_or_default();
            match (text(parameter, "in"), self.version) {
                (Some("body" | "formData"), Version::Swagger2) => of_body.push(parameter),
                (Some(location), _) if Location::of(location).is_some() && !name.is_empty() => {
                    let location = Location::of(location).unwrap_or(Location::Query);
                    let is_ignored = HEADERS_IGNORED.contains(&name.to_ascii_lowercase().as_str());
                    let is_token = |name: &str| {
                        let is_of_token = |byte: u8| {
                            byte.is_ascii_graphic() && !b"()<>@,;:\\\"/[]?={}".contains(&byte)
                        };
                        name.bytes().all(is_of_token)
                    };
                    if location == Location::Header && !is_token(name) {
                        self.problem(place, format!("{name:?} is no name of a header"));
                    } else if location != Location::Header || !is_ignored {
                        let parameter = self.parameter(place, name, location, parameter)?;
                        parameters.push(parameter);
                    }
                }
                _ => self.problem(
                    place,
                    format!("a parameter is left out: {}", shown(parameter)),
                ),
            }
        }
        self.add_undeclared(path, &mut parameters);
        Some((parameters, of_body))
    }

    /// Every place of a path needs a value, whether a document says so or not.
    fn add_undeclared(&self, path: &str, parameters: &mut Vec<Parameter>) {
        let mut rest = path;
        while let Some((_, name, after)) = next_place(rest) {
            let is_there = |one: &Parameter| one.location == Location::Path && one.name == name;
            if !parameters.iter().any(is_there) {
                parameters.push(Parameter {
                    argument: String::new(),
                    name: name.to_owned(),
                    location: Location::Path,
                    is_required: true,
                    is_deprecated: false,
                    description: String::new(),
                    serialization: Serialization::Style {
                        style: Style::Simple,
                        explode: false,
                        allow_reserved: false,
                    },
                    schema: json!({"type": "string"}),
                });
            }
            rest = after;
        }
        // Those that the path has no place for can't be sent.
        let has_place = |one: &Parameter| {
            one.location != Location::Path || path.contains(&format!("{{{}}}", one.name))
        };
        parameters.retain(has_place);
    }

    fn parameter(
        &mut self,
        place: &str,
        name: &str,
        location: Location,
        parameter: &'a Value,
    ) -> Option<Parameter> {
        let (schema, serialization) = match self.version {
            Version::OpenApi3 => {
                let content = parameter.get("content").and_then(Value::as_object);
                let content = content.and_then(|all| all.values().next());
                let schema = content.unwrap_or(parameter).get("schema");
                let schema = schema.cloned().unwrap_or(Value::Bool(true));
                (schema, Serialization::of_openapi_3(parameter, location))
            }
            Version::Swagger2 => {
                let serialization = Serialization::of_swagger_2(parameter, location);
                (schema_2(parameter), serialization)
            }
        };
        let is_path = location == Location::Path;
        if let Serialization::Style { style, .. } = &serialization {
            let fits = match style {
                Style::Simple => matches!(location, Location::Path | Location::Header),
                Style::Label | Style::Matrix => is_path,
                Style::Form => matches!(location, Location::Query | Location::Cookie),
                Style::SpaceDelimited | Style::PipeDelimited | Style::DeepObject => {
                    location == Location::Query
                }
                Style::TabDelimited => true,
            };
            if !fits && self.version == Version::OpenApi3 {
                let problem = format!("{name} has a style that is not for a {}", location.as_str());
                self.problem(place, problem);
                return None;
            }
        }
        Some(Parameter {
            argument: String::new(),
            name: name.to_owned(),
            location,
            is_required: is_path || is_true(parameter, "required"),
            is_deprecated: is_true(parameter, "deprecated"),
            description: text(parameter, "description")
                .unwrap_or_default()
                .to_owned(),
            serialization,
            schema,
        })
    }

    /// None where the body is needed and is not there.
    #[allow(
        clippy::option_option,
        reason = "no body is not the same as one that can't be used"
    )]
    fn body_3(&mut self, place: &str, operation: &'a Value) -> Option<Option<Body>> {
        let Some(body) = operation.get("requestBody") else {
            return Some(None);
        };
        let body = self.resolved(body, place)?;
        let content = body.get("content").and_then(Value::as_object);
        let contents = content.into_iter().flatten().map(|(media_type, content)| {
            Content::new(media_type, content.get("schema"), content.get("encoding"))
        });
        Some(body_of(
            contents.collect(),
            is_true(body, "required"),
            text(body, "description").unwrap_or_default(),
        ))
    }

    fn body_2(&mut self, operation: &'a Value, parameters: &[&'a Value]) -> Option<Body> {
        let consumes = operation
            .get("consumes")
            .or_else(|| self.document.root().get("consumes"))
            .and_then(Value::as_array);
        let consumes: Vec<&str> = consumes
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        if let Some(body) = parameters
            .iter()
            .find(|one| text(one, "in") == Some("body"))
        {
            let media_types = if consumes.is_empty() {
                vec!["application/json"]
            } else {
                consumes
            };
            let contents = media_types
                .iter()
                .map(|media_type| Content::new(media_type, body.get("schema"), None));
            let description = text(body, "description").unwrap_or_default();
            return body_of(contents.collect(), is_true(body, "required"), description);
        }
        if parameters.is_empty() {
            return None;
        }
        let mut properties = serde_json::Map::new();
        let mut required = Vec::new();
        let mut encodings = serde_json::Map::new();
        let mut has_file = false;
        for parameter in parameters {
            let Some(name) = text(parameter, "name") else {
                continue;
            };
            let mut schema = schema_2(parameter);
            has_file |= text(&schema, "type") == Some("file");
            if let (Some(description), Value::Object(schema)) =
                (text(parameter, "description"), &mut schema)
            {
                schema.insert("description".into(), description.into());
            }
            let style = match text(parameter, "collectionFormat") {
                Some("multi") => json!({"style": "form", "explode": true}),
                Some("ssv") => json!({"style": "spaceDelimited", "explode": false}),
                Some("pipes") => json!({"style": "pipeDelimited", "explode": false}),
                _ => json!({"style": "form", "explode": false}),
            };
            encodings.insert(name.to_owned(), style);
            properties.insert(name.to_owned(), schema);
            if is_true(parameter, "required") {
                required.push(name);
            }
        }
        let is_multipart = has_file || consumes.iter().any(|one| one.starts_with("multipart/"));
        let media_type = if is_multipart {
            "multipart/form-data"
        } else {
            "application/x-www-form-urlencoded"
        };
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let content = Content::new(media_type, Some(&schema), Some(&Value::Object(encodings)));
        body_of(vec![content], !required.is_empty(), "")
    }

    /// What comes back where all goes well, and in which media types.
    fn output(&mut self, place: &str, operation: &'a Value) -> (Option<Value>, Vec<String>) {
        let responses = operation.get("responses").and_then(Value::as_object);
        let all: Vec<_> = responses.into_iter().flatten().collect();
        let is_success = |status: &str| status.starts_with('2');
        let has_success = all.iter().any(|(status, _)| is_success(status));
        let mut schemas: Vec<Value> = Vec::new();
        let mut accepts: Vec<String> = Vec::new();
        let mut is_known = true;
        for (status, response) in all {
            if !(is_success(status) || !has_success && status == "default") {
                continue;
            }
            let Some(response) = self.resolved(response, place) else {
                is_known = false;
                continue;
            };
            let mut contents = self.contents_of_response(operation, response);
            contents.sort_by_key(|content| content.kind.rank());
            let schema = match contents.first() {
                None => json!({"type": "null"}),
                Some(content) => content.schema.clone(),
            };
            for content in &contents {
                if !accepts.contains(&content.media_type) && accepts.len() < 8 {
                    accepts.push(content.media_type.clone());
                }
            }
            if !schemas.contains(&schema) {
                schemas.push(schema);
            }
        }
        let output = match schemas.len() {
            _ if !is_known => None,
            0 => None,
            1 => schemas.pop(),
            _ => Some(json!({"anyOf": schemas})),
        };
        (output, accepts)
    }

    fn contents_of_response(&self, operation: &Value, response: &Value) -> Vec<Content> {
        match self.version {
            Version::OpenApi3 => {
                let content = response.get("content").and_then(Value::as_object);
                let content = content.into_iter().flatten();
                content
                    .map(|(name, content)| Content::new(name, content.get("schema"), None))
                    .collect()
            }
            Version::Swagger2 => {
                let Some(schema) = response.get("schema") else {
                    return Vec::new();
                };
                let produces = operation
                    .get("produces")
                    .or_else(|| self.document.root().get("produces"))
                    .and_then(Value::as_array);
                let produces = produces.into_iter().flatten().filter_map(Value::as_str);
                let mut produces: Vec<_> = produces.collect();
                if produces.is_empty() {
                    produces.push("application/json");
                }
                let of = |name: &&str| Content::new(name, Some(schema), None);
                produces.iter().map(of).collect()
            }
        }
    }

    fn servers(&self, owner: &Value) -> Vec<Server> {
        if self.version == Version::OpenApi3 {
            let servers = owner.get("servers").and_then(Value::as_array);
            let servers: Vec<_> = servers
                .into_iter()
                .flatten()
                .filter_map(Server::of)
                .collect();
            let is_root = std::ptr::eq(owner, self.document.root());
            if servers.is_empty() && is_root {
                // Where a document names no server, it is where the document is from.
                return Server::of(&json!({"url": "/"})).into_iter().collect();
            }
            return servers;
        }
        let base = text(owner, "basePath").unwrap_or("/");
        let schemes = owner.get("schemes").and_then(Value::as_array);
        let schemes: Vec<_> = schemes
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let host = text(owner, "host");
        if !std::ptr::eq(owner, self.document.root()) {
            return Vec::new();
        }
        let urls = match (host, schemes.as_slice()) {
            (None, _) => vec![base.to_owned()],
            (Some(host), []) => vec![format!("https://{host}{base}")],
            (Some(host), schemes) => {
                let mut schemes = schemes.to_vec();
                // The one that nobody can listen to first.
                schemes.sort_by_key(|scheme| *scheme != "https");
                schemes
                    .iter()
                    .map(|scheme| format!("{scheme}://{host}{base}"))
                    .collect()
            }
        };
        let servers = urls.iter().map(|url| json!({"url": url}));
        servers.filter_map(|server| Server::of(&server)).collect()
    }

    fn security(&self, operation: &Value) -> Vec<Vec<String>> {
        let wanted = operation
            .get("security")
            .or_else(|| self.document.root().get("security"))
            .and_then(Value::as_array);
        wanted
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
            .map(|together| together.keys().cloned().collect())
            .collect()
    }

    fn security_schemes(&self) -> Vec<SecurityScheme> {
        let pointer = match self.version {
            Version::OpenApi3 => "/components/securitySchemes",
            Version::Swagger2 => "/securityDefinitions",
        };
        let schemes = self.document.root().pointer(pointer);
        let schemes = schemes.and_then(Value::as_object).into_iter().flatten();
        schemes
            .map(|(name, scheme)| {
                let kind = text(scheme, "type").unwrap_or_default();
                let detail = match (text(scheme, "in"), text(scheme, "name")) {
                    (Some(location), Some(name)) => format!("{location} {name}"),
                    _ => text(scheme, "scheme").unwrap_or_default().to_owned(),
                };
                SecurityScheme {
                    name: name.clone(),
                    kind: kind.to_owned(),
                    detail,
                }
            })
            .collect()
    }
}

fn body_of(mut contents: Vec<Content>, is_required: bool, description: &str) -> Option<Body> {
    // A stable sort: of those of one kind, the first stays the first.
    contents.sort_by_key(|content| content.kind.rank());
    // A text of XML is of no use to who can send the same as JSON.
    let has_structure = contents
        .iter()
        .any(|content| content.kind.rank() <= ContentKind::Multipart.rank());
    contents.retain(|content| !has_structure || content.kind != ContentKind::Text);
    (!contents.is_empty()).then(|| Body {
        argument: String::new(),
        media_type_argument: None,
        is_required,
        description: description.to_owned(),
        contents,
    })
}

/// The schema that a parameter of Swagger 2 is, besides being a parameter.
fn schema_2(parameter: &Value) -> Value {
    let mut schema = parameter.as_object().cloned().unwrap_or_default();
    for keyword in [
        "name",
        "in",
        "required",
        "collectionFormat",
        "description",
        "allowEmptyValue",
    ] {
        schema.shift_remove(keyword);
    }
    Value::Object(schema)
}

/// Arguments are called as their parameters. Where two have one name, the path's goes first, then the query's.
fn name_arguments(parameters: &mut [Parameter]) {
    let mut order: Vec<usize> = (0..parameters.len()).collect();
    order.sort_by_key(|index| parameters[*index].location);
    let mut taken: BTreeSet<String> = BTreeSet::new();
    // Names that are only one's own are never taken by others.
    let names: BTreeSet<String> = parameters.iter().map(|one| one.name.clone()).collect();
    for index in order {
        let parameter = &mut parameters[index];
        let mut argument = parameter.name.clone();
        while !taken.insert(argument.clone()) {
            argument = format!("{argument}_{}", parameter.location.as_str());
            while names.contains(&argument) {
                argument.push('_');
            }
        }
        parameter.argument = argument;
    }
}
