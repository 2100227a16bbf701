//! Serving agents over streamable HTTP.
//!
//! Whoever reaches the address and is admitted runs programs with all tools. A page in a browser reaches addresses that its
//! author does not, so requests whose `Host` or `Origin` is not one that was named are refused, whatever they bring.

use crate::CodeServer;
use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, Method, StatusCode, header},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use rmcp::transport::streamable_http_server::{
    StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
};
use std::{future::Future, io, sync::Arc};
use tokio::net::TcpListener;

/// Where agents send their messages.
pub const PATH: &str = "/mcp";
/// Sessions that are open at once; further ones are refused until one has ended, or was silent for five minutes.
const SESSIONS_MAX: usize = 64;
const SESSION: &str = "mcp-session-id";
const SCHEME: &str = "Bearer ";

/// Whether a bearer token is one that admits.
pub type Admits = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// Who may speak to a server that listens.
#[derive(Clone, Default)]
pub struct ListenOptions {
    /// Judges the token that an agent brings. Without it, whoever reaches the address may speak.
    pub admits: Option<Admits>,
    /// Names under which it is reached, with or without a port, beside those of the loopback.
    pub hosts: Vec<String>,
    /// Origins of pages that may speak to it, such as `https://agent.example`. None may unless named.
    pub origins: Vec<String>,
}

struct Door {
    admits: Option<Admits>,
    sessions: Arc<LocalSessionManager>,
}

impl CodeServer {
    /// Serves all agents that come to [`PATH`], each in a session of its own, until `stop`.
    ///
    /// # Errors
    /// The listener has failed.
    pub async fn listen(
        self,
        listener: TcpListener,
        options: ListenOptions,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        let mut config = StreamableHttpServerConfig::default()
            .with_max_request_body_bytes(crate::server::MESSAGE_BYTES_MAX)
            .with_allowed_origins(options.origins)
            .enforce_origin_validation();
        config.allowed_hosts.extend(options.hosts);
        let cancelled = config.cancellation_token.clone();
        let sessions: Arc<LocalSessionManager> = Arc::default();
        let door = Arc::new(Door {
            admits: options.admits,
            sessions: Arc::clone(&sessions),
        });
        let service = StreamableHttpService::new(move || Ok(self.clone()), sessions, config);
        let app = Router::new()
            .route_service(PATH, service)
            .layer(from_fn_with_state(door, enter));
        let stopped = async move {
            stop.await;
            // Streams that stand open would keep it from ending.
            cancelled.cancel();
        };
        let serving = axum::serve(listener, app);
        serving.with_graceful_shutdown(stopped).await
    }
}

async fn enter(State(door): State<Arc<Door>>, request: Request, next: Next) -> Response {
    if !door.admits(request.headers()) {
        let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
        let text = "a bearer token is needed\n";
        return (StatusCode::UNAUTHORIZED, challenge, text).into_response();
    }
    let is_new = request.method() == Method::POST && !request.headers().contains_key(SESSION);
    if is_new && door.sessions.sessions.read().await.len() >= SESSIONS_MAX {
        let text = format!("{SESSIONS_MAX} sessions are open, and there can be no more\n");
        let later = [(header::RETRY_AFTER, "60")];
        return (StatusCode::SERVICE_UNAVAILABLE, later, text).into_response();
    }
    next.run(request).await
}

impl Door {
    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(admits) = &self.admits else {
            return true;
        };
        let brought = headers.get(header::AUTHORIZATION);
        let brought = brought
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.split_at_checked(SCHEME.len()));
        brought.is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case(SCHEME) && admits(token))
    }
}
