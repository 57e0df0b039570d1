//! Every method there is, and some there are not, at every host that sees HTTP: open, or not served. The lists are those of
//! the decision (D-6), and not of the table that the code goes by.

use super::authority::Stub;
use super::standing::{self, META, Standing, posted, reading, with};
use super::vectors::STAGE;
use bytes::Bytes;
use http::Request;
use sayso_enforce::Authority;
use std::sync::Arc;

async fn hosts() -> (Arc<Stub>, Vec<Standing>) {
    let authority = Stub::granting(&reading());
    let hosts = standing::all(&STAGE, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

const OPEN: [&str; 5] =
    ["server/discover", "tools/list", "prompts/list", "resources/list", "resources/templates/list"];

/// Open to older clients, and gone since.
const OLDER: [(&str, &str); 3] = [
    (
        "initialize",
        r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"qa","version":"1"}}"#,
    ),
    ("ping", "{}"),
    ("logging/setLevel", r#"{"level":"info"}"#),
];

const NOTIFICATIONS: [(&str, &str); 4] = [
    ("notifications/initialized", "{}"),
    ("notifications/cancelled", r#"{"requestId":1}"#),
    ("notifications/progress", r#"{"progressToken":1,"progress":1}"#),
    ("notifications/roots/list_changed", "{}"),
];

const NOT_SERVED: [(&str, Option<&str>); 24] = [
    ("resources/read", Some("file:///x")),
    ("prompts/get", Some("p")),
    ("completion/complete", None),
    ("resources/subscribe", None),
    ("resources/unsubscribe", None),
    ("subscriptions/listen", None),
    ("tasks/get", Some("t")),
    ("tasks/cancel", Some("t")),
    ("tasks/update", Some("t")),
    ("tasks/result", None),
    ("tasks/list", None),
    ("tasks/teleport", None),
    ("sampling/createMessage", None),
    ("elicitation/create", None),
    ("roots/list", None),
    ("foo/bar", None),
    ("", None),
    ("Tools/Call", None),
    ("TOOLS/LIST", None),
    ("tools/call/", None),
    ("tools/listx", None),
    ("tools//list", None),
    ("tools", None),
    ("rpc.discover", None),
];

fn modern(method: &str, name: Option<&str>) -> Request<Bytes> {
    let named =
        name.map_or_else(String::new, |name| format!(r#""name":"{name}","uri":"{name}","taskId":"{name}","#));
    let params = format!(r#"{{{named}"_meta":{META}}}"#);
    posted(method, name, format!(r#"{{"jsonrpc":"2.0","id":"m","method":"{method}","params":{params}}}"#))
}

/// As an older client says it: `id` is left out of a notification.
fn older(method: &str, params: &str, id: &str) -> Request<Bytes> {
    let body = format!(r#"{{"jsonrpc":"2.0",{id}"method":"{method}","params":{params}}}"#);
    let mut request = posted(method, None, body);
    request.headers_mut().remove("mcp-method");
    request.headers_mut().remove("mcp-protocol-version");
    with(&mut request, "mcp-protocol-version", "2025-11-25");
    request
}

// MCP-05
#[tokio::test]
async fn what_a_client_starts_with_is_open_at_every_host() {
    let (authority, hosts) = hosts().await;
    let modern = OPEN.map(|method| (method, modern(method, None)));
    let since = OPEN[1..].iter().map(|method| (*method, older(method, "{}", r#""id":"m","#)));
    let before = OLDER.iter().map(|(method, params)| (*method, older(method, params, r#""id":"m","#)));
    let told = NOTIFICATIONS.iter().map(|(method, params)| (*method, older(method, params, "")));
    for (method, request) in modern.into_iter().chain(since).chain(before).chain(told) {
        for host in &hosts {
            let before = host.reached();
            let answer = host.send(request.clone()).await;
            let what = format!("{method} at {}: {answer:?}", host.name);
            if method == "notifications/cancelled" && host.is_asked() {
                // Whose session it would be is not known there.
                assert_eq!(
                    (answer.status, answer.error(), host.reached()),
                    (403, "unknown_method".into(), before),
                    "{what}"
                );
                continue;
            }
            assert!((200..300).contains(&answer.status), "{what}");
            // The server behind the guard has no logging, and says so itself.
            let own = host.name == "guard" && method == "logging/setLevel";
            assert_eq!(answer.json().get("error").is_some(), own, "{what}");
            assert!(answer.json()["error"].get("data").is_none(), "{what}");
            // What rmcp answers by itself its server does not hear of.
            let counts = host.name != "guard" || method == "tools/list";
            assert!(!counts || host.reached() == before + 1, "{what}");
            assert!(authority.asked().is_empty(), "{what}");
        }
    }
}

// CORE-16, CORE-84, MCP-06, D-3: 404 to a modern caller, 403 to an older one, at external authorization too; and no challenge,
// since no grant would open it.
#[tokio::test]
async fn what_is_not_known_to_be_open_is_served_at_no_host() {
    let (authority, hosts) = hosts().await;
    for (method, name) in NOT_SERVED {
        let modern = modern(method, name);
        let older = older(method, r#"{"name":"x","uri":"x"}"#, r#""id":"m","#);
        for (request, status) in [
            (standing::signed(modern.clone()), 404),
            (modern, 404),
            (standing::signed(older.clone()), 403),
            (older, 403),
        ] {
            for host in &hosts {
                let answer = host.send(request.clone()).await;
                let what = format!("{method:?} at {}: {answer:?}", host.name);
                let said = answer.json();
                assert_eq!((answer.status, &said["error"]["code"]), (status, &(-32601).into()), "{what}");
                assert_eq!((&said["id"], answer.error()), (&"m".into(), "unknown_method".into()), "{what}");
                assert!(answer.headers.get("www-authenticate").is_none(), "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
    }
    for (method, _) in
        NOT_SERVED.into_iter().chain([("notifications/tasks/status", None), ("notifications/message", None)])
    {
        for host in &hosts {
            let answer = host.send(older(method, "{}", "")).await;
            assert!([400, 403].contains(&answer.status), "{method:?} at {}: {answer:?}", host.name);
            assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{method:?} at {}", host.name);
        }
    }
}

// CORE-84: a first word of an older client is none of a revision without sessions.
#[tokio::test]
async fn no_session_is_begun_in_a_revision_without_them() {
    let (authority, hosts) = hosts().await;
    for host in &hosts {
        let answer = host.send(modern("initialize", None)).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]["code"]),
            (404, &(-32601).into()),
            "{}",
            host.name
        );
        assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{}", host.name);
    }
}
