//! A server written with rmcp, guarded over HTTP: the layer decides, and either of the two says no.

mod spent;

use super::cast::{AS_URI, DOCUMENT, HOST, NOW, Scripted, TRADE, clock, config, key};
use super::request::{Answer, Call};
use crate::rmcp::{Behind, over_http};
use crate::{Layered, Site};
use rmcp::model::*;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tower::ServiceExt;

/// A server of accounts that keeps what it was asked to do.
#[derive(Clone, Default)]
pub(crate) struct Accounts {
    pub(crate) did: Arc<Mutex<Vec<String>>>,
    faulty: Arc<AtomicBool>,
    /// Whether a trade asks before it is made.
    asks: Arc<AtomicBool>,
}

impl ServerHandler for Accounts {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_resources().build())
            .with_server_info(Implementation::new("accounts", "1"))
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.did.lock().unwrap().push("tools/list".to_owned());
        let tool = Tool::new("get_positions", "What there is.", JsonObject::default());
        Ok(ListToolsResult::with_all_items(vec![tool]))
    }

    async fn read_resource(
        &self,
        _request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.did.lock().unwrap().push("resources/read".to_owned());
        Ok(ReadResourceResult::new(Vec::new()).into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        self.did.lock().unwrap().push(request.method);
        Ok(CustomResult::new(json!({})))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.did.lock().unwrap().push(request.name.to_string());
        assert!(!self.faulty.load(Ordering::SeqCst), "the server has a fault");
        if self.asks.load(Ordering::SeqCst) && request.request_state.is_none() {
            return Ok(InputRequiredResult::new(None, Some("asked".to_owned())).into());
        }
        Ok(CallToolResult::success(vec![ContentBlock::text("done")]).into())
    }
}

#[derive(Clone, Copy)]
enum Answers {
    Http,
    JsonRpc,
}

struct Http {
    authority: Arc<Scripted>,
    accounts: Accounts,
    service: Layered<StreamableHttpService<Behind<Accounts>, LocalSessionManager>>,
}

impl Http {
    fn open(answers: Answers) -> Self {
        Self::with(answers, |_| {})
    }

    fn with(answers: Answers, change: fn(&mut crate::SiteConfig)) -> Self {
        let (authority, accounts) = (Arc::new(Scripted::default()), Accounts::default());
        let mut config = config(authority.clone());
        change(&mut config);
        let site = Site::new(config, clock()).unwrap();
        let server = accounts.clone();
        let factory = move || Ok(server.clone());
        let settings = StreamableHttpServerConfig::default().with_json_response(true);
        let layer = match answers {
            Answers::Http => site.layer(),
            Answers::JsonRpc => site.layer().in_json_rpc(),
        };
        let service = over_http(&layer, factory, Arc::default(), settings);
        Self { authority, accounts, service }
    }

    async fn send(&self, call: &Call) -> Answer {
        Answer::read(self.service.clone().oneshot(call.request()).await.unwrap()).await
    }

    fn did(&self) -> Vec<String> {
        std::mem::take(&mut self.accounts.did.lock().unwrap())
    }
}

fn trade() -> Call {
    Call::tool("execute_trade", TRADE)
}

fn read() -> Call {
    Call::tool("get_positions", "{}")
}

fn announcement() -> Value {
    json!({
        "grant_type": "urn:ietf:params:oauth:grant-type:uma-ticket",
        "authorization_servers": [AS_URI],
        "challenge": { "jsonrpc_error_code": -32001 },
    })
}

// MCP-03
#[tokio::test]
async fn the_handshakes_of_both_eras_announce_the_extension() {
    let http = Http::open(Answers::Http);
    let modern = http.send(&Call::open("server/discover")).await.json();
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" }
    });
    let legacy = http.send(&Call::older_request("initialize", &params)).await.json();
    for result in [&modern["result"], &legacy["result"]] {
        let extensions = &result["capabilities"]["extensions"];
        assert_eq!(extensions, &json!({ "dev.uma4agents/uma-enforcement": announcement() }), "{result}");
        assert!(result["capabilities"]["tools"].is_object());
    }
    let negotiated = legacy["result"]["protocolVersion"].as_str().unwrap();
    assert!(negotiated <= "2025-11-25", "{negotiated}");
}

