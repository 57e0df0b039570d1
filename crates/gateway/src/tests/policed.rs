//! A policy alone before a server, as a client of the proxy meets it: statuses, bodies, and where a token is to be had.

use super::cast::{Canary, House, PUBLIC, Scripted, config, policed};
use super::wire::Request;
use sayso_enforce::policy::Denials;
use sayso_enforce::policy::coaz::Trust;
use sayso_enforce::policy::scripted::{Point, Says, Script};
use serde_json::{Value, json};
use std::sync::Arc;

async fn open(says: Says, script: Script) -> (House, Arc<Point>) {
    let (canary, upstream) = Canary::open().await;
    let point = Point::saying(says);
    let resources = vec![policed(&point, script, format!("http://{upstream}/mcp"))];
    (House::with(canary, Arc::new(Scripted::default()), config(resources)).await, point)
}

fn by(token: &str, request: Request) -> Request {
    request.with("Authorization", &format!("Bearer {token}"))
}

fn look() -> Request {
    Request::call("look", r#"{"who":"u-bob"}"#)
}

// COAZ-MCP-75, D-3: the proxy answers the client, so an error of COAZ's is the answer to its message.
#[tokio::test]
async fn a_no_is_an_answer_with_status_200() {
    for (says, code, category) in [
        (Says::No, -32001, "denied"),
        (Says::Obliged, -32001, "denied"),
        (Says::Nothing, -32603, "pdp_unavailable"),
    ] {
        let (house, point) = open(says, Script::default()).await;
        let response = house.send(&by("ann", look())).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["code"]), (200, &json!(code)));
        assert_eq!(
            (&error["data"]["coaz"]["category"], &response.json()["id"]),
            (&json!(category), &json!(1))
        );
        assert_eq!(response.all("www-authenticate"), [""; 0]);
        assert_eq!((house.canary.count(), point.bodies().len()), (0, 1));
    }
    let (house, _) = open(Says::Yes, Script::default()).await;
    assert_eq!(house.send(&by("ann", look())).await.json()["result"], json!({ "content": [] }));
    let (head, body) = house.canary.only();
    assert_eq!(body, look().body);
    assert!(!head.to_ascii_lowercase().contains("authorization"), "{head}");
}

// COAZ-MCP-81, COAZ-MCP-70
#[tokio::test]
async fn who_shows_no_good_token_is_told_where_one_is_to_be_had() {
    let (house, point) = open(Says::Yes, Script::default()).await;
    let at = format!("Bearer resource_metadata=\"{PUBLIC}/.well-known/oauth-protected-resource/mcp\"");
    let bare = house.send(&look()).await;
    assert_eq!((bare.status, bare.all("www-authenticate")), (401, vec![at.as_str()]));
    for request in [by("eve", look()), look().with("Authorization", "Bearer a b")] {
        let response = house.send(&request).await;
        let [header] = response.all("www-authenticate").try_into().unwrap();
        assert!(
            response.status == 401 && header.starts_with(&format!("{at}, error=\"invalid_token\"")),
            "{header}"
        );
    }
    let unsaid = house.send(&by("unheard", look())).await;
    assert_eq!((unsaid.status, &unsaid.json()["error"]), (503, &json!("temporarily_unavailable")));
    assert!(point.bodies().is_empty());
    house.assert_untouched("without a token");
}

// COAZ-MCP-78, COAZ-MCP-79
#[tokio::test]
async fn a_call_may_be_denied_by_a_result_in_the_policy_engines_words() {
    let denials = Denials { words: Some("reason_user.en".parse().unwrap()), as_result: true };
    let (house, _) = open(Says::NoSaying, Script { denials, ..Script::default() }).await;
    let response = house.send(&by("ann", look())).await;
    let result = &response.json()["result"];
    let said = "Access denied: not today - ever";
    assert_eq!((response.status, &result["isError"]), (200, &json!(true)));
    assert_eq!((&result["content"][0]["text"], response.json().get("error")), (&json!(said), None));
    let list = house.send(&by("ann", Request::list())).await.json();
    assert_eq!((&list["error"]["code"], &list["error"]["message"]), (&json!(-32001), &json!(said)));
    house.assert_untouched("denied");
}

// COAZ-MCP-82, COAZ-MCP-58, COAZ-FW-48: how far an author is trusted is a setting of whoever deploys.
#[tokio::test]
async fn a_subject_that_cannot_be_verified_is_passed_on_or_refused_as_is_set() {
    let (house, point) = open(Says::Yes, Script::unanchored("look", Trust::Strict)).await;
    let refused: Value = house.send(&by("ann", look())).await.json();
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["data"]["coaz"]["category"], "mapping_error");
    assert!(point.bodies().is_empty() && !refused.to_string().contains("u-bob"), "{refused}");
    house.assert_untouched("strictly");
    let (house, point) = open(Says::Yes, Script::unanchored("look", Trust::Warn)).await;
    assert_eq!(house.send(&by("ann", look())).await.status, 200);
    assert_eq!((house.canary.count(), &point.only()["subject"]["id"]), (1, &json!("u-bob")));
}

// COAZ-MCP-88: nothing rewrites a message, so what is evaluated is what is forwarded, to the byte.
#[tokio::test]
async fn what_is_evaluated_is_what_is_forwarded() {
    let odd = r#"{ "jsonrpc" : "2.0","id":1 ,"method":"tools/call","params":{"arguments":{"n":1.50,"b":"\u00e9"},"name":"look",
        "_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let meanwhile = Script::default();
    let (house, point) = open(Says::Yes, meanwhile).await;
    let request = by("ann", Request::post("tools/call", Some("look"), odd));
    assert_eq!(house.send(&request).await.status, 200);
    assert_eq!(house.canary.only().1, odd.as_bytes());
    assert_eq!(point.only()["resource"]["id"], "look");
}
