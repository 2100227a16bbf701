use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

mod bodies;
mod styles;

const SERVER: &str = "https://example.com/v1";

fn api(root: Value) -> Api {
    Api::of_value(root, &Limits::default()).unwrap()
}

/// A document with one operation, `GET /things`, or at another path.
fn operation_at(path: &str, operation: Value) -> Operation {
    let mut api = api(json!({"openapi": "3.0.3", "paths": {path: {"post": operation}}}));
    assert_eq!(api.problems, []);
    api.operations.remove(0)
}

fn request(operation: &Operation, arguments: Value) -> Result<Request, RequestError> {
    operation.request(SERVER, &arguments, &Limits::default())
}

const PETS: &str = r##"
openapi: 3.0.3
info: {title: Pets, version: 1.2}
servers: [{url: 'https://{region}.example.com', variables: {region: {default: eu}}}]
security: [{key: []}]
paths:
  /pets:
    parameters:
      - {name: tenant, in: header, schema: {type: string}, required: true}
      - {name: limit, in: query, schema: {type: string}}
    get:
      operationId: listPets
      summary: Lists pets.
      description: Lists pets. All of them.
      parameters:
        - $ref: '#/components/parameters/Limit'
        - {name: Accept, in: header, schema: {type: string}}
        - {name: limit, in: cookie, schema: {type: integer}}
      responses:
        '200':
          description: fine
          content:
            application/json: {schema: {type: array, items: {$ref: '#/components/schemas/Pet'}}}
    post:
      operationId: listPets
      requestBody: {$ref: '#/components/requestBodies/Pet'}
      security: [{oauth: [write]}, {}]
      responses:
        '201': {$ref: '#/components/responses/Pet'}
        '204': {description: nothing}
        default: {description: bad, content: {application/json: {schema: {type: object}}}}
  /pets/{petId}:
    $ref: '#/x-items/pet'
  /broken:
    get:
      requestBody: {$ref: 'other.yaml#/x'}
      responses: {}
x-items:
  pet:
    servers: [{url: https://other.example.com}]
    get: {deprecated: true, tags: [a, b]}
components:
  parameters:
    Limit: {name: limit, in: query, schema: {type: integer, maximum: 100}, description: How many.}
  requestBodies:
    Pet: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}, application/xml: {schema: {type: string}}}}
  responses:
    Pet: {description: one, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string}
        secret: {type: string, writeOnly: true}
        parent: {$ref: '#/components/schemas/Pet'}
  securitySchemes:
    key: {type: apiKey, in: header, name: X-Key}
    oauth: {type: oauth2, flows: {}}
"##;

/// Parameters of paths, references, duplicate and missing ids, servers and schemes: each found where it is said.
#[test]
fn a_document_is_taken_apart() {
    let api = Api::read(PETS, &Limits::default()).unwrap();
    assert_eq!((api.title.as_str(), api.version.as_str()), ("Pets", "1.2"));
    let names: Vec<_> = api.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["get_pets", "post_pets", "get_pets_petId"]);
    let list = &api.operations[0];
    let arguments: Vec<_> = list
        .parameters
        .iter()
        .map(|one| (one.argument.as_str(), one.location, one.is_required))
        .collect();
    assert_eq!(
        arguments,
        [
            ("limit", Location::Query, false),
            ("limit_cookie", Location::Cookie, false),
            ("tenant", Location::Header, true),
        ]
    );
    assert_eq!(list.parameters[0].schema["maximum"], 100);
    assert_eq!(list.documentation(), "Lists pets. All of them.");
    assert_eq!(list.security, [["key"]]);
    assert_eq!(list.accepts, ["application/json"]);
    let create = &api.operations[1];
    assert_eq!(create.security, [vec!["oauth".to_owned()], vec![]]);
    let body = create.body.as_ref().unwrap();
    assert!(body.is_required && body.contents.len() == 1);
    assert_eq!(
        create.output().unwrap().value()["anyOf"][1],
        json!({"type": "null"})
    );
    let get = &api.operations[2];
    assert!(get.is_deprecated);
    assert_eq!(get.tags, ["a", "b"]);
    assert_eq!(get.servers[0].url, "https://other.example.com");
    assert_eq!(get.parameters[0].argument, "petId");
    assert_eq!(
        api.servers[0].resolve(&BTreeMap::new(), None).unwrap(),
        "https://eu.example.com"
    );
    let schemes: Vec<_> = api
        .security_schemes
        .iter()
        .map(|one| (one.name.as_str(), one.detail.as_str()))
        .collect();
    assert_eq!(schemes, [("key", "header X-Key"), ("oauth", "")]);
    assert_eq!(api.problems.len(), 1);
    assert_eq!(api.problems[0].place, "GET /broken");
    assert!(
        api.problems[0].problem.contains("other.yaml"),
        "{}",
        api.problems[0]
    );
}

