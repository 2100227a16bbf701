//! What handles do when they are shared, cloned and dropped, and when the server goes away under them.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use coracle_client::{ConnectOptions, Coracle, Entrypoint, Error, Value, WorkerCode, args};
use coracle_isolate::Machine;
use coracle_server::{Server, ServerConfig};
use std::{path::PathBuf, time::Duration};

const PATIENCE: Duration = Duration::from_secs(20);

fn config() -> ServerConfig {
    let mut config = ServerConfig::for_machine(&Machine::read());
    config.cache = std::env::var_os("CORACLE_CACHE_DIR").map(PathBuf::from);
    config.core.isolates_max = 64;
    config
}

fn load(coracle: &Coracle) -> Entrypoint {
    let source = "import { WorkerEntrypoint } from 'cloudflare:workers';
                  let n = 0;
                  export default class extends WorkerEntrypoint {
                      count() { return ++n; }
                      nap() { return new Promise(done => setTimeout(done, 25_000)); }
                  }";
    let code = WorkerCode::new("main.js").es_module("main.js", source);
    coracle.load(code).entrypoint("default")
}

async fn count(entrypoint: &Entrypoint) -> Value {
    let answer = entrypoint.call("count", args![]);
    let answer = tokio::time::timeout(PATIENCE, answer).await.unwrap();
    answer.unwrap().value().unwrap()
}

#[tokio::test]
async fn clones_of_a_handle_are_the_same_worker() {
    let coracle = Coracle::embedded(config()).await.unwrap();
    let first = load(&coracle);
    let second = first.clone();
    assert_eq!(count(&first).await, Value::from(1));
    drop(first);
    assert_eq!(count(&second).await, Value::from(2));
    assert_eq!(count(&load(&coracle)).await, Value::from(1));
}

#[test]
fn handles_go_from_thread_to_thread() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let coracle = runtime().block_on(Coracle::embedded(config())).unwrap();
    let entrypoint = load(&coracle);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let entrypoint = entrypoint.clone();
            std::thread::spawn(move || {
                runtime().block_on(async {
                    for _ in 0..25 {
                        count(&entrypoint).await;
                    }
                });
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(runtime().block_on(count(&entrypoint)), Value::from(101));
}

#[tokio::test]
async fn when_the_server_goes_every_call_hears_of_it() {
    let mut config = config();
    config.listen = vec!["127.0.0.1:0".parse().unwrap()];
    let server = Server::start(config).unwrap();
    let address = server.addresses()[0].to_string();
    let coracle = Coracle::connect(&address, ConnectOptions::default())
        .await
        .unwrap();
    let entrypoint = load(&coracle);
    count(&entrypoint).await;
    let napping = entrypoint.clone();
    let nap = tokio::spawn(async move { napping.call("nap", args![]).await });
    while server.service().gauges().calls == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::task::spawn_blocking(move || drop(server))
        .await
        .unwrap();
    let told = tokio::time::timeout(PATIENCE, nap).await.unwrap().unwrap();
    assert!(matches!(told, Err(Error::Disconnected(_))), "{told:?}");
    let told = tokio::time::timeout(PATIENCE, entrypoint.call("count", args![]))
        .await
        .unwrap();
    assert!(matches!(told, Err(Error::Disconnected(_))), "{told:?}");
}

#[tokio::test]
async fn where_nobody_listens_the_address_is_named() {
    let address = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().to_string()
    };
    match Coracle::connect(&address, ConnectOptions::default()).await {
        Err(Error::Connect { address: named, .. }) => assert_eq!(named, address),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("somebody listens"),
    }
}
