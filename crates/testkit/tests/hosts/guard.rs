//! The rmcp guard over HTTP, refusing calls as JSON-RPC errors.

use super::authority::Stub;
use super::standing::{Behind, Standing};
use super::told::Told;
use super::vectors::{self, Stage, Vector};
use super::{Host, async_trait};
use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use http::Request;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, DiscoverResult, ErrorData,
    InitializeRequestParams, InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, SubscriptionFilter,
};
use rmcp::service::{RequestContext, RoleServer, SubscriptionContext};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::{ServerHandler, model::ProtocolVersion};
use sayso_embed::rmcp::over_http;
use sayso_enforce::Authority;
use sayso_protocol::payload::edition::Edition;
use std::sync::Arc;
use tower::ServiceExt;

pub(crate) struct InJsonRpc;

/// A server that answers what the vectors ask, and what it got.
#[derive(Clone, Default)]
pub(crate) struct Server(pub(crate) Behind);

impl Server {
    fn note(&self, context: &RequestContext<RoleServer>) {
        let parts = context.extensions.get::<http::request::Parts>();
        self.0.note(parts.map(|parts| parts.headers.clone()).unwrap_or_default());
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let can = ServerCapabilities::builder().enable_tools().enable_tool_list_changed().enable_prompts();
        ServerConfig::new(can.enable_resources().enable_resources_subscribe().build())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.note(&context);
        self.negotiate_initialize(&request)
    }

    async fn discover(&self, context: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        self.note(&context);
        Ok(DiscoverResult::from_server_info(ProtocolVersion::KNOWN_VERSIONS.to_vec(), self.get_info()))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.note(&context);
        Ok(ListToolsResult::default())
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.note(&context);
        Ok(CallToolResult::success(Vec::new()).into())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// What is heard was acknowledged by then.
    async fn listen(&self, _context: SubscriptionContext) -> Result<(), ErrorData> {
        self.0.note(http::HeaderMap::default());
        Ok(())
    }
}

#[async_trait]
impl Host for InJsonRpc {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn sees(&self, _vector: &Vector) -> bool {
        true
    }

    async fn judge(&self, vector: &Vector, edition: Edition, authority: Arc<Stub>) -> Told {
        let host = open(&vector.stage(edition), authority);
        let response = host.respond(vector.request()).await;
        let status = response.status();
        let told = Told::over_http(response, || host.reached()).await;
        // Its own voice: what the authority was asked about, and did not pass, is answered in JSON-RPC and by no status.
        if !vector.asked.is_empty() && !vector.passes() {
            assert_eq!(status, 200, "{}", vector.name);
        }
        told
    }
}

/// One, with a server of its own.
pub(crate) fn open(stage: &Stage, authority: Arc<dyn Authority>) -> Standing {
    let server = Server::default();
    let behind = server.clone();
    let config = StreamableHttpServerConfig::default().with_json_response(true);
    let config = config.with_legacy_session_mode(false);
    let layer = vectors::site(stage, authority).layer().in_json_rpc();
    let sessions = Arc::<NeverSessionManager>::default();
    let service = over_http(&layer, move || Ok(behind.clone()), sessions, config);
    let sending = move |request: Request<Bytes>| {
        let service = service.clone();
        async move { service.oneshot(request.map(Body::from)).await.unwrap().map(Body::new) }.boxed()
    };
    Standing { name: "guard", sending: Box::new(sending), behind: server.0, _keeping: None }
}
