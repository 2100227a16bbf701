//! The client against a server in the same process: the same API as over a socket.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use coracle_client::{Coracle, Outcome, Value, WorkerCode, args};
use coracle_isolate::Machine;
use coracle_server::ServerConfig;
use std::path::PathBuf;

fn config() -> ServerConfig {
    let mut config = ServerConfig::for_machine(&Machine::read());
    config.cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    config.core.isolates_max = 64;
    config
}

#[tokio::test]
async fn a_worker_is_loaded_and_called_in_one_go() {
    let coracle = Coracle::embedded(config()).await.unwrap();
    let worker = coracle.load(WorkerCode::new("main.js").es_module(
        "main.js",
        "export default { double(n) { console.log('hi'); return n * 2; } }",
    ));
    let answer = worker
        .entrypoint("default")
        .call("double", args![21])
        .await
        .unwrap();
    assert_eq!(answer.outcome, Outcome::Value(Value::from(42)));
    assert_eq!(answer.logs[0].message, "hi");
    assert!(answer.usage.fuel_run > 0 && answer.usage.fuel_load > 0);
}
