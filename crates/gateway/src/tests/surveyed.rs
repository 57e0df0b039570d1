//! Listings the gateway makes itself, and what a new one does to calls.

use super::cast::{Canary, House};
use super::stdio::Fixture;
use super::wire::Request;
use crate::classify::{Class, govern, realm};
use crate::{HttpSettings, Survey, SurveyFault, Upstream};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request as Asked, State};
use http::{HeaderMap, Method, Response};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

mod attended;

type Answer = Arc<dyn Fn(&Method, &HeaderMap, &Value) -> Response<Body> + Send + Sync>;

/// A server made of one function, and what it was asked.
struct Server {
    url: String,
    asked: Arc<Mutex<Vec<(Method, HeaderMap, Value)>>>,
}

type Served = (Answer, Arc<Mutex<Vec<(Method, HeaderMap, Value)>>>);

impl Server {
    async fn open(
        answer: impl Fn(&Method, &HeaderMap, &Value) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let asked = Arc::new(Mutex::default());
        let served: Served = (Arc::new(answer), Arc::clone(&asked));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(served);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, asked }
    }

    async fn survey(&self) -> Result<Survey, SurveyFault> {
        Upstream::open(HttpSettings::at(&self.url)).unwrap().survey().await
    }
}

async fn serve(State((answer, asked)): State<Served>, request: Asked) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let response = answer(&parts.method, &parts.headers, &body);
    asked.lock().unwrap().push((parts.method, parts.headers, body));
    response
}

fn respond(status: u16, kind: &str, text: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header("content-type", kind).body(text.into()).unwrap()
}

fn result(asked: &Value, result: Value) -> Response<Body> {
    respond(
        200,
        "application/json",
        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }).to_string(),
    )
}

fn error(status: u16, asked: &Value, code: i64) -> Response<Body> {
    let error = json!({ "code": code, "message": "no" });
    respond(
        status,
        "application/json",
        json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }).to_string(),
    )
}

fn discovered() -> Value {
    json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "remote", "version": "1" } } })
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

/// A modern server that answers `tools/list` so.
async fn modern(list: impl Fn(&Value) -> Response<Body> + Send + Sync + 'static) -> Server {
    Server::open(move |_, _, asked| match asked["method"].as_str() {
        Some("server/discover") => result(asked, discovered()),
        _ => list(asked),
    })
    .await
}

fn names(survey: &Survey) -> Vec<&str> {
    survey.tools.iter().map(|tool| tool.name.as_str()).collect()
}

// D-30
#[tokio::test]
async fn a_modern_server_is_asked_for_every_page_with_no_word_of_an_agents() {
    let server = modern(|asked| match asked["params"]["cursor"].as_str() {
        None => result(asked, json!({ "tools": [tool("a")], "nextCursor": "two" })),
        Some("two") => result(asked, json!({ "tools": [tool("b"), tool("c")] })),
        _ => error(400, asked, -32602),
    })
    .await;
    let survey = server.survey().await.unwrap();
    assert_eq!(names(&survey), ["a", "b", "c"]);
    assert_eq!((survey.server_name.as_deref(), survey.revision.as_str()), (Some("remote"), "2026-07-28"));
    let asked = server.asked.lock().unwrap();
    assert_eq!(asked.len(), 3);
    for (_, headers, body) in asked.iter() {
        assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
        assert_eq!(headers["mcp-method"], body["method"].as_str().unwrap());
        assert_eq!(body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert!(headers.get("authorization").is_none() && headers.get("mcp-session-id").is_none());
    }
}

// D-13, D-30, LST-13
#[tokio::test]
async fn an_older_server_is_met_in_a_session_and_over_events() {
    for refusal in [400_u16, 404, 405, 500] {
        let server = Server::open(move |method, headers, asked| {
            if *method == Method::DELETE {
                return respond(200, "text/plain", "");
            }
            let session = headers.get("mcp-session-id").is_some_and(|id| id == "s-1");
            match asked["method"].as_str() {
                Some("initialize") if headers.get("mcp-protocol-version").is_none() => {
                    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                        "serverInfo": { "name": "old", "version": "1" } });
                    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": hello });
                    let text = format!("event: message\r\nid: 1\r\ndata: {answer}\r\n\r\n");
                    let mut response = respond(200, "text/event-stream; charset=utf-8", text);
                    response.headers_mut().insert("mcp-session-id", "s-1".parse().unwrap());
                    response
                }
                Some("notifications/initialized") if session => respond(202, "text/plain", ""),
                Some("tools/list") if session && headers["mcp-protocol-version"] == "2025-06-18" => {
                    let answer =
                        json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "tools": [tool("a")] } });
                    let noise = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;
                    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
                    let text = format!(": hi\n\ndata: {noise}\n\ndata: {ping}\n\ndata: {answer}\n\n");
                    respond(200, "text/event-stream", text)
                }
                _ => respond(refusal, "text/plain", "Bad Request: no valid session"),
            }
        })
        .await;
        let survey = server.survey().await.unwrap();
        assert_eq!((names(&survey), survey.revision.as_str()), (vec!["a"], "2025-06-18"));
        assert_eq!(survey.server_name.as_deref(), Some("old"));
        let asked = server.asked.lock().unwrap();
        let (method, headers, _) = asked.last().unwrap();
        assert_eq!((method, &headers["mcp-session-id"]), (&Method::DELETE, &"s-1".parse().unwrap()));
    }
}

