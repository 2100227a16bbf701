//! Programs that are broken in the ways in which models break them: the error alone says what mends each.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use axum::{Router, http::header::CONTENT_TYPE, routing::get};
use serde_json::{Value, json};
use std::{env, fs, path::PathBuf, process::Command};
use tempfile::TempDir;
use tokio::net::TcpListener;

const DOCUMENT: &str = r#"
openapi: 3.1.0
info: { title: Shop, version: "1" }
paths:
  /orders:
    get:
      operationId: listOrders
      summary: Lists orders.
      parameters:
        - { name: status, in: query, schema: { type: string, enum: [paid, sent] } }
        - { name: limit, in: query, schema: { type: integer } }
      responses: { "200": { content: { application/json: { schema: { type: object } } } } }
"#;

/// A program, and what its error has: code, the beginning of the message, the line, and a part of the hint.
type Broken = (&'static str, &'static str, &'static str, u64, &'static str);

const BROKEN: [Broken; 12] = [
    (
        "const page = shop.listOrders({ limit: 5 });\nreturn page.items.map((order) => order.id);",
        "exception",
        "cannot read property 'map' of undefined",
        2,
        "shop.listOrders was called without await",
    ),
    (
        "const orders = await shop.listOrders();\nreturn orders.map((order) => order.id);",
        "exception",
        "not a function",
        2,
        "a tool's declaration says what it returns",
    ),
    (
        "\nreturn (await shop.list_orders()).items;",
        "tool_error",
        "there is no tool shop.list_orders; did you mean shop.listOrders",
        2,
        "",
    ),
    (
        "return await shop.listOrders({ stauts: 'paid' });",
        "tool_error",
        "input.stauts is not known there; did you mean input.status?",
        1,
        "its declaration says what it takes",
    ),
    (
        "return await shop.listOrders({ status: 'PAID' });",
        "tool_error",
        "input.status is \"PAID\", and one of \"paid\", \"sent\" is wanted",
        1,
        "its declaration says what it takes",
    ),
    (
        "return await shop.listOrders('paid');",
        "tool_error",
        "input is the text \"paid\", and object is wanted",
        1,
        "one object",
    ),
    (
        "return (await store.listOrders()).items;",
        "exception",
        "store is not defined",
        1,
        "tools are in the globals shop",
    ),
    (
        "const fs = require('fs');\nreturn fs.readFileSync('orders.json');",
        "exception",
        "require is not defined",
        1,
        "this is not Node.js; tools are in the globals shop",
    ),
    (
        "import axios from 'axios';\nreturn (await axios.get('https://shop.example/orders')).data;",
        "exception",
        "No such module \"axios\"",
        0,
        "there are no packages to import; tools are in the globals shop",
    ),
    (
        "const answer = await fetch('https://shop.example/orders');\nreturn answer.json();",
        "exception",
        "not permitted to access the internet",
        0,
        "there is no network; tools are in the globals shop",
    ),
    (
        "const a = 1;\nconst b = (a + 2;\nreturn b;",
        "syntax_error",
        "Expected `,` or `)` but found `;`",
        2,
        "",
    ),
    (
        "let page = 1;\nwhile (page > 0) { page += 1; }\nreturn page;",
        "cpu_limit",
        "do less in one call",
        0,
        "",
    ),
];

async fn shop() -> (TempDir, tokio::task::JoinHandle<()>) {
    let page = r#"{"items":[{"id":"o-1"}],"total":1}"#;
    let orders = move || async move { ([(CONTENT_TYPE, "application/json")], page) };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let app = Router::new().route("/orders", get(orders));
    let task = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("shop.yaml", DOCUMENT);
    let policies = json!({"shop": {"rules": [{"allow": [origin], "private": true}]}});
    let outbound = json!({"default_policy": "shop", "policies": policies});
    write("outbound.json", &outbound.to_string());
    let namespaces = json!({"shop": {"openapi": "shop.yaml", "server": origin}});
    let tools = json!({"namespaces": namespaces, "outbound": "outbound.json"});
    write("tools.json", &tools.to_string());
    (folder, task)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_error_alone_says_what_mends_a_program() {
    let (folder, task) = shop().await;
    let cache = PathBuf::from(env::var_os("CORACLE_CACHE_DIR").unwrap());
    let cache = std::path::absolute(cache).unwrap();
    for (program, code, message, line, hint) in BROKEN {
        let mut command = Command::new(env!("CARGO_BIN_EXE_coracle"));
        command
            .args(["exec", "--tools", "tools.json", "--cpu-ms", "300", "-e"])
            .args([program, "--json"])
            .current_dir(folder.path())
            .env("CORACLE_CACHE_DIR", &cache);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        let output = output.unwrap().unwrap();
        let told: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{program}: {output:?}"));
        let error = &told["error"];
        let text = |key: &str| error[key].as_str().unwrap();
        assert_eq!(text("code"), code, "{program}: {error}");
        assert!(text("message").contains(message), "{program}: {error}");
        assert_eq!(error["line"], line, "{program}: {error}");
        assert_eq!(
            hint.is_empty(),
            text("hint").is_empty(),
            "{program}: {error}"
        );
        assert!(text("hint").contains(hint), "{program}: {error}");
        if code != "cpu_limit" && line > 0 {
            let place = format!("program.ts:{line}:");
            assert!(text("stack").contains(&place), "{program}: {error}");
        }
    }
    task.abort();
}
