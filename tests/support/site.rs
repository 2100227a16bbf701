//! A server with a policy, a client of it, and a website that the policy lets requests out to.

use super::{Server, answer, class, client, module, value, website::Website};
use coracle_client::{Coracle, Entrypoint, Outbound, Payload, Target, Thrown, Value, args};
use futures::future::BoxFuture;
use serde_json::{Value as Json, json};
use std::{
    fs,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::Path,
    sync::{Arc, Mutex},
};
use tempfile::TempDir;

/// What is put into requests, and nobody is to see.
pub const SECRET: &str = "canary-8f3d61b2c90ae475";

/// Methods that tell what became of a request.
pub const TRY: &str = "
    async get(url, init) {
        try {
            const response = await fetch(url, init);
            return [response.status, await response.text(), response.url, response.redirected];
        } catch (error) { return [error.name, error.message, error.code ?? null]; }
    }
    async echo(url, body) {
        const response = await fetch(url, { method: 'POST', body, headers: { authorization: 'mine', host: 'evil.test' } });
        return [response.status, await response.text(), JSON.stringify([...response.headers])];
    }";

/// All of it.
pub struct Site {
    pub server: Server,
    pub coracle: Coracle,
    pub website: Website,
    /// Has the file, and the secret.
    pub folder: TempDir,
}

impl Site {
    /// With the policy of [`outbound`].
    pub async fn start() -> Self {
        Self::start_with(|_| {}, &[]).await
    }

    /// With that file changed, and settings of the server.
    pub async fn start_with(change: impl FnOnce(&mut Json), settings: &[(&str, &str)]) -> Self {
        let website = Website::start().await;
        let folder = TempDir::new().unwrap();
        let mut config = outbound(&website, &secret_file(folder.path()));
        change(&mut config);
        Self::of(website, folder, &config, settings).await
    }

    /// With the file as it is given.
    pub async fn with_file(config: &Json) -> Self {
        let folder = TempDir::new().unwrap();
        Self::of(Website::start().await, folder, config, &[]).await
    }

    async fn of(
        website: Website,
        folder: TempDir,
        config: &Json,
        settings: &[(&str, &str)],
    ) -> Self {
        let file = folder.path().join("outbound.json");
        fs::write(&file, config.to_string()).unwrap();
        let mut all = vec![("outbound-file", file.to_str().unwrap())];
        all.extend(settings);
        let server = Server::start_with(&all);
        let coracle = client(server.address()).await;
        Self {
            server,
            coracle,
            website,
            folder,
        }
    }

    /// A worker with these methods.
    pub fn worker(&self, outbound: Outbound, methods: &str) -> Entrypoint {
        let code = coracle_client::WorkerCode {
            outbound,
            ..module(&class(methods))
        };
        self.coracle.load(code).entrypoint("default")
    }

    /// What a worker is told that asks the website for that.
    pub async fn get(&self, entrypoint: &Entrypoint, path: &str) -> Value {
        get(entrypoint, &self.website.url(path)).await
    }
}

/// What a worker is told that asks for that, by `get` of [`TRY`].
pub async fn get(entrypoint: &Entrypoint, url: &str) -> Value {
    value(answer(entrypoint, "get", args![url]).await)
}

/// The message and the code of a refusal.
#[track_caller]
pub fn denied(outcome: &Value) -> (&str, &str) {
    let [name, message, code] = outcome.as_array().unwrap() else {
        panic!("a refusal was expected, not {outcome:?}");
    };
    assert_eq!(name.as_str(), Some("Error"), "{outcome:?}");
    (message.as_str().unwrap(), code.as_str().unwrap())
}

/// A policy that lets requests to the website out, with a credential for `/echo` and another for `/echo/query`.
pub fn outbound(website: &Website, secret_file: &str) -> Json {
    let origin = website.url("");
    json!({
        "default_policy": "site",
        "policies": {"site": {"rules": [
            {"name": "hidden", "deny": [origin], "paths": ["/hidden/**"]},
            {"allow": [origin], "paths": ["/echo"], "private": true, "credential": "site"},
            {"allow": [origin], "paths": ["/echo/query"], "private": true, "credential": "query"},
            {"ask": [origin], "paths": ["/ask/**"], "private": true},
            {"allow": [origin], "private": true}
        ]}},
        "credentials": {
            "site": {
                "secret": {"file": secret_file}, "to": [origin], "as": "bearer", "plain_http": true
            },
            "query": {
                "secret": {"file": secret_file}, "to": [origin], "as": {"query": {"name": "key"}}, "plain_http": true
            }
        }
    })
}

/// A file with the secret, which nobody else may read.
pub fn secret_file(folder: &Path) -> String {
    let path = folder.join("secret");
    let mut options = fs::OpenOptions::new();
    let options = options.create(true).truncate(true).write(true).mode(0o600);
    let mut file = options.open(&path).unwrap();
    file.write_all(SECRET.as_bytes()).unwrap();
    path.to_str().unwrap().into()
}

/// A tail that keeps what it is told.
pub struct Tail(pub Arc<Mutex<Vec<Value>>>);

impl Target for Tail {
    fn call(&self, _: Vec<String>, args: Payload) -> BoxFuture<'static, Result<Payload, Thrown>> {
        if let Some(Value::Array(events)) = args.value.index(0).cloned() {
            self.0.lock().unwrap().extend(events);
        }
        Box::pin(async { Ok(Payload::default()) })
    }
}