/// The input is judged and typed like any tool's: cycles are types, and what only comes back is not asked for.
#[test]
fn operations_are_tools() {
    let api = Api::read(PETS, &Limits::default()).unwrap();
    let create = &api.operations[1];
    let limits = Limits::default();
    let (input, output) = (create.input(), create.output());
    let validator = crate::Validator::new(&input, &limits).unwrap();
    let given = json!({"tenant": "t", "body": {"name": "a", "parent": {"name": "b"}}});
    validator.validate(&given).unwrap();
    let wrong = json!({"tenant": "t", "body": {"name": "a", "parent": {"name": 1}}, "more": 1});
    assert_eq!(
        validator.validate(&wrong).unwrap_err().to_string(),
        "input.body.parent.name is 1, and string is wanted (type)\ninput.more is not known there (additionalProperties)"
    );
    let tool = crate::ToolSignature {
        identifier: "create",
        description: "",
        is_deprecated: false,
        input: Some(&input),
        output: output.as_ref(),
    };
    let namespace = crate::NamespaceSignature {
        name: "pets",
        description: "",
        tools: vec![tool],
    };
    assert_eq!(
        crate::declare(&[namespace], &limits).text,
        r#"declare namespace pets {
  function create(input: { tenant: string; limit?: string; body: PetInput }): Promise<Pet | null>;
  type PetInput = { name: string; secret?: string; parent?: PetInput };
  type Pet = { id: number; name: string; parent?: Pet };
}
"#
    );
}

/// Swagger 2: bodies, forms, files, collection formats, hosts and definitions.
#[test]
fn swagger_2_is_read() {
    let api = api(json!({
        "swagger": "2.0",
        "host": "example.com", "basePath": "/v1", "schemes": ["http", "https"],
        "consumes": ["application/json"], "produces": ["application/json"],
        "paths": {
            "/a": {"get": {"operationId": "a", "parameters": [
                {"name": "ids", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"},
                {"name": "all", "in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"},
            ], "responses": {"200": {"schema": {"$ref": "#/definitions/A"}}}}},
            "/b": {"post": {"operationId": "b", "parameters": [
                {"name": "it", "in": "body", "required": true, "schema": {"$ref": "#/definitions/A"}},
            ], "responses": {}}},
            "/c": {"post": {"operationId": "c", "parameters": [
                {"name": "file", "in": "formData", "type": "file", "required": true},
                {"name": "note", "in": "formData", "type": "string"},
            ], "responses": {}}},
            "/d": {"post": {"operationId": "d", "parameters": [
                {"name": "note", "in": "formData", "type": "string"},
            ], "responses": {}}},
        },
        "definitions": {"A": {"type": "object", "x-nullable": true}},
        "securityDefinitions": {"basic": {"type": "basic"}},
    }));
    assert_eq!(api.problems, []);
    let server = api.servers[0].resolve(&BTreeMap::new(), None).unwrap();
    assert_eq!(server, "https://example.com/v1");
    let [a, b, c, d] = api.operations.as_slice() else {
        panic!("{:?}", api.operations)
    };
    let made = request(a, json!({"ids": ["1", "2"], "all": ["x", "y"]})).unwrap();
    assert_eq!(made.url, "https://example.com/v1/a?ids=1%7C2&all=x&all=y");
    assert_eq!(a.output().unwrap().value()["$ref"], "#/definitions/A");
    let made = request(b, json!({"body": {"x": 1}})).unwrap();
    assert_eq!(made.body.as_deref(), Some(&b"{\"x\":1}"[..]));
    let made = request(c, json!({"body": {"file": "text", "note": "n"}})).unwrap();
    let body = String::from_utf8(made.body.unwrap()).unwrap();
    assert!(body.contains("name=\"file\"; filename=\"file\""), "{body}");
    let made = request(d, json!({"body": {"note": "a b"}})).unwrap();
    assert_eq!(made.body.as_deref(), Some(&b"note=a%20b"[..]));
    assert_eq!(api.security_schemes[0].kind, "basic");
}

/// What is no document of a known version is refused with what it says.
#[test]
fn other_documents_are_refused() {
    for (root, said) in [
        (json!({}), "neither openapi nor swagger"),
        (json!({"openapi": "4.0.0"}), "openapi: 4.0.0"),
        (json!([]), "neither"),
    ] {
        let error = Api::of_value(root, &Limits::default()).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let numeric = Api::read("openapi: 3.0\npaths: {}\n", &Limits::default());
    assert!(numeric.unwrap().operations.is_empty());
    let limits = Limits {
        operations_max: 1,
        ..Limits::default()
    };
    let two = json!({"openapi": "3.1.0", "paths": {"/a": {"get": {}, "put": {}}}});
    let error = Api::of_value(two, &limits).unwrap_err();
    assert!(error.to_string().contains("operations_max"), "{error}");
}

/// References that lead in a circle leave out the operation, not the document.
#[test]
fn circles_of_references_end() {
    let api = api(json!({
        "openapi": "3.1.0",
        "paths": {
            "/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"},
            "/c": {"get": {"parameters": [{"$ref": "#/components/parameters/p"}]}},
        },
        "components": {"parameters": {"p": {"$ref": "#/components/parameters/p"}}},
    }));
    assert_eq!(api.operations.len(), 1);
    assert_eq!(api.problems.len(), 3);
    assert!(
        api.problems[0].problem.contains("circle"),
        "{}",
        api.problems[0]
    );
}

/// Ids that are missing or not one operation's own are made of method and path, never of another's.
#[test]
fn operations_have_names_of_their_own() {
    let api = api(json!({"openapi": "3.1.0", "paths": {
        "/a/{id}": {"get": {}, "put": {"operationId": "same"}},
        "/a.id": {"get": {}, "put": {"operationId": "same"}},
        "/b": {"get": {"operationId": "get_a_id"}},
        "/": {"get": {}},
    }}));
    let names: Vec<_> = api.operations.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "get_a_id_2",
            "put_a_id",
            "get_a_id_3",
            "put_a_id_2",
            "get_a_id",
            "get"
        ]
    );
}

