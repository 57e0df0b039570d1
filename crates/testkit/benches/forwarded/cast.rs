//! The parties of a forwarded call: an issuer with one key, an MCP server on a thread of its own, and the program.

use axum::{Json, Router, routing::get};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig as Info, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use sayso_protocol::{SigningKey, b64};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;

const POLICIES: &str = r#"@id("look")
permit (principal is identity, action == Action::"tools/call", resource == tool::"look");
@id("not.eve")
forbid (principal == identity::"u-eve", action, resource);
"#;

/// An authorization server as far as a resource sees one.
pub(crate) struct Issuer {
    pub(crate) url: String,
    key: SigningKey,
}

impl Issuer {
    pub(crate) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let key = SigningKey::from_seed(&[0x11; 32]).unwrap();
        let mut jwk = serde_json::to_value(key.verifying().jwk()).unwrap();
        if let Some(members) = jwk.as_object_mut() {
            members.extend([("kid".to_owned(), json!("k1")), ("alg".to_owned(), json!("EdDSA"))]);
        }
        let about = json!({ "issuer": url, "jwks_uri": format!("{url}/jwks") });
        let answer = |value: Value| get(move || std::future::ready(Json(value.clone())));
        let router = Router::new()
            .route("/.well-known/oauth-authorization-server", answer(about))
            .route("/jwks", answer(json!({ "keys": [jwk] })));
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, key }
    }

    /// Good for an hour.
    #[expect(clippy::disallowed_methods, reason = "this is the edge")]
    pub(crate) fn token(&self, audience: &str) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let claims = json!({
            "iss": self.url, "sub": "u-ann", "client_id": "agent-7", "aud": audience, "iat": now, "exp": now + 3600,
        });
        let header = json!({ "alg": "EdDSA", "typ": "at+jwt", "kid": "k1" });
        let signed = [header, claims].map(|part| b64::encode(part.to_string())).join(".");
        let signature = self.key.sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", b64::encode(signature))
    }
}

/// An MCP server of one tool.
pub(crate) struct Server {
    pub(crate) url: String,
}

impl Server {
    /// On a thread of its own, as a process of its own would be.
    pub(crate) async fn open() -> Self {
        let (told, heard) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                let config = StreamableHttpServerConfig::default().with_json_response(true);
                let config = config.with_legacy_session_mode(false);
                let sessions = Arc::<NeverSessionManager>::default();
                let service = StreamableHttpService::new(|| Ok(Own), sessions, config);
                axum::serve(listener, Router::new().nest_service("/mcp", service)).await.unwrap();
            });
        });
        Self { url: format!("http://{}", heard.await.unwrap()) }
    }
}

#[derive(Clone)]
struct Own;

impl ServerHandler for Own {
    fn get_info(&self) -> Info {
        Info::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({ "type": "object", "properties": { "account": { "type": "string" } } });
        let schema = schema.as_object().cloned().unwrap_or_default();
        Ok(ListToolsResult::with_all_items(vec![Tool::new("look", "Looks", Arc::new(schema))]))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("seen")]).into())
    }
}

/// `sayso gateway` with two resources before one server: nobody is asked about the one, a policy about the other.
pub(crate) struct Gateway {
    pub(crate) url: String,
    child: Child,
    _folder: tempfile::TempDir,
}

impl Gateway {
    pub(crate) fn open(server: &str, issuer: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("policies")).unwrap();
        std::fs::write(at("policies/look.cedar"), POLICIES).unwrap();
        let settings = format!(
            "data = 'data'\n[gateway]\nlisten = '127.0.0.1:0'\n[pdp]\npolicies = 'policies'\n\
             [oauth]\nissuers = ['{issuer}']\n\
             [[resource]]\npath = '/plain'\nenforce = []\nupstream = '{server}/mcp'\n\
             owner = 'alice'\nauthority = 'http://127.0.0.1:9'\nrealm = 'plain'\n\
             [[resource]]\npath = '/policed'\nenforce = ['coaz']\npdp = 'embedded'\nupstream = '{server}/mcp'\n"
        );
        std::fs::write(at("sayso.toml"), settings).unwrap();
        let mut child = Command::new(binary())
            .args(["gateway", "--config", "sayso.toml", "--json"])
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(at("log")).unwrap())
            .spawn()
            .expect("`cargo build --release` first, or name the program in SAYSO_BIN");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("{}", std::fs::read_to_string(at("log")).unwrap_or_default()));
        let url = ready.get("gateway").and_then(Value::as_str).unwrap().to_owned();
        Self { url, child, _folder: folder }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program that was built with this benchmark's profile.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("SAYSO_BIN") {
        return named.into();
    }
    let here = std::env::current_exe().unwrap();
    here.ancestors().nth(2).unwrap().join("sayso")
}
