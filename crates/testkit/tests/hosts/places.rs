//! Where a request is sent, and from which page: spellings of the resource, foreign hosts and origins, at every host that
//! sees HTTP.

use super::authority::Stub;
use super::standing::{self, listing, one_trade, signed, with};
use super::vectors::{ORIGIN, PUBLIC, STAGE, Stage};
use bytes::Bytes;
use http::{HeaderValue, Method, Request};
use sayso_enforce::Authority;
use std::sync::Arc;

async fn hosts() -> (Arc<Stub>, Vec<standing::Standing>) {
    set_up(&STAGE).await
}

async fn set_up(stage: &Stage) -> (Arc<Stub>, Vec<standing::Standing>) {
    let authority = Stub::granting(&one_trade());
    let hosts = standing::all(stage, &(Arc::clone(&authority) as Arc<dyn Authority>)).await;
    (authority, hosts)
}

fn trade() -> Request<Bytes> {
    standing::call("execute_trade", standing::TRADE, "")
}

/// Sent there, by whoever holds a good grant: signed for where it is sent.
fn to(request: Request<Bytes>, target: &str) -> Option<Request<Bytes>> {
    let mut request = request;
    *request.uri_mut() = target.parse().ok()?;
    Some(request)
}

const SPELLINGS: [&str; 23] = [
    "//mcp",
    "/mcp/",
    "/%6Dcp",
    "/%6dcp",
    "/mcp%2F",
    "/mcp%2f..",
    "/mcp;x=1",
    "/mcp;",
    "/./mcp",
    "/x/../mcp",
    "/x/%2e%2e/mcp",
    "/mcp/.",
    "/mcp/%2e",
    "/mcp/..",
    "/mcp%00",
    "/MCP",
    "/mcp%0d%0aX:1",
    "/\\mcp",
    "/mcp\\",
    "*",
    "/mcp//",
    "/check/mcp",
    "/.well-known/oauth-protected-resource/../../mcp",
];

