//! A subscription at a resource that opens the method by name: the server is asked for what of it may be heard (ADR 0021).

use super::cast::{Canary, House, Scripted, config, resource};
use super::wire::Request;
use std::sync::Arc;

const META: &str = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn listen(wanted: &str) -> Request {
    let params = format!(r#"{{ "notifications" : {wanted}, "_meta":{META}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#);
    Request::post("subscriptions/listen", None, body)
}

async fn open() -> House {
    let (canary, upstream) = Canary::open().await;
    let authority = Arc::new(Scripted::default());
    let mut opened = resource("/mcp", authority.clone(), format!("http://{upstream}/behind/mcp"));
    opened.resource.open_methods = vec!["subscriptions/listen".into()];
    House::with(canary, authority, config(vec![opened])).await
}

// D-6, D-10
#[tokio::test]
async fn a_subscription_is_trimmed_to_changed_lists() {
    for (wanted, heard) in [
        (r#"{"toolsListChanged":true}"#, r#"{"toolsListChanged":true}"#),
        (
            r#"{"taskIds":["t"],"toolsListChanged":true,"resourceSubscriptions":["file:///etc"]}"#,
            r#"{"toolsListChanged":true}"#,
        ),
    ] {
        let house = open().await;
        let response = house.send(&listen(wanted)).await;
        assert_eq!(response.status, 200, "{response:?}");
        let (head, body) = house.canary.only();
        assert_eq!(body, listen(heard).body);
        assert!(head.to_ascii_lowercase().contains(&format!("content-length: {}", body.len())), "{head}");
    }
}

#[tokio::test]
async fn a_subscription_to_nothing_that_may_be_heard_is_refused() {
    for wanted in [r#"{"taskIds":["t"]}"#, r#"{"resourceSubscriptions":["file:///etc"]}"#, "[]"] {
        let house = open().await;
        let response = house.send(&listen(wanted)).await;
        let error = &response.json()["error"];
        assert_eq!((response.status, &error["data"]["error"]), (400, &"not_subscribable".into()), "{wanted}");
        house.assert_untouched(wanted);
    }
    let closed = House::open().await;
    let response = closed.send(&listen(r#"{"toolsListChanged":true}"#)).await;
    assert_eq!((response.status, closed.canary.count()), (404, 0));
}
