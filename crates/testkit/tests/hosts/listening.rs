//! What a subscription hears where a policy alone is asked: its yes is for the method, and no thing was named to it.

use super::authority::Stub;
use super::policy::Scripted;
use super::standing::{self, META, posted, with};
use super::vectors::{STAGE, Stage};
use bytes::Bytes;
use http::Request;
use sayso_enforce::Authority;
use serde_json::json;
use std::sync::Arc;

const LISTS: &str = r#"{"toolsListChanged":true}"#;
const THINGS: [&str; 4] = [
    r#"{"taskIds":["t-of-bob"],"resourceSubscriptions":["file:///secret"]}"#,
    r#"{"resourceSubscriptions":["file:///secret"]}"#,
    r#"{"toolsListChanged":false,"taskIds":["t-of-bob"]}"#,
    r#"["file:///secret"]"#,
];
const BOTH: &str =
    r#"{"taskIds":["t-of-bob"],"toolsListChanged":true,"resourceSubscriptions":["file:///secret"]}"#;

fn listen(wanted: &str, token: Option<&str>) -> Request<Bytes> {
    let params = format!(r#"{{"notifications":{wanted},"_meta":{META}}}"#);
    let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{params}}}"#);
    let mut request = posted("subscriptions/listen", None, body);
    if let Some(token) = token {
        with(&mut request, "authorization", &format!("Bearer {token}"));
    }
    request
}

async fn hosts(policy: &Arc<Scripted>) -> Vec<standing::Standing> {
    let stage = Stage { enforcement: policy.enforcement(), ..STAGE };
    standing::all(&stage, &(Stub::granting(&json!({ "active": false })) as Arc<dyn Authority>)).await
}

// COAZ-FW-43, COAZ-MCP-U3, D-12: nobody was asked about a task or a resource, so nothing of one is heard.
#[tokio::test]
async fn a_policys_yes_to_a_subscription_is_for_changed_lists_alone() {
    let policy = Scripted::alone("yes");
    for host in hosts(&policy).await {
        let mut passed = 0;
        for wanted in THINGS {
            let answer = host.send(listen(wanted, Some("ann"))).await;
            let said = (answer.error(), answer.refused_with());
            assert_eq!(said, ("not_subscribable".into(), 400), "{wanted} at {}: {answer:?}", host.name);
            assert_eq!(host.reached(), passed, "{wanted} at {}", host.name);
        }
        for wanted in [LISTS, BOTH] {
            let answer = host.send(listen(wanted, Some("ann"))).await;
            if host.is_asked() && wanted == BOTH {
                assert_eq!(answer.error(), "not_subscribable", "it cannot trim: {answer:?}");
                assert_eq!(host.reached(), passed, "{}", host.name);
                continue;
            }
            passed += 1;
            assert_eq!((answer.status, host.reached()), (200, passed), "{}: {answer:?}", host.name);
            let heard = String::from_utf8_lossy(&answer.body);
            assert!(host.is_asked() || heard.contains(LISTS), "{}: {heard}", host.name);
            assert!(!heard.contains("secret") && !heard.contains("t-of-bob"), "{}: {heard}", host.name);
        }
    }
}

// COAZ-FW-41, COAZ-MCP-70: whose it is and whether it may be heard at all comes first.
#[tokio::test]
async fn a_subscription_that_is_denied_is_denied_whatever_it_is_to() {
    let policy = Scripted::alone("no");
    for host in hosts(&policy).await {
        for wanted in [LISTS, BOTH, THINGS[0]] {
            let answer = host.send(listen(wanted, Some("ann"))).await;
            let category = &answer.json()["error"]["data"]["coaz"]["category"];
            assert_eq!(category, "denied", "{wanted} at {}: {answer:?}", host.name);
            assert_eq!((policy.asked(), host.reached()), (1, 0), "{}", host.name);
            assert_eq!(host.send(listen(wanted, None)).await.status, 401, "{wanted} at {}", host.name);
            assert_eq!((policy.asked(), host.reached()), (0, 0), "{}", host.name);
        }
    }
}