// D-30, LST-03, LST-04
#[tokio::test]
async fn what_is_not_a_whole_listing_is_none() {
    type List = fn(&Value) -> Response<Body>;
    let cases: [(List, SurveyFault); 9] = [
        (|asked| result(asked, json!({ "tools": [tool("a"), tool("a")] })), SurveyFault::Repeated),
        (
            |asked| {
                let page = asked["params"]["cursor"].as_str().unwrap_or("x").len();
                let tools = [tool(&format!("t{page}"))];
                result(asked, json!({ "tools": tools, "nextCursor": "x".repeat(page + 1) }))
            },
            SurveyFault::TooLarge,
        ),
        (
            |asked| {
                let tools: Vec<Value> = (0..2001).map(|nth| tool(&format!("t{nth}"))).collect();
                result(asked, json!({ "tools": tools }))
            },
            SurveyFault::TooLarge,
        ),
        (
            |asked| result(asked, json!({ "tools": [tool("a")], "pad": "x".repeat(9 << 20) })),
            SurveyFault::TooLarge,
        ),
        (|asked| error(200, asked, -32000), SurveyFault::Refused(-32000)),
        (|asked| result(asked, json!({ "tools": {} })), SurveyFault::Malformed),
        (|asked| result(asked, json!({ "tools": [{}] })), SurveyFault::Malformed),
        (
            |_| respond(200, "application/json", r#"{"jsonrpc":"2.0","id":2,"id":2,"result":{}}"#),
            SurveyFault::Malformed,
        ),
        (|_| respond(307, "text/plain", ""), SurveyFault::Malformed),
    ];
    for (nth, (list, fault)) in cases.into_iter().enumerate() {
        let server = modern(list).await;
        assert_eq!(server.survey().await.err(), Some(fault), "{nth}");
    }
    let nobody = Upstream::open("http://127.0.0.1:1/mcp").unwrap();
    assert_eq!(nobody.survey().await.err(), Some(SurveyFault::Unreachable));
    let stranger = Server::open(|_, _, asked| {
        let hello = json!({ "protocolVersion": "2031-01-01", "capabilities": {}, "serverInfo": {} });
        result(asked, hello)
    })
    .await;
    assert_eq!(stranger.survey().await.err(), Some(SurveyFault::Unspoken));
}

#[tokio::test]
async fn a_tool_that_cannot_be_pinned_is_left_out_and_the_others_are_not() {
    let server = modern(|asked| {
        let mut wide = tool("wide");
        wide["inputSchema"]["maximum"] = json!(u64::MAX);
        result(asked, json!({ "tools": [tool("a"), wide, tool(""), tool("b")] }))
    })
    .await;
    let survey = server.survey().await.unwrap();
    assert_eq!(names(&survey), ["a", "b"]);
    let left: Vec<&str> = survey.left_out.iter().map(|left| left.name.as_str()).collect();
    assert_eq!(left, ["wide", ""]);
    assert!(survey.left_out[0].reason.to_string().contains("canonical"));
}

#[tokio::test]
async fn a_server_without_tools_has_none() {
    let server = Server::open(|_, _, asked| match asked["method"].as_str() {
        Some("server/discover") => {
            result(asked, json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} }))
        }
        _ => error(404, asked, -32601),
    })
    .await;
    let survey = server.survey().await.unwrap();
    assert!(survey.tools.is_empty() && survey.server_name.is_none());
}

