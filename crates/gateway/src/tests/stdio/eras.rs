//! Who is served by what kind of child; nothing is translated.

use super::{Fixture, habit, legacy, said, trade};
use crate::tests::wire::Request;
use serde_json::{Value, json};

fn initialize(version: &str) -> Request {
    let info = json!({ "name": "client", "version": "0" });
    legacy(
        "initialize",
        &json!({ "protocolVersion": version, "capabilities": { "sampling": {} }, "clientInfo": info }),
    )
}

// D-31
#[tokio::test]
async fn a_modern_request_to_an_older_child_is_told_its_versions_and_costs_nothing() {
    for (options, versions) in [
        ("--eras legacy", json!(["2025-11-25"])),
        ("--eras legacy --version 2025-06-18", json!(["2025-06-18"])),
        ("--eras legacy --first initialize", json!(["2025-11-25"])),
    ] {
        let fixture = Fixture::with(options);
        let house = fixture.house().await;
        for request in [Request::list(), trade().signed("trade-1"), Request::call("get_positions", "{}")] {
            let response = house.send(&request).await;
            let body = response.json();
            assert_eq!((response.status, &body["error"]["code"]), (400, &json!(-32022)), "{body}");
            assert_eq!(body["error"]["data"], json!({ "supported": versions, "requested": "2026-07-28" }));
            assert_eq!(body["id"], serde_json::from_slice::<Value>(&request.body).unwrap()["id"]);
        }
        house.assert_untouched("unspoken");
        assert!(fixture.heard_calls().is_empty());
        let response = house.send(&legacy("tools/list", &json!({}))).await;
        assert!(response.json()["result"]["tools"].is_array(), "{response:?}");
    }
}

#[tokio::test]
async fn a_legacy_request_to_a_modern_child_is_told_so() {
    let fixture = Fixture::with("--eras modern");
    let house = fixture.house().await;
    for request in [legacy("tools/list", &json!({})), initialize("2025-11-25")] {
        let response = house.send(&request).await;
        assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32022)));
        assert_eq!(response.json()["error"]["data"]["supported"], json!(["2026-07-28"]));
    }
    assert!(said(&house.send(&habit("echo")).await).contains("echo"));
}

// D-31
#[tokio::test]
async fn outside_a_session_an_older_client_is_one_of_many() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let told = Request::post("", None, told).but("MCP-Protocol-Version", "2025-11-25").without("Mcp-Method");
    assert_eq!(house.send(&told).await.status, 202);
    for (method, id) in [("notifications/cancelled", 1), ("notifications/roots/list_changed", 2)] {
        let body = json!({ "jsonrpc": "2.0", "method": method, "params": { "requestId": id } }).to_string();
        let note = Request::post("", None, body).without("MCP-Protocol-Version").without("Mcp-Method");
        assert_eq!(house.send(&note).await.status, 202, "{method}");
    }
    let call = legacy("tools/call", &json!({ "name": "get_positions", "arguments": {} }));
    assert!(
        said(&house.send(&call.but("MCP-Protocol-Version", "2025-11-25").signed("reader")).await)
            .contains("arguments")
    );
    let pong = house.send(&legacy("ping", &json!({}))).await;
    assert_eq!((pong.status, &pong.json()["result"]), (200, &json!({})));
    // The child met one client, us, once, and heard nothing of anybody's session.
    let heard = fixture.heard();
    let count = |what: &str| heard.iter().filter(|line| line.contains(what)).count();
    assert_eq!((count("\"initialize\""), count("notifications/initialized")), (1, 1));
    assert_eq!((count("cancelled"), count("roots")), (0, 0));
}

#[tokio::test]
async fn outside_a_session_a_revision_the_child_does_not_speak_is_refused() {
    let fixture = Fixture::with("--version 2025-06-18");
    let house = fixture.house().await;
    let other = legacy("tools/list", &json!({})).with("MCP-Protocol-Version", "2025-11-25");
    let response = house.send(&other).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32022)));
    let right = legacy("tools/list", &json!({})).with("MCP-Protocol-Version", "2025-06-18");
    assert_eq!(house.send(&right).await.status, 200);
}

#[tokio::test]
async fn an_error_of_a_modern_server_has_its_status() {
    let fixture = Fixture::with("");
    let house = fixture.house().await;
    let response = house.send(&habit("fail")).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (400, &json!(-32602)));
    let missing = String::from_utf8(Request::list().body).unwrap().replace("tools/list", "prompts/list");
    let response = house.send(&Request::post("prompts/list", None, missing)).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (404, &json!(-32601)));
    let response = house.send(&legacy("prompts/list", &json!({}))).await;
    assert_eq!((response.status, &response.json()["error"]["code"]), (200, &json!(-32601)));
}