/// Two parameters of one name are two arguments, and neither takes the name of a third, or of the body.
#[test]
fn arguments_have_names_of_their_own() {
    let operation = operation_at(
        "/{id}",
        json!({
            "parameters": [
                {"name": "id", "in": "query", "schema": {}},
                {"name": "id", "in": "header", "schema": {}},
                {"name": "id", "in": "path", "required": true, "schema": {}},
                {"name": "id_query", "in": "query", "schema": {}},
                {"name": "body", "in": "query", "schema": {}},
            ],
            "requestBody": {"content": {"application/json": {}, "text/csv": {}, "image/png": {}}},
        }),
    );
    let names: Vec<_> = operation
        .parameters
        .iter()
        .map(|one| one.argument.as_str())
        .collect();
    assert_eq!(names, ["id_query_", "id_header", "id", "id_query", "body"]);
    let body = operation.body.as_ref().unwrap();
    assert_eq!(body.argument, "request_body");
    assert_eq!(body.media_type_argument.as_deref(), Some("contentType"));
}

/// Arguments that can't be sent are named.
#[test]
fn arguments_that_can_not_be_sent_are_named() {
    let operation = operation_at(
        "/a/{id}/b",
        json!({"parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "X-H", "in": "header", "schema": {"type": "string"}},
            {"name": "q", "in": "query", "required": true, "schema": {"type": "string"}},
        ]}),
    );
    for (arguments, said) in [
        (json!({"q": "1"}), "input.id is missing"),
        (json!({"id": "1"}), "input.q is missing"),
        (json!({"id": "1", "q": null}), "input.q is missing"),
        (json!({"id": "1", "q": "1", "z": 1}), "input.z is not known"),
        (json!({"id": "", "q": "1"}), "input.id is empty"),
        (json!({"id": "..", "q": "1"}), "means another path"),
        (json!({"id": ".", "q": "1"}), "means another path"),
        (
            json!({"id": "1", "q": "1", "X-H": "a\r\nb: c"}),
            "line break",
        ),
        (json!([1]), "no object"),
    ] {
        let error = request(&operation, arguments).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let long = "x".repeat(70_000);
    let error = request(&operation, json!({"id": "1", "q": long})).unwrap_err();
    assert!(error.to_string().contains("url_bytes_max"), "{error}");
}

proptest! {
    /// No value of a path parameter leads anywhere but into its own segment.
    #[test]
    fn a_path_parameter_stays_in_its_segment(value in "(\\.|/|%2e|%2f|\\\\|\\?|#|;|\\PC|[a-z]){0,6}") {
        let operation = operation_at("/a/{id}/b", json!({}));
        if let Ok(made) = request(&operation, json!({"id": value.clone()})) {
            let url = url::Url::parse(&made.url).unwrap();
            let segments: Vec<_> = url.path_segments().unwrap().collect();
            prop_assert_eq!(segments.len(), 4, "{}", url);
            prop_assert_eq!((segments[0], segments[1], segments[3]), ("v1", "a", "b"));
            let read = percent_encoding::percent_decode_str(segments[2]).decode_utf8().unwrap();
            prop_assert_eq!(read, value);
            prop_assert!(url.query().is_none() && url.fragment().is_none());
        }
    }
}
