//! What the paths answer.

use super::{AdminState, CHECKS_AT_ONCE_MAX};
use crate::host_header;
use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderValue, Method, StatusCode, Uri,
        header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS},
    },
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::json;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Semaphore, task, time};

/// How long a check may take. Shorter than a connection lives and than a kubelet waits, so that the reason gets out.
const CHECK_TIME_MAX: Duration = Duration::from_secs(2);

const TEXT: &str = "text/plain; charset=utf-8";
const TEXT_METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const JSON: &str = "application/json";

const HELP: &str = "\
not found; Coracle's admin endpoint has:
  /livez     whether the process works
  /readyz    whether it takes new work (?verbose lists the checks)
  /startupz  whether it has ever been ready
  /metrics   figures for Prometheus
  /version   what runs, as JSON
";

struct Endpoints {
    state: AdminState,
    /// Set when the server is ready for the first time, and never taken back.
    started: AtomicBool,
    /// So that checks that never come back take up four threads and no more.
    checks: Arc<Semaphore>,
}

/// The router. Whatever it answers, the connection ends with it.
pub(super) fn router(state: AdminState) -> Router {
    let endpoints = Arc::new(Endpoints {
        state,
        started: AtomicBool::new(false),
        checks: Arc::new(Semaphore::new(CHECKS_AT_ONCE_MAX)),
    });
    Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/startupz", get(startupz))
        .route("/metrics", get(metrics))
        .route("/version", get(version))
        .fallback(|| async { text(StatusCode::NOT_FOUND, HELP) })
        .layer(middleware::from_fn_with_state(
            Arc::clone(&endpoints),
            guard,
        ))
        .with_state(endpoints)
}

/// Goes before every answer: hosts, methods, and the headers that all answers have.
async fn guard(State(endpoints): State<Arc<Endpoints>>, request: Request, next: Next) -> Response {
    let hosts_allowed = &endpoints.state.hosts_allowed;
    let mut response = match host_header::check(request.uri(), request.headers(), hosts_allowed) {
        Ok(()) if [Method::GET, Method::HEAD].contains(request.method()) => next.run(request).await,
        Ok(()) => {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            let methods = HeaderValue::from_static("GET, HEAD");
            refusal.headers_mut().insert(ALLOW, methods);
            refusal
        }
        Err(problem) => wrong_host(problem),
    };
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn wrong_host(problem: host_header::HostProblem) -> Response {
    match problem {
        host_header::HostProblem::Malformed => text(
            StatusCode::BAD_REQUEST,
            "a request needs one Host header, in ASCII\n",
        ),
        host_header::HostProblem::Unknown(host) => text(
            StatusCode::MISDIRECTED_REQUEST,
            format!(
                "the host {host:?} is not known here, which protects from DNS rebinding: use an IP address or \
                 localhost, or add the name to the server's admin hosts\n"
            ),
        ),
    }
}

async fn livez(State(endpoints): State<Arc<Endpoints>>, uri: Uri) -> Response {
    let probe = Arc::clone(&endpoints.state.probe);
    let live = endpoints.check(move || probe.live()).await;
    verdict(&[("live", live.and_then(|live| live))], &uri)
}

async fn readyz(State(endpoints): State<Arc<Endpoints>>, uri: Uri) -> Response {
    verdict(&endpoints.readiness().await, &uri)
}

async fn startupz(State(endpoints): State<Arc<Endpoints>>, uri: Uri) -> Response {
    if endpoints.started.load(Ordering::Relaxed) {
        return verdict(&[("started", Ok(()))], &uri);
    }
    verdict(&endpoints.readiness().await, &uri)
}

async fn metrics(State(endpoints): State<Arc<Endpoints>>) -> Response {
    let AdminState { metrics, probe, .. } = endpoints.state.clone();
    let rendered = endpoints.check(move || {
        metrics.render(|metrics| {
            let (stats, health, isolates_max) = probe.stats();
            metrics.observe_scheduler(&stats, &health, isolates_max);
        })
    });
    match rendered.await {
        Ok(body) => answer(StatusCode::OK, TEXT_METRICS, body),
        // Old figures would pass for new ones; a failed scrape is seen.
        Err(reason) => text(StatusCode::SERVICE_UNAVAILABLE, reason + "\n"),
    }
}

async fn version(State(endpoints): State<Arc<Endpoints>>) -> Response {
    let build = endpoints.state.metrics.build_info();
    let body = json!({
        "version": build.version,
        "guest": build.guest,
        "quickjs": build.quickjs,
        "wasmtime": build.wasmtime,
        "cpu_baseline": build.cpu_baseline,
    });
    answer(StatusCode::OK, JSON, format!("{body}\n"))
}

type Check = (&'static str, Result<(), String>);

impl Endpoints {
    async fn readiness(&self) -> Vec<Check> {
        let probe = Arc::clone(&self.state.probe);
        let checks = match self.check(move || (probe.live(), probe.ready())).await {
            Ok((live, ready)) => vec![("live", live), ("ready", ready)],
            Err(reason) => vec![("live", Err(reason))],
        };
        if checks.iter().all(|(_, result)| result.is_ok()) {
            self.started.store(true, Ordering::Relaxed);
        }
        checks
    }

    /// Runs what may block on another thread, for as long as a check may take.
    async fn check<T: Send + 'static>(
        &self,
        check: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let checks = Arc::clone(&self.checks);
        let outcome = async move {
            let place = checks.acquire_owned().await;
            let run = move || {
                let _place = place;
                check()
            };
            task::spawn_blocking(run).await
        };
        match time::timeout(CHECK_TIME_MAX, outcome).await {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(_)) => Err("the check failed itself; please report it".to_owned()),
            Err(_) => Err(format!(
                "the server did not answer the check within {} s",
                CHECK_TIME_MAX.as_secs()
            )),
        }
    }
}

/// 200 or 503: with `?verbose` every check on a line, otherwise "ok" or the reasons.
fn verdict(checks: &[Check], uri: &Uri) -> Response {
    let failed = checks.iter().any(|(_, result)| result.is_err());
    let mut body = String::new();
    for (name, result) in checks {
        match result {
            Ok(()) if is_verbose(uri) => body += &format!("[+] {name}\n"),
            Ok(()) => {}
            Err(reasons) => {
                let mark = if is_verbose(uri) { "[-] " } else { "" };
                let reasons = if reasons.is_empty() {
                    "failed"
                } else {
                    reasons
                };
                for reason in reasons.lines() {
                    body += &format!("{mark}{name}: {reason}\n");
                }
            }
        }
    }
    match failed {
        true => text(StatusCode::SERVICE_UNAVAILABLE, body),
        false if body.is_empty() => text(StatusCode::OK, "ok\n"),
        false => text(StatusCode::OK, body),
    }
}

fn is_verbose(uri: &Uri) -> bool {
    uri.query()
        .unwrap_or_default()
        .split('&')
        .any(|part| part == "verbose" || part.starts_with("verbose="))
}

fn text(status: StatusCode, body: impl Into<String>) -> Response {
    answer(status, TEXT, body.into())
}

fn answer(status: StatusCode, content_type: &'static str, body: String) -> Response {
    (status, [(CONTENT_TYPE, content_type)], body).into_response()
}
