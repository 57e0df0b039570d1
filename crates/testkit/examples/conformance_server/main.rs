//! An MCP server that does what the official conformance suite asks of one, in both eras at one address, so that
//! what stands in front of it can be held to the same suite. Run it with a port: it serves `http://127.0.0.1:PORT/mcp`.
//! It protects nothing and is for tests alone.

mod asking;
mod changes;
mod content;
mod prompts;
mod resources;
mod rounds;
mod schemas;
mod server;
mod tasks;
mod telling;

use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use server::Fixture;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let Some(port) = port else {
        return Err(std::io::Error::other("name the port to listen on"));
    };
    let sessions = Arc::new(LocalSessionManager::default());
    let fixture = Fixture::new(Arc::clone(&sessions));
    let service = StreamableHttpService::new(
        move || Ok(fixture.clone()),
        sessions,
        StreamableHttpServerConfig::default(),
    );
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    axum::serve(listener, Router::new().route_service("/mcp", service)).await
}
