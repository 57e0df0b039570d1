//! A small MCP server written with rmcp, guarded by the layer and the guard behind it: over HTTP, or with `--stdio` on a
//! transport where nothing protected is ever allowed.
//!
//! `NOTES_AUTHORITY=https://… NOTES_URL=http://127.0.0.1:8900 NOTES_KEY=key.pem cargo run -p sayso-embed --example
//! guard_rmcp`; the authority has to know this resource server, see docs/embedding.md.

use axum::Router;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, JsonObject,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer, ServiceExt};
use rmcp::{ServerHandler, transport::streamable_http_server::session::local::LocalSessionManager};
use sayso_embed::rmcp::{Guarded, over_http};
use sayso_embed::{Hers, Site, SiteConfig, ToolSettings, system_clock};
use sayso_enforce::Clock;
use sayso_protocol::SigningKey;
use std::sync::Arc;

type Failed = Box<dyn std::error::Error>;

/// Guards the server below: this and one of the two functions after it are all there is to it.
pub(crate) fn site(url: &str, key: SigningKey, hers: Hers, clock: Clock) -> Result<Site, Failed> {
    let scopes = vec!["notes:read".parse()?];
    let read = ToolSettings::new("read_note".parse()?, "notes/read_note".parse()?, scopes);
    let config = SiteConfig::new(url, "notes".parse()?, "alice".parse()?, hers, key);
    Ok(Site::new(SiteConfig { tools: vec![read], ..config }, clock)?)
}

/// Over HTTP. Refused calls are answered as JSON-RPC errors; without `in_json_rpc` they are 401s.
pub(crate) fn guarded(site: &Site) -> Router {
    let sessions = Arc::<LocalSessionManager>::default();
    let service = over_http(&site.layer().in_json_rpc(), || Ok(Notes), sessions, Default::default());
    Router::new().fallback_service(service)
}

/// On any other transport, here the process's own pipes.
pub(crate) async fn piped(site: &Site) -> Result<(), Failed> {
    let pipes = (tokio::io::stdin(), tokio::io::stdout());
    Guarded::new(site, Notes).serve(pipes).await?.waiting().await?;
    Ok(())
}

/// The server. It knows nothing of owners, agents or grants.
struct Notes;

impl ServerHandler for Notes {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = Tool::new("read_note", "Reads the note.", JsonObject::default());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn call_tool(
        &self,
        _request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("buy milk")]).into())
    }
}

#[allow(dead_code, reason = "a test drives the rest of this file")]
#[tokio::main]
async fn main() -> Result<(), Failed> {
    let (authority, url) = (std::env::var("NOTES_AUTHORITY")?, std::env::var("NOTES_URL")?);
    let key = SigningKey::from_pem(&std::fs::read_to_string(std::env::var("NOTES_KEY")?)?)?;
    let clock = system_clock();
    let hers = Hers::at(&authority, &url, "alice".parse()?, key.clone(), &clock)?;
    let site = site(&url, key, hers, clock)?;
    if std::env::args().any(|word| word == "--stdio") {
        return piped(&site).await;
    }
    let address = url.trim_start_matches("http://").to_owned();
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, guarded(&site)).await?)
}