// MCP-05, MCP-19
#[tokio::test]
async fn what_the_layer_passed_runs_and_runs_once() {
    for answers in [Answers::Http, Answers::JsonRpc] {
        let http = Http::open(answers);
        let calls = [Call::open("tools/list"), read().signed("reader"), trade().signed("trade-1")];
        for call in &calls {
            let answer = http.send(call).await;
            assert_eq!(answer.status, 200, "{answer:?}");
            assert!(answer.json()["result"].is_object(), "{answer:?}");
        }
        assert_eq!(http.did(), ["tools/list", "get_positions", "execute_trade"]);
        assert_eq!(*http.authority.spent.lock().unwrap(), ["trade-1"]);
    }
}

// D-11: the round a server of rmcp's asked for reaches it once, and a second is refused in the layer's own voice.
#[tokio::test]
async fn a_server_that_asks_is_answered_once() {
    for answers in [Answers::Http, Answers::JsonRpc] {
        let http = Http::open(answers);
        http.accounts.asks.store(true, Ordering::SeqCst);
        let asked = http.send(&trade().signed("trade-asks-1")).await.json();
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let answer = |state: &str| {
            let body = String::from_utf8(trade().body.to_vec()).unwrap();
            trade().saying(body.replace(r#""name""#, &format!(r#""requestState":"{state}","name""#)))
        };
        for state in ["another", "asked", "asked"] {
            let told = http.send(&answer(state).signed("trade-asks-1")).await;
            let body = told.json();
            match (body["result"].is_object(), answers) {
                (true, _) => assert_eq!(state, "asked"),
                (false, Answers::Http) => {
                    assert_eq!((told.status.as_u16(), &body["error"]), (403, &json!("continuation_refused")));
                }
                (false, Answers::JsonRpc) => {
                    let data = &body["error"]["data"];
                    assert_eq!((&body["error"]["code"], &data["status"]), (&json!(-32002), &json!(403)));
                    assert_eq!(data["error"], "continuation_refused");
                }
            }
        }
        assert_eq!(http.did(), ["execute_trade", "execute_trade"]);
        assert_eq!(http.authority.rounds.lock().unwrap().len(), 1);
    }
}

// MCP-07
#[tokio::test]
async fn by_itself_the_layer_says_no() {
    let http = Http::open(Answers::Http);
    for (call, status) in
        [(trade(), 401), (trade().signed("connection_revoked"), 403), (trade().shown("trade-1"), 401)]
    {
        let answer = http.send(&call).await;
        assert_eq!(answer.status, status);
        assert!(answer.json().get("jsonrpc").is_none());
    }
    assert!(http.did().is_empty());
    http.authority.assert_untouched("refused by the layer");
}

// CORE-13, CORE-14, MCP-10, MCP-11, MCP-12
#[tokio::test]
async fn a_challenge_of_the_guards_is_the_one_over_http() {
    let (guard, layer) = (Http::open(Answers::JsonRpc), Http::open(Answers::Http));
    let answer = guard.send(&trade()).await;
    let said = answer.json();
    assert_eq!(
        (answer.status.as_u16(), &said["id"], &said["error"]["code"]),
        (200, &json!(1), &json!(-32001))
    );
    let mut data = said["error"]["data"].clone();
    assert_eq!(data.as_object_mut().unwrap().remove("status"), Some(json!(401)));
    assert_eq!(data, layer.send(&trade()).await.json());
    assert_eq!((&data["ticket"], &data["resource_metadata"]), (&json!("ticket-0"), &json!(DOCUMENT)));
    assert!(guard.did().is_empty());
    guard.authority.assert_untouched("challenged by the guard");
}

// MCP-13, MCP-14
#[tokio::test]
async fn every_other_refusal_of_a_call_has_its_word_and_status() {
    let http = Http::open(Answers::JsonRpc);
    let task = String::from_utf8(read().body.to_vec()).unwrap().replace(r#""name""#, r#""task":{},"name""#);
    for (call, error, status) in [
        (trade().signed("connection_revoked"), "access_revoked", 403),
        (trade().signed("already_consumed"), "already_consumed", 403),
        (trade().shown("trade-1"), "invalid_token", 401),
        (trade().shown("trade-1").signed_by(&key(0x33), NOW, HOST), "invalid_token", 401),
        (Call::tool("wire_money", "{}"), "unknown_tool", 403),
        (Call::tool("execute_trade", "{}").signed("trade-1"), "operation_mismatch", 403),
        (read().saying(task), "task_not_served", 400),
    ] {
        let answer = http.send(&call).await;
        let said = answer.json();
        assert_eq!((answer.status.as_u16(), &said["error"]["code"]), (200, &json!(-32002)), "{said}");
        let data = &said["error"]["data"];
        assert_eq!((&data["error"], &data["status"]), (&json!(error), &json!(status)));
        assert!(http.did().is_empty(), "{error}");
        http.authority.assert_untouched(error);
    }
    let once = read().signed("reader");
    assert!(http.send(&once).await.json()["result"].is_object());
    assert_eq!(http.send(&once).await.json()["error"]["data"]["error"], "invalid_token");
    assert!(http.send(&trade().signed("trade-1")).await.json()["result"].is_object());
    let lost = http.send(&trade().signed("trade-1")).await.json();
    assert_eq!(lost["error"]["data"]["error"], "already_consumed");
    assert_eq!(http.did(), ["get_positions", "execute_trade"]);
}

// MCP-06, MCP-14, MCP-25, MCP-28, MCP-30
#[tokio::test]
async fn what_is_no_call_yet_is_refused_by_the_layer_in_either_mode() {
    for answers in [Answers::Http, Answers::JsonRpc] {
        let http = Http::open(answers);
        let custom = Call::open("vault/open");
        let resource = String::from_utf8(custom.body.to_vec()).unwrap();
        let resource = resource
            .replace("vault/open", "resources/read")
            .replace(r#""params":{"#, r#""params":{"uri":"x","#);
        let resource = Call::modern("resources/read", Some("x"), resource).signed("reader");
        for (call, status) in [
            (custom, 404),
            (resource, 404),
            (trade().signed("trade-1").but("mcp-method", "tools/list"), 400),
            (trade().signed("trade-1").with("origin", "https://evil.example"), 403),
            (trade().signed("trade-1").saying(vec![b' '; (64 << 10) + 1]), 413),
            (read().but("host", "evil.example.test"), 421),
        ] {
            assert_eq!(http.send(&call).await.status, status);
            assert!(http.did().is_empty());
            http.authority.assert_untouched("refused by the layer");
        }
    }
}

#[tokio::test]
async fn a_method_the_site_opens_passes_both() {
    let http = Http::with(Answers::JsonRpc, |config| config.open_methods = vec!["vault/open".into()]);
    assert_eq!(http.send(&Call::open("vault/open")).await.status, 200);
    assert_eq!(http.did(), ["vault/open"]);
}

// D-13
#[tokio::test]
async fn an_older_clients_session_is_its_keys() {
    let http = Http::open(Answers::JsonRpc);
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "c", "version": "1" }
    });
    let answer = http.send(&Call::older_request("initialize", &params)).await;
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let within = |call: Call| call.with("mcp-session-id", &id);
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(http.send(&within(Call::older(&note))).await.status, 202);
    let call =
        || within(Call::older_request("tools/call", &json!({ "name": "get_positions", "arguments": {} })));
    let refused = http.send(&call()).await;
    assert_eq!(refused.json()["error"]["code"], -32001, "{refused:?}");
    assert!(http.send(&call().signed("reader")).await.json()["result"].is_object());
    let thief = http.send(&call().shown("other").signed_by(&key(0x33), NOW, HOST)).await.json();
    assert_eq!(
        (&thief["error"]["code"], &thief["error"]["data"]["error"]),
        (&json!(-32002), &json!("session_bound"))
    );
    assert_eq!(http.send(&within(Call::older_request("tools/list", &json!({})))).await.status, 401);
    assert_eq!(http.did(), ["get_positions"]);
}