#[tokio::test]
async fn a_child_is_surveyed_in_the_era_it_speaks() {
    for (options, revision) in [
        ("--page 1", "2026-07-28"),
        ("--eras legacy --page 2", "2025-11-25"),
        ("--eras legacy --first initialize", "2025-11-25"),
        ("--eras legacy --version 2024-11-05", "2024-11-05"),
    ] {
        let fixture = Fixture::with(options);
        let survey = Upstream::open(fixture.command.clone()).unwrap().survey().await.unwrap();
        assert_eq!(
            (names(&survey), survey.revision.as_str()),
            (vec!["echo", "get_positions", "execute_trade"], revision)
        );
        let classes: Vec<Class> = survey.tools.iter().map(|tool| Class::of(&tool.annotations)).collect();
        assert_eq!(classes, [Class::Read, Class::Act, Class::Act]);
        assert_eq!(realm(survey.server_name.as_deref().unwrap()).unwrap().as_str(), "fixture-server");
    }
}

// D-30, MCP-02: a server that changes a tool after it was seen does not get its next call.
#[tokio::test]
async fn what_is_published_and_decided_follows_the_last_listing() {
    let fixture = Fixture::with("");
    let listed = fixture.path("tools.json");
    let write = |description: &str, schema: &str| {
        let text = format!(
            r#"[{{"name":"get_positions","description":"{description}","inputSchema":{schema}}}, {{"name":"two words"}}]"#
        );
        std::fs::write(&listed, text).unwrap();
    };
    write("first", r#"{"type":"object"}"#);
    let fixture = Fixture::with(&format!("--tools {}", listed.display()));
    let upstream = Upstream::open(fixture.command.clone()).unwrap();
    let authority = Arc::new(super::cast::Scripted::default());
    let mut resource = super::cast::resource("/mcp", authority.clone(), upstream.clone());
    resource.resource.tools = Vec::new();
    let house =
        House::with(Arc::new(Canary::default()), authority, super::cast::config(vec![resource])).await;
    let call = || Request::call("get_positions", "{}").signed("reader");
    let response = house.send(&call()).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (503, Some("temporarily_unavailable")));
    house.assert_untouched("before the first listing");
    assert_eq!(house.send(&Request::list()).await.status, 200);

    let realm = "vault".parse().unwrap();
    let learn = async || {
        let survey = upstream.survey().await.unwrap();
        let governed: Vec<_> = survey.tools.iter().filter_map(|tool| govern(tool, &realm).ok()).collect();
        let pin = governed[0].definition.clone();
        house.handle.replace_tools("/mcp", governed).unwrap();
        pin
    };
    let first = learn().await;
    let get = |path: &str| Request { line: format!("GET {path} HTTP/1.1"), ..Request::list() };
    let metadata = house.send(&get("/.well-known/oauth-protected-resource/mcp")).await.json();
    assert_eq!(metadata["scopes_supported"], json!(["get_positions:call"]));
    // The scripted grant names the scope of its own registry, so a call is challenged and not refused for the tool.
    assert_eq!(house.send(&call()).await.status, 401);
    write("second", r#"{"type":"object"}"#);
    assert_eq!(learn().await, first, "words alone changed the pin");
    write("second", r#"{"type":"object","required":["x"]}"#);
    assert_ne!(learn().await, first);
    assert!(house.handle.replace_tools("/elsewhere", Vec::new()).is_err());
    house.handle.replace_tools("/mcp", Vec::new()).unwrap();
    let response = house.send(&call()).await;
    assert_eq!((response.status, response.json()["error"].as_str()), (403, Some("unknown_tool")));
}
