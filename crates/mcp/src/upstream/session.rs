//! One connection to a server, from the handshake on.

use crate::upstream::{McpProviderError, Shared, cause, http::ChannelClient};
use rmcp::{
    ClientHandler, ErrorData, RoleClient, ServiceExt,
    model::{ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, Implementation},
    service::{ClientInitializeError, NotificationContext, RequestContext, RunningService},
    transport::{
        IntoTransport, StreamableHttpClientTransport, async_rw::AsyncRwTransport,
        streamable_http_client::StreamableHttpClientTransportConfig,
    },
};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};
use tokio::{
    process::{ChildStdin, ChildStdout},
    sync::Notify,
    task::JoinHandle,
};

/// A server that says again and again that its list has changed is asked no more often.
const LIST_INTERVAL: Duration = Duration::from_millis(500);
/// What taking leave may take.
const CLOSE_DEADLINE: Duration = Duration::from_secs(1);

pub(super) type Peer = rmcp::Peer<RoleClient>;

pub(super) struct Session {
    running: RunningService<RoleClient, Handler>,
    /// Reads the list where it has changed.
    lists: JoinHandle<()>,
}

impl Session {
    pub(super) async fn over_pipes(
        read: ChildStdout,
        write: ChildStdin,
        shared: &Arc<Shared>,
    ) -> Result<Self, McpProviderError> {
        let bytes_max = shared.limits.server_message_bytes_max;
        let transport = AsyncRwTransport::<RoleClient, _, _>::new(read, write);
        Self::begin(transport.with_max_line_length(bytes_max), shared).await
    }

    pub(super) async fn over_http(
        url: &str,
        client: ChannelClient,
        shared: &Arc<Shared>,
    ) -> Result<Self, McpProviderError> {
        let config = StreamableHttpClientTransportConfig::with_uri(url)
            .max_concurrent_requests(shared.limits.calls_in_flight_max);
        let transport = StreamableHttpClientTransport::with_client(client, config);
        Self::begin(transport, shared).await
    }

    async fn begin<T, E, A>(transport: T, shared: &Arc<Shared>) -> Result<Self, McpProviderError>
    where
        T: IntoTransport<RoleClient, E, A>,
        E: std::error::Error + Send + Sync + 'static,
    {
        let changed = Arc::new(Notify::new());
        let handler = Handler(Arc::clone(&changed));
        let running = handler.serve(transport).await.map_err(|error| {
            McpProviderError::Connect(match &error {
                ClientInitializeError::TransportError { error, .. } => cause(error),
                error => cause(error),
            })
        })?;
        let peer = running.peer().clone();
        let lists = tokio::spawn(follow(peer, changed, Arc::downgrade(shared)));
        Ok(Self { running, lists })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.running.is_closed() && !self.running.peer().is_transport_closed()
    }

    pub(super) fn peer(&self) -> Peer {
        self.running.peer().clone()
    }

    pub(super) async fn close(mut self) {
        // Whoever does not take leave in time is left.
        let _ = self.running.close_with_timeout(CLOSE_DEADLINE).await;
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.lists.abort();
    }
}

async fn follow(peer: Peer, changed: Arc<Notify>, shared: Weak<Shared>) {
    loop {
        changed.notified().await;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        let deadline = Shared::milliseconds(shared.limits.server_connect_ms_max);
        match tokio::time::timeout(deadline, shared.list(&peer)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("the former list of tools is kept: {error}"),
            Err(_) => tracing::warn!("the former list of tools is kept: there is no answer"),
        }
        drop(shared);
        tokio::time::sleep(LIST_INTERVAL).await;
    }
}

/// What a server may ask of us: nothing. Holds what wakes whoever reads the list.
pub(super) struct Handler(Arc<Notify>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("coracle", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }

    async fn create_elicitation(
        &self,
        _request: ElicitRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let message = "a program has called this tool, and there is nobody to ask";
        Err(ErrorData::invalid_request(message, None))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.0.notify_one();
    }
}
