//! A real Prometheus scrapes a real server, with the rules that are shipped.

#![allow(clippy::unwrap_used, reason = "a test may fail that way")]

use crate::support::{
    PATIENCE, Server, answer, client, eventually, get, load, value, verdict, within,
};
use coracle_client::{ConnectOptions, Coracle, args};
use serde_json::Value as Json;
use std::{
    env, fs,
    io::Write,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::{NamedTempFile, TempDir};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const RULES: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../deploy/helm/coracle/monitoring/alerts.yaml"
);
const WORKER: &str = "one() { return 1; }
                      fail() { throw new Error('on purpose'); }
                      spin() { for (;;); }";

/// A Prometheus that scrapes one server once a second. It is ended, by its id, with the value.
struct Prometheus {
    child: Child,
    address: SocketAddr,
    _folder: TempDir,
}

impl Prometheus {
    fn start(target: SocketAddr) -> Self {
        let folder = TempDir::new().unwrap();
        let rules = fs::canonicalize(RULES).unwrap();
        let configuration = format!(
            "global: {{scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['{}']\n\
             scrape_configs: [{{job_name: coracle, static_configs: [{{targets: ['{target}']}}]}}]\n",
            rules.display()
        );
        let file = folder.path().join("prometheus.yaml");
        fs::write(&file, configuration).unwrap();
        // It can't be told to choose a port and say which.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap();
        let program = program();
        let child = Command::new(&program)
            .arg(format!("--config.file={}", file.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        Self {
            child,
            address,
            _folder: folder,
        }
    }

    /// What the API answers, once it does.
    async fn ask(&self, path: &str) -> Json {
        eventually(path, async || {
            // HTTP/1.0, after which the answer is whole when the connection ends.
            let exchange = async {
                let mut stream = TcpStream::connect(self.address).await?;
                let request = format!("GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address);
                stream.write_all(request.as_bytes()).await?;
                let mut answer = String::new();
                stream.read_to_string(&mut answer).await?;
                std::io::Result::Ok(answer)
            };
            let answer = within(PATIENCE, path, exchange)
                .await
                .map_err(|error| error.to_string())?;
            let (_, body) = answer.split_once("\r\n\r\n").ok_or("no answer")?;
            match serde_json::from_str::<Json>(body) {
                Ok(json) if json["status"] == "success" => Ok(json["data"].clone()),
                _ => Err(answer),
            }
        })
        .await
    }

    /// The value of the one series that a selector without blanks selects; nothing where there is none.
    async fn value(&self, selector: &str) -> Option<f64> {
        let encoded = selector
            .replace('{', "%7B")
            .replace('}', "%7D")
            .replace('"', "%22");
        let data = self.ask(&format!("/api/v1/query?query={encoded}")).await;
        let series = data["result"].as_array().unwrap();
        assert!(series.len() <= 1, "{selector} selects {series:?}");
        let value = series.first()?["value"][1].as_str().unwrap();
        Some(value.parse().unwrap())
    }

    async fn reaches(&self, selector: &str, expected: f64) {
        eventually(selector, async || match self.value(selector).await {
            Some(found) if found == expected => Ok(()),
            found => Err(format!("it is {found:?}, not {expected}")),
        })
        .await;
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The binary that `$CORACLE_PROMETHEUS` names, that `tools/promtool` has fetched, or that is on the `PATH`.
fn program() -> PathBuf {
    if let Some(named) = env::var_os("CORACLE_PROMETHEUS") {
        return named.into();
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("prometheus"));
    [root.join("target/tools/usr/bin/prometheus")]
        .into_iter()
        .chain(on_path)
        .find(|candidate| candidate.is_file())
        .expect(
            "this test needs prometheus: run tools/promtool, which fetches it as well, or set CORACLE_PROMETHEUS to \
             its path",
        )
}

#[tokio::test]
async fn prometheus_sees_calls_as_they_end_and_evaluates_the_rules() {
    let server = Server::start_with(&[("limit", "cpu_ms_max=50")]);
    let prometheus = Prometheus::start(server.admin());
    let outcome = |name: &str| format!("coracle_invocations_total{{outcome=\"{name}\"}}");
    prometheus.reaches("up", 1.0).await;
    prometheus.reaches(&outcome("ok"), 0.0).await;

    let coracle = client(server.address()).await;
    let worker = load(&coracle, WORKER);
    for _ in 0..3 {
        value(answer(&worker, "one", args![]).await);
    }
    answer(&worker, "fail", args![]).await;
    let stopped = answer(&worker, "spin", args![]).await;
    assert_eq!(verdict(&stopped), ("cpu", "cpu_ms_max"));

    prometheus.reaches(&outcome("ok"), 3.0).await;
    prometheus.reaches(&outcome("exception"), 1.0).await;
    prometheus.reaches(&outcome("cpu"), 1.0).await;
    prometheus
        .reaches("coracle_loads_total{result=\"ok\"}", 1.0)
        .await;
    prometheus.reaches("coracle_sessions_live", 1.0).await;

    let groups = eventually("every rule was evaluated", async || {
        let groups = prometheus.ask("/api/v1/rules").await["groups"].clone();
        let rules = groups[0]["rules"].as_array().unwrap();
        match rules.iter().find(|rule| rule["health"] == "unknown") {
            None => Ok(groups),
            Some(rule) => Err(format!("not yet {rule}")),
        }
    })
    .await;
    let rules = groups[0]["rules"].as_array().unwrap();
    let shipped = fs::read_to_string(RULES).unwrap();
    assert_eq!(rules.len(), shipped.matches("- alert: ").count());
    for rule in rules {
        assert_eq!(rule["health"], "ok", "{rule}");
        // A worker that is stopped by its limit is no reason for an alert, not even for one that waits.
        assert_eq!(rule["state"], "inactive", "{rule}");
    }
}

#[tokio::test]
async fn two_hundred_tenants_make_no_series_more() {
    const TENANTS: usize = 200;
    let mut file = NamedTempFile::new().unwrap();
    for tenant in 0..TENANTS {
        writeln!(file, "tenant-{tenant}:token-of-tenant-{tenant:04}").unwrap();
    }
    let path = file.path().display().to_string();
    let server = Server::start_with(&[("token-file", &path)]);
    let before = series(&server).await;

    let mut clients = Vec::new();
    for tenant in 0..TENANTS {
        let options = ConnectOptions {
            token: Some(format!("token-of-tenant-{tenant:04}")),
        };
        let coracle = within(
            PATIENCE,
            "a login",
            Coracle::connect(server.address(), options),
        )
        .await
        .unwrap();
        value(answer(&load(&coracle, WORKER), "one", args![]).await);
        clients.push(coracle);
    }
    assert_eq!(server.metric("coracle_sessions_live").await, TENANTS as f64);
    let after = series(&server).await;
    assert!(before.len() > 100, "{before:?}");
    assert_eq!(after, before);
}

/// The names of all series, with their labels.
async fn series(server: &Server) -> Vec<String> {
    let (_, text) = get(server.admin(), "/metrics").await;
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(|line| line.rsplit_once(' '))
        .map(|(name, _)| name.to_owned())
        .collect()
}