// CORE-84, CORE-115
#[tokio::test]
async fn a_resource_has_one_spelling_at_every_host() {
    let (authority, hosts) = hosts().await;
    for host in &hosts {
        for spelling in SPELLINGS {
            for request in [listing(), trade(), signed(to(trade(), spelling).unwrap()), signed(trade())] {
                let answer = host.send(to(request, spelling).unwrap()).await;
                let what = format!("{spelling} at {}: {answer:?}", host.name);
                // What is published is under the well-known paths, and takes other methods.
                let expected =
                    if spelling.starts_with("/.well-known/") && !host.is_asked() { 405 } else { 404 };
                // No target of a request to a resource at all.
                let expected = if spelling == "*" && host.is_asked() { 400 } else { expected };
                assert!(answer.status == 404 || answer.status == expected, "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        for query in ["/mcp?", "/mcp?x=1", "/mcp?/../mcp", "/mcp?%00"] {
            for request in [listing(), trade(), signed(to(trade(), query).unwrap())] {
                let answer = host.send(to(request, query).unwrap()).await;
                let said = (answer.status, answer.error());
                assert_eq!(said, (400, "invalid_request".into()), "{query} at {}", host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{query} at {}", host.name);
            }
        }
    }
}

// CORE-08, CORE-10, CORE-11, CORE-115: every address of a resource has its own document, and each challenge names the one of
// the address that was called; the grant is for the resource.
#[tokio::test]
async fn every_address_of_a_resource_is_named_as_it_was_called() {
    let stage = Stage { aliases: &["/mcp/alice", "/other"], ..STAGE };
    let (authority, hosts) = set_up(&stage).await;
    for host in hosts.iter().filter(|host| !["layer", "guard"].contains(&host.name)) {
        for (nth, path) in ["/mcp", "/mcp/alice", "/other"].into_iter().enumerate() {
            let challenged = host.send(to(trade(), path).unwrap()).await;
            let document = format!("/.well-known/oauth-protected-resource{path}");
            let what = format!("{path} at {}: {challenged:?}", host.name);
            assert_eq!(challenged.status, 401, "{what}");
            assert_eq!(challenged.json()["resource_metadata"], format!("{PUBLIC}{document}"), "{what}");
            if host.name != "checked over grpc" {
                let mut asking = Request::new(Bytes::new());
                *asking.uri_mut() = document.parse().unwrap();
                with(&mut asking, "host", "gw.example.test");
                let published = host.send(asking).await.json();
                assert_eq!(published["resource"], format!("{PUBLIC}{path}"), "{what}");
                assert_eq!(published["authorization_servers"][0], challenged.json()["as_uri"], "{what}");
            }
            host.send(signed(to(trade(), path).unwrap())).await;
            assert_eq!(host.reached(), nth + 1, "{what}");
            // Proven for one address is not proven for another.
            let elsewhere = to(signed(to(trade(), "/mcp").unwrap()), "/mcp/alice").unwrap();
            let answer = host.send(elsewhere).await;
            assert_eq!((answer.status, host.reached()), (401, nth + 1), "{what}");
        }
        authority.forget();
    }
}

// D-16: an absolute target names a host as well, and an unsigned request is for one of the list.
#[tokio::test]
async fn a_name_that_was_bound_anew_is_no_name_of_ours() {
    let (authority, hosts) = hosts().await;
    let foreign = [
        "evil.example.test",
        "gw.example.test.evil.test",
        "gw.example.test:1",
        "127.0.0.1",
        "[::1]",
        "gw.example.test, evil.example.test",
        "",
        "gw.example.test@evil.test",
    ];
    for host in &hosts {
        for name in foreign {
            for request in [listing(), trade()] {
                let mut request = request;
                request.headers_mut().insert("host", HeaderValue::from_static(name));
                let answer = host.send(request).await;
                assert_eq!(
                    (answer.status, answer.error()),
                    (421, "misdirected_request".into()),
                    "{name:?} at {}",
                    host.name
                );
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{name:?} at {}", host.name);
            }
        }
        let absolute = to(listing(), "http://evil.example.test/mcp").unwrap();
        if !host.is_asked() {
            let answer = host.send(absolute).await;
            assert_eq!((answer.status, host.reached()), (421, 0), "{}", host.name);
        }
    }
}

// CORE-20, MCP-28
#[tokio::test]
async fn an_origin_is_ours_or_foreign_and_foreign_is_refused_on_every_method() {
    let (authority, hosts) = hosts().await;
    let foreign = [
        "null",
        "",
        "https://app.example.test.evil.test",
        "https://evil-app.example.test",
        "http://app.example.test",
        "https://app.example.test:8443",
        "https://app.example.test/",
        "https://app.example.test/path",
        "https://user@app.example.test",
        "https://app.example.test, https://evil.example.test",
        "file://",
        "chrome-extension://abc",
        r"https://app.example.test\@evil.example.test",
        "https://APP.example.test",
    ];
    let bytes = HeaderValue::from_bytes(b"\xff\xfe").unwrap();
    let values: Vec<_> = foreign.into_iter().map(HeaderValue::from_static).chain([bytes]).collect();
    for host in &hosts {
        for value in &values {
            let verbs = [Method::POST, Method::GET, Method::DELETE, Method::OPTIONS];
            let requests =
                verbs.into_iter().map(|verb| (verb, trade())).chain([(Method::POST, signed(trade()))]);
            for (verb, mut request) in requests {
                *request.method_mut() = verb.clone();
                request.headers_mut().insert("origin", value.clone());
                let answer = host.send(request).await;
                let what = format!("{value:?} by {verb} at {}: {answer:?}", host.name);
                assert_eq!((answer.status, answer.error()), (403, "invalid_origin".into()), "{what}");
                assert!(answer.headers.get("access-control-allow-origin").is_none(), "{what}");
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        let mut twice = trade();
        with(&mut twice, "origin", ORIGIN);
        with(&mut twice, "origin", "https://evil.example.test");
        assert_eq!(host.send(twice).await.status, 403, "{}", host.name);
        let mut ours = listing();
        with(&mut ours, "origin", ORIGIN);
        assert_eq!((host.send(ours).await.status, host.reached()), (200, 1), "{}", host.name);
    }
}

// CORE-20, MCP-28: a list that names nobody serves no page but the resource's own, and whoever is no page as ever.
#[tokio::test]
async fn an_empty_list_of_origins_is_no_open_door() {
    let (authority, hosts) = set_up(&Stage { origins: &[], ..STAGE }).await;
    for host in &hosts {
        for origin in [ORIGIN, "null", "", "*", "https://gw.example.test.evil.test"] {
            for request in [listing(), trade(), signed(trade())] {
                let mut request = request;
                with(&mut request, "origin", origin);
                let answer = host.send(request).await;
                let said = (answer.status, answer.error());
                assert_eq!(said, (403, "invalid_origin".into()), "{origin:?} at {}", host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{origin:?} at {}", host.name);
            }
        }
        let mut own = listing();
        with(&mut own, "origin", PUBLIC);
        for (nth, request) in [listing(), own].into_iter().enumerate() {
            assert_eq!((host.send(request).await.status, host.reached()), (200, nth + 1), "{}", host.name);
        }
    }
}

// CORE-20: a foreign page is told so before anybody looks at what it sent.
#[tokio::test]
async fn an_origin_is_judged_before_the_body_at_every_host() {
    let (authority, hosts) = hosts().await;
    let bomb = "[".repeat(200_000);
    let large = "x".repeat(2 << 20);
    for host in &hosts {
        for body in ["", "{", "[]", &bomb, &large, r#"{"jsonrpc":"2.0","jsonrpc":"2.0"}"#] {
            for (name, value) in [("x-a", "b"), ("content-encoding", "gzip"), ("mcp-method", "tools/list")] {
                let mut request = trade().map(|_| Bytes::copy_from_slice(body.as_bytes()));
                with(&mut request, "origin", "https://evil.example.test");
                with(&mut request, name, value);
                let answer = host.send(request).await;
                let said = (answer.status, answer.error());
                assert_eq!(said, (403, "invalid_origin".into()), "{} bytes at {}", body.len(), host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{}", host.name);
            }
        }
    }
}

// E23: whatever is no POST is refused, with and without a session's name, and at every host in the same words.
#[tokio::test]
async fn no_other_method_passes_any_host() {
    let (authority, hosts) = hosts().await;
    for host in &hosts {
        for verb in ["GET", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD", "TRACE", "PROPFIND", "post"] {
            for body in [trade().into_body(), Bytes::new()] {
                let mut request = trade().map(|_| body.clone());
                *request.method_mut() = verb.parse().unwrap();
                let answer = host.send(request).await;
                let what = format!("{verb} at {}: {answer:?}", host.name);
                assert_eq!(
                    (answer.status, answer.headers["allow"].as_bytes()),
                    (405, &b"POST"[..]),
                    "{what}"
                );
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{what}");
            }
        }
        // A session nobody began is nobody's, and where there are none there is none to speak of.
        for verb in ["GET", "DELETE"] {
            for proven in [false, true] {
                let mut request = trade().map(|_| Bytes::new());
                *request.method_mut() = verb.parse().unwrap();
                request.headers_mut().remove("mcp-method");
                request.headers_mut().remove("mcp-name");
                request.headers_mut().insert("mcp-protocol-version", HeaderValue::from_static("2025-11-25"));
                with(&mut request, "mcp-session-id", "somebodys");
                let answer = host.send(if proven { signed(request) } else { request }).await;
                let wanted = if host.is_asked() { 405 } else { 404 };
                assert_eq!(answer.status, wanted, "{verb} in a session at {}: {answer:?}", host.name);
                assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{verb} at {}", host.name);
            }
        }
        // Nothing said is nothing that is known to be open.
        for mut empty in [trade(), listing(), signed(trade().map(|_| Bytes::new()))] {
            *empty.body_mut() = Bytes::new();
            let answer = host.send(empty).await;
            assert_eq!(
                (answer.status, &answer.json()["error"]["code"]),
                (400, &(-32700).into()),
                "{}",
                host.name
            );
            assert_eq!((host.reached(), authority.asked().len()), (0, 0), "{}", host.name);
        }
    }
}
