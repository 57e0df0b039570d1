//! A small MCP server written with axum alone, guarded by the layer.
//!
//! `NOTES_AUTHORITY=https://… NOTES_URL=http://127.0.0.1:8900 NOTES_KEY=key.pem cargo run -p sayso-embed --example
//! guard_axum`; the authority has to know this resource server, see docs/embedding.md.

use axum::routing::post;
use axum::{Json, Router};
use sayso_embed::{Hers, Site, SiteConfig, ToolSettings, system_clock};
use sayso_enforce::Clock;
use sayso_protocol::SigningKey;
use serde_json::{Value, json};
use tower_layer::Layer;

type Failed = Box<dyn std::error::Error>;

/// Guards the server below: this is all there is to it.
pub(crate) fn guarded(url: &str, key: SigningKey, hers: Hers, clock: Clock) -> Result<Router, Failed> {
    let scopes = vec!["notes:read".parse()?];
    let read = ToolSettings::new("read_note".parse()?, "notes/read_note".parse()?, scopes);
    let config = SiteConfig::new(url, "notes".parse()?, "alice".parse()?, hers, key);
    let site = Site::new(SiteConfig { tools: vec![read], ..config }, clock)?;
    Ok(Router::new().fallback_service(site.layer().layer(notes())))
}

/// The server. It knows nothing of owners, agents or grants.
fn notes() -> Router {
    Router::new().route("/mcp", post(answer))
}

async fn answer(Json(message): Json<Value>) -> Json<Value> {
    let result = match message.get("method").and_then(Value::as_str) {
        Some("tools/list") => {
            json!({ "tools": [{ "name": "read_note", "inputSchema": { "type": "object" } }] })
        }
        Some("tools/call") => json!({ "content": [{ "type": "text", "text": "buy milk" }] }),
        Some("server/discover") => {
            json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } })
        }
        _ => json!({}),
    };
    Json(json!({ "jsonrpc": "2.0", "id": message.get("id"), "result": result }))
}

#[allow(dead_code, reason = "a test drives the rest of this file")]
#[tokio::main]
async fn main() -> Result<(), Failed> {
    let (authority, url) = (std::env::var("NOTES_AUTHORITY")?, std::env::var("NOTES_URL")?);
    let key = SigningKey::from_pem(&std::fs::read_to_string(std::env::var("NOTES_KEY")?)?)?;
    let clock = system_clock();
    let hers = Hers::at(&authority, &url, "alice".parse()?, key.clone(), &clock)?;
    let app = guarded(&url, key, hers, clock)?;
    let address = url.trim_start_matches("http://").to_owned();
    let listener = tokio::net::TcpListener::bind(address).await?;
    Ok(axum::serve(listener, app).await?)
}
