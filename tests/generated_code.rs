//! examples/generated-code, with a model that means well and one that does not.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{Server, answer, client, threw, value};
use coracle_client::{Coracle, Entrypoint, ModuleBody, Payload, Response, Value, WorkerCode, args};

fn example(coracle: &Coracle) -> Entrypoint {
    let mut env = Payload::default();
    let loader = env.external(&coracle.loader());
    let api = coracle.gateway(|request| async move {
        let key = request
            .headers
            .iter()
            .find(|(name, _)| name == "authorization");
        let key = key.map(|(_, key)| key.as_str()).unwrap_or("no key");
        Ok(Response::new(
            200,
            format!("{} {} with {key}", request.method, request.url),
        ))
    });
    let api = env.external(&api);
    env.value = Value::object([
        ("LOADER", loader),
        ("API", api),
        ("API_HOST", "api.example".into()),
        ("API_KEY", "secret".into()),
    ]);
    let code = WorkerCode::new("main.js")
        .es_module(
            "main.js",
            include_str!("../examples/generated-code/main.js"),
        )
        .module(
            "catalogue.json",
            ModuleBody::Json(include_str!("../examples/generated-code/catalogue.json").into()),
        )
        .env(env);
    coracle.load(code).entrypoint("default")
}

#[tokio::test]
async fn generated_code_finds_what_it_is_given() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let source =
        "async (catalogue) => catalogue.filter((item) => item.price < 30).map((item) => item.id)";
    let found = value(answer(&example(&coracle), "search", args![source]).await);
    assert_eq!(found, Value::Array(vec!["kettle".into(), "torch".into()]));
}

#[tokio::test]
async fn requests_of_generated_code_go_through_the_gateway_which_adds_the_key() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let example = example(&coracle);
    let execute = async |source: &str| value(answer(&example, "execute", args![source]).await);
    let allowed = "async () => (await fetch('https://api.example/orders')).text()";
    let expected = "GET https://api.example/orders with Bearer secret";
    assert_eq!(execute(allowed).await, expected.into());
    let refused = "async () => (await fetch('https://elsewhere.example/')).status";
    assert_eq!(execute(refused).await, 403.into());
}

#[tokio::test]
async fn generated_code_that_misbehaves_reaches_nothing_and_disturbs_nobody() {
    let server = Server::start();
    let coracle = client(server.address()).await;
    let example = example(&coracle);
    for (source, message) in [
        ("() => process.env", "process is not defined"),
        (
            "async () => (await fetch('https://example.com/')).status",
            "This worker is not permitted to access the internet",
        ),
        (
            "() => new Function('return 1')()",
            "Code generation from strings",
        ),
        ("() => { throw new TypeError('mine') }", "TypeError: mine"),
        (
            "this is no program",
            "Failed to start Worker:\nUncaught SyntaxError:",
        ),
        ("async () => { for (;;); }", "CPU time"),
    ] {
        let answered = answer(&example, "search", args![source]).await;
        let (_, found) = threw(&answered);
        assert!(found.contains(message), "{source}: {found}");
    }
    // No run finds anything of another.
    for _ in 0..2 {
        let count = "() => globalThis.count = (globalThis.count ?? 0) + 1";
        assert_eq!(
            value(answer(&example, "search", args![count]).await),
            1.into()
        );
    }
}
