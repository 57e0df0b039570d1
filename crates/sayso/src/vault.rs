//! The demo vault: an MCP server of Alice's accounts, served over streamable HTTP without sessions to modern and
//! older clients alike. It contains no authorization: whoever can name its address may trade, which is why it listens on
//! loopback, under a path that can be drawn afresh (D-32), and nowhere else.

mod book;
mod file;
mod tools;

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use file::BookFile;
use tools::VaultTools;

/// What the vault calls itself to a client, and so the realm a gateway in front of it derives.
pub const SERVER_NAME: &str = "alice-vault";

/// The largest request body the vault reads; its longest legitimate call is a few hundred bytes.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// Alice's accounts, kept in one file.
pub struct Vault {
    file: Arc<BookFile>,
    path: String,
}

impl Vault {
    /// Opens `dir/vault.json`, writing the opening positions when there is no such file yet.
    ///
    /// # Errors
    /// When the folder cannot be written, or the file is there and is not a vault.
    pub fn open(dir: &Path) -> anyhow::Result<Vault> {
        let file = BookFile::open(dir).with_context(|| format!("opening the vault in {}", dir.display()))?;
        Ok(Vault { file: Arc::new(file), path: "/mcp".to_owned() })
    }

    /// The same vault, under a path that nobody is told but whoever asks [`Self::path`]: other programs on the same
    /// machine see the port it listens on.
    ///
    /// # Errors
    /// When there is no randomness.
    pub fn hidden(self) -> anyhow::Result<Vault> {
        let mut drawn = [0_u8; 16];
        getrandom::fill(&mut drawn).map_err(|fault| anyhow::anyhow!("no path can be drawn: {fault}"))?;
        let drawn: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Vault { path: format!("/{drawn}/mcp"), ..self })
    }

    /// Where its endpoint is.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The MCP endpoint, at `POST` of [`Self::path`]. A request must name a loopback host or one of `hosts` (a name, or a name
    /// and port) and carry no `Origin`, so that a page in a browser on the same machine cannot trade.
    pub fn router(self, hosts: impl IntoIterator<Item = String>) -> Router {
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_BODY_BYTES)
            .enforce_origin_validation();
        config.allowed_hosts.extend(hosts);
        let tools = VaultTools::new(self.file);
        let service = StreamableHttpService::new(
            move || Ok(tools.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        );
        Router::new().route_service(&self.path, service)
    }
}

/// Serves `vault` to loopback callers until `shutdown` resolves.
pub async fn serve(vault: Vault, listener: TcpListener, shutdown: impl Future<Output = ()> + Send) {
    sayso_listen::listen(vec![listener], vault.router([]), shutdown).await;
}
